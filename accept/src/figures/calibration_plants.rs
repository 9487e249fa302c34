//! Whether a calibration finds what its client was told to plant: half a microsecond in every second message,
//! and 5 ms in one of 50.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::calibration::Limit;
use whylate_model::calibration_parts::PlantedFound;

use crate::needed;
use crate::program::record_ending;

const LINE: &str = "calibrate --backends udp:spin --delays 20us --rate 5kpps --warmup 200ms";
/// Of the tries of a planted bias so many find it: an interval of 95 % misses what was planted now and then,
/// not in two of three.
const HELD_OFTEN: u32 = 2;
const TRIES: usize = 3;

const fn row(claim: &'static str) -> Row {
    Row { claim, unit: "share", bound: Bound::Always }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "calibration_plants",
    method: "500 ns in each second message of up to three calibrations, then 5 ms in one of 50 messages",
    rows: &[
        row("clients that tell 450 to 550 ns of their own plant"),
        row("an interval below 2 us that holds 500 ns and not 0, in two of three calibrations"),
        row("without the messages of the planted tail trust reaches p90"),
        row("with them it ends below p99"),
    ],
    rounds: 1,
    seconds: 30.0,
    most_taken: Some(0.05),
    needs: || needed::two_ends(&["ip"]),
    round,
};

fn round(round: Round) -> Result<Vec<Reading>, String> {
    let (mut told, mut tries, mut held) = (0, 0, 0);
    while tries < TRIES && held < HELD_OFTEN {
        tries += 1;
        let seed = round.number * TRIES + tries;
        let of = planted(&format!("--runs 2 --duration 1s --plant-bias 500ns --seed {seed}"));
        let size = of.size_ns.expect("the client tells");
        told += u64::from((450.0..=550.0).contains(&size));
        let (low, high) = of.interval_ns.expect("blocks enough");
        // An interval that holds whatever is there says nothing.
        let is_narrow = high - low < 2_000.0;
        held += u32::from(is_narrow && low > 0.0 && (low..=high).contains(&500.0));
    }
    // Three runs: of two nobody knows how far runs lie apart, and a single one that the host slows down leaves
    // no interval at any percentile.
    let tail = planted("--runs 3 --duration 1s --tolerance 1ms --plant-tail 1in50:5ms --seed 3");
    assert!(tail.size_ns.expect("the client tells") >= 4.99e6, "{tail:?}");
    let percent = |limit: Limit| limit.percent.unwrap_or(0.0);
    Ok(vec![
        Reading::Share { hits: told, of: tries as u64 },
        Reading::held(held >= HELD_OFTEN),
        Reading::held(percent(tail.limit_without) >= 90.0),
        Reading::held(percent(tail.limit_with) < 99.0),
    ])
}

/// What was found of what was planted by these words.
fn planted(words: &str) -> PlantedFound {
    let run = record_ending(&format!("{LINE} {words}"), &[4]).run;
    let planted = run.calibration_parts.expect("a calibration").planted;
    let [planted] = &planted[..] else { panic!("one backend was planted into: {planted:?}") };
    planted.clone()
}
