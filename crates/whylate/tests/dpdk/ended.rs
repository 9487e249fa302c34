//! `whylate forward` between two devices of shared memory of which the other end of one dies: a testpmd that
//! is killed while the frames of another one go through to it.

use whylate_model::forward::{Forward, ForwardDirection, ForwardEnd};
use whylate_model::warning::Warning;

use crate::peer::{Testpmd, installed};
use crate::tool::{Service, memif};
use crate::{alone, cpus};

/// Statistics in which the sender sends on, until it is seen that the forwarder goes on without the receiver:
/// who is at the other end of shared memory that nobody empties soon sends nothing more.
const SENT_ON: usize = 3;

/// Of a line of a testpmd's statistics: were there frames?
fn has_frames(line: &str, which: &str) -> Option<()> {
    let rate = line.trim().strip_prefix(which)?.split_whitespace().next()?;
    rate.parse::<f64>().ok().filter(|rate| *rate > 0.0).map(|_| ())
}

#[test]
fn a_testpmd_that_is_killed_behind_a_forwarder_is_told_and_counted_and_nothing_hangs() {
    let _alone = alone();
    let Some(cpus) = cpus().filter(|_| installed()) else { return };
    let [a, b] = [0, 1].map(|number| memif("ended", number, "server"));
    let words = format!("forward {a} {b} --port dpdk --duration 240s --cpus {}", cpus.1);
    let forwarder = Service::start(&words, "forwarding between");
    let ends = |number: usize, mode: &str| {
        // Each process has one device, whose number in it is its own.
        let device = memif("ended", number, "client").replacen(
            &format!("net_memif{number}"),
            "net_memif0",
            1,
        );
        Testpmd::start((cpus.0.0, cpus.0.0), &[&device], &[mode, "--no-lsc-interrupt"])
    };
    let mut receiver = ends(1, "--forward-mode=rxonly");
    let sender = ends(0, "--forward-mode=txonly");
    assert!(receiver.next(|line| has_frames(line, "Rx-pps:")).is_some(), "frames come through");
    receiver.kill();
    sender.forget();
    for _ in 0..SENT_ON {
        assert!(sender.next(|line| has_frames(line, "Tx-pps:")).is_some(), "it sends on");
    }
    let told: Forward = serde_json::from_str(&forwarder.stop()).unwrap();
    assert_eq!(told.ended, ForwardEnd::Stopped, "it goes on without the other end: {told:?}");
    assert!(told.directions.iter().all(ForwardDirection::closes), "{told:?}");
    let there = &told.directions[0];
    assert!(there.forwarded > 0 && there.refused > 0, "{there:?}");
    // Whoever sends is there all the time.
    assert!(told.ports[0].downs == 0 && told.ports[1].downs > 0, "{told:?}");
    let is_told = |of: &Warning| match of {
        Warning::LinkDown { interface, .. } => interface == "net_memif1",
        _ => false,
    };
    assert!(told.warnings.iter().any(is_told), "{told:?}");
    let given_up = told.ports[1].drops.iter().find(|drops| drops.counter == "link_down");
    assert_eq!(given_up.map(|drops| drops.count), Some(there.refused), "{told:?}");
}
