//! `whylate forward` and `whylate delay` between devices of DPDK, with a client that has both ends of what
//! lies between: each message is counted once, and a delay that was asked for is found again in its time.

use whylate_model::delay::DelayLine;
use whylate_model::forward::{Forward, ForwardDirection};

use crate::tool::{run, said};
use crate::ways::{Cpus, through};
use crate::{alone, cpus};

/// Planted, in nanoseconds: less than a turn between processes takes, and far more than two.
const DELAYS_NS: [u64; 2] = [10_000, 2_000_000];

#[test]
fn messages_go_through_a_forwarder_between_devices_of_dpdk_and_each_is_counted() {
    let _alone = alone();
    let Some(both) = cpus() else { return };
    // By one thread for both directions, and by one for each.
    is_forwarded("forward", "--cpus ", both, 1);
    is_forwarded("divided", &format!("--cpus {},", both.1), both, 2);
}

/// Messages go through a forwarder with these words about its CPUs, which has so many threads.
fn is_forwarded(what: &str, words: &str, cpus: Cpus, threads: usize) {
    let (told, measured) = through(what, ("forward", words), "forwarding between", cpus);
    let told: Forward = serde_json::from_str(&told).unwrap();
    assert!(told.directions.iter().all(ForwardDirection::closes), "{told:?}");
    assert_eq!(told.threads.len(), threads, "{told:?}");
    let there = &told.directions[0];
    let between = there.from.starts_with("net_memif0,") && there.to.starts_with("net_memif1,");
    assert!(between, "{there:?}");
    assert!(there.forwarded >= measured.flow().packets.received, "{told:?}");
    assert_eq!((there.too_long, there.runts), (0, 0), "{told:?}");
    let stayed = there.residence.as_ref().expect("it stamps");
    // What waited or was taken back was stamped, too.
    assert!(there.waiting + there.refused > 0 || stayed.samples == there.forwarded, "{told:?}");
    // A part of the way is no longer than all of it.
    assert!(Some(stayed.min.0) <= measured.times().min(), "{stayed:?}");
}

#[test]
fn a_delay_between_devices_of_dpdk_is_found_again_in_what_goes_through() {
    let _alone = alone();
    let Some(cpus) = cpus() else { return };
    for delay in DELAYS_NS {
        is_found_again(delay, cpus);
    }
}

fn is_found_again(set: u64, cpus: Cpus) {
    let (what, words) = (format!("delay-{set}"), format!("--no-netem --delay {set}ns,0s --cpu "));
    let (told, measured) = through(&what, ("delay", &words), "delaying between", cpus);
    let told: DelayLine = serde_json::from_str(&told).unwrap();
    assert!(told.directions.iter().all(|of| of.counts.closes()), "{told:?}");
    assert_eq!(told.transport, "dpdk");
    let there = &told.directions[0];
    assert!(there.counts.passed_on >= measured.flow().packets.received, "{told:?}");
    assert_eq!((there.counts.lost_on_purpose, there.counts.overflow), (0, 0), "{told:?}");
    let stayed = there.residence.as_ref().expect("frames came");
    // To the nanosecond that it is rounded to.
    assert!(stayed.min.0 + 1 >= set, "{stayed:?}");
    let least = measured.times().min().unwrap();
    // Each process has a calibration of the counter of its own.
    assert!(least >= set - set / 1_000, "{least} ns, and {set} planted");
}

#[test]
fn devices_of_dpdk_that_give_back_what_they_get_are_refused_for_a_forwarder() {
    let _alone = alone();
    for command in ["forward", "delay --no-netem"] {
        let output = run(&format!("{command} net_ring0 net_ring1 --port dpdk --no-dma-latency"));
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{command}: {said}");
        assert!(said.contains("comes back by"), "{command}: {said}");
    }
    let output = run("forward net_null0 net_null0 --port dpdk");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}
