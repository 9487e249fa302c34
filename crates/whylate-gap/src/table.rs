//! Counting tables that a measuring thread increments and anybody may read.
//!
//! Single writer: an increment is a relaxed load, an addition and a relaxed store, which compile
//! to one `inc` in memory. Sizes are fixed, so memory does not grow with the duration.

use std::sync::atomic::{AtomicU64, Ordering};

use whylate_model::TicksDelta;

/// Bits of mantissa of a [`LogLinear`] bin: relative error at most 1/2048 around its middle.
const MANTISSA_BITS: u32 = 10;
const SUB_BINS: usize = 1 << MANTISSA_BITS;
/// Powers of two above the exact range: values up to 2^50 ticks, four days at 3 GHz.
const OCTAVES: usize = 40;
const BINS: usize = SUB_BINS * (OCTAVES + 1);

/// A histogram of ticks: exact below 1024, then 1024 bins per power of two.
pub struct LogLinear {
    bins: Box<[AtomicU64; BINS]>,
}

/// Deltas below this are counted one by one in [`Direct`].
pub const DIRECT: usize = 4096;

/// A histogram of small deltas, one bin a tick.
pub struct Direct {
    bins: Box<[AtomicU64; DIRECT]>,
}

#[expect(clippy::unnecessary_box_returns, reason = "up to 330 kB, too much for a stack")]
fn zeros<const N: usize>() -> Box<[AtomicU64; N]> {
    let bins: Box<[AtomicU64]> = (0..N).map(|_| AtomicU64::new(0)).collect();
    let Ok(bins) = bins.try_into() else { unreachable!("invariant: N bins were made") };
    bins
}

#[inline]
fn increment(bin: &AtomicU64) {
    bin.store(bin.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

impl Default for LogLinear {
    fn default() -> Self {
        Self { bins: zeros() }
    }
}

impl LogLinear {
    /// Counts one value.
    #[inline]
    pub fn count(&self, value: TicksDelta) {
        increment(&self.bins[index(value.0)]);
    }

    /// The occupied bins as (middle of the bin, count), ascending.
    pub fn bins(&self) -> impl Iterator<Item = (TicksDelta, u64)> + '_ {
        self.bins.iter().enumerate().filter_map(|(index, bin)| {
            let count = bin.load(Ordering::Relaxed);
            (count > 0).then(|| (TicksDelta(middle(index)), count))
        })
    }
}

impl Default for Direct {
    fn default() -> Self {
        Self { bins: zeros() }
    }
}

impl Direct {
    /// Counts `value` if it is small enough; says whether it was.
    #[inline(always)]
    #[must_use]
    pub fn count(&self, value: u64) -> bool {
        match self.bins.get(value as usize) {
            Some(bin) => {
                increment(bin);
                true
            }
            None => false,
        }
    }

    /// The occupied bins as (value, count), ascending.
    pub fn bins(&self) -> impl Iterator<Item = (TicksDelta, u64)> + '_ {
        self.bins.iter().enumerate().filter_map(|(value, bin)| {
            let count = bin.load(Ordering::Relaxed);
            (count > 0).then_some((TicksDelta(value as u64), count))
        })
    }
}

#[inline]
fn index(value: u64) -> usize {
    if value < SUB_BINS as u64 {
        return value as usize;
    }
    let octave = value.ilog2() - MANTISSA_BITS;
    let mantissa = (value >> octave) as usize - SUB_BINS;
    (SUB_BINS * (octave as usize + 1) + mantissa).min(BINS - 1)
}

fn middle(index: usize) -> u64 {
    if index < SUB_BINS {
        return index as u64;
    }
    let octave = index / SUB_BINS - 1;
    let low = ((index % SUB_BINS + SUB_BINS) as u64) << octave;
    low + ((1u64 << octave) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bin_stands_for_its_values_within_one_in_a_thousand() {
        for shift in 0..50 {
            for offset in [0u64, 1, 3, 511, 777, 1023] {
                let value = (1u64 << shift) + (offset << shift >> 10);
                let stands_for = middle(index(value));
                let error = stands_for.abs_diff(value) as f64 / value as f64;
                assert!(error <= 0.001, "{value} is counted as {stands_for}");
            }
        }
    }

    #[test]
    fn values_beyond_the_last_bin_are_counted_in_it() {
        let table = LogLinear::default();
        table.count(TicksDelta(u64::MAX));
        assert_eq!(table.bins().map(|(_, count)| count).sum::<u64>(), 1);
    }

    #[test]
    fn the_direct_table_refuses_what_it_cannot_hold() {
        let table = Direct::default();
        assert!(table.count(0));
        assert!(table.count(DIRECT as u64 - 1));
        assert!(!table.count(DIRECT as u64));
        assert_eq!(table.bins().count(), 2);
    }
}
