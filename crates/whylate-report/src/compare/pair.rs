//! The differences of two alike series.

use whylate_model::Nanos;
use whylate_model::series::Quantile;
use whylate_stats::difference::{self, Differences, Intervals, RESAMPLES};
use whylate_stats::quantile::{Estimate, PERCENTS};
use whylate_stats::rank_test::{self, rank_test};
use whylate_stats::sample::Sample;

use super::load::Measured;
use super::{
    Basis, Bound, Compared, Limit, MaxDifference, Measure, NumberDifference, Outcome,
    QuantileDifference, Rank, RateDifference, Spread, Verdict,
};
use crate::numbers::count;

/// The same directories give the same answer.
pub(super) const SEED: u64 = 0x77_68_79;

/// Gap lengths that rates are compared for.
const RATES_AT_LEAST: [Nanos; 4] = [Nanos(1_000), Nanos(10_000), Nanos(100_000), Nanos(1_000_000)];

/// Two series that can be compared, with everything drawn that intervals need.
pub(super) struct Drawn<'a> {
    before: &'a Measured,
    after: &'a Measured,
    differences: Differences<'a>,
    resolution_ns: f64,
}

impl<'a> Drawn<'a> {
    pub(super) fn new(before: &'a Measured, after: &'a Measured, resolution_ns: f64) -> Self {
        let differences =
            Differences::new(&before.sample, &after.sample, &PERCENTS, SEED, RESAMPLES);
        Self { before, after, differences, resolution_ns }
    }

    pub(super) fn compared(&self, above: Option<Nanos>) -> Compared {
        Compared {
            across: Vec::new(),
            above,
            quantiles: PERCENTS.map(|percent| self.quantile(percent)).to_vec(),
            max: self.max(),
            rank: rank_test(&self.before.sample, &self.after.sample).map(rank),
            lost_share: self
                .lost(1.0)
                .map(|found| number(&self.before.lost, &self.after.lost, found)),
            causes: None,
            rates: self.rates(),
        }
    }

    /// Judges a limit; the error says why it cannot be judged.
    pub(super) fn judge(&self, limit: &Limit) -> Result<Outcome, String> {
        let (scale, allowed) = match limit.bound {
            Bound::Relative(share) => (1.0 + share, 0.0),
            Bound::Absolute(ns) => (1.0, ns),
        };
        let (intervals, resolution) = match limit.measure {
            Measure::Quantile(_) | Measure::Max if self.has_no_gap() => {
                let reason = "side B has no stall above the threshold".to_owned();
                return Ok(Outcome::NothingToExceed { reason });
            }
            Measure::Quantile(percent) if self.is_censored(percent) => {
                return Err(format!("p{percent} falls among samples that timed out"));
            }
            Measure::Quantile(percent) => {
                let found = self.differences.quantile(percent, scale);
                let side = match (found.before.value, found.after.value) {
                    (None, _) => Err(unsupported(percent, "A", &found.before)),
                    (_, None) => Err(unsupported(percent, "B", &found.after)),
                    (_, Some(value)) => Ok(self.resolution(value)),
                };
                let resolution = side?;
                let intervals = found
                    .intervals
                    .ok_or_else(|| format!("p{percent} has no lower end of its interval"))?;
                (intervals, resolution)
            }
            Measure::Max if self.before.censored + self.after.censored > 0 => {
                return Err("samples timed out: the maximum is not known".to_owned());
            }
            Measure::Max => {
                let found = difference::of_runs(&self.before.maxima, &self.after.maxima, scale);
                let found = found
                    .ok_or("the maximum of one run has no interval: give several runs of a side")?;
                (found, self.resolution_ns)
            }
            Measure::Lost => {
                let found = self.lost(scale);
                (found.ok_or("only a series of stalls has a lost share")?, 0.0)
            }
        };
        let headline = intervals.headline();
        if !headline.is_bounded() {
            return Err("there are too few intervals of time to tell".to_owned());
        }
        let excess = (headline.low - allowed, headline.high - allowed);
        Ok(Outcome::of(limit.measure, excess, resolution))
    }

    /// Has B measured, and seen no gap while A did?
    fn has_no_gap(&self) -> bool {
        self.after.sample.values().is_empty() && !self.after.lost.is_empty()
    }

    /// Does the quantile of a side fall among values of which only a lower bound is known?
    fn is_censored(&self, percent: f64) -> bool {
        [self.before, self.after].iter().any(|side| {
            let n = side.sample.values().len() as f64;
            side.censored as f64 >= n * (1.0 - percent / 100.0) && side.censored > 0
        })
    }

    fn quantile(&self, percent: f64) -> QuantileDifference {
        if self.is_censored(percent) {
            let (before, after, difference, verdict) = (None, None, None, None);
            return QuantileDifference { percent, before, after, difference, verdict };
        }
        let found = self.differences.quantile(percent, 1.0);
        let largest = found.before.value.max(found.after.value).unwrap_or(0);
        let difference = found.intervals.map(|i| spread(&i, found.before.value.map(|v| v as f64)));
        QuantileDifference {
            percent,
            before: found.before.value.map(Nanos),
            after: found.after.value.map(Nanos),
            verdict: difference.map(|d| verdict(&d, self.resolution(largest))),
            difference,
        }
    }

    fn max(&self) -> MaxDifference {
        if self.before.censored + self.after.censored > 0 {
            let (before, after, difference, verdict) = (None, None, None, None);
            return MaxDifference { before, after, difference, verdict };
        }
        let (before, after) = (&self.before.maxima, &self.after.maxima);
        let found = difference::of_runs(before, after, 1.0);
        let mean = before.iter().sum::<f64>() / before.len() as f64;
        let difference = found.map(|i| Spread { within: None, ..spread(&i, Some(mean)) });
        let max = |side: &Measured| side.sample.values().max().map(Nanos);
        MaxDifference {
            before: max(self.before),
            after: max(self.after),
            verdict: difference.map(|d| verdict(&d, self.resolution_ns)),
            difference,
        }
    }

    fn lost(&self, scale: f64) -> Option<Intervals> {
        difference::of_means(&self.before.lost, &self.after.lost, scale, SEED, RESAMPLES)
            .filter(|found| found.headline().is_bounded())
    }

    fn rates(&self) -> Vec<RateDifference> {
        let per_block = |side: &Measured, at_least: Nanos| -> Vec<Vec<f64>> {
            let runs = side.sample.runs().iter();
            runs.zip(&side.lost)
                .map(|(run, whole)| {
                    let count = |block: &Vec<(u64, u64)>| {
                        let long = block.iter().filter(|(value, _)| *value >= at_least.0);
                        long.map(|(_, count)| *count as f64).sum::<f64>() / run.width()
                    };
                    run.blocks()[..whole.len()].iter().map(count).collect()
                })
                .collect()
        };
        if self.before.lost.is_empty() || self.after.lost.is_empty() {
            return Vec::new();
        }
        let rate = |at_least: Nanos| {
            let (before, after) =
                (per_block(self.before, at_least), per_block(self.after, at_least));
            let found = difference::of_means(&before, &after, 1.0, SEED, RESAMPLES)
                .filter(|found| found.headline().is_bounded())?;
            Some(RateDifference {
                at_least,
                before_below: below(self.before, &before),
                after_below: below(self.after, &after),
                per_second: number(&before, &after, found),
            })
        };
        RATES_AT_LEAST.into_iter().filter_map(rate).collect()
    }

    /// The smallest difference that can be seen there: a step of the clock, or a bin.
    fn resolution(&self, value: u64) -> f64 {
        // Bins are exact up to 2048 and at most a 1024th wide above.
        let bin = if value < 2_048 { 0.0 } else { value as f64 / 1_024.0 };
        self.resolution_ns.max(bin)
    }
}

/// The 95 % upper end of a rate of which nothing was seen: three events over the time.
fn below(side: &Measured, rates: &[Vec<f64>]) -> Option<f64> {
    let seconds = side.elapsed?.0 as f64 / 1e9;
    let none = rates.iter().flatten().all(|rate| *rate <= 0.0);
    (none && seconds > 0.0).then(|| 3.0 / seconds)
}

/// Quantiles of a side, for the eye.
pub(super) fn quantiles(sample: &Sample) -> Vec<Quantile> {
    let values = sample.values();
    let one = |percent: f64| {
        let at = values.value_at(percent);
        let n_eff = at.map_or(0.0, |value| sample.effective_n(value));
        let estimate = whylate_stats::quantile::estimate(values, percent, n_eff);
        Quantile {
            percent,
            value: estimate.value.map(Nanos),
            low: estimate.low.map(Nanos),
            high: estimate.high.map(Nanos),
            n_eff,
        }
    };
    PERCENTS.map(one).to_vec()
}

fn unsupported(percent: f64, side: &str, estimate: &Estimate) -> String {
    let need = whylate_stats::quantile::smallest_n(percent / 100.0);
    format!(
        "p{percent} is not supported by side {side}: its {} samples are worth {} independent \
         ones, and it takes {}",
        count(estimate.n),
        count(estimate.n_eff.round() as u64),
        count(need)
    )
}

fn spread(intervals: &Intervals, before: Option<f64>) -> Spread {
    let pair = |interval: whylate_stats::bootstrap::Interval| (interval.low, interval.high);
    let share = before.filter(|b| *b > 0.0).map(|b| intervals.difference / b);
    Spread {
        difference: intervals.difference,
        relative: share.filter(|share| share.is_finite()),
        interval: pair(intervals.headline()),
        within: Some(pair(intervals.within)),
        between: intervals.between.map(pair),
        resampled: intervals.resampled,
    }
}

fn verdict(difference: &Spread, resolution: f64) -> Verdict {
    match difference.interval {
        (low, _) if low > resolution => Verdict::ALower,
        (_, high) if high < -resolution => Verdict::AHigher,
        _ => Verdict::NoDifferenceShown,
    }
}

fn rank(test: rank_test::RankTest) -> Rank {
    Rank {
        superiority: test.superiority,
        interval: (test.interval.low, test.interval.high),
        p_value: test.p_value,
        p_value_if_independent: test.p_value_if_independent,
        basis: match test.basis {
            rank_test::Basis::Samples => Basis::Samples,
            rank_test::Basis::Blocks => Basis::Blocks,
            rank_test::Basis::Runs => Basis::Runs,
        },
    }
}

pub(super) fn number(
    before: &[Vec<f64>],
    after: &[Vec<f64>],
    found: Intervals,
) -> NumberDifference {
    let mean = |side: &[Vec<f64>]| {
        let blocks = side.concat();
        blocks.iter().sum::<f64>() / blocks.len() as f64
    };
    let difference = spread(&found, Some(mean(before)));
    NumberDifference {
        before: mean(before),
        after: mean(after),
        verdict: verdict(&difference, 0.0),
        difference,
    }
}
