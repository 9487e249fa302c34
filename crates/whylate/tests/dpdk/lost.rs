//! Interfaces beneath devices of DPDK: what becomes of a run whose interface goes away, and rights that opening
//! such a device needs.

use std::process::Command;
use std::thread;
use std::time::Duration;

use whylate_model::warning::Warning;

use crate::peer::missing;
use crate::place::{Bed, Place};
use crate::program;
use crate::tool::{Measured, Service, clean, said};
use crate::{alone, cpus};

const AF_PACKET: &str = "net_af_packet0,iface=near";
const AF_XDP: &str = "net_af_xdp0,iface=near,force_copy=1";
/// It would go on for long.
const LONG: &str = "--rate 1kpps --warmup 100ms --duration 120s --pages ordinary";
/// Frames that the other end has answered by the time something happens: warm-up, and some that count.
const BEFORE: u64 = 400;

/// Frames that the far end has sent.
fn answered(far: &Place) -> u64 {
    let text = far.inside(|| std::fs::read_to_string("/proc/thread-self/net/dev").unwrap());
    let line = text.lines().find_map(|line| line.trim().strip_prefix("far:")).unwrap();
    line.split_whitespace().nth(9).unwrap().parse().unwrap()
}

#[test]
fn a_link_that_goes_away_beneath_a_device_ends_the_run_by_name_and_what_was_measured_is_kept() {
    let _alone = alone();
    let Some(cpus) = cpus() else { return };
    for device in [AF_PACKET, AF_XDP] {
        for (words, named) in
            [("link set near down", "went down"), ("link delete near", "was deleted")]
        {
            let Some(bed) = Bed::new() else { return };
            let listen = format!("reflect --listen 198.18.0.2:11111 --wait block --cpu {}", cpus.0);
            let reflector =
                bed.far.inside(|| Service::start(&format!("{listen} --idle 240s"), "listening on"));
            let asked =
                format!("198.18.0.2:11111 --port dpdk --vdev {device} --from 198.18.0.11 {LONG}");
            let measured = thread::scope(|scope| {
                let measuring = scope.spawn(|| bed.near.inside(|| Measured::new(&asked, cpus.1)));
                while answered(&bed.far) < BEFORE && !measuring.is_finished() {
                    thread::sleep(Duration::from_millis(10));
                }
                assert!(bed.near.ip(words), "{words}");
                measuring.join().unwrap()
            });
            drop(reflector);
            let reason = measured.run.warnings.iter().find_map(|warning| match warning {
                Warning::PartEndedEarly { reason, .. } => Some(reason.as_str()),
                _ => None,
            });
            let reason = reason.unwrap_or_else(|| panic!("{device}: {words}: no warning"));
            assert!(reason.contains("near") && reason.contains(named), "{device}: {reason}");
            let packets = measured.flow().packets;
            assert!(packets.received > 0 && packets.add_up(), "{device}: {packets:?}");
        }
    }
}

#[test]
fn a_right_that_a_device_needs_and_that_is_absent_is_named_before_anything_is_measured() {
    let _alone = alone();
    let Some(cpus) = cpus() else { return };
    let Some(bed) = Bed::new() else { return };
    for (device, lost, named) in [
        (AF_PACKET, "-net_raw", "CAP_NET_RAW"),
        (AF_XDP, "-net_raw", "CAP_NET_RAW"),
        (AF_XDP, "-bpf,-sys_admin", "CAP_BPF"),
        ("net_tap0,iface=whylate-tap", "-net_admin", "CAP_NET_ADMIN"),
    ] {
        let mut command = Command::new("setpriv");
        command.args(["--inh-caps", "-all", "--bounding-set", lost]).arg(program::path());
        let words = format!(
            "rtt 198.18.0.2:11111 --port dpdk --vdev {device} --from 198.18.0.11 --cpus {} --no-trace {LONG}",
            cpus.1
        );
        clean(command.args(words.split_whitespace()));
        let Ok(output) = bed.near.inside(move || command.output()) else {
            return missing("setpriv is not installed");
        };
        let text = said(&output);
        assert_eq!(output.status.code(), Some(1), "{device} {lost}: {text}");
        assert!(text.contains(named), "{device} {lost}: {text}");
    }
}
