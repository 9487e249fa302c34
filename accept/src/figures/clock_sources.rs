//! The counter's frequency by all who state it, and the system's clock by the counter.

use std::time::Duration;

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_clock::{Calibrator, HardwareCounter, Relation};

/// Both clocks are read so often, so far apart.
const OBSERVATIONS: u32 = 20;
const APART: Duration = Duration::from_millis(15);

pub(crate) const FIGURE: Figure = Figure {
    name: "clock_sources",
    method: "a quick calibration of the counter, then 20 readings of it and the system's clock, 15 ms apart",
    rows: &[
        Row {
            claim: "largest difference of a stated frequency beyond what is known of it",
            unit: "ppm",
            bound: Bound::AtMost(1_000.0),
        },
        Row {
            claim: "no clock went back, and two pairs of readings at least were kept",
            unit: "rounds",
            bound: Bound::Always,
        },
        Row {
            claim: "widest bound of a time of the system's clock in ticks",
            unit: "ns",
            bound: Bound::AtMost(50_000.0),
        },
    ],
    rounds: 12,
    seconds: 0.5,
    most_taken: None,
    needs: || HardwareCounter::open().map(drop).map_err(|why| why.to_string()),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let mut counter = HardwareCounter::open().unwrap();
    let calibration = Calibrator::of_this_host(counter).quick().unwrap();
    let beside = calibration.sources.iter().map(|source| source.difference_ppm.abs());
    let largest = beside.fold(0.0, f64::max);
    let mut relation = Relation::new(calibration.hz);
    for _ in 0..OBSERVATIONS {
        relation.observe(&mut counter);
        std::thread::sleep(APART);
    }
    if relation.steps() > 0 {
        return Err("the system's clock was set in the round".to_owned());
    }
    Ok(vec![
        Reading::Value((largest - calibration.bound_ppm).max(0.0)),
        Reading::held(calibration.went_back == 0 && calibration.sandwiches >= 2),
        Reading::Value(relation.bound().0 as f64),
    ])
}
