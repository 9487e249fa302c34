//! Ways of messages over devices of DPDK: to a reflector over one or with an ordinary socket, and through what
//! lies between two of them.

use whylate_model::CpuId;

use crate::place::Bed;
use crate::tool::{Measured, Service, memif};

/// CPUs of the other end, or of what lies between, and of the client.
pub type Cpus = (CpuId, CpuId);

const SHORT: &str = "--rate 500pps --warmup 100ms --duration 300ms --pages ordinary";
const ACROSS: &str = "--from 198.18.9.1 --to 198.18.9.2";

/// Runs at most of something whose driver falls over the end of its peer.
const TRIES: usize = 5;

/// The first run whose driver did not fall over the end of its peer.
fn unless_fallen(mut run: impl FnMut(usize) -> (Option<String>, Measured)) -> (String, Measured) {
    for number in 0..TRIES {
        if let (Some(told), measured) = run(number) {
            return (told, measured);
        }
    }
    panic!("the driver fell over the end of its peer {TRIES} times");
}

/// Asks a reflector over shared memory: what it told at its end, and what was measured.
pub fn asked_by_memif(cpus: Cpus) -> (String, Measured) {
    unless_fallen(|number| asked_once_by_memif(&format!("asked-{number}"), cpus))
}

fn asked_once_by_memif(what: &str, cpus: Cpus) -> (Option<String>, Measured) {
    let server = memif(what, 0, "server");
    let words = format!(
        "reflect --port dpdk --vdev {server} --pages ordinary --listen 198.18.9.2:11111 --cpu {} --idle \
         240s",
        cpus.0
    );
    let reflector = Service::start(&words, "listening on");
    let client = memif(what, 0, "client");
    let words = format!("198.18.9.2:11111 --port dpdk --vdev {client} --from 198.18.9.1 {SHORT}");
    let measured = Measured::new(&words, cpus.1);
    measured.is_accounted_by("net_memif0");
    (reflector.stop_unless_fallen(), measured)
}

/// Asks a reflector with an ordinary socket over the driver for packet sockets.
pub fn asked_by_af_packet(bed: &Bed, cpus: Cpus) -> (String, Measured) {
    let words =
        format!("reflect --listen 198.18.0.2:11111 --wait block --cpu {} --idle 240s", cpus.0);
    let reflector = bed.far.inside(|| Service::start(&words, "listening on"));
    let words = format!(
        "198.18.0.2:11111 --port dpdk --vdev net_af_packet0,iface=near,qdisc_bypass=1 --from 198.18.0.11 \
         {SHORT}"
    );
    let measured = bed.near.inside(|| Measured::new(&words, cpus.1));
    measured.is_accounted_by("net_af_packet0");
    (reflector.stop(), measured)
}

/// What lies between two devices of shared memory, by `command` with words that end where the number of a CPU
/// is to stand, and the messages that went through it from the first to the second.
pub fn through(
    what: &str,
    (command, words): (&str, &str),
    ready: &str,
    cpus: Cpus,
) -> (String, Measured) {
    unless_fallen(|number| through_once(&format!("{what}-{number}"), (command, words), ready, cpus))
}

fn through_once(
    what: &str,
    (command, words): (&str, &str),
    ready: &str,
    cpus: Cpus,
) -> (Option<String>, Measured) {
    let [a, b] = [0, 1].map(|number| memif(what, number, "server"));
    let words = format!("{command} {a} {b} --port dpdk --duration 240s {words}{}", cpus.0);
    let service = Service::start(&words, ready);
    let [a, b] = [0, 1].map(|number| memif(what, number, "client"));
    let words = format!("--port dpdk --vdev {a} --across {b} {ACROSS} {SHORT}");
    let measured = Measured::new(&words, cpus.1);
    // Frames are lost where they come in.
    measured.is_accounted_by("net_memif1");
    (service.stop_unless_fallen(), measured)
}
