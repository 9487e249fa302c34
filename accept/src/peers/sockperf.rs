//! sockperf, as a server that never sleeps and as a client that has one request under way.
//!
//! Its `under-load` is no peer on a machine of two CPUs: it sends and receives on two threads that never
//! sleep, and the server has a CPU of its own.

use std::process::Stdio;

use crate::program::{said, until};
use crate::site::{At, Site, Theirs};
use crate::told::sockperfs_sample;

/// What it leaves out at either end of its time, together.
pub(crate) const LEFT_OUT_MS: u64 = 460;

/// A server, once it has its port.
pub(crate) fn server(site: &Site, (ip, port): &At) -> Theirs {
    let mut command = site.command("server", Some(site.server), "sockperf");
    command.args(["server", "--nonblocked", "-i", ip, "-p", &port.to_string()]);
    let started = Theirs(command.stdout(Stdio::null()).spawn().unwrap());
    let sockets = format!("/proc/{}/net/udp", started.0.id());
    until("sockperf listens", || {
        let text = std::fs::read_to_string(&sockets).ok()?;
        text.contains(&format!(":{port:04X} ")).then_some(())
    });
    started
}

/// Round trips of messages of so many bytes, in nanoseconds, from the shortest to the longest.
pub(crate) fn round_trips(
    site: &Site,
    (ip, port): &At,
    [rate, bytes, seconds]: [u64; 3],
) -> Vec<u64> {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut command = site.command("client", Some(site.client), "sockperf");
    command.args(["ping-pong", "--full-rtt", "--nonblocked", "-i", ip, "-p"]);
    command.args([port.to_string(), "-t".to_owned(), seconds.to_string()]);
    command.args(["--mps".to_owned(), rate.to_string(), "-m".to_owned()]);
    command.arg(bytes.to_string()).arg("--full-log").arg(log.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let text = std::fs::read_to_string(log.path()).unwrap();
    let mut times: Vec<u64> = text.lines().filter_map(sockperfs_sample).collect();
    times.sort_unstable();
    times
}
