//! Gaps by interval of time, in bounded memory.
//!
//! Trends, the block bootstrap and the effective sample size are computed from these. However long
//! the run, at most [`MOST`] intervals are kept: when they are full, neighbours are added together
//! and the intervals become twice as long.

use std::collections::BTreeMap;

use whylate_model::{Nanos, TicksDelta};
use whylate_stats::Histogram;

/// Intervals kept; even, so that they pair up.
pub const MOST: usize = 240;

/// Gaps and lost time by interval.
#[derive(Debug, Clone)]
pub struct Intervals {
    width: TicksDelta,
    intervals: Vec<Interval>,
}

/// One interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Interval {
    /// Time lost in gaps that began in it, in nanoseconds.
    pub lost_ns: f64,
    /// Lengths in nanoseconds and their counts.
    pub lengths: BTreeMap<u64, u64>,
}

impl Interval {
    /// The values of a histogram as an interval, nothing of them lost time.
    #[must_use]
    pub fn of(histogram: &Histogram) -> Self {
        Self { lost_ns: 0.0, lengths: histogram.bins().collect() }
    }
}

impl Intervals {
    /// Intervals of `width` ticks.
    #[must_use]
    pub fn new(width: TicksDelta) -> Self {
        Self { width: TicksDelta(width.0.max(1)), intervals: Vec::new() }
    }

    /// The width that suits a run of this duration: a second, or a thirtieth of a short run.
    #[must_use]
    pub fn width_for(duration: Nanos) -> Nanos {
        Nanos((duration.0 / 30).clamp(1, Nanos::SECOND.0))
    }

    /// Adds `count` gaps of `length_ns` that began `offset` after the start and lost `lost_ns`.
    pub fn add(&mut self, offset: TicksDelta, length_ns: u64, count: u64, lost_ns: f64) {
        let interval = self.reach(offset);
        interval.lost_ns += lost_ns;
        *interval.lengths.entry(length_ns).or_default() += count;
    }

    /// Makes sure that the interval at `offset` exists, so that quiet intervals count as such.
    pub fn reach(&mut self, offset: TicksDelta) -> &mut Interval {
        while offset.0 / self.width.0 >= MOST as u64 {
            self.merge_neighbours();
        }
        let index = (offset.0 / self.width.0) as usize;
        if index >= self.intervals.len() {
            self.intervals.resize_with(index + 1, Interval::default);
        }
        &mut self.intervals[index]
    }

    /// The whole intervals so far: the last one is left out unless it reaches `elapsed`.
    #[must_use]
    pub fn whole(&self, elapsed: TicksDelta) -> &[Interval] {
        let whole = ((elapsed.0 / self.width.0) as usize).min(self.intervals.len());
        &self.intervals[..whole]
    }

    /// Width of the intervals.
    #[must_use]
    pub fn width(&self) -> TicksDelta {
        self.width
    }

    fn merge_neighbours(&mut self) {
        self.width = TicksDelta(self.width.0 * 2);
        let merged = self.intervals.chunks(2).map(|pair| {
            let mut both = pair[0].clone();
            if let Some(second) = pair.get(1) {
                both.lost_ns += second.lost_ns;
                for (length, count) in &second.lengths {
                    *both.lengths.entry(*length).or_default() += count;
                }
            }
            both
        });
        self.intervals = merged.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_when_intervals_merge() {
        let mut intervals = Intervals::new(TicksDelta(10));
        for n in 0..100_000u64 {
            intervals.add(TicksDelta(n), n % 7, 1, 0.5);
        }
        let all = intervals.whole(TicksDelta(1 << 40));
        let gaps: u64 = all.iter().flat_map(|i| i.lengths.values()).sum();
        let lost: f64 = all.iter().map(|i| i.lost_ns).sum();
        assert_eq!(gaps, 100_000);
        assert!((lost - 50_000.0).abs() < 1e-6);
        assert!(all.len() <= MOST);
    }

    #[test]
    fn a_quiet_stretch_is_intervals_without_gaps() {
        let mut intervals = Intervals::new(TicksDelta(10));
        intervals.add(TicksDelta(95), 1, 1, 1.0);
        let whole = intervals.whole(TicksDelta(100));
        assert_eq!(whole.len(), 10);
        assert_eq!(whole.iter().filter(|i| i.lengths.is_empty()).count(), 9);
    }
}
