//! Working sets of runners: how often a trial switches, and what reading a set takes.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::switch_cost::SwitchCost;

use crate::needs;
use crate::program::recorded;

pub(crate) const FIGURE: Figure = Figure {
    name: "working_sets",
    method: "penalties of 16 KiB and 1 MiB by our quanta, and of 16 and 256 KiB by the kernel's",
    rows: &[
        Row {
            claim: "switches of a trial by our quanta",
            unit: "switches",
            bound: Bound::AtLeast(20.0),
        },
        Row {
            claim: "passes alone in a trial by our quanta",
            unit: "passes",
            bound: Bound::AtLeast(1.0),
        },
        Row {
            claim: "switches of a trial by the kernel's quanta",
            unit: "switches",
            bound: Bound::Within(5.0, 400.0),
        },
        Row {
            claim: "reading 1 MiB over reading 16 KiB",
            unit: "ratio",
            bound: Bound::AtLeast(5.0),
        },
        Row {
            claim: "refilling 1 MiB is predicted to take longer than 16 KiB",
            unit: "rounds",
            bound: Bound::Always,
        },
        Row {
            claim: "pieces by which a bandwidth is known, at least",
            unit: "pieces",
            bound: Bound::AtLeast(100.0),
        },
    ],
    rounds: 7,
    seconds: 4.0,
    most_taken: Some(0.1),
    needs: needs::can_be_root,
    round,
};

fn round(round: Round) -> Result<Vec<Reading>, String> {
    let seed = round.number;
    let of = |words: &str| {
        let words =
            format!("switch-cost --indirect {words} --no-trace --no-dma-latency --seed {seed}");
        recorded(&words).run.switch_cost.unwrap()
    };
    let ours = of("--sizes 16KiB,1MiB --trials 4 --trial 30ms");
    let kernels = of("--sizes 16KiB,256KiB --quantum kernel --trials 2 --trial 120ms");
    let warm = |index: usize| ours.indirect[index].passes.unwrap().warm_ns;
    let refills = [0, 1].map(|index: usize| ours.indirect[index].refill);
    let refills = match refills {
        [Some(small), Some(large)] => {
            let longer = small.cold_ns < large.cold_ns && small.warm_ns < large.warm_ns;
            Reading::held(longer && large.reached <= small.reached)
        }
        _ => Reading::Absent("no bandwidth is known".to_owned()),
    };
    let pieces = ours.bandwidths.iter().filter(|of| of.gb_per_s.is_some()).map(|of| of.pieces);
    let pieces = pieces.min().map(|pieces| pieces as f64);
    let none = || Reading::Absent("no caches are told here".to_owned());
    Ok(vec![
        least(&ours, |cost| cost.switches),
        least(&ours, |cost| cost.passes_alone),
        least(&kernels, |cost| cost.switches),
        Reading::Value(warm(1) / warm(0)),
        refills,
        pieces.map_or_else(none, Reading::Value),
    ])
}

/// The least of the working sets that have a penalty.
fn least(cost: &SwitchCost, of: fn(&whylate_model::switch_cost::Penalty) -> f64) -> Reading {
    let found = cost.indirect.iter().filter_map(|row| row.penalty.as_ref()).map(of);
    let least = found.min_by(f64::total_cmp);
    least.map_or_else(|| Reading::Absent("no set has a penalty".to_owned()), Reading::Value)
}
