//! From the lengths of switches to what is printed of them.

use whylate_cause::rules::r1_cost;
use whylate_model::switch_cost::{Quantum, Repetitions, SwitchTimes};
use whylate_model::{Hertz, Nanos, TicksDelta};
use whylate_stats::student::Spread;
use whylate_stats::{Histogram, quantile};

/// The lengths in the one store that all their numbers come from.
pub(super) fn histogram(lengths: &[TicksDelta], rate: Hertz) -> Histogram {
    let mut histogram = Histogram::new();
    for length in lengths {
        histogram.record(length.to_nanos(rate).0);
    }
    histogram
}

/// Times by rule R1; `contaminated` replaces its guess where events have told. None without a
/// switch.
pub(super) fn times(
    lengths: &[TicksDelta],
    contaminated: Option<u64>,
    rate: Hertz,
) -> Option<SwitchTimes> {
    let cost = r1_cost(lengths.to_vec())?;
    let all = histogram(lengths, rate);
    let at = |percent| quantile::estimate(&all, percent, all.len() as f64).value.map(Nanos);
    let nanos = |ticks: TicksDelta| ticks.to_nanos(rate);
    Some(SwitchTimes {
        n: cost.switches,
        shortest: nanos(cost.shortest),
        cluster_median: cost.expected.map(nanos),
        cluster_interval: cost.interval.map(|(low, high)| (nanos(low), nanos(high))),
        in_cluster: cost.in_cluster,
        contaminated: contaminated.or(cost.expected.map(|_| cost.contaminated)),
        p50: at(50.0),
        p99: at(99.0),
        max: Nanos(all.max().unwrap_or_default()),
    })
}

/// The costs of repetitions, and their interval around that of all of them.
pub(super) fn over(medians: &[Nanos], all: Option<Nanos>) -> Repetitions {
    let costs: Vec<f64> = medians.iter().map(|of| of.0 as f64).collect();
    let interval = Spread::of_mean(&costs).zip(all).map(|(spread, all)| {
        let found = spread.around(all.0 as f64);
        (Nanos(found.low.max(0.0).round() as u64), Nanos(found.high.round() as u64))
    });
    Repetitions { medians: medians.to_vec(), interval }
}

/// How long runners kept the CPU; none without a turn.
pub(super) fn quantum(
    turns: &[TicksDelta],
    switches: u64,
    over: Nanos,
    rate: Hertz,
) -> Option<Quantum> {
    let (median, interval) = median(turns.to_vec())?;
    let nanos = |ticks: TicksDelta| ticks.to_nanos(rate);
    Some(Quantum {
        turns: turns.len() as u64,
        per_second: switches as f64 * 1e9 / over.0.max(1) as f64,
        median: nanos(median),
        interval: interval.map(|(low, high)| (nanos(low), nanos(high))),
    })
}

/// A median and the values between which it lies at 95 %.
type Median = (TicksDelta, Option<(TicksDelta, TicksDelta)>);

/// The median of some values; none of none.
pub(super) fn median(mut values: Vec<TicksDelta>) -> Option<Median> {
    values.sort_unstable();
    let median = values.get(values.len().checked_sub(1)? / 2).copied()?;
    let ranks = quantile::ranks(values.len() as u64, 0.5);
    let at = |rank: Option<u64>| values.get(rank? as usize - 1).copied();
    Some((median, at(ranks.low).zip(at(ranks.high))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HZ: Hertz = Hertz(2e9);

    #[test]
    fn planted_lengths_give_the_cost_that_was_planted() {
        // 200 switches of 2.0 to 2.2 us, a lucky one, ten with something else in them.
        let lengths: Vec<TicksDelta> = (0..200)
            .map(|i| 4_000 + 2 * i)
            .chain([3_500])
            .chain((0..10).map(|i| 40_000 + i))
            .map(TicksDelta)
            .collect();
        let found = times(&lengths, None, HZ).unwrap();
        assert_eq!((found.n, found.shortest, found.contaminated), (211, Nanos(1_750), Some(10)));
        assert_eq!(found.in_cluster, 200);
        let median = found.cluster_median.unwrap();
        assert!((2_095..=2_105).contains(&median.0), "{median}");
        let (low, high) = found.cluster_interval.unwrap();
        assert!(low < median && median < high && high.0 - low.0 < 40, "{low} .. {high}");
        assert_eq!(found.max, Nanos(20_005));
        assert!(found.p50.is_some() && found.p99.is_none(), "211 are too few for the p99");
        assert_eq!(times(&lengths, Some(3), HZ).unwrap().contaminated, Some(3));
        assert_eq!(times(&[], None, HZ), None);
    }

    #[test]
    fn turns_give_the_quantum_and_its_interval() {
        let turns: Vec<TicksDelta> = (0..99).map(|i| TicksDelta(8_000_000 + i * 1_000)).collect();
        let found = quantum(&turns, 100, Nanos(Nanos::SECOND.0 / 2), HZ).unwrap();
        assert_eq!((found.turns, found.median), (99, Nanos(4_024_500)));
        assert!((found.per_second - 200.0).abs() < 1e-9);
        let (low, high) = found.interval.unwrap();
        assert!(low.0 < 4_024_500 && high.0 > 4_024_500);
        assert_eq!(quantum(&[], 0, Nanos(1), HZ), None);
        assert_eq!(median(vec![TicksDelta(7)]), Some((TicksDelta(7), None)));
    }
}
