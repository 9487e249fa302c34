//! Gaps by interval of time, in memory that does not grow with the run.
//!
//! Trends, the block bootstrap and the effective sample size are computed from these. Two stores:
//! of many intervals how many gaps there were and how long they took ([`Load`], a hundred bytes
//! each), and of fewer ones the lengths by histogram bin ([`Interval`], as many entries as bins were
//! ever hit: some thousands, whatever the rate). When a store is full, neighbours are added
//! together and its intervals become twice as long.

use whylate_model::series::summary::RATES_AT_LEAST;
use whylate_model::{Hertz, Nanos, TicksDelta};
use whylate_stats::Histogram;

/// Loads kept; even, so that they pair up. Each takes 64 bytes.
const MOST_LOADS: usize = 240;

/// Intervals with their lengths kept; even, so that they pair up. Bins hit by gaps of 100 ns to
/// 100 ms are 17 000 at most and usually some thousands, of 16 bytes each: a few MB in all. Half
/// as many are left after pairing, which tell dispersion to a quarter of itself.
const MOST_TABLES: usize = 60;

/// What can be added to its neighbour.
trait Neighbour: Default {
    fn absorb(&mut self, other: Self);
}

/// What gaps took in one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    /// Gaps that began in it.
    pub gaps: u64,
    /// Their time, in ticks.
    pub gap_ticks: u64,
    /// How many were at least as long as each of [`RATES_AT_LEAST`].
    pub at_least: [u64; RATES_AT_LEAST.len()],
}

/// Lengths in one interval: bins of [`Histogram`], by their highest values, and their counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interval {
    /// In ascending order.
    bins: Vec<(u64, u64)>,
}

/// Gaps by interval of time.
#[derive(Debug, Clone)]
pub struct Intervals {
    loads: Doubling<Load>,
    tables: Tables,
}

/// Lengths by interval of time.
#[derive(Debug, Clone)]
pub struct Tables(Doubling<Interval>);

/// At most so many intervals; they grow longer instead of more.
#[derive(Debug, Clone)]
struct Doubling<T> {
    width: TicksDelta,
    most: usize,
    intervals: Vec<T>,
}

impl Load {
    /// Time lost in nanoseconds: of each gap, what is more than one `period` of the loop.
    #[must_use]
    pub fn lost_ns(&self, period_ticks: f64, rate: Hertz) -> f64 {
        (self.gap_ticks as f64 - self.gaps as f64 * period_ticks).max(0.0) * 1e9 / rate.0
    }
}

impl Neighbour for Load {
    fn absorb(&mut self, other: Self) {
        self.gaps += other.gaps;
        self.gap_ticks += other.gap_ticks;
        for (sum, more) in self.at_least.iter_mut().zip(other.at_least) {
            *sum += more;
        }
    }
}

impl Interval {
    /// The values of a histogram.
    #[must_use]
    pub fn of(histogram: &Histogram) -> Self {
        let bins = histogram.bins().map(|(value, count)| (histogram.bin_of(value), count));
        Self { bins: bins.collect() }
    }

    /// Counts `count` values of the bin of this highest value.
    pub fn add(&mut self, bin: Nanos, count: u64) {
        match self.bins.binary_search_by_key(&bin.0, |(value, _)| *value) {
            Ok(at) => self.bins[at].1 += count,
            Err(at) => self.bins.insert(at, (bin.0, count)),
        }
    }

    /// Bins by their highest values, ascending, and their counts.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.bins.iter().copied()
    }

    /// Values.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.bins.iter().map(|(_, count)| count).sum()
    }

    /// No values?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bins.is_empty()
    }

    /// Values in bins above this one.
    #[must_use]
    pub fn above(&self, bin: Nanos) -> u64 {
        let from = self.bins.partition_point(|(value, _)| *value <= bin.0);
        self.bins[from..].iter().map(|(_, count)| count).sum()
    }
}

impl Neighbour for Interval {
    fn absorb(&mut self, other: Self) {
        if self.bins.is_empty() {
            self.bins = other.bins;
            return;
        }
        let mut both = Vec::with_capacity(self.bins.len().max(other.bins.len()));
        let mut theirs = other.bins.into_iter().peekable();
        for (bin, count) in std::mem::take(&mut self.bins) {
            while let Some(lower) = theirs.next_if(|(value, _)| *value < bin) {
                both.push(lower);
            }
            let same = theirs.next_if(|(value, _)| *value == bin);
            both.push((bin, count + same.map_or(0, |(_, count)| count)));
        }
        both.extend(theirs);
        both.shrink_to_fit();
        self.bins = both;
    }
}

impl Intervals {
    /// Intervals of `width` ticks.
    #[must_use]
    pub fn new(width: TicksDelta) -> Self {
        Self { loads: Doubling::new(width, MOST_LOADS), tables: Tables::new(width) }
    }

    /// The width that suits a run of this duration: a second, or a thirtieth of a short run.
    #[must_use]
    pub fn width_for(duration: Nanos) -> Nanos {
        Nanos((duration.0 / 30).clamp(1, Nanos::SECOND.0))
    }

    /// Adds `count` gaps of this length, of the bin with this highest value, that began `offset`
    /// after the start.
    pub fn add(&mut self, offset: TicksDelta, length: TicksDelta, bin: Nanos, count: u64) {
        let at_least = RATES_AT_LEAST.map(|least| if bin >= least { count } else { 0 });
        let load = Load { gaps: count, gap_ticks: length.0 * count, at_least };
        self.loads.reach(offset).absorb(load);
        self.tables.0.reach(offset).add(bin, count);
    }

    /// Makes sure that the intervals up to `offset` exist, so that quiet ones count as such.
    pub fn reach(&mut self, offset: TicksDelta) {
        self.loads.reach(offset);
        self.tables.0.reach(offset);
    }

    /// What gaps took in the whole intervals so far.
    #[must_use]
    pub fn loads(&self, elapsed: TicksDelta) -> &[Load] {
        self.loads.whole(elapsed)
    }

    /// Width of the intervals of [`Intervals::loads`].
    #[must_use]
    pub fn width(&self) -> TicksDelta {
        self.loads.width
    }

    /// Lengths in the whole intervals so far, which are wider than those of [`Intervals::loads`].
    #[must_use]
    pub fn tables(&self, elapsed: TicksDelta) -> &[Interval] {
        self.tables.whole(elapsed)
    }
}

impl Tables {
    /// Intervals of `width` ticks.
    #[must_use]
    pub fn new(width: TicksDelta) -> Self {
        Self(Doubling::new(width, MOST_TABLES))
    }

    /// Adds values to the interval at `offset`.
    pub fn add(&mut self, offset: TicksDelta, values: Interval) {
        self.0.reach(offset).absorb(values);
    }

    /// The whole intervals so far: the last one is left out unless it reaches `elapsed`.
    #[must_use]
    pub fn whole(&self, elapsed: TicksDelta) -> &[Interval] {
        self.0.whole(elapsed)
    }
}

impl<T: Neighbour> Doubling<T> {
    fn new(width: TicksDelta, most: usize) -> Self {
        Self { width: TicksDelta(width.0.max(1)), most, intervals: Vec::new() }
    }

    fn reach(&mut self, offset: TicksDelta) -> &mut T {
        while offset.0 / self.width.0 >= self.most as u64 {
            self.width = TicksDelta(self.width.0 * 2);
            let mut pairs = std::mem::take(&mut self.intervals).into_iter();
            while let Some(mut both) = pairs.next() {
                if let Some(second) = pairs.next() {
                    both.absorb(second);
                }
                self.intervals.push(both);
            }
        }
        let index = (offset.0 / self.width.0) as usize;
        if index >= self.intervals.len() {
            self.intervals.resize_with(index + 1, T::default);
        }
        &mut self.intervals[index]
    }

    fn whole(&self, elapsed: TicksDelta) -> &[T] {
        let whole = ((elapsed.0 / self.width.0) as usize).min(self.intervals.len());
        &self.intervals[..whole]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVER: TicksDelta = TicksDelta(1 << 40);

    fn add(intervals: &mut Intervals, offset: u64, length: u64) {
        let bin = Nanos(Histogram::new().bin_of(length));
        intervals.add(TicksDelta(offset), TicksDelta(length), bin, 1);
    }

    #[test]
    fn nothing_is_lost_when_intervals_merge() {
        let mut intervals = Intervals::new(TicksDelta(10));
        for n in 0..20_000u64 {
            add(&mut intervals, n, n % 7 * 1_000);
        }
        let (loads, tables) = (intervals.loads(EVER), intervals.tables(EVER));
        assert!(loads.len() <= MOST_LOADS && tables.len() <= MOST_TABLES);
        assert_eq!(loads.iter().map(|load| load.gaps).sum::<u64>(), 20_000);
        assert_eq!(tables.iter().map(Interval::len).sum::<u64>(), 20_000);
        let ticks: u64 = loads.iter().map(|load| load.gap_ticks).sum();
        assert_eq!(ticks, (0..20_000u64).map(|n| n % 7 * 1_000).sum::<u64>());
        let long: u64 = loads.iter().map(|load| load.at_least[1]).sum();
        assert_eq!(long, (0..20_000u64).filter(|n| n % 7 >= 2).count() as u64, "of 2us or more");
        let above: u64 = tables.iter().map(|table| table.above(Nanos(4_000))).sum();
        assert_eq!(above, (0..20_000u64).filter(|n| n % 7 >= 4).count() as u64, "4001 is the bin");
        let sorted = |table: &Interval| table.bins.is_sorted_by(|a, b| a.0 < b.0);
        assert!(tables.iter().all(sorted), "a bin came twice");
    }

    #[test]
    fn entries_are_as_many_as_bins_however_many_gaps_of_different_length_there_are() {
        let mut dice = whylate_stats::rng::Rng::new(3);
        let mut intervals = Intervals::new(TicksDelta(1_000));
        let mut entries = [0; 2];
        for (share, entries) in entries.iter_mut().enumerate() {
            for n in 0..400_000u64 {
                add(
                    &mut intervals,
                    share as u64 * 400_000_000 + n * 1_000,
                    1 << 20 | dice.below(1 << 20),
                );
            }
            *entries = intervals.tables(EVER).iter().map(|table| table.bins.len()).sum();
        }
        // 1024 bins lie between 2^20 and 2^21, and no interval has more.
        assert!(
            entries[1] <= 1024 * MOST_TABLES,
            "{entries:?} entries for 400 000 and 800 000 gaps"
        );
    }

    #[test]
    fn each_gap_has_lost_its_length_less_one_period() {
        let mut intervals = Intervals::new(TicksDelta(1_000));
        intervals.add(TicksDelta(5), TicksDelta(300), Nanos(150), 2);
        let lost = intervals.loads(TicksDelta(1_000))[0].lost_ns(20.0, Hertz(2e9));
        assert!((lost - 280.0).abs() < 1e-9, "{lost}");
    }

    #[test]
    fn a_quiet_stretch_is_intervals_without_gaps() {
        let mut intervals = Intervals::new(TicksDelta(10));
        add(&mut intervals, 95, 1);
        let whole = intervals.tables(TicksDelta(100));
        assert_eq!(whole.len(), 10);
        assert_eq!(whole.iter().filter(|table| table.is_empty()).count(), 9);
        assert_eq!(intervals.loads(TicksDelta(99)).len(), 9, "the last one is not whole");
    }
}
