//! netsniff-ng, which captures, and trafgen of the same hands at a constant rate.
//!
//! What trafgen calls a rate (`-b`) is one of seconds: it sends what a second is to have at once, and waits
//! for the next.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use whylate_model::Pid;
use whylate_sys::signal::send_to_process;

use crate::program::said;
use crate::site::{Site, Theirs};
use crate::told::times_captured;

const SIGINT: i32 = 2;

/// When what came in at the server's end of a bed did while `send` sent, in nanoseconds.
pub(crate) fn captured(site: &Site, filter: &str, send: impl FnOnce()) -> Vec<u64> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("packets.pcap");
    let mut command = site.command("server", Some(site.server), "stdbuf");
    command.args(["-oL", "netsniff-ng", "--in", "server0", "--magic", "0xa1b23c4d", "--silent"]);
    // Whatever it would change of the host is left as it is.
    command.args(["--no-sock-mem", "--notouch-irq", "--no-hwtimestamp", "--ring-size", "32MiB"]);
    command.args(["--filter", filter, "--out"]).arg(&file).stdout(Stdio::piped());
    let mut sniffer = Theirs(command.spawn().unwrap());
    let mut lines = BufReader::new(sniffer.0.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.is_ok_and(|line| line.contains("Running"))), "it does not run");
    send();
    // What is under way has arrived by then.
    std::thread::sleep(Duration::from_millis(200));
    send_to_process(Pid(sniffer.0.id() as i32), SIGINT).unwrap();
    assert!(sniffer.0.wait().unwrap().success());
    times_captured(&std::fs::read(&file).unwrap_or_default())
}

/// Has trafgen send so many packets of a type for experiments, which nobody answers, at the client's end.
pub(crate) fn send_by_trafgen(site: &Site, rate: u64, packets: u64) {
    let mut command = site.command("client", None, "trafgen");
    command.args(["-o", "client0", "-b", &format!("{rate}pps"), "-P", "1", "-n"]);
    // It puts itself on the first CPU.
    let packet = "{ fill(0xff, 6), 0x02, fill(0, 5), c16(0x88b5), fill(0x5a, 50) }";
    let output = command.arg(packets.to_string()).arg(packet).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}
