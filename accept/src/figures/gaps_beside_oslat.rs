//! Gaps beside those of oslat, and oslat beside itself.
//!
//! Both look for the same gaps in turn, on a host whose noise comes in bursts: fewer than half of the
//! peer's, in the median of the rounds, means that ours does not see them.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::{CpuId, Nanos};

use crate::needed;
use crate::needs;
use crate::peers::oslat::{self, Looked};
use crate::program::recorded;

const SECONDS: u64 = 1;

pub(crate) const FIGURE: Figure = Figure {
    name: "gaps_beside_oslat",
    method: "gaps for a second, between two runs of oslat on the same CPU",
    rows: &[
        Row {
            claim: "gaps of 2 us and more a second over oslat's, in the median",
            unit: "ratio",
            bound: Bound::AtLeast(0.5),
        },
        Row {
            claim: "gaps of 2 us and more a second over oslat's, in the mean",
            unit: "ratio",
            bound: Bound::Told,
        },
        Row { claim: "a turn of the loop over oslat's", unit: "ratio", bound: Bound::Told },
        Row { claim: "longest gap over oslat's", unit: "ratio", bound: Bound::Told },
    ],
    rounds: 6,
    seconds: 6.3,
    most_taken: None,
    needs: || needed::two_ends(&["oslat"]),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let cpu = needs::last_cpu();
    let (before, ours, after) = (oslat::look(cpu, SECONDS), ours(cpu), oslat::look(cpu, SECONDS));
    let beside = |of: fn(&Looked) -> f64| Reading::Beside {
        peer: of(&before),
        ours: of(&ours),
        again: of(&after),
    };
    let peer = (before.gaps_per_second * after.gaps_per_second).sqrt();
    if peer == 0.0 {
        return Err("oslat found no gap of 2 us".to_owned());
    }
    Ok(vec![
        Reading::Value(ours.gaps_per_second / peer),
        beside(|of| of.gaps_per_second),
        beside(|of| of.iteration_ns),
        beside(|of| of.longest_us),
    ])
}

fn ours(cpu: CpuId) -> Looked {
    let words = format!("gaps --no-trace --cpus {cpu} --duration {SECONDS}s");
    let run = recorded(&words).run;
    let found = &run.gaps[0];
    let elapsed_ns = found.end.since(found.start).0 as f64 * 1e9 / run.clock.hz.0;
    let of_two_us = found.rates.iter().find(|rate| rate.at_least == Nanos(2_000));
    Looked {
        iteration_ns: elapsed_ns / found.iterations as f64,
        gaps_per_second: of_two_us.expect("a rate of 2 us").per_second,
        longest_us: run.series[0].max.map_or(0.0, |longest| longest.0 as f64 / 1e3),
    }
}
