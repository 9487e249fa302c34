//! Departures of a Poisson process and of a constant rate, held against an exponential distribution of their
//! distances by the log of the run.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::flow::{Departures, ProcessVerdict};
use whylate_stats::Histogram;

use crate::exponential::{MEAN_NS, from_exponential};
use crate::needs;
use crate::program::record_ending;
use crate::requests::{flow, logged};

const fn row(claim: &'static str) -> Row {
    Row { claim, unit: "share", bound: Bound::Always }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "departure_process",
    method: "5 000 departures a second for 2 s, but for what the run excludes itself",
    rows: &[
        row("9 of 10 departures have a distance in the log"),
        row("a Poisson process is no farther from one than chance and sends make it"),
        row("what the run says of its distance is what its log says"),
        row("a constant rate is farther than 0.36 from a Poisson process"),
        row("0.98 of the distances of a constant rate are within a fifth of the mean"),
    ],
    rounds: 3,
    seconds: 5.1,
    most_taken: None,
    needs: || needs::can_use(2),
    round,
};

fn round(round: Round) -> Result<Vec<Reading>, String> {
    let mut enough = true;
    let mut of = |arrivals: &str| {
        let words = format!(
            "rtt --rate 5kpps --arrivals {arrivals} --duration 2s --warmup 100ms --no-trace \
             --seed {}",
            4 + round.number
        );
        let recorded = record_ending(&words, &[0, 4]);
        let departures = flow(&recorded.run).departures.clone();
        let gaps = logged(&recorded.directory, "rtt-departures");
        enough &= gaps.len() > 9_000;
        (departures, gaps)
    };
    let (poisson, constant) = (like_poisson(&of("poisson")), like_none(&of("constant")));
    let [near, same] = poisson;
    let [far, close] = constant;
    Ok([enough, near, same, far, close].map(Reading::held).to_vec())
}

/// A machine that takes the client's CPU away makes trains of what was to be apart: by as many distances as
/// departures were late for it, and one more at the end of each.
fn spoilt(departures: &Departures, gaps: &Histogram) -> f64 {
    let pacing = departures.pacing.as_ref().expect("something was intended");
    2.0 * (pacing.excluded + pacing.long_turns) as f64 / gaps.len() as f64
}

fn like_poisson((departures, gaps): &(Departures, Histogram)) -> [bool; 2] {
    let found = from_exponential(gaps, MEAN_NS);
    // The largest distance that chance makes in 1 of 1 000 runs. None is closer to the next than
    // a send takes.
    let chance = 1.95 / (gaps.len() as f64).sqrt();
    let sending = departures.pacing.as_ref().map_or(0, |of| of.sending.0);
    let send = 1.0 - (-(sending as f64) / MEAN_NS as f64).exp();
    let near = found < chance + send + spoilt(departures, gaps);
    let of = departures.process.distribution.expect("it was tested");
    let held = departures.process.verdict == ProcessVerdict::Held;
    assert!(!held || of.largest <= 0.02 || of.a_squared <= 3.857, "{departures:?}");
    // By the run itself, in 4 096 bins of the transform, and here, from its log.
    [near, (of.largest - found).abs() < 0.005]
}

fn like_none((departures, gaps): &(Departures, Histogram)) -> [bool; 2] {
    assert_eq!(departures.process.distribution, None);
    let (found, spoilt) = (from_exponential(gaps, MEAN_NS), spoilt(departures, gaps));
    let near = gaps.count_above(MEAN_NS * 4 / 5) - gaps.count_above(MEAN_NS * 6 / 5);
    [found > 0.36 - spoilt, near as f64 / gaps.len() as f64 > 0.98 - spoilt]
}
