//! Wake-ups beside those of cyclictest, and cyclictest beside itself.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::CpuId;

use crate::needed;
use crate::needs;
use crate::peers::cyclictest;
use crate::program::recorded;

/// Wake-ups of a recording, and the time between two.
const WAKES: u64 = 4_000;
const PERIOD_US: u64 = 500;
/// What is promised: the same within ten per cent.
const SAME: Bound = Bound::Within(0.9, 1.1);

pub(crate) const FIGURE: Figure = Figure {
    name: "wake_beside_cyclictest",
    method: "lateness of 4 000 wake-ups, 500 us apart, between two runs of cyclictest on the same CPU",
    rows: &[
        Row { claim: "p50 of the lateness over cyclictest's", unit: "ratio", bound: SAME },
        Row { claim: "p99 of the lateness over cyclictest's", unit: "ratio", bound: SAME },
    ],
    rounds: 6,
    seconds: 7.0,
    most_taken: Some(0.05),
    needs: || needed::two_ends(&["cyclictest"]),
    round,
};

fn round(round: Round) -> Result<Vec<Reading>, String> {
    let cpu = needs::last_cpu();
    let (before, ours, after) = (theirs(cpu), ours(cpu, round.number), theirs(cpu));
    let beside = |at: usize| match ours[at] {
        Some(ours) => Reading::Beside { peer: before[at], ours, again: after[at] },
        None => Reading::Absent("the wake-ups do not support the percentile".to_owned()),
    };
    Ok(vec![beside(0), beside(1)])
}

/// Median and 99th percentile, of all samples however they hang together.
fn theirs(cpu: CpuId) -> [f64; 2] {
    let mut late = cyclictest::samples(cpu, PERIOD_US, WAKES);
    assert!(late.len() as u64 >= WAKES * 9 / 10, "cyclictest gave {} samples", late.len());
    late.sort_unstable();
    [50, 99].map(|percent| late[late.len() * percent / 100] as f64)
}

/// The same, as far as wake-ups that hang together support them.
fn ours(cpu: CpuId, seed: usize) -> [Option<f64>; 2] {
    let length_ms = WAKES * PERIOD_US / 1_000;
    let words = format!(
        "wake --cpus {cpu} --period {PERIOD_US}us --duration {length_ms}ms --no-trace --seed {seed}"
    );
    let recorded = recorded(&words);
    let series = recorded.run.series.iter().find(|series| series.name == "wake-HR").unwrap();
    [50.0, 99.0].map(|wanted| {
        let found = series.quantiles.iter().find(|of| (of.percent - wanted).abs() < 1e-9);
        found.and_then(|quantile| quantile.value).map(|value| value.0 as f64)
    })
}
