//! Passing frames on beside Debian's testpmd in its mode `io`, on the same CPU in turn, with the same
//! devices, bursts and memory; and what stamps cost.
//!
//! Never absolute times: each ratio is of rounds measured next to each other, beside the control of
//! testpmd against itself. Where the control is wide, it is printed and nothing is claimed.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod forwarded;
#[path = "../opened.rs"]
mod opened;
#[path = "../../../../tests/pairs.rs"]
mod pairs;
#[path = "../peer.rs"]
mod peer;
#[expect(dead_code, reason = "the places of other tests have ordinary sockets, too")]
#[path = "../../../whylate-port/tests/frames/place.rs"]
mod place;
mod transmit;

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use whylate_clock::{Counter, HardwareCounter};
use whylate_dpdk::Dpdk;
use whylate_dpdk::io::{Course, Stamps, pass};
use whylate_model::{CpuId, Nanos, TicksDelta};
use whylate_port::Frames;
use whylate_stats::ratio::Ratio;
use whylate_sys::affinity;

use opened::opened;
use pairs::{Against, Promise};
use peer::{Testpmd, installed, missing};

/// What both programs take at once.
const BURST: usize = 32;
/// What is promised of the ratio.
const AT_LEAST: Promise = Promise::AtLeast(0.9);
/// Rounds are added so long, and enough of them for a claim are made anyhow, unless a number of them is asked
/// for.
const BUDGET: Duration = Duration::from_secs(30);
const CLAIMED: usize = 8;
/// Periods of a second that testpmd warms up and those that count, and how long we take: where rounds are
/// asked for, and otherwise.
const LONG: Lengths = Lengths { warm: 2, periods: 2, ticks: 3_000_000_000 };
const SHORT: Lengths = Lengths { warm: 1, periods: 1, ticks: 1_200_000_000 };

/// Half of the interval at most of what costs nothing beside itself, for saying what stamps cost.
const CLOSE: f64 = 0.03;

/// How long each part of a round is.
#[derive(Clone, Copy)]
struct Lengths {
    warm: usize,
    periods: usize,
    ticks: u64,
}

impl Lengths {
    fn now() -> Self {
        if pairs::wanted().is_some() { LONG } else { SHORT }
    }
}

/// One at a time: both spin on the same CPU.
static ALONE: Mutex<()> = Mutex::new(());

/// The CPU for passing on, and one for the rest.
fn cpus() -> Option<(CpuId, CpuId)> {
    let cpus = affinity::get();
    if let [first, .., last] = cpus[..] {
        return Some((first, last));
    }
    missing("this test needs two CPUs");
    None
}

fn now_s() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// Frames a second, both ways together, for some `billion` ticks.
fn ours(
    (near, far): (&mut Dpdk<HardwareCounter>, &mut Dpdk<HardwareCounter>),
    stamps: Stamps,
    ticks: u64,
) -> f64 {
    let mut counter = HardwareCounter::open().unwrap();
    let stop = AtomicBool::new(false);
    let end = counter.read_ordered().0 + TicksDelta(ticks);
    let before = now_s();
    let course = Course { burst: BURST, end, stop: &stop };
    let outcome = pass((near, far), &course, stamps, &mut counter).unwrap();
    let seconds = now_s() - before;
    assert!(outcome.cached);
    // What went in comes out: nothing is counted that was not handed over.
    for way in outcome.passed {
        assert_eq!(way.received, way.sent, "{way:?}");
    }
    outcome.frames() as f64 / seconds
}

/// The same by testpmd, as it tells itself.
fn theirs(cpus: (CpuId, CpuId), devices: &[&str], words: &[&str]) -> Option<f64> {
    let mut all = vec!["--forward-mode=io", "--burst=32"];
    all.extend(words);
    let peer = Testpmd::start((cpus.0.0, cpus.1.0), devices, &all);
    let port = |line: &str| {
        let rate = line.trim().strip_prefix("Rx-pps:")?;
        rate.split_whitespace().next()?.parse::<f64>().ok()
    };
    let Lengths { warm, periods, .. } = Lengths::now();
    let mut sum = 0.0;
    for period in 0..warm + periods {
        let rate = peer.next(port)? + peer.next(port)?;
        if period >= warm {
            sum += rate;
        }
    }
    Some(sum / periods as f64)
}

/// Rounds of testpmd, `own`, which tells frames a second as well, and testpmd, held against what is promised
/// where testpmd agrees with itself.
fn beside(
    what: &str,
    cpus: (CpuId, CpuId),
    own: &mut dyn FnMut() -> f64,
    (devices, words): ([&str; 2], &[&str]),
) {
    let theirs = || theirs(cpus, &devices, words).expect("testpmd tells its rate");
    hold(what, ("testpmd", AT_LEAST), (cpus, CLAIMED), || [theirs(), own(), theirs()]);
}

/// Rounds of a peer, us and the peer again, all in frames a second: prints each, and the ratio with its
/// control, and holds it against what is promised where that allows. So many rounds are made at least.
fn hold(
    what: &str,
    (peer, promise): (&str, Promise),
    (cpus, least): ((CpuId, CpuId), usize),
    mut round: impl FnMut() -> [f64; 3],
) {
    let (cpus, names) = ([cpus.0, cpus.1], [what]);
    let of = Against { peer, names, budget: BUDGET, least, cpus: &cpus };
    let [claim] = of.claims(|_| {
        let rates = round();
        let [first, own, second] = rates;
        println!("{what}: {peer} {first:.0}, ours {own:.0}, {peer} {second:.0} frames/s");
        rates.map(|rate| [rate])
    });
    promise.shown_by(claim.as_ref(), &format!("{what} beside {peer}"));
}

#[test]
#[ignore = "live figure: to accept"]
fn frames_are_passed_on_between_null_devices_beside_testpmd() {
    let _alone = ALONE.lock();
    let Some(cpus) = cpus().filter(|_| installed()) else { return };
    affinity::set(&[cpus.0]).unwrap();
    let (mut near, mut far) = (opened("net_null0"), opened("net_null1"));
    affinity::set(&[cpus.1]).unwrap();
    let mut own = || ours((&mut near, &mut far), Stamps::Off, Lengths::now().ticks);
    beside("net_null", cpus, &mut own, (["net_null0", "net_null1"], &[]));
}

#[test]
#[ignore = "live figure: to accept"]
fn frames_are_passed_on_through_shared_memory_beside_testpmd() {
    let _alone = ALONE.lock();
    let Some(cpus) = cpus().filter(|_| installed()) else { return };
    affinity::set(&[cpus.0]).unwrap();
    let words = |at: &str| {
        let socket = format!("whylate-{at}-{}", std::process::id());
        let of =
            |number: u32, role: &str| format!("net_memif{number},role={role},id=0,socket={socket}");
        [of(0, "server"), of(1, "client")]
    };
    let [server, client] = words("ours");
    let (mut near, mut far) = (opened(&server), opened(&client));
    // Who reads a ring puts empty buffers there when it first looks.
    for end in [&mut near, &mut far] {
        assert_eq!(end.receive(Nanos(0)).unwrap().count, 0);
    }
    // As testpmd's first burst: one from each end, and they go round.
    for end in [&mut near, &mut far] {
        for _ in 0..BURST {
            end.put(64).unwrap().fill(5);
        }
        end.flush().unwrap();
    }
    affinity::set(&[cpus.1]).unwrap();
    let [server, client] = words("theirs");
    let mut own = || ours((&mut near, &mut far), Stamps::Off, Lengths::now().ticks);
    beside("net_memif", cpus, &mut own, ([&server, &client], &["--tx-first"]));
}

#[test]
#[ignore = "live figure: to accept"]
fn stamps_of_every_packet_cost_more_than_those_of_bursts_and_both_are_told() {
    let _alone = ALONE.lock();
    let Some(cpus) = cpus() else { return };
    affinity::set(&[cpus.0]).unwrap();
    let (mut near, mut far) = (opened("net_null2"), opened("net_null3"));
    affinity::set(&[cpus.1]).unwrap();
    // Twice without: what these two differ by is what a ratio says of nothing.
    let all = [Stamps::Off, Stamps::Burst, Stamps::Packet, Stamps::Off];
    let mut rounds = Vec::new();
    for _ in 0..8 {
        rounds.push(all.map(|stamps| ours((&mut near, &mut far), stamps, 200_000_000)));
    }
    let ns = |pick: usize| {
        let mut each: Vec<f64> = rounds.iter().map(|round| 1e9 / round[pick]).collect();
        each.sort_by(f64::total_cmp);
        each[each.len() / 2]
    };
    let of = |pair: fn(&[f64; 4]) -> (f64, f64)| {
        let rates: Vec<(f64, f64)> = rounds.iter().map(pair).collect();
        Ratio::of_pairs(&rates, 3).unwrap()
    };
    let [off, burst, packet] = [ns(0), ns(1), ns(2)];
    let control = of(|round| (round[0], round[3]));
    let of_burst = of(|round| ((round[0] * round[3]).sqrt(), round[1]));
    let of_packet = of(|round| ((round[0] * round[3]).sqrt(), round[2]));
    let told = |ratio: &Ratio| {
        let Ratio { mean, interval, .. } = ratio;
        format!("{mean:.3} [{:.3}, {:.3}]", interval.low, interval.high)
    };
    println!(
        "net_null, bursts of {BURST}: {off:.2} ns a packet without stamps (rate over itself {}), \
         {burst:.2} with stamps of bursts (rate {}), {packet:.2} with stamps of every packet (rate {}); \
         medians of {} rounds",
        told(&control),
        told(&of_burst),
        told(&of_packet),
        rounds.len()
    );
    if control.half_width() > CLOSE {
        return pairs::unclaimed(&format!("without stamps the rate over itself is {control:?}"));
    }
    // Two readings and a record a packet cannot be as cheap as two in 32 packets.
    assert!(of_packet.interval.high < of_burst.mean, "{of_packet:?} {of_burst:?}");
}
