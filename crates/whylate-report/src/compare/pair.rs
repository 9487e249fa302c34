//! The differences of two alike series.

use whylate_model::Nanos;
use whylate_stats::difference::{self, Differences, Intervals, RESAMPLES};
use whylate_stats::quantile::{PERCENTS, smallest_n};
use whylate_stats::rank_test::{self, rank_test};
use whylate_stats::sample::Counts;

use super::load::{Measured, centred};
use super::{
    Basis, Bound, Compared, Limit, MaxDifference, Measure, NumberDifference, Outcome,
    QuantileDifference, Rank, RateDifference, Shown, Spread, Verdict,
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
    /// What is told of each, which is all that may be told of it here.
    shown: [&'a Shown; 2],
    differences: Differences<'a>,
    resolution_ns: f64,
}

impl<'a> Drawn<'a> {
    pub(super) fn new(
        (before, of_before): (&'a Measured, &'a Shown),
        (after, of_after): (&'a Measured, &'a Shown),
    ) -> Self {
        let differences =
            Differences::new(&before.sample, &after.sample, &PERCENTS, SEED, RESAMPLES);
        let resolution_ns = of_before.resolution_ns.max(of_after.resolution_ns);
        Self { before, after, shown: [of_before, of_after], differences, resolution_ns }
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
            rates: self.rates(above.unwrap_or_default()),
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
            Measure::Quantile(percent) => {
                let [_, after] = self.values(percent)?;
                let found = self.differences.quantile(percent, scale).intervals;
                let intervals =
                    found.ok_or_else(|| format!("p{percent} has no lower end of its interval"))?;
                (intervals, self.resolution(after.0))
            }
            Measure::Max if self.shown.iter().any(|side| side.censored.is_some()) => {
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

    /// A percentile of both sides; the error says why one of them does not tell it.
    fn values(&self, percent: f64) -> Result<[Nanos; 2], String> {
        if self.shown.iter().any(|side| side.is_timed_out(percent)) {
            return Err(format!("p{percent} falls among samples that timed out"));
        }
        let [a, b] = self.shown;
        let told = |side: &Shown, letter| {
            side.value(percent).ok_or_else(|| unsupported(percent, letter, side))
        };
        Ok([told(a, "A")?, told(b, "B")?])
    }

    fn quantile(&self, percent: f64) -> QuantileDifference {
        let [before, after] = self.shown.map(|side| side.value(percent));
        let both = before.zip(after);
        let found = both.and_then(|_| self.differences.quantile(percent, 1.0).intervals);
        let difference = found.map(|i| spread(&i, before.map(|v| v.0 as f64)));
        let largest = before.max(after).unwrap_or_default();
        QuantileDifference {
            percent,
            before,
            after,
            verdict: difference.map(|d| verdict(&d, self.resolution(largest.0))),
            difference,
        }
    }

    fn max(&self) -> MaxDifference {
        let [of_before, of_after] = self.shown.map(|side| side.max);
        let (before, after) = (&self.before.maxima, &self.after.maxima);
        let both = of_before.zip(of_after);
        let found = both.and_then(|_| difference::of_runs(before, after, 1.0));
        let mean = before.iter().sum::<f64>() / before.len() as f64;
        let difference = found.map(|i| Spread { within: None, ..spread(&i, Some(mean)) });
        MaxDifference {
            before: of_before,
            after: of_after,
            verdict: difference.map(|d| verdict(&d, self.resolution_ns)),
            difference,
        }
    }

    fn lost(&self, scale: f64) -> Option<Intervals> {
        difference::of_means(&self.before.lost, &self.after.lost, scale, SEED, RESAMPLES)
            .filter(|found| found.headline().is_bounded())
    }

    /// Of lengths that both sides count, which those below the larger threshold are not.
    fn rates(&self, floor: Nanos) -> Vec<RateDifference> {
        let per_block = |side: &Measured, at_least: Nanos| -> Vec<Vec<f64>> {
            let long = |block: &Counts| {
                let long = block.iter().filter(|(value, _)| *value >= at_least.0);
                long.map(|(_, count)| *count as f64).sum::<f64>()
            };
            let runs = side.sample.runs().iter().zip(side.lost.iter().zip(&side.seconds));
            runs.map(|(run, (whole, seconds))| {
                let all: f64 = run.blocks().iter().map(long).sum();
                let blocks = &run.blocks()[..whole.len()];
                centred(
                    blocks.iter().map(|block| long(block) / run.width()).collect(),
                    all / seconds,
                )
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
        RATES_AT_LEAST.into_iter().filter(|length| *length >= floor).filter_map(rate).collect()
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

fn unsupported(percent: f64, letter: &str, side: &Shown) -> String {
    let Some(lowest) = side.too_few(percent) else {
        return format!("p{percent} is not supported by side {letter}");
    };
    // What is withheld of a percentile is withheld of each higher one.
    let own = lowest.percent > percent - 1e-9;
    let higher = if own { String::new() } else { format!(", and so p{percent} is not") };
    format!(
        "p{} is not supported by side {letter}{higher}: its {} samples are worth {} independent \
         ones, and {} are needed",
        lowest.percent,
        count(side.n),
        count(lowest.n_eff.round() as u64),
        count(smallest_n(lowest.percent / 100.0))
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
