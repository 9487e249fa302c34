//! Whether messages that are late on purpose, one in ten thousand, move the limit of a live client.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::calibration::Limit;
use whylate_model::run::Run;

use crate::needed;
use crate::program::record_ending;

/// Some 240 000 messages: 24 lie beyond p99.99.
const WORDS: &str = "calibrate --backends udp:spin --delays 20us --rate 15kpps --runs 4 --duration 4s \
                     --warmup 200ms";
/// What is planted is so many times the tolerance, which is so many times what the host does by itself, and
/// this at least; a client gives a message up after a second.
const TIMES: f64 = 4.0;
const LEAST_TOLERANCE_NS: f64 = 1e6;
const MOST_TOLERANCE_NS: f64 = 1e8;
/// Decimal numbers, in binary.
const REACHED: f64 = 99.99 - 1e-9;

pub(crate) const FIGURE: Figure = Figure {
    name: "one_in_ten_thousand",
    method: "a tail that is planted into one of 10 000 messages of a live client, at a tolerance of four times \
             what the host does by itself, and as large as four of them",
    rows: &[
        Row {
            claim: "without the planted messages trust reaches p99.99",
            unit: "rounds",
            bound: Bound::Always,
        },
        Row { claim: "with them it ends below", unit: "rounds", bound: Bound::Always },
    ],
    rounds: 3,
    seconds: 80.0,
    most_taken: Some(0.02),
    needs: || needed::two_ends(&["ip"]),
    round,
};

fn round(round: Round) -> Result<Vec<Reading>, String> {
    let own = late_by_itself().ok_or("the host leaves no interval at p99.99")?;
    let tolerance = (TIMES * own).max(LEAST_TOLERANCE_NS).round();
    if tolerance > MOST_TOLERANCE_NS {
        return Err(format!("one in 10 000 is late by {own:.0} ns by itself"));
    }
    let (by, seed) = (TIMES * tolerance, 4 + round.number);
    let plant = format!("--tolerance {tolerance}ns --plant-tail 1in10000:{by}ns --seed {seed}");
    let run = record_ending(&format!("{WORDS} {plant}"), &[4]).run;
    let planted = run.calibration_parts.as_deref().expect("a calibration").planted.as_slice();
    let [tail] = planted else { panic!("one backend was planted into: {planted:?}") };
    assert!(tail.planted > 0 && tail.size_ns.expect("the client tells") >= 0.999 * by, "{tail:?}");
    let is_reached = |limit: Limit| limit.percent.unwrap_or(0.0) > REACHED;
    Ok([is_reached(tail.limit_without), !is_reached(tail.limit_with)].map(Reading::held).to_vec())
}

/// How late a message of one in ten thousand is here by itself, ns; none where that is not known.
fn late_by_itself() -> Option<f64> {
    let run: Run = record_ending(WORDS, &[0, 4]).run;
    let calibration = run.calibration.expect("a calibration");
    let errors = &calibration.of("udp spin").expect("it was calibrated").errors_compensated;
    let at = errors.iter().find(|at| (at.percent - 99.99).abs() < 1e-9)?;
    Some(at.low_ns?.abs().max(at.high_ns?.abs()))
}
