//! Send lateness beside a thread above the sender: what its bursts make late, and what is left without long
//! turns.

use std::time::Duration;

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::flow::{Pacing, TookTurn};
use whylate_stats::Histogram;

use crate::hog::{self, Pace};
use crate::needed;
use crate::plant;
use crate::program::{Recorded, recorded};
use crate::requests::{flow, logged};

const PACE: Pace = Pace { burst: Duration::from_millis(5), between: Duration::from_millis(45) };
const BURST_NS: u64 = 5_000_000;

const fn row(claim: &'static str, unit: &'static str, bound: Bound) -> Row {
    Row { claim, unit, bound }
}

/// The 99th percentile of all over that of the departures without long turns.
const APART: Bound = Bound::AtLeast(10.0);
/// Of what is late by a quarter of a burst, so much is left without long turns.
const LEFT: Bound = Bound::AtMost(0.05);

pub(crate) const FIGURE: Figure = Figure {
    name: "pacing_beside_hog",
    method: "send lateness beside a thread that takes the sender's CPU for 5 ms now and then, with and \
             without what was due in long turns",
    rows: &[
        row("round trips: p99 over that without long turns", "ratio", APART),
        row("round trips: late departures that are left", "share", LEFT),
        row("round trips: bursts are seen and make late", "rounds", Bound::Always),
        row("one way: p99 over that without long turns", "ratio", APART),
        row("one way: late departures that are left", "share", LEFT),
        row("one way: bursts are seen and make late", "rounds", Bound::Always),
        row("asleep: p99 over that without long turns", "ratio", APART),
        row("asleep: late departures that are left", "share", LEFT),
        row("asleep: bursts are seen and make late", "rounds", Bound::Always),
        row("bursts are named after a thread", "rounds", Bound::Always),
    ],
    rounds: 8,
    seconds: 4.8,
    most_taken: Some(0.025),
    needs: || needed::traced(&[]),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let mut readings = Vec::new();
    for words in ["--rate 10kpps", "--one-way --rate 50kpps", "--wait block --rate 2kpps"] {
        let hogged = Hogged::record(&format!("{words} --no-trace"));
        readings.extend(hogged.excluded());
    }
    readings.push(Reading::held(Hogged::record("--rate 2kpps").is_named()));
    Ok(readings)
}

/// A run beside which a hog took the client's CPU.
struct Hogged {
    recorded: Recorded,
    /// Bursts that surely fell into the measurement: two thirds of all.
    measured: u64,
}

impl Hogged {
    fn record(words: &str) -> Self {
        let seat = plant::seat();
        let hog = hog::begin(seat.client, PACE);
        let recorded = recorded(&format!("rtt {words} {seat} --duration 700ms --warmup 100ms"));
        let measured = hog.end().len() as u64 * 2 / 3;
        Self { recorded, measured }
    }

    fn pacing(&self) -> &Pacing {
        flow(&self.recorded.run).departures.pacing.as_ref().expect("something was intended")
    }

    /// So many bursts took so long.
    fn are_bursts(&self, turns: u64, took_ns: u64) -> bool {
        turns >= self.measured && took_ns >= self.measured * BURST_NS * 9 / 10
    }

    /// How what is late is told apart from what is not.
    fn excluded(&self) -> [Reading; 3] {
        let pacing = self.pacing();
        let [all, apart] = ["rtt-lateness", "rtt-lateness-uninterrupted"]
            .map(|name| logged(&self.recorded.directory, name));
        assert_eq!(pacing.excluded + apart.len(), all.len(), "all are in one of the two");
        let p99 = |of: &Histogram| of.value_at(99.0).expect("requests were sent") as f64;
        let late = |of: &Histogram| of.count_above(BURST_NS / 4) as f64 / of.len().max(1) as f64;
        // What they took is known by its length. One in ten requests was due in a burst, and so the p99 of
        // all is late by most of one.
        let seen = self.are_bursts(pacing.long_turns, pacing.took.0);
        let is_late = p99(&all) > BURST_NS as f64 / 2.0 && late(&all) > 0.04;
        [
            Reading::Value(p99(&all) / p99(&apart)),
            if late(&all) > 0.0 {
                Reading::Value(late(&apart) / late(&all))
            } else {
                Reading::Absent("none was late beside the hog".to_owned())
            },
            Reading::held(seen && is_late),
        ]
    }

    /// A thread is named for each burst.
    fn is_named(&self) -> bool {
        let named = self.pacing().named.as_ref().expect("it spins, and there was a trace");
        let hog = named.by.iter().find(|of| of.what == TookTurn::Thread);
        hog.is_some_and(|of| self.are_bursts(of.turns, of.took.0))
    }
}
