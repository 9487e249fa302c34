//! Proofs on an in-memory port: departures that planted interruptions made late are excluded, and no
//! others.

use whylate_clock::Counter;
use whylate_model::{CpuId, Nanos, Ticks};
use whylate_port::MemoryPort;
use whylate_port::memory::{MemoryCounter, Network};

use super::proofs::{ROUND_TRIP, answered, peer, run_over, settings};
use super::settled::Settled;
use super::{OpenLoop, OpenOutcome};
use crate::message::{Header, Kind};

/// A departure on a quiet path is no later than this: a look and a reading of the clock.
const QUIET: u64 = 50;
/// Longer than the shortest turn that is judged, and no multiple of any period.
const LENGTH: u64 = 213_000;

/// A counter whose reader does not run for [`LENGTH`] once in a period.
#[derive(Clone)]
struct Stopping {
    counter: MemoryCounter,
    next: u64,
    period: u64,
}

impl Counter for Stopping {
    const KIND: &'static str = "simulated";

    fn read(&mut self) -> Ticks {
        let now = self.counter.read();
        if now.0 < self.next {
            return now;
        }
        self.next += self.period;
        self.counter.stop_for(Nanos(LENGTH));
        self.counter.read()
    }

    fn read_ordered(&mut self) -> (Ticks, CpuId) {
        (self.read(), CpuId(0))
    }

    fn cpu(&mut self) -> CpuId {
        CpuId(0)
    }
}

/// A run whose client is stopped once in this period; what was told of each request.
fn stopped(settings: &OpenLoop, period: u64) -> (OpenOutcome, Vec<Settled>) {
    let mut replies = peer(|_, _| answered(ROUND_TRIP));
    let mut port = MemoryPort::new(|message: &[u8], network: &mut Network| {
        let kind = Header::parse(message).unwrap().kind;
        if !matches!(kind, Kind::OneWay | Kind::WarmOneWay) {
            replies(message, network);
        }
    });
    let counter = Stopping { counter: port.counter(), next: 5_000_000, period };
    run_over(settings, &mut port, counter)
}

#[test]
fn departures_that_planted_interruptions_made_late_are_excluded_and_no_others() {
    const PERIOD: u64 = 7_310_000;
    const DURATION: u64 = 300_000_000;
    for (arrivals, one_way) in [("constant", false), ("constant", true), ("poisson", false)] {
        let settings = OpenLoop {
            one_way,
            warmup: Nanos(2_000_000),
            ..settings(arrivals, 100_000.0, Nanos(DURATION))
        };
        let (outcome, told) = stopped(&settings, PERIOD);
        assert!(outcome.adds_up(), "{arrivals} {outcome:?}");
        let of = outcome.interrupted;
        let planted = DURATION / PERIOD;
        assert!(of.interruptions.abs_diff(planted) <= 1, "{arrivals} {of:?}");
        let took = of.took.0.abs_diff(of.interruptions * LENGTH);
        assert!(took <= of.interruptions * 3_000, "{arrivals} {of:?}");
        let late = told.iter().filter(|of| of.sent.unwrap().since(of.intended).0 > QUIET).count();
        // What was due in the last moment of an interruption left in time.
        assert!(late > 15 * planted as usize, "{arrivals} {late}");
        let all = &outcome.latencies;
        let own = if arrivals == "poisson" { 2_000 } else { QUIET };
        assert!(all.uninterrupted.max().unwrap() <= own, "{arrivals} {:?}", all.uninterrupted);
        assert!(all.lateness.max().unwrap() > LENGTH * 9 / 10, "{:?}", all.lateness.max());
        if arrivals == "constant" {
            let more = of.excluded - late as u64;
            assert!(more <= planted, "{arrivals} {} excluded, {late} late", of.excluded);
        }
    }
}

#[test]
fn what_a_sender_is_late_by_itself_stays_however_often_it_was_interrupted() {
    // A rate that it cannot hold, and an interruption in each 3 ms.
    let settings = settings("constant", 15e6, Nanos(30_000_000));
    let (outcome, _) = stopped(&settings, 3_000_000);
    assert!(outcome.adds_up(), "{outcome:?}");
    let (all, of) = (&outcome.latencies, outcome.interrupted);
    assert!(of.interruptions >= 8, "{of:?}");
    assert!(of.excluded < all.lateness.len() / 5, "{of:?} of {}", all.lateness.len());
    let [raw, own] = [&all.lateness, &all.uninterrupted].map(|of| of.value_at(99.0).unwrap());
    assert!(own > raw / 2, "{own} of {raw}");
    // Of what was never sent the last interruption explains the least late alone.
    let above = outcome.given_up;
    assert!(above.uninterrupted_above.unwrap() > above.lateness_above.unwrap(), "{above:?}");
    assert!(above.uninterrupted_above.unwrap().0 < raw / 2, "{above:?} of {raw}");
}
