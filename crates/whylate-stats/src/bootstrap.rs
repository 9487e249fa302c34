//! Block bootstrap: the interval of a statistic of dependent data.
//!
//! Gaps come in bursts, so single gaps must not be resampled. The caller sums what belongs to one
//! interval of time (1 s) into one number, the block; blocks are drawn with replacement, the
//! statistic is taken of each draw, and the middle 95 % of the results are the interval (Efron's
//! percentile interval; Künsch 1989 for blocks). Good when dependence is short against a block.
//! With few blocks (below about 20) the interval is too narrow; the caller prints the number.

use crate::rng::Rng;

/// Resamples that leave little noise in the 2.5 % tails of a bootstrap distribution.
pub const RESAMPLES: u32 = 2_000;

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
}
