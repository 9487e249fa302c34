//! Delays between two devices of DPDK: what is set is found again, and the line says its own error.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::delay::DelayLine;

use crate::over_dpdk::{self, cpus};
use crate::tool::Measured;
use crate::ways::through;

/// A delay that is short, and one that is far more than two turns between processes take.
const SHORT_NS: u64 = 10_000;
const LONG_NS: u64 = 2_000_000;

pub(crate) const FIGURE: Figure = Figure {
    name: "delay_over_dpdk",
    method: "150 messages through a delay line between two devices of shared memory, at each delay",
    rows: &[
        Row {
            claim: "median of departure - arrival - 10 us within the error that the line says",
            unit: "rounds",
            bound: Bound::Always,
        },
        Row {
            claim: "median of departure - arrival - 2 ms within the error that the line says",
            unit: "rounds",
            bound: Bound::Always,
        },
        Row {
            claim: "median time of messages through 2 ms over what is set",
            unit: "ratio",
            bound: Bound::AtMost(2.0),
        },
    ],
    rounds: 7,
    seconds: 4.3,
    most_taken: Some(0.05),
    needs: over_dpdk::program,
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let is_within = |set: u64| {
        let (line, measured) = delayed(set);
        let stayed = line.directions[0].residence.as_ref().expect("frames came");
        let median = stayed.percentiles.first().and_then(|of| of.value).expect("a median").0;
        (Reading::held(median.saturating_sub(set) <= line.base.error.0), measured)
    };
    let [(short, _), (long, measured)] = [SHORT_NS, LONG_NS].map(is_within);
    let median = measured.times().value_at(50.0).expect("messages came");
    Ok(vec![short, long, Reading::Value(median as f64 / LONG_NS as f64)])
}

/// What a line and a client tell of so long a delay.
fn delayed(set: u64) -> (DelayLine, Measured) {
    let words = format!("--no-netem --delay {set}ns,0s --cpu ");
    let what = format!("delay-{set}");
    let (told, measured) = through(&what, ("delay", &words), "delaying between", cpus());
    let line: DelayLine = serde_json::from_str(&told).unwrap();
    let stayed = line.directions[0].residence.as_ref().expect("frames came");
    // To the nanosecond that it is rounded to.
    assert!(stayed.min.0 + 1 >= set, "{stayed:?}");
    (line, measured)
}
