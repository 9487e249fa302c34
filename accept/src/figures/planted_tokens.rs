//! A queueing discipline that has tokens for one of two requests: how long it holds the second.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::Ticks;
use whylate_model::breakdown::{Part, Point, Station};

use super::planted_server_delay::{ELSEWHERE, LOOKING, SIZED};
use crate::foreign::at;
use crate::looked::{Looked, found, growth, look, median};
use crate::needed;
use crate::plant;

/// A bucket of tokens for a little more than one frame of `FRAME` bytes, and what it fills by.
const FRAME: f64 = 1_000.0 + 28.0 + 14.0;
const BURST: f64 = 1_100.0;
const BYTES_A_NS: f64 = 4e6 / 8.0 / 1e9;
/// Requests of a pair are no further apart, and pairs no closer.
const OF_A_PAIR_NS: f64 = 1e6;
/// Fewer pairs tell nothing.
const LEAST_PAIRS: usize = 40;

pub(crate) const FIGURE: Figure = Figure {
    name: "planted_tokens",
    method: "time that the second of two requests spends in the queue of a bed's client, which has tokens for \
             the first",
    rows: &[
        Row {
            claim: "in the queue without tokens to wait for, of what they take",
            unit: "share",
            bound: Bound::AtMost(0.1),
        },
        Row { claim: "found in the queue, of what tokens take", unit: "share", bound: SIZED },
        Row { claim: "found in another part", unit: "share", bound: ELSEWHERE },
    ],
    rounds: 7,
    seconds: 5.5,
    most_taken: Some(0.05),
    needs: || needed::traced(&["ip", "tc"]),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let seat = plant::seat();
    let bed = plant::bed("tokens")?;
    let words = format!(
        "--bed {} {LOOKING} {seat} --size 1000 --arrivals pair(10us) \
         --rate 100pps --duration 1200ms --warmup 100ms",
        bed.0
    );
    let queue = |words: &str| at(&bed, "client", &words.split(' ').collect::<Vec<_>>());
    queue("tc qdisc replace dev client0 root noqueue");
    let free = pairs(&look(&words))?;
    queue("tc qdisc replace dev client0 root tbf rate 4mbit burst 1100b limit 100kb");
    let held = pairs(&look(&words))?;
    let planted = held.wait;
    let queued = |part: Part| part.from == Point::there(Station::Queued);
    // Without a discipline the second of a pair is as the first.
    let free = found(&growth(&[[free.first, free.second]]), planted, queued).planted;
    let held = found(&growth(&[[held.first, held.second]]), planted, queued);
    Ok([free.abs(), held.planted, held.elsewhere].map(Reading::Value).to_vec())
}

/// Requests that came first and second of two, and what a bucket of tokens makes the second wait for.
struct Pairs {
    first: Looked,
    second: Looked,
    wait: f64,
}

fn pairs(all: &Looked) -> Result<Pairs, String> {
    let queued = |number: usize| -> Option<Ticks> {
        all.journeys.get(number)?.passed[Point::there(Station::Queued).index()].map(|(at, _)| at)
    };
    let apart = |number: usize| {
        let (first, second) = (queued(number)?, queued(number + 1)?);
        Some((second.0 as f64 - first.0 as f64) * all.tick_ns)
    };
    let close = |number: &usize| apart(*number).is_some_and(|ns| ns < OF_A_PAIR_NS);
    let first: Vec<usize> = (0..all.journeys.len()).filter(close).collect();
    if first.len() < LEAST_PAIRS {
        return Err(format!(
            "{} pairs of {} requests were sent as such",
            first.len(),
            all.journeys.len()
        ));
    }
    let tokens = (2.0 * FRAME - BURST) / BYTES_A_NS;
    let wait = median(first.iter().filter_map(|of| apart(*of)).map(|ns| tokens - ns).collect());
    let numbers = |more: usize| -> Vec<u64> {
        first.iter().map(|of| all.journeys[of + more].number).collect()
    };
    let only = |numbers: &[u64]| all.only(|of| numbers.contains(&of.number));
    Ok(Pairs { first: only(&numbers(0)), second: only(&numbers(1)), wait })
}
