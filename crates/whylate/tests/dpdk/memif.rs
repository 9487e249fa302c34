//! A whole forwarder over shared memory beside testpmd in its mode `io`: `whylate forward --port dpdk
//! --stamps off` as it is run, between the same two devices, with the same frames.
//!
//! The other ends of both devices are here, on another CPU: frames that come by the one go back by the
//! other, so that as many are always under way, and what comes is counted. Who sends them round does as
//! much for a frame as a forwarder has to: where it finds its rings empty, it waits for the forwarder,
//! and the rate is the forwarder's. Where it hardly ever does, the rate is its own and nothing is claimed.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use whylate_clock::{Counter, HardwareCounter};
use whylate_dpdk::Dpdk;
use whylate_dpdk::io::{Course, Outcome, Stamps, pass};
use whylate_model::forward::{Forward, ForwardDirection};
use whylate_model::{CpuId, Nanos, TicksDelta};
use whylate_port::Frames;
use whylate_sys::affinity;
use whylate_sys::nanosleep::{Clock, clock_ns};

use crate::opened::opened;
use crate::pairs::{Against, Promise, say, unclaimed, wanted};
use crate::peer::{Testpmd, installed};
use crate::tool::{Service, memif};
use crate::{alone, cpus};

/// What is promised of the ratio.
const AT_LEAST: Promise = Promise::AtLeast(0.9);
/// Rounds are added so long, and enough for a claim are made anyhow, unless a number of them is asked for.
const BUDGET: Duration = Duration::from_secs(20);
const LEAST: usize = 8;
/// What both take at once, and bursts under way by either way: no ring of 1024 is ever full.
const BURST: usize = 32;
const BURSTS: usize = 8;
/// Ticks before what counts, and those that count.
const WARM: u64 = 600_000_000;
const TICKS: u64 = 3_000_000_000;
/// The same where no number of rounds is asked for.
const TICKS_OF_FEW: u64 = 1_000_000_000;
/// Of the looks of who sends frames round, so many find nothing at least where the forwarder is slower.
const SPARE: f64 = 0.05;
/// A link of shared memory is up within milliseconds.
const LINK_LOOKS: u32 = 1_000;
const LINK_LOOK: Duration = Duration::from_millis(10);

type Link = Dpdk<HardwareCounter>;

/// What a forwarder carried.
struct Carried {
    /// Frames a second, both ways together.
    rate: f64,
    /// Share of looks that found nothing, of who sent them round.
    spare: f64,
}

/// Sends round what comes for so many ticks: what it did, and frames a second.
fn round(near: &mut Link, far: &mut Link, ticks: u64) -> (Outcome, f64) {
    let mut counter = HardwareCounter::open().unwrap();
    let stop = AtomicBool::new(false);
    let begun = clock_ns(Clock::Monotonic);
    let end = counter.read_ordered().0 + TicksDelta(ticks);
    let course = Course { burst: BURST, end, stop: &stop };
    let outcome = pass((near, far), &course, Stamps::Off, &mut counter).unwrap();
    let lasted_ns = clock_ns(Clock::Monotonic) - begun;
    let rate = outcome.frames() as f64 * 1e9 / lasted_ns as f64;
    (outcome, rate)
}

/// What a forwarder carries between two devices, which `begin` starts with their words, and the
/// forwarder. This thread is on `cpu` meanwhile.
fn carried<F>(cpu: CpuId, begin: impl FnOnce([&str; 2]) -> F) -> (Carried, F) {
    static ROUNDS: AtomicUsize = AtomicUsize::new(0);
    // Each has links of its own: nothing of the last one comes by them.
    let what = format!("memif{}", ROUNDS.fetch_add(1, Ordering::Relaxed));
    let [mut near, mut far] = [0, 1].map(|number| opened(&memif(&what, number, "server")));
    let [a, b] = [0, 1].map(|number| memif(&what, number, "client"));
    let forwarder = begin([&a, &b]);
    let up = (0..LINK_LOOKS).any(|_| {
        let up = near.is_up() && far.is_up();
        if !up {
            thread::sleep(LINK_LOOK);
        }
        up
    });
    assert!(up, "the forwarder has its ends of the links");
    // Who reads a ring puts empty buffers there when it first looks. What comes was to find out whether
    // the two are joined.
    for end in [&mut near, &mut far] {
        while end.receive(Nanos(1_000_000)).unwrap().count > 0 {}
    }
    for end in [&mut near, &mut far] {
        for _ in 0..BURSTS {
            for _ in 0..BURST {
                end.put(64).expect("the ring is empty").fill(5);
            }
            end.flush().unwrap();
        }
    }
    let all = affinity::get();
    affinity::set(&[cpu]).unwrap();
    round(&mut near, &mut far, WARM);
    let ticks = if wanted().is_some() { TICKS } else { TICKS_OF_FEW };
    let (outcome, rate) = round(&mut near, &mut far, ticks);
    affinity::set(&all).unwrap();
    let sum = |of: fn(&whylate_dpdk::io::Passed) -> u64| outcome.passed.iter().map(of).sum::<u64>();
    let (empty, bursts) = (sum(|way| way.empty), sum(|way| way.bursts));
    assert!(bursts > 0, "nothing came back: {outcome:?}");
    (Carried { rate, spare: empty as f64 / (empty + bursts) as f64 }, forwarder)
}

fn ours(cpus: (CpuId, CpuId)) -> Carried {
    let begin = |[a, b]: [&str; 2]| {
        let words =
            format!("forward {a} {b} --port dpdk --stamps off --duration 60s --cpus {}", cpus.1);
        Service::start(&words, "forwarding between")
    };
    let (carried, service) = carried(cpus.0, begin);
    let told: Forward = serde_json::from_str(&service.stop()).unwrap();
    assert!(told.directions.iter().all(ForwardDirection::closes), "{told:?}");
    assert!(told.directions.iter().all(|of| of.forwarded > 0 && of.too_long == 0), "{told:?}");
    carried
}

fn testpmds(cpus: (CpuId, CpuId)) -> Carried {
    let begin = |devices: [&str; 2]| {
        let words = ["--forward-mode=io", "--burst=32", "--no-lsc-interrupt"];
        let peer = Testpmd::start((cpus.0.0, cpus.1.0), &devices, &words);
        let runs = peer.next(|line| line.contains("statistics for port").then_some(()));
        assert!(runs.is_some(), "testpmd did not start");
        peer
    };
    carried(cpus.0, begin).0
}

#[test]
#[ignore = "live figure: to accept"]
fn a_whole_forwarder_through_shared_memory_stands_beside_testpmd() {
    let _alone = alone();
    let Some(cpus) = cpus().filter(|_| installed()) else { return };
    let spare = Cell::new(1.0_f64);
    let theirs = || {
        let carried = testpmds(cpus);
        spare.set(spare.get().min(carried.spare));
        carried.rate
    };
    let (peer, names) = ("testpmd", ["a whole forwarder on net_memif"]);
    let of = Against { peer, names, budget: BUDGET, least: LEAST, cpus: &[cpus.0, cpus.1] };
    let [claim] = of.claims(|_| {
        let (first, own, second) = (theirs(), ours(cpus), theirs());
        say(&format!(
            "testpmd {first:.0}, ours {:.0} ({:.0}% of looks in vain), testpmd {second:.0} frames/s",
            own.rate,
            100.0 * own.spare
        ));
        [[first], [own.rate], [second]]
    });
    let in_vain = 100.0 * spare.get();
    say(&format!(
        "with testpmd, who sends frames round looked in vain {in_vain:.0}% of the time or more"
    ));
    if spare.get() < SPARE {
        return unclaimed("testpmd is faster than who sends frames round can tell");
    }
    AT_LEAST.shown_by(claim.as_ref(), names[0]);
}
