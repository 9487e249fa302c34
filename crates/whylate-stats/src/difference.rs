//! How much larger is a quantile, or a mean, of one side than of the other: with an interval.
//!
//! Two sources of chance are kept apart, and the wider interval is the headline:
//!
//! - *within* the runs: blocks of time are drawn with replacement, run by run, and both quantiles are
//!   taken of each draw (block bootstrap, Künsch 1989; percentile ends). The bootstrap of a far
//!   quantile, or of few blocks, is too narrow; so the interval is widened to that which follows from
//!   the two exact order-statistics intervals ([`crate::quantile`], with the effective sample size)
//!   by adding their squares (Zou and Donner, "Construction of confidence limits about effect
//!   measures", 2008);
//! - *between* runs, where a side has several: Welch's t interval with the spread of the runs'
//!   quantiles around the pooled difference. Resampling three runs would take the same one three
//!   times in every ninth draw and be far too narrow. Where only one side has several runs, the
//!   other is taken to scatter alike.
//!
//! Quantiles of runs serve for their spread only: the estimate is always that of the pooled values,
//! never an average of quantiles.

use crate::bootstrap::Interval;
use crate::quantile::{self, Estimate};
use crate::rng::Rng;
use crate::sample::{Counts, Sample, pooled};
use crate::student::Spread;

/// Draws of the bootstrap: 25 lie outside on each side.
pub const RESAMPLES: usize = 1_000;

/// Fewer blocks than this on a side are not resampled.
pub const FEWEST_BLOCKS: usize = 6;

/// Draws of one comparison, from which the intervals of all its quantiles are read.
#[derive(Debug, Clone)]
pub struct Differences<'a> {
    before: &'a Sample,
    after: &'a Sample,
    percents: Vec<f64>,
    /// For each percentile the values of all draws, before and after; none with too few blocks.
    draws: Option<Vec<(Vec<u64>, Vec<u64>)>>,
}

/// The difference of a quantile, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// The quantile before.
    pub before: Estimate,
    /// The quantile after.
    pub after: Estimate,
    /// After less `scale` times before; none where a side does not support the quantile.
    pub intervals: Option<Intervals>,
}

/// A difference with its intervals, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Intervals {
    /// The difference.
    pub difference: f64,
    /// 95 % interval from the time within the runs.
    pub within: Interval,
    /// 95 % interval from the spread between runs, where a side has several.
    pub between: Option<Interval>,
    /// Were blocks of time resampled? If not, samples were taken as independent.
    pub resampled: bool,
}

impl Intervals {
    /// The wider of the two: the headline.
    #[must_use]
    pub fn headline(&self) -> Interval {
        match self.between {
            Some(between) if between.half_width() > self.within.half_width() => between,
            _ => self.within,
        }
    }
}

impl<'a> Differences<'a> {
    /// Draws `resamples` times from both sides and keeps the quantiles at `percents` of each draw.
    #[must_use]
    pub fn new(
        before: &'a Sample,
        after: &'a Sample,
        percents: &[f64],
        seed: u64,
        resamples: usize,
    ) -> Self {
        let enough =
            |side: &Sample| side.blocks().filter(|b| !b.is_empty()).count() >= FEWEST_BLOCKS;
        let draws = (enough(before) && enough(after)).then(|| {
            let first = draw(before, percents, &mut Rng::stream(seed, 0), resamples);
            let second = draw(after, percents, &mut Rng::stream(seed, 1), resamples);
            first.into_iter().zip(second).collect()
        });
        Self { before, after, percents: percents.to_vec(), draws }
    }

    /// The quantile after, less `scale` times the quantile before.
    ///
    /// With a scale of 1 this is the difference; with 1.1 it says by how much the quantile exceeds
    /// one that is a tenth larger than before.
    ///
    /// # Panics
    /// When `percent` is not inside 0..100.
    #[must_use]
    pub fn quantile(&self, percent: f64, scale: f64) -> Difference {
        let (before, after) = (estimate(self.before, percent), estimate(self.after, percent));
        let several = self.before.runs().len() > 1 || self.after.runs().len() > 1;
        let intervals = bounded(&before).zip(bounded(&after)).and_then(|(b, a)| {
            let difference = a.value - scale * b.value;
            let exact = square_and_add(difference, b.scaled(scale), a);
            let drawn = self.drawn(percent, scale);
            let between = self.between(percent, scale, difference);
            // A spread between runs that is not known is not none.
            (between.is_some() || !several).then(|| Intervals {
                difference,
                within: drawn.map_or(exact, |drawn| around(exact, drawn)),
                between,
                resampled: drawn.is_some(),
            })
        });
        Difference { before, after, intervals }
    }

    /// The percentile ends of the draws.
    fn drawn(&self, percent: f64, scale: f64) -> Option<Interval> {
        let index = self.percents.iter().position(|p| (p - percent).abs() < 1e-9)?;
        let (before, after) = self.draws.as_ref()?.get(index)?;
        let differences =
            before.iter().zip(after).map(|(b, a)| *a as f64 - scale * *b as f64).collect();
        percentile_ends(differences)
    }

    fn between(&self, percent: f64, scale: f64, difference: f64) -> Option<Interval> {
        let of_runs = |side: &Sample, scale: f64| -> Vec<f64> {
            let runs = side.runs().iter().map(|run| run_quantile(&run.pooled(), percent));
            // A run without values makes the spread unknown, not smaller.
            let values: Option<Vec<f64>> = runs.map(|q| q.map(|q| q as f64 * scale)).collect();
            values.unwrap_or_default()
        };
        let spread = spread_between(&of_runs(self.before, scale), &of_runs(self.after, 1.0))?;
        Some(spread.around(difference))
    }
}

/// The difference of the means of blocks, such as lost shares: after less `scale` times before.
///
/// Each side is a list of runs, each a list of blocks of equal length. None when a side has no block.
#[must_use]
pub fn of_means(
    before: &[Vec<f64>],
    after: &[Vec<f64>],
    scale: f64,
    seed: u64,
    resamples: usize,
) -> Option<Intervals> {
    of_means_among(before, after, scale, 1, seed, resamples)
}

/// The same of one of so many differences, of which the one that is told is chosen for its size: the intervals of
/// all of them together hold in 95 % (Bonferroni), so that the choice does not spoil the one.
#[must_use]
pub fn of_means_among(
    before: &[Vec<f64>],
    after: &[Vec<f64>],
    scale: f64,
    among: usize,
    seed: u64,
    resamples: usize,
) -> Option<Intervals> {
    let all = |side: &[Vec<f64>]| side.concat();
    let (first, second) = (all(before), all(after));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let difference = mean(&second) - scale * mean(&first);
    let first: Vec<f64> = first.iter().map(|value| value * scale).collect();
    let within = Spread::of_mean(&first).zip(Spread::of_mean(&second));
    let exact = within
        .map_or(Interval::UNKNOWN, |(b, a)| b.of_difference(a).around_among(difference, among));
    let enough = first.len().min(second.len()) >= FEWEST_BLOCKS;
    let bootstrap = enough.then(|| {
        let (mut one, mut other) = (Rng::stream(seed, 0), Rng::stream(seed, 1));
        let draws =
            (0..resamples).map(|_| draw_mean(&second, &mut other) - draw_mean(&first, &mut one));
        percentile_ends_among(draws.collect(), among)
    });
    let runs = |side: &[Vec<f64>], scale: f64| -> Vec<f64> {
        side.iter().filter(|run| !run.is_empty()).map(|run| mean(run) * scale).collect()
    };
    Some(Intervals {
        difference,
        within: bootstrap.flatten().map_or(exact, |ends| around(exact, ends)),
        between: spread_between(&runs(before, scale), &runs(after, 1.0))
            .map(|spread| spread.around_among(difference, among)),
        resampled: enough,
    })
}

/// The difference of one number per run, such as the maximum: only runs tell how it scatters.
///
/// None unless a side has at least two runs and the other one.
#[must_use]
pub fn of_runs(before: &[f64], after: &[f64], scale: f64) -> Option<Intervals> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let scaled: Vec<f64> = before.iter().map(|value| value * scale).collect();
    let difference = mean(after) - mean(&scaled);
    let between = spread_between(&scaled, after)?.around(difference);
    Some(Intervals { difference, within: between, between: Some(between), resampled: false })
}

fn draw_mean(blocks: &[f64], rng: &mut Rng) -> f64 {
    let n = blocks.len();
    (0..n).map(|_| blocks[rng.below(n as u64) as usize]).sum::<f64>() / n as f64
}

/// Welch's spread of the difference of two lists of runs; a side of one run scatters as the other.
fn spread_between(before: &[f64], after: &[f64]) -> Option<Spread> {
    let alone = |spread: Spread, runs: usize| Spread {
        variance: spread.variance * runs as f64,
        degrees: spread.degrees,
    };
    match (Spread::of_mean(before), Spread::of_mean(after)) {
        (Some(b), Some(a)) => Some(b.of_difference(a)),
        // The spread of one side stands for both: it is known no better than that side tells.
        (Some(b), None) if after.len() == 1 => {
            Some(Spread { variance: b.variance + alone(b, before.len()).variance, ..b })
        }
        (None, Some(a)) if before.len() == 1 => {
            Some(Spread { variance: a.variance + alone(a, after.len()).variance, ..a })
        }
        _ => None,
    }
}

/// An estimate with both ends.
#[derive(Clone, Copy)]
struct Bounded {
    value: f64,
    low: f64,
    high: f64,
}

impl Bounded {
    fn scaled(self, by: f64) -> Self {
        Self { value: self.value * by, low: self.low * by, high: self.high * by }
    }
}

fn bounded(estimate: &Estimate) -> Option<Bounded> {
    let as_f64 = |value: Option<u64>| value.map(|value| value as f64);
    Some(Bounded {
        value: as_f64(estimate.value)?,
        low: as_f64(estimate.low)?,
        high: as_f64(estimate.high)?,
    })
}

fn estimate(side: &Sample, percent: f64) -> Estimate {
    let values = side.values();
    let n_eff = values.value_at(percent).map_or(0.0, |value| side.effective_n(value));
    quantile::estimate(values, percent, n_eff)
}

/// The interval of a difference from those of its two parts.
fn square_and_add(difference: f64, before: Bounded, after: Bounded) -> Interval {
    let low = (after.value - after.low).hypot(before.high - before.value);
    let high = (after.high - after.value).hypot(before.value - before.low);
    Interval { low: difference - low, high: difference + high }
}

/// The smallest interval around both.
fn around(one: Interval, other: Interval) -> Interval {
    Interval { low: one.low.min(other.low), high: one.high.max(other.high) }
}

/// The middle 95 %; none when a draw was empty.
fn percentile_ends(draws: Vec<f64>) -> Option<Interval> {
    percentile_ends_among(draws, 1)
}

/// The same of one of so many, of which all together hold in 95 %.
fn percentile_ends_among(mut draws: Vec<f64>, among: usize) -> Option<Interval> {
    if draws.is_empty() || draws.iter().any(|value| value.is_nan()) {
        return None;
    }
    draws.sort_unstable_by(f64::total_cmp);
    let outside = (draws.len() as f64 * 0.025 / among.max(1) as f64) as usize;
    Some(Interval { low: draws[outside], high: draws[draws.len() - 1 - outside] })
}

/// A run's own order statistic, for the spread between runs only: of a run too short for the quantile
/// it is the largest value, which scatters more than the quantile would.
fn run_quantile(counts: &Counts, percent: f64) -> Option<u64> {
    let n = counts.iter().map(|(_, count)| count).sum();
    let rank = quantile::rank(n, percent)?;
    at_rank(counts.iter().copied(), rank)
}

fn at_rank(counts: impl Iterator<Item = (u64, u64)>, rank: u64) -> Option<u64> {
    let mut seen = 0;
    counts.into_iter().find_map(|(value, count)| {
        seen += count;
        (seen >= rank).then_some(value)
    })
}

/// For each percentile, its value in each draw. A draw without values repeats the pooled value: it
/// is as rare as runs are empty.
fn draw(side: &Sample, percents: &[f64], rng: &mut Rng, resamples: usize) -> Vec<Vec<u64>> {
    let strata = strata(side);
    let all = pooled(strata.iter().flatten().copied());
    let index = |value: u64| all.binary_search_by_key(&value, |(v, _)| *v).unwrap_or(0);
    let indexed: Vec<Vec<Vec<(usize, u64)>>> = strata
        .iter()
        .map(|blocks| {
            let indexed = |b: &&Counts| b.iter().map(|(value, n)| (index(*value), *n)).collect();
            blocks.iter().map(indexed).collect()
        })
        .collect();
    let mut results = vec![Vec::with_capacity(resamples); percents.len()];
    let mut counts = vec![0u64; all.len()];
    for _ in 0..resamples {
        counts.fill(0);
        for blocks in &indexed {
            for _ in 0..blocks.len() {
                for (bin, count) in &blocks[rng.below(blocks.len() as u64) as usize] {
                    counts[*bin] += count;
                }
            }
        }
        let n = counts.iter().sum();
        for (result, percent) in results.iter_mut().zip(percents) {
            let drawn = quantile::rank(n, *percent).and_then(|rank| {
                at_rank(all.iter().zip(&counts).map(|((value, _), count)| (*value, *count)), rank)
            });
            result.push(drawn.or_else(|| side.values().value_at(*percent)).unwrap_or(0));
        }
    }
    results
}

/// Blocks that may stand for each other: those of one run, or all of them when a run has too few.
fn strata(side: &Sample) -> Vec<Vec<&Counts>> {
    let full = |blocks: &[Counts]| blocks.iter().filter(|b| !b.is_empty()).count() >= FEWEST_BLOCKS;
    if side.runs().iter().all(|run| full(run.blocks())) {
        side.runs().iter().map(|run| run.blocks().iter().collect()).collect()
    } else {
        vec![side.blocks().collect()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;

    fn sample(intervals: &[Histogram]) -> Sample {
        let mut sample = Sample::new();
        sample.push_intervals(intervals);
        sample
    }

    #[test]
    fn a_constant_shift_is_found_exactly() {
        let at = |base: u64| -> Vec<Histogram> {
            (0..20).map(|_| std::iter::repeat_n(base, 100).collect()).collect()
        };
        let (before, after) = (sample(&at(100)), sample(&at(130)));
        let differences = Differences::new(&before, &after, &[50.0], 1, RESAMPLES);
        let found = differences.quantile(50.0, 1.0).intervals.unwrap();
        assert_eq!(found.within, Interval { low: 30.0, high: 30.0 });
        assert!(found.resampled && found.between.is_none());
        // 130 against a limit of 1.2 times 100.
        let over = differences.quantile(50.0, 1.2).intervals.unwrap();
        assert!((over.difference - 10.0).abs() < 1e-9);
    }

    #[test]
    fn an_unsupported_quantile_has_no_difference() {
        let few = sample(&[(1..=50).collect()]);
        let differences = Differences::new(&few, &few, &[99.9], 1, RESAMPLES);
        assert_eq!(differences.quantile(99.9, 1.0).intervals, None);
        let none = Sample::new();
        assert_eq!(
            Differences::new(&none, &few, &[50.0], 1, 10).quantile(50.0, 1.0).intervals,
            None
        );
    }

    #[test]
    fn one_run_against_several_scatters_as_they_do() {
        let found = of_runs(&[10.0, 12.0, 14.0], &[12.0], 1.0).unwrap();
        // s = 2, standard error 2 sqrt(1/3 + 1), two degrees of freedom.
        let half = 4.302_653 * 2.0 * (4.0f64 / 3.0).sqrt();
        assert!((found.headline().half_width() - half).abs() < 1e-4, "{found:?}");
        assert!(of_runs(&[10.0], &[12.0], 1.0).is_none());
        assert!(of_runs(&[], &[12.0, 13.0], 1.0).is_none());
    }

    #[test]
    fn means_of_blocks_differ_by_what_was_planted() {
        let side = |base: f64| vec![(0..50).map(|i| base + f64::from(i % 5)).collect::<Vec<f64>>()];
        let found = of_means(&side(1.0), &side(3.0), 1.0, 1, RESAMPLES).unwrap();
        assert!((found.difference - 2.0).abs() < 1e-9);
        assert!(found.headline().low > 1.0 && found.headline().high < 3.0);
        assert!(of_means(&[], &side(1.0), 1.0, 1, 100).is_none());
    }

    /// Of twenty differences of nothing the largest is looked at: by itself its interval leaves out zero far too often.
    #[test]
    fn the_largest_of_many_differences_of_nothing_is_seldom_shown() {
        const MANY: usize = 20;
        let mut rng = Rng::new(7);
        let mut noise = || vec![(0..40).map(|_| rng.unit()).collect::<Vec<f64>>()];
        let mean = |side: &[Vec<f64>]| side[0].iter().sum::<f64>() / 40.0;
        let (mut alone, mut among) = (0, 0);
        for trial in 0..200 {
            let pairs: Vec<_> = (0..MANY).map(|_| (noise(), noise())).collect();
            let change = |(a, b): &(Vec<Vec<f64>>, Vec<Vec<f64>>)| (mean(a) - mean(b)).abs();
            let (a, b) = pairs.iter().max_by(|x, y| change(x).total_cmp(&change(y))).unwrap();
            let shown = |many: usize| {
                let found = of_means_among(a, b, 1.0, many, trial, 1_000).unwrap();
                !found.headline().contains(0.0)
            };
            alone += u32::from(shown(1));
            among += u32::from(shown(MANY));
        }
        assert!(alone > 80, "{alone} of 200");
        assert!(among <= 20, "{among} of 200");
    }

    #[test]
    fn the_headline_is_the_wider_interval_and_the_one_within_where_they_are_equal() {
        let interval = |low, high| Interval { low, high };
        let within = interval(0.0, 2.0);
        for (between, expected) in [
            (None, within),
            (Some(interval(0.0, 4.0)), interval(0.0, 4.0)),
            (Some(interval(0.0, 1.0)), within),
            (Some(interval(5.0, 7.0)), within),
        ] {
            let of = Intervals { difference: 1.0, within, between, resampled: true };
            assert_eq!(of.headline(), expected, "{between:?}");
        }
    }
}
