//! The period of the loop that looks for gaps beside back-to-back readings of the counter.

use std::sync::atomic::AtomicBool;

use accept::figure::{Bound, Figure, Reading, Round, Row, anywhere};
use whylate_clock::{Counter, HardwareCounter};
use whylate_gap::blocks::Blocks;
use whylate_gap::hot::{self, Limits, Live, Recorder};
use whylate_gap::ring;
use whylate_gap::table::LogLinear;
use whylate_gap::workload::{Nothing, Workload};
use whylate_model::{Ticks, TicksDelta};

/// Measurements of some milliseconds in a round, and of these without a neighbour in them, at least.
const TIMES: usize = 250;
const FEWEST: usize = 3;

pub(crate) const FIGURE: Figure = Figure {
    name: "chain_loop_cost",
    method: "the chain loop between readings of the counter, 250 times, of those that agree with the shortest",
    rows: &[Row {
        claim: "period of the chain loop over that of readings",
        unit: "ratio",
        bound: Bound::AtMost(1.05),
    }],
    rounds: 6,
    seconds: 1.6,
    most_taken: None,
    needs: anywhere,
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let mut counter = HardwareCounter::open().unwrap();
    let measured: Vec<[f64; 3]> = (0..TIMES)
        .filter_map(|_| {
            let before = back_to_back(&mut counter);
            let chain = chain_period(&mut counter)?;
            Some([before, chain, back_to_back(&mut counter)])
        })
        .collect();
    let mut ratios = undisturbed(&measured);
    if ratios.len() < FEWEST {
        return Err(format!("a neighbour was in all but {} of {TIMES}", ratios.len()));
    }
    ratios.sort_by(f64::total_cmp);
    Ok(vec![Reading::Value(ratios[ratios.len() / 2])])
}

/// The loop over the readings, of rounds in which readings before and after took as long as the
/// shortest that agree: a neighbour on the same core slows what executes more, and nobody tells.
fn undisturbed(rounds: &[[f64; 3]]) -> Vec<f64> {
    const NEAR: f64 = 1.01;
    let agree = rounds.iter().filter(|of| of[0].max(of[2]) <= of[0].min(of[2]) * NEAR);
    let mean = |of: &[f64; 3]| f64::midpoint(of[0], of[2]);
    let least = agree.clone().map(mean).fold(f64::INFINITY, f64::min);
    agree.filter(|of| mean(of) <= least * NEAR).map(|of| of[1] / mean(of)).collect()
}

/// Ticks of one reading among sixteen written one after another: median over blocks.
fn back_to_back(counter: &mut HardwareCounter) -> f64 {
    const ROUNDS: u64 = 256;
    const UNROLLED: u64 = 16;
    let mut means: Vec<u64> = (0..51)
        .map(|_| {
            let begin = counter.read();
            for _ in 0..ROUNDS {
                std::hint::black_box([
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                ]);
            }
            counter.read().since(begin).0
        })
        .collect();
    means.sort_unstable();
    means[means.len() / 2] as f64 / (ROUNDS * UNROLLED) as f64
}

/// The period of the chain loop by its own gap-free blocks, over as much time; none where the host
/// left no block whole.
fn chain_period(counter: &mut HardwareCounter) -> Option<f64> {
    /// Ticks of one measurement: a few milliseconds.
    const LENGTH: TicksDelta = TicksDelta(6_000_000);
    let (producer, _consumer) = ring::ring();
    let (live, stop, overflow) = (Live::default(), AtomicBool::new(false), LogLinear::default());
    let blocks = Blocks::new(Nothing::BLOCK, 1024.0);
    let far = TicksDelta(u64::MAX >> 1);
    let end = counter.read() + LENGTH;
    let limits = Limits {
        threshold: TicksDelta(400),
        recording: far,
        recording_with_switches: far,
        stop_at: TicksDelta(u64::MAX),
        begin: Ticks(0),
        end,
    };
    let mut recorder = Recorder::new(producer, &overflow, &live, &stop, None, limits);
    hot::chain(counter, &mut Nothing, &mut recorder, &blocks);
    blocks.period().map(|period| period.median)
}
