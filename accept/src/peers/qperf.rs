//! qperf, asleep between messages at both ends.

use std::process::Stdio;

use crate::program::until;
use crate::site::{Site, Theirs};
use crate::told::qperfs_number;

/// A server, and what its client tells of it.
pub(crate) struct Qperf<'a> {
    site: &'a Site,
    port: String,
    _server: Theirs,
}

impl<'a> Qperf<'a> {
    pub(crate) fn new(site: &'a Site) -> Self {
        let port = site.free_place().1.to_string();
        let mut server = site.command("server", Some(site.server), "qperf");
        server.args(["--listen_port", &port]).stdout(Stdio::null());
        Self { site, port, _server: Theirs(server.spawn().unwrap()) }
    }

    /// Its mean round trip of 64 bytes in nanoseconds, which is the time that it took by the messages that
    /// came, and the latency that it tells.
    pub(crate) fn ask(&self) -> (f64, f64) {
        let text = until("qperf answers", || {
            let mut client = self.site.command("client", Some(self.site.client), "qperf");
            client.args(["127.0.0.1", "--listen_port", &self.port, "-t", "1", "-m", "64", "-uu"]);
            let output = client.args(["-vvs", "-vvt", "udp_lat"]).output().unwrap();
            output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
        });
        let told = |name| {
            qperfs_number(&text, name)
                .unwrap_or_else(|| panic!("qperf does not tell {name}: {text}"))
        };
        (told("loc_real_time") / told("loc_recv_msgs"), told("latency"))
    }
}
