//! Bounds of what cannot be measured alone: the time in a box, from the time through it.
//!
//! Every measured latency is `M = T + E`: the time in the box, and what the client and its way add.
//! However the two depend on each other (a client that is late while the box is busy, or the reverse),
//!
//! ```text
//! Q_T(p)   <= Q_M(p) - min E                  because T <= M - min E for every packet;
//! Q_T(1-a) >= Q_M(1-a-b) - Q_E(1-b)           for any b in (0, 1-a).
//! ```
//!
//! The second: where T is at most t and E at most e, M is at most t + e; with `t = Q_T(1-a)` and `e =
//! Q_E(1-b)` that is so for a share of at least 1-a-b (Fréchet's inequality), so `Q_M(1-a-b) <= t + e`.
//!
//! Quantiles of samples are not those of what they are drawn from, and to take the best of many b is to
//! look for the luckiest. So each quantile is replaced by its confidence limit by exact order statistics,
//! and what all limits together may fail with (all percentiles, all b tried) is 1 minus the confidence,
//! divided evenly among them (Bonferroni). The b tried depend on the number of samples alone, not on
//! their values. Where values are of a few runs, limits reach at least as far as these lie apart, by Student's
//! t at the same share ([`ByRun`]). The band as a whole then holds the true quantiles with the stated confidence,
//! provided that E is the same with the box as it was measured without. That is why ends may be put in order at no
//! cost: the largest of several lower limits of 95 % each, or the smallest of several upper ones, holds with a little
//! less than 95 %, because it fails where any of them does; of limits that all hold at once with 95 % it does not.

use crate::by_run::ByRun;
use crate::order::{Order, limits};
use crate::quantile;

/// Values, and how many independent ones they are worth at a percentile.
pub struct Side<'a, O: Order + ?Sized> {
    /// The values.
    pub values: &'a O,
    /// The effective sample size at a percentile; clamped to the number of values.
    pub n_eff: &'a dyn Fn(f64) -> f64,
    /// The same values run by run, where they are of several.
    pub runs: Option<&'a ByRun>,
}

impl<'a, O: Order + ?Sized> Side<'a, O> {
    /// Values that do not depend on each other.
    #[must_use]
    pub fn independent(values: &'a O) -> Self {
        Self { values, n_eff: &|_: f64| f64::INFINITY, runs: None }
    }

    /// How many standard errors of its runs a limit reaches that fails with the probability `tail`.
    fn errors(&self, tail: f64) -> f64 {
        self.runs.map_or(0.0, |runs| runs.errors(tail))
    }

    /// Limits of a percentile that each fail with at most the probability `tail`: the wider ones of those of
    /// the pooled values and of those that reach as many standard errors of the runs.
    fn limits(&self, percent: f64, (tail, errors): (f64, f64)) -> [Option<f64>; 2] {
        let pooled = limits(self.values, percent, (self.n_eff)(percent), tail);
        let apart = self.runs.and_then(|runs| Some(errors * runs.error(percent)?));
        let rank = quantile::rank(self.values.count(), percent);
        let own = rank.and_then(|rank| self.values.at_rank(rank));
        let (Some(apart), Some(own)) = (apart, own) else { return [pooled.low, pooled.high] };
        let known = |value: f64| value.is_finite().then_some(value);
        [
            pooled.low.and_then(|low| known(low.min(own.low - apart))),
            pooled.high.and_then(|high| known(high.max(own.high + apart))),
        ]
    }
}

// Not derived: that would ask the same of the values, which are only pointed at.
impl<O: Order + ?Sized> Clone for Side<'_, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O: Order + ?Sized> Copy for Side<'_, O> {}

/// Bounds of one quantile of T, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundsAt {
    /// Which, in percent.
    pub percent: f64,
    /// It is not less; none where the samples are too small for any b.
    pub low_ns: Option<f64>,
    /// It is not more; none where the sample of M does not support it.
    pub high_ns: Option<f64>,
    /// The b behind the lower bound, as a fraction.
    pub b: Option<f64>,
}

/// The b that are tried, as fractions; those that a percentile or a sample cannot use fall away.
pub const TRIED: [f64; 18] = [
    0.5, 0.3, 0.2, 0.1, 0.05, 0.03, 0.02, 0.01, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4, 5e-5, 2e-5,
    1e-5, 1e-6,
];

/// The bounds at each of `percents`, all together with `confidence` (0.95).
///
/// `back_to_back_min_ns` is a time that E is never below: the smallest of back-to-back runs. `error` is
/// E, measured with a known T.
///
/// # Panics
/// When a percentage is not inside 0..100 or `confidence` not inside 0..1.
#[must_use]
pub fn bounds<M: Order + ?Sized, E: Order + ?Sized>(
    measured: Side<'_, M>,
    back_to_back_min_ns: f64,
    error: Side<'_, E>,
    percents: &[f64],
    confidence: f64,
) -> Vec<BoundsAt> {
    assert!(confidence > 0.0 && confidence < 1.0, "{confidence} is no confidence inside 0..1");
    let tail = (1.0 - confidence) / statements(percents) as f64;
    let (of_measured, of_error) = ((tail, measured.errors(tail)), (tail, error.errors(tail)));
    // One limit of E for each b, shared by all percentiles.
    let worst: Vec<(f64, f64)> = TRIED
        .iter()
        .filter_map(|b| Some((*b, error.limits(100.0 * (1.0 - b), of_error)[1]?)))
        .collect();
    let at = |&percent: &f64| {
        let lower = worst.iter().filter(|(b, _)| usable(percent, *b)).filter_map(|(b, worst)| {
            Some((measured.limits(percent - 100.0 * b, of_measured)[0]? - worst, *b))
        });
        let best = lower.max_by(|(one, _), (other, _)| one.total_cmp(other));
        BoundsAt {
            percent,
            low_ns: best.map(|(low, _)| low),
            high_ns: measured.limits(percent, of_measured)[1]
                .map(|high| high - back_to_back_min_ns),
            b: best.map(|(_, b)| b),
        }
    };
    let mut found: Vec<BoundsAt> = percents.iter().map(at).collect();
    in_order(&mut found);
    found
}

/// All of them hold at once, so that what bounds one percentile from above bounds each lower one, and what bounds
/// it from below each higher one.
fn in_order(found: &mut [BoundsAt]) {
    let alone = found.to_vec();
    for at in found {
        let above = alone.iter().filter(|of| of.percent >= at.percent);
        at.high_ns = above.filter_map(|of| of.high_ns).min_by(f64::total_cmp);
        let below = alone.iter().filter(|of| of.percent <= at.percent);
        let best = below.filter_map(|of| Some((of.low_ns?, of.b)));
        if let Some((low, b)) = best.max_by(|(one, _), (other, _)| one.total_cmp(other)) {
            (at.low_ns, at.b) = (Some(low), b);
        }
    }
}

/// Is `percent/100 - b` still a fraction above zero?
fn usable(percent: f64, b: f64) -> bool {
    percent / 100.0 - b > 1e-9
}

/// How many limits must hold at once: of M above at each percentile, of M below at each pair of a
/// percentile and a b, and of E at each b.
fn statements(percents: &[f64]) -> usize {
    let below = |percent: &f64| TRIED.iter().filter(|b| usable(*percent, **b)).count();
    percents.len() + percents.iter().map(below).sum::<usize>() + TRIED.len()
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these results are exact")]
mod tests {
    use super::*;
    use crate::histogram::Histogram;
    use crate::sample::Sample;

    fn values(shift: u64) -> Histogram {
        (1..=1_000_u64).map(|value| value + shift).collect()
    }

    #[test]
    fn limits_that_must_hold_at_once_are_counted() {
        // p50 cannot use the b of a half; each limit of M above, of M below, and of E.
        assert_eq!(statements(&[50.0]), 1 + 17 + 18);
        assert_eq!(statements(&[50.0, 99.0]), 2 + 17 + 18 + 18);
    }

    #[test]
    fn each_limit_may_fail_with_an_even_part_of_what_all_may() {
        let (measured, error) = (values(500), values(0));
        let side = |of| Side::independent(of);
        let found = bounds(side(&measured), 3.0, side(&error), &[50.0], 0.95);
        let tail = 0.05 / 36.0;
        let of = |values: &Histogram, percent| limits(values, percent, f64::INFINITY, tail);
        assert_eq!(found[0].high_ns, of(&measured, 50.0).high.map(|high| high - 3.0));
        let below = |b: f64| {
            let low = of(&measured, 50.0 - 100.0 * b).low?;
            Some(low - of(&error, 100.0 * (1.0 - b)).high?)
        };
        let best = TRIED[1..].iter().filter_map(|b| below(*b)).max_by(f64::total_cmp);
        assert_eq!(found[0].low_ns, best);
        assert_eq!(found[0].b.and_then(below), best);
    }

    #[test]
    fn what_bounds_a_percentile_from_above_bounds_each_lower_one() {
        let at = |percent, low_ns, high_ns, b| BoundsAt { percent, low_ns, high_ns, b };
        let mut found = [
            at(50.0, Some(3.0), Some(26.0), Some(0.1)),
            at(90.0, Some(2.0), Some(12.0), Some(0.2)),
            at(99.0, None, None, None),
        ];
        in_order(&mut found);
        assert_eq!(
            found,
            [
                at(50.0, Some(3.0), Some(12.0), Some(0.1)),
                at(90.0, Some(3.0), Some(12.0), Some(0.1)),
                at(99.0, Some(3.0), None, Some(0.1)),
            ]
        );
    }

    #[test]
    fn limits_reach_as_far_as_runs_lie_apart_to_either_side() {
        let mut sample = Sample::new();
        for shift in [0, 300, 600] {
            sample.push_intervals(&[values(shift)]);
        }
        let runs = ByRun::of(&sample);
        let mut pooled = values(0);
        pooled.add(&values(300));
        pooled.add(&values(600));
        let of = Side { values: &pooled, n_eff: &|_: f64| f64::INFINITY, runs: Some(&runs) };
        let tail = 0.025;
        let apart = runs.apart(50.0, tail).unwrap();
        let rank = quantile::rank(3_000, 50.0).unwrap();
        let own = pooled.at_rank(rank).unwrap();
        let [low, high] = of.limits(50.0, (tail, of.errors(tail)));
        assert_eq!((low, high), (Some(own.low - apart), Some(own.high + apart)));
        // Where runs hardly differ, the pooled values have the wider limits.
        let [low, high] = of.limits(50.0, (tail, 0.0));
        let alone = limits(&pooled, 50.0, f64::INFINITY, tail);
        assert!(alone.low < Some(own.low) && alone.high > Some(own.high), "{alone:?}");
        assert_eq!([low, high], [alone.low, alone.high]);
        assert_eq!(Side::independent(&pooled).errors(tail), 0.0);
    }
}
