//! Block bootstrap: the interval of a statistic of dependent data.
//!
//! Gaps come in bursts, so single gaps must not be resampled. The caller sums what belongs to one
//! interval of time (1 s) into one number, the block; blocks are drawn with replacement, the
//! statistic is taken of each draw, and the middle 95 % of the results are the interval (Efron's
//! percentile interval; Künsch 1989 for blocks). Good when dependence is short against a block.
//! With few blocks (below about 20) the interval is too narrow; the caller prints the number.
//!
//! For a mean [`of_mean`] does better: bursts make blocks skewed, and last longer than a block.

use crate::rng::Rng;

/// Resamples that leave little noise in the 2.5 % tails of a bootstrap distribution.
pub const RESAMPLES: u32 = 2_000;

/// The same where the interval is taken over several groupings, once for each.
const STUDENTISED_RESAMPLES: u32 = 1_000;

/// Groups of neighbours are looked at as long as so many are left.
const FEWEST_GROUPS: usize = 15;

/// Standard errors beyond which nothing is believed of a mean of few blocks.
const FARTHEST: f64 = 10.0;

/// An interval of confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// What is known without data: nothing.
    pub const UNKNOWN: Self = Self { low: f64::NEG_INFINITY, high: f64::INFINITY };

    /// Does it say anything?
    #[must_use]
    pub fn is_bounded(&self) -> bool {
        self.low.is_finite() && self.high.is_finite()
    }

    /// Is the value inside?
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Half its width.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// The 95 % interval of `statistic` over blocks, from `resamples` draws (at least 40 are made).
///
/// One block tells nothing about the spread between blocks: with fewer than two the interval is
/// [`Interval::UNKNOWN`], and so it is when the statistic is not a number for some draw.
pub fn block_bootstrap(
    blocks: &[f64],
    statistic: impl Fn(&[f64]) -> f64,
    seed: u64,
    resamples: u32,
) -> Interval {
    // With fewer than 40 the 2.5 % ends would be the extremes.
    const FEWEST: u32 = 40;
    if blocks.len() < 2 {
        return Interval::UNKNOWN;
    }
    let mut rng = Rng::new(seed);
    let mut draw = vec![0.0; blocks.len()];
    let mut results: Vec<f64> = (0..resamples.max(FEWEST))
        .map(|_| {
            draw.fill_with(|| blocks[rng.below(blocks.len() as u64) as usize]);
            statistic(&draw)
        })
        .collect();
    if results.iter().any(|result| result.is_nan()) {
        return Interval::UNKNOWN;
    }
    results.sort_unstable_by(f64::total_cmp);
    let outside = (results.len() as f64 * 0.025) as usize;
    Interval { low: results[outside], high: results[results.len() - 1 - outside] }
}

/// The 95 % interval of the mean over blocks that may be skewed and depend on their neighbours.
///
/// Studentised (Hall 1988): what is resampled is the distance of the mean from the true one in
/// standard errors, which for skewed blocks holds the promised 95 % where percentile ends do not.
/// Taken over the blocks, over pairs of neighbours, over fours, and so on, as long as
/// 15 are left, and the widest is the answer: dependence that reaches over a
/// few blocks widens the groups' interval, and no other way of seeing it needs an assumption.
/// [`Interval::UNKNOWN`] with fewer than two blocks or with one that is not a number.
#[must_use]
pub fn of_mean(blocks: &[f64], seed: u64) -> Interval {
    if blocks.len() < 2 || blocks.iter().any(|block| !block.is_finite()) {
        return Interval::UNKNOWN;
    }
    let mut widest = studentised(blocks, seed);
    let mut groups = blocks.to_vec();
    while groups.len() / 2 >= FEWEST_GROUPS {
        groups = groups.chunks_exact(2).map(mean).collect();
        let interval = studentised(&groups, seed);
        if interval.half_width() > widest.half_width() {
            widest = interval;
        }
    }
    widest
}

fn studentised(blocks: &[f64], seed: u64) -> Interval {
    let n = blocks.len() as f64;
    let mean_and_error = |sum: f64, squares: f64| {
        let mean = sum / n;
        (mean, ((squares / n - mean * mean).max(0.0) / (n - 1.0)).sqrt())
    };
    let sums = |draw: &mut dyn Iterator<Item = f64>| {
        draw.fold((0.0, 0.0), |(sum, squares), block| (sum + block, squares + block * block))
    };
    // Counted from the mean, for the sum of squares does not cancel then.
    let middle = mean(blocks);
    let off: Vec<f64> = blocks.iter().map(|block| block - middle).collect();
    let (sum, squares) = sums(&mut off.iter().copied());
    let (_, error) = mean_and_error(sum, squares);
    if error <= 0.0 {
        return Interval { low: middle, high: middle };
    }
    let mut rng = Rng::new(seed);
    let mut distances: Vec<f64> = (0..STUDENTISED_RESAMPLES)
        .map(|_| {
            let mut draw = off.iter().map(|_| off[rng.below(off.len() as u64) as usize]);
            let (sum, squares) = sums(&mut draw);
            let (mean, error) = mean_and_error(sum, squares);
            // A draw of equal blocks has no error of its own: as far out as is believed.
            (mean / error.max(f64::MIN_POSITIVE)).clamp(-FARTHEST, FARTHEST)
        })
        .collect();
    distances.sort_unstable_by(f64::total_cmp);
    let outside = (distances.len() as f64 * 0.025) as usize;
    Interval {
        low: middle - distances[distances.len() - 1 - outside] * error,
        high: middle - distances[outside] * error,
    }
}

/// The mean: the usual statistic. NaN without blocks.
#[must_use]
pub fn mean(blocks: &[f64]) -> f64 {
    blocks.iter().sum::<f64>() / blocks.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_blocks_give_a_point() {
        let interval = block_bootstrap(&[2.5; 30], mean, 1, RESAMPLES);
        assert_eq!(interval, Interval { low: 2.5, high: 2.5 });
    }

    #[test]
    fn one_block_tells_nothing() {
        assert_eq!(block_bootstrap(&[], mean, 1, RESAMPLES), Interval::UNKNOWN);
        assert!(!block_bootstrap(&[1.0], mean, 1, RESAMPLES).is_bounded());
    }

    #[test]
    fn mean_of_equal_blocks_is_a_point_and_of_one_block_or_of_nonsense_is_not_known() {
        assert_eq!(of_mean(&[2.5; 60], 1), Interval { low: 2.5, high: 2.5 });
        for blocks in [&[][..], &[1.0], &[1.0, f64::NAN, 2.0], &[f64::INFINITY, 1.0]] {
            assert_eq!(of_mean(blocks, 1), Interval::UNKNOWN);
        }
    }

    #[test]
    fn neighbours_that_move_together_widen_the_interval_of_the_mean() {
        let mut rng = Rng::new(4);
        let single: Vec<f64> = (0..240).map(|_| rng.unit()).collect();
        let eights: Vec<f64> = single[..30].iter().flat_map(|block| [*block; 8]).collect();
        let ratio = of_mean(&eights, 1).half_width() / of_mean(&single, 1).half_width();
        assert!((2.0..4.0).contains(&ratio), "{ratio}, and the square root of 8 is 2.8");
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let blocks: Vec<f64> = (0..50).map(|i| f64::from(i * i % 17)).collect();
        let interval = |seed| block_bootstrap(&blocks, mean, seed, RESAMPLES);
        assert_eq!(interval(5), interval(5));
        assert_ne!(interval(5), interval(6));
        assert!(interval(5).contains(mean(&blocks)));
    }

    #[test]
    fn interval_of_the_mean_is_about_two_standard_errors_to_each_side() {
        let mut rng = Rng::new(17);
        let blocks: Vec<f64> = (0..400).map(|_| rng.unit()).collect();
        let half = block_bootstrap(&blocks, mean, 1, RESAMPLES).half_width();
        // Standard error of the mean of 400 uniform values: sqrt(1/12)/20.
        let ratio = half / (1.96 * (1.0f64 / 12.0).sqrt() / 20.0);
        assert!((0.88..1.12).contains(&ratio), "{ratio}");
    }

    /// Results that are known: 0, 1, 2 and so on, whatever is drawn.
    fn counted(resamples: u32, nonsense: Option<u32>) -> Interval {
        let made = std::cell::Cell::new(0);
        let count = |_: &[f64]| {
            let number = made.replace(made.get() + 1);
            if nonsense == Some(number) { f64::NAN } else { f64::from(number) }
        };
        block_bootstrap(&[1.0, 2.0], count, 1, resamples)
    }

    #[test]
    fn as_many_results_lie_below_the_interval_as_above_it() {
        assert_eq!(counted(200, None), Interval { low: 5.0, high: 194.0 });
        // At least 40 are drawn.
        assert_eq!(counted(10, None), Interval { low: 1.0, high: 38.0 });
        assert_eq!(counted(200, Some(7)), Interval::UNKNOWN);
    }

    #[test]
    fn an_interval_with_one_end_is_not_bounded() {
        for (low, high, bounded) in
            [(0.0, 1.0, true), (0.0, f64::INFINITY, false), (f64::NEG_INFINITY, 0.0, false)]
        {
            assert_eq!(Interval { low, high }.is_bounded(), bounded, "{low} {high}");
        }
    }

    #[test]
    fn the_ends_of_a_mean_are_those_of_students_distances() {
        let blocks = [3.0, 8.0, 1.0, 4.0, 40.0, 7.0, 2.0];
        let mean_and_error = |of: &[f64]| {
            let squares: f64 = of.iter().map(|block| (block - mean(of)).powi(2)).sum();
            let n = of.len() as f64;
            (mean(of), (squares / n / (n - 1.0)).sqrt())
        };
        let (middle, error) = mean_and_error(&blocks);
        let mut rng = Rng::new(3);
        let mut distances: Vec<f64> = (0..1_000)
            .map(|_| {
                let drawn = blocks.map(|_| blocks[rng.below(7) as usize]);
                let (mean, error) = mean_and_error(&drawn);
                ((mean - middle) / error.max(f64::MIN_POSITIVE)).clamp(-10.0, 10.0)
            })
            .collect();
        distances.sort_by(f64::total_cmp);
        let found = studentised(&blocks, 3);
        assert!((found.low - (middle - distances[974] * error)).abs() < 1e-6, "{found:?}");
        assert!((found.high - (middle - distances[25] * error)).abs() < 1e-6, "{found:?}");
        assert!(of_mean(&blocks[..2], 1).is_bounded(), "two blocks have a spread");
    }

    #[test]
    fn fifteen_pairs_of_neighbours_are_looked_at_and_fourteen_are_not() {
        let mut rng = Rng::new(4);
        let pairs: Vec<f64> = (0..15).map(|_| rng.unit()).flat_map(|block| [block; 2]).collect();
        let widened =
            |blocks: &[f64]| of_mean(blocks, 1).half_width() / studentised(blocks, 1).half_width();
        assert!(widened(&pairs) > 1.2, "{}", widened(&pairs));
        assert!((widened(&pairs[..28]) - 1.0).abs() < 1e-12);
    }
}
