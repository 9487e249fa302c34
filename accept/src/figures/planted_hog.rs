//! A thread that takes the CPU of a sleeping server: which requests wait for a CPU, how long, and what the
//! slow ones consist of.

use std::time::Duration;

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::Ticks;
use whylate_model::breakdown::{Part, Point, Station, StoredJourney};

use super::planted_server_delay::LOOKING;
use crate::hog::{self, Bursts, Pace};
use crate::looked::{Looked, look};
use crate::needed;
use crate::plant;

/// Neither is in step with the requests, of which one at most comes in a burst.
const PACE: Pace = Pace { burst: Duration::from_millis(4), between: Duration::from_micros(67_300) };
const BURST_NS: f64 = 4e6;
/// What the kernel takes, after a hog's last reading, to put it to sleep and to let the next one run.
const HANDED_OVER: f64 = BURST_NS / 20.0;
/// Fewer requests in bursts tell nothing.
const LEAST_IN_BURSTS: usize = 10;

const fn row(claim: &'static str, unit: &'static str, bound: Bound) -> Row {
    Row { claim, unit, bound }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "planted_hog",
    method: "requests to a server that sleeps, beside a thread that takes its CPU for 4 ms now and then, \
             against that thread's own readings of the counter",
    rows: &[
        row("waited for a CPU until the burst's end", "share", Bound::AtLeast(0.9)),
        row("as many waited for long as bursts give", "rounds", Bound::Always),
        row("waited for long without bursts, over those", "ratio", Bound::AtMost(0.2)),
        row("slow ones mostly wait for a CPU", "rounds", Bound::Always),
        row("that wait's share of the slow ones' time", "share", Bound::AtLeast(0.5)),
        row("it is more than that of all", "rounds", Bound::Always),
        row("the thread stands beside the slowest", "rounds", Bound::Always),
    ],
    rounds: 7,
    seconds: 5.9,
    most_taken: Some(0.05),
    needs: || needed::traced(&[]),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let seat = plant::seat();
    let words = format!(
        "{LOOKING} {seat} --rate 200pps --duration 2s --warmup 100ms \
         --slow 95 --no-dma-latency"
    );
    let quiet = look(&words);
    let hog = hog::begin(seat.other, PACE);
    let hogged = look(&words);
    let bursts = hog.end();
    let mut readings = waited(&quiet, &hogged, &bursts)?;
    readings.extend(named(&hogged)?);
    Ok(readings)
}

/// Requests whose reader was woken in a burst wait until its end, as the hog itself tells it, and no others.
fn waited(quiet: &Looked, hogged: &Looked, bursts: &Bursts) -> Result<Vec<Reading>, String> {
    let running = Point::there(Station::Running);
    let waits = Part { from: Point::there(Station::Woken), to: running };
    let late =
        |of: &Looked| of.times(waits).iter().filter(|ns| **ns > BURST_NS / 4.0).count() as f64;
    let (before, now) = (late(quiet), late(hogged));
    let ns = |from: Ticks, to: Ticks| (to.0 as f64 - from.0 as f64) * hogged.tick_ns;
    // Of each: what was left of its burst, and by how much longer it waited.
    let left = |of: &StoredJourney| {
        let at = |point: Point| of.passed[point.index()].map(|(at, _)| at);
        let (woken, running) = (at(waits.from)?, at(waits.to)?);
        let (_, end) = bursts.iter().find(|(from, to)| (*from..=*to).contains(&woken))?;
        Some((ns(woken, *end), ns(*end, running)))
    };
    let planted: Vec<(f64, f64)> = hogged.journeys.iter().filter_map(left).collect();
    if planted.len() < LEAST_IN_BURSTS {
        return Err(format!("{} requests came in one of {} bursts", planted.len(), bursts.len()));
    }
    let long = planted.iter().filter(|(left, _)| *left > BURST_NS / 4.0).count() as f64;
    let right = planted.iter().filter(|(_, more)| more.abs() <= HANDED_OVER).count();
    Ok(vec![
        Reading::Share { hits: right as u64, of: planted.len() as u64 },
        Reading::held((now - long).abs() <= 0.1 * long + 2.0),
        Reading::Value(before / long),
    ])
}

/// The slow requests consist of waiting for a CPU first of all, and the hog stands beside the slowest.
fn named(hogged: &Looked) -> Result<[Reading; 4], String> {
    let breakdown = &hogged.breakdown;
    let slow = breakdown.slow.as_ref().ok_or("no request is slow")?;
    let most = slow.composition.parts.iter().max_by(|a, b| a.mean_ns.total_cmp(&b.mean_ns));
    let most = most.unwrap();
    let usual = breakdown.all.parts.iter().find(|of| of.part == most.part);
    let beside = serde_json::to_string(&breakdown.slowest).unwrap();
    Ok([
        Reading::held(most.part.to == Point::there(Station::Running)),
        Reading::Value(most.share),
        Reading::held(usual.is_some_and(|usual| usual.share < most.share)),
        Reading::held(beside.contains(hog::NAME)),
    ])
}
