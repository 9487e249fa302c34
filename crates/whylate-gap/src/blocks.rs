//! The loop's own period, from blocks of iterations in which nothing happened.
//!
//! Single deltas are 1, 25 or 26 ticks on some processors: their median is not their mean. The mean
//! over a block without a gap is the loop's period, and the median of those means does not care
//! about the few blocks that hold noise too short to be a gap.

use std::sync::atomic::{AtomicU32, Ordering};

/// Bins of the table of block means.
const BINS: usize = 1 << 16;

/// Means of gap-free blocks, counted on a scale fine enough to be exact for the purpose.
pub struct Blocks {
    iterations: u64,
    /// Block totals are counted in steps of `1 << shift` ticks.
    shift: u32,
    bins: Box<[AtomicU32]>,
}

/// The loop's period in ticks, and how far the blocks lie apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Period {
    /// Median of the means.
    pub median: f64,
    /// Tenth percentile of the means.
    pub p10: f64,
    /// Ninetieth percentile of the means.
    pub p90: f64,
    /// Blocks without a gap.
    pub blocks: u64,
}

impl Blocks {
    /// A table for blocks of `iterations`, scaled so that means up to four times `expected_period`
    /// ticks fit.
    #[must_use]
    pub fn new(iterations: u64, expected_period: f64) -> Self {
        let largest = (expected_period.max(1.0) * 4.0 * iterations as f64).ceil() as u64;
        let shift = (largest / BINS as u64 + 1).next_power_of_two().ilog2();
        let bins = (0..BINS).map(|_| AtomicU32::new(0)).collect();
        Self { iterations, shift, bins }
    }

    /// Iterations in a block.
    #[must_use]
    #[inline(always)]
    pub fn iterations(&self) -> u64 {
        self.iterations
    }

    /// Counts a gap-free block that took `total` ticks. Blocks beyond the scale are left out: a
    /// period four times the warm-up's is no period.
    #[inline]
    pub fn count(&self, total: u64) {
        if let Some(bin) = self.bins.get((total >> self.shift) as usize) {
            // At 25 blocks a millisecond the counter holds two days of one bin; it stays at its
            // end rather than wrap.
            bin.store(bin.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
        }
    }

    /// The period so far; none while no block was without a gap.
    #[must_use]
    pub fn period(&self) -> Option<Period> {
        let blocks: u64 = self.bins.iter().map(|bin| u64::from(bin.load(Ordering::Relaxed))).sum();
        let at = |share: f64| {
            let rank = ((blocks as f64 * share).ceil() as u64).max(1);
            let mut below = 0;
            let index = self.bins.iter().position(|bin| {
                below += u64::from(bin.load(Ordering::Relaxed));
                below >= rank
            })?;
            let half_step = ((1u64 << self.shift) as f64 - 1.0) / 2.0;
            Some((((index as u64) << self.shift) as f64 + half_step) / self.iterations as f64)
        };
        Some(Period { median: at(0.5)?, p10: at(0.1)?, p90: at(0.9)?, blocks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_period_is_the_median_of_the_block_means() {
        let blocks = Blocks::new(4096, 25.0);
        for mean in [24.9, 25.0, 25.0, 25.1, 60.0] {
            blocks.count((mean * 4096.0) as u64);
        }
        let period = blocks.period().expect("five blocks");
        assert!((period.median - 25.0).abs() < 0.01, "{period:?}");
        assert_eq!(period.blocks, 5);
    }

    #[test]
    fn no_block_no_period() {
        assert_eq!(Blocks::new(4096, 25.0).period(), None);
    }

    #[test]
    fn a_slow_loop_gets_a_coarser_scale() {
        let blocks = Blocks::new(64, 100_000.0);
        blocks.count(64 * 100_000);
        let period = blocks.period().expect("one block");
        assert!((period.median / 100_000.0 - 1.0).abs() < 1e-3, "{period:?}");
    }
}
