//! A sample as blocks of time, run by run: what differences and rank tests resample.
//!
//! Neighbouring values depend on each other, so nothing is drawn value by value. Each run is cut
//! into blocks of equal time, [`MOST_BLOCKS`] at most; when they are full, neighbours are added
//! together and the blocks become twice as long. The memory does not grow with the duration, and
//! dependence that is short against a block (a 40th to a 20th of the run) is accounted for. Runs are kept
//! apart: what changes from one start of a program to the next shows between them only.

use crate::dependence;
use crate::histogram::Histogram;

/// Blocks kept of a run; even, so that they pair up.
pub const MOST_BLOCKS: usize = 40;

/// Blocks kept of all runs of a side together: with many runs each has fewer.
const MOST_BLOCKS_OF_ALL: usize = 1_200;

/// Counts by bin: ascending (highest value of the bin, count).
pub type Counts = Vec<(u64, u64)>;

/// One run's values in blocks of equal time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Blocks {
    most: usize,
    /// Length of a block, in whatever unit the starts have; 0 before the first interval.
    width: f64,
    all: Vec<Counts>,
}

/// All runs of one side of a comparison.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    runs: Vec<Blocks>,
    pooled: Histogram,
}

impl Blocks {
    /// No values yet. `runs` is how many runs the side has: it bounds the memory of all of them.
    #[must_use]
    pub fn new(runs: usize) -> Self {
        let most = (MOST_BLOCKS_OF_ALL / runs.max(1)).clamp(2, MOST_BLOCKS);
        Self { most: most / 2 * 2, width: 0.0, all: Vec::new() }
    }

    /// Adds what was recorded in the interval that began at `start` and took `length`.
    ///
    /// The first interval's length is the width of the first blocks. A time that is none (negative,
    /// not finite) counts as 0.
    pub fn add(&mut self, start: f64, length: f64, counts: &[(u64, u64)]) {
        let usable = |time: f64| if time.is_finite() && time > 0.0 { time } else { 0.0 };
        if self.width == 0.0 {
            self.width = usable(length).max(1e-9);
        }
        let block = self.reach(usable(start));
        *block = added(block, counts);
    }

    /// Makes sure that there are blocks up to `end`, so that quiet ones at the end count as such.
    pub fn until(&mut self, end: f64) {
        if self.width > 0.0 && end.is_finite() && end > 0.0 {
            // A block that the run did not fill is none.
            let whole = (end / self.width + 1e-6).floor();
            if whole >= 1.0 {
                self.reach((whole - 0.5) * self.width);
            }
        }
    }

    /// Length of a block; 0 before the first interval.
    #[must_use]
    pub fn width(&self) -> f64 {
        self.width
    }

    /// The blocks.
    #[must_use]
    pub fn blocks(&self) -> &[Counts] {
        &self.all
    }

    /// Values in all blocks.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.all.iter().flatten().map(|(_, count)| count).sum()
    }

    /// No values?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.iter().all(Vec::is_empty)
    }

    /// All blocks together.
    #[must_use]
    pub fn pooled(&self) -> Counts {
        pooled(self.all.iter())
    }

    fn reach(&mut self, time: f64) -> &mut Counts {
        while time / self.width >= self.most as f64 {
            self.width *= 2.0;
            self.all = self.all.chunks(2).map(|pair| pooled(pair.iter())).collect();
        }
        let index = (time / self.width) as usize;
        if index >= self.all.len() {
            self.all.resize(index + 1, Vec::new());
        }
        &mut self.all[index]
    }
}

impl Sample {
    /// No runs yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a run: its blocks, and the histogram of all its values.
    pub fn push(&mut self, run: Blocks, values: &Histogram) {
        self.push_run(run);
        self.add_values(values);
    }

    /// Adds a run's blocks, whose values come by [`Sample::add_values`].
    pub fn push_run(&mut self, run: Blocks) {
        self.runs.push(run);
    }

    /// Adds values of runs whose blocks come by [`Sample::push_run`].
    pub fn add_values(&mut self, values: &Histogram) {
        self.pooled.add(values);
    }

    /// A run from its interval histograms, each of length 1.
    pub fn push_intervals(&mut self, intervals: &[Histogram]) {
        let mut run = Blocks::new(1);
        let mut values = Histogram::new();
        for (number, interval) in intervals.iter().enumerate() {
            run.add(number as f64, 1.0, &counts(interval));
            values.add(interval);
        }
        self.push(run, &values);
    }

    /// The runs.
    #[must_use]
    pub fn runs(&self) -> &[Blocks] {
        &self.runs
    }

    /// All values of all runs.
    #[must_use]
    pub fn values(&self) -> &Histogram {
        &self.pooled
    }

    /// Blocks of all runs.
    pub fn blocks(&self) -> impl Iterator<Item = &Counts> {
        self.runs.iter().flat_map(|run| &run.all)
    }

    /// How many independent samples the values are worth for a percentile that lies at `value_ns`.
    #[must_use]
    pub fn effective_n(&self, value_ns: u64) -> f64 {
        let bin = self.pooled.bin_of(value_ns);
        let counts: Vec<_> = self.blocks().map(|block| around(block, bin)).collect();
        dependence::effective_n_of_bin(self.pooled.len(), &counts)
    }

    /// The same where whole runs differ as well, as by what else a host did during each: what a run moves,
    /// its blocks share, and blocks alone do not show it. The smaller of what blocks and runs say.
    #[must_use]
    pub fn effective_n_over_runs(&self, value_ns: u64) -> f64 {
        let bin = self.pooled.bin_of(value_ns);
        let of_run = |run: &Blocks| {
            let blocks = run.all.iter().map(|block| around(block, bin));
            blocks.fold((0, 0, 0), |all, one| (all.0 + one.0, all.1 + one.1, all.2 + one.2))
        };
        let counts: Vec<_> = self.runs.iter().map(of_run).collect();
        let by_runs = dependence::effective_n_of_bin(self.pooled.len(), &counts);
        by_runs.min(self.effective_n(value_ns))
    }
}

/// What of a block lies above a bin, what lies in it or above, and all of it.
fn around(block: &[(u64, u64)], bin: u64) -> (u64, u64, u64) {
    let from = |least: u64| block.iter().filter(move |(value, _)| *value >= least);
    let count = |of: &(u64, u64)| of.1;
    (from(bin + 1).map(count).sum(), from(bin).map(count).sum(), block.iter().map(count).sum())
}

/// A histogram's counts under the names of whole bins, so that equal bins of two histograms meet.
#[must_use]
pub fn counts(histogram: &Histogram) -> Counts {
    histogram.bins().map(|(value, count)| (histogram.bin_of(value), count)).collect()
}

/// Counts of several blocks together.
pub(crate) fn pooled<'a>(blocks: impl Iterator<Item = &'a Counts>) -> Counts {
    let mut all: Counts = blocks.flatten().copied().collect();
    all.sort_unstable_by_key(|(value, _)| *value);
    all.dedup_by(|later, earlier| {
        let same = later.0 == earlier.0;
        earlier.1 += if same { later.1 } else { 0 };
        same
    });
    all
}

fn added(block: &[(u64, u64)], more: &[(u64, u64)]) -> Counts {
    if block.is_empty() {
        return more.to_vec();
    }
    pooled([block.to_vec(), more.to_vec()].iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_no_value_is_lost() {
        let mut run = Blocks::new(1);
        for second in 0..100_000u32 {
            run.add(f64::from(second), 1.0, &[(u64::from(second % 7), 2)]);
        }
        assert!(run.blocks().len() <= MOST_BLOCKS && run.blocks().len() >= MOST_BLOCKS / 2);
        assert_eq!(run.len(), 200_000);
        assert!(Blocks::new(1_000).most <= 2);
    }

    #[test]
    fn what_a_whole_run_moves_is_seen_by_runs_and_not_by_their_blocks() {
        let mut rng = crate::rng::Rng::new(3);
        let mut sample = Sample::new();
        // Five runs of a hundred blocks of a hundred values; one in ten of a run's values is high, but in
        // the third run every second.
        for run in 0..5 {
            let often = if run == 2 { 2 } else { 10 };
            let one = || if rng.below(often) == 0 { 900_u64 } else { 100 };
            let values: Vec<u64> = std::iter::repeat_with(one).take(10_000).collect();
            let blocks: Vec<Histogram> =
                values.chunks(100).map(|block| block.iter().copied().collect()).collect();
            sample.push_intervals(&blocks);
        }
        let (blocks, runs) = (sample.effective_n(500), sample.effective_n_over_runs(500));
        // By hand: q = 0.18, p of runs 0.1 (4) and 0.5: F = sum t (p - q)^2 / (q (1 - q)) / 4
        // = 10 000 * 0.128 / 0.1476 / 4 = 2 168.
        assert!((runs - 50_000.0 / 2_168.0).abs() < 2.0, "{runs}");
        assert!(blocks > 20.0 * runs, "{blocks} {runs}");
        let mut alike = Sample::new();
        for _ in 0..5 {
            let values = std::iter::repeat_with(|| rng.below(1_000)).take(10_000);
            alike.push_intervals(&[values.collect()]);
        }
        assert!(alike.effective_n_over_runs(500) > 10_000.0);
    }

    #[test]
    fn quiet_time_is_blocks_without_values() {
        let mut run = Blocks::new(1);
        run.add(3.0, 1.0, &[(5, 1)]);
        run.until(10.4);
        assert_eq!(run.blocks().len(), 10);
        assert_eq!(run.blocks().iter().filter(|block| block.is_empty()).count(), 9);
    }

    #[test]
    fn times_that_are_none_neither_panic_nor_loop() {
        let mut run = Blocks::new(1);
        for time in [f64::NAN, f64::INFINITY, -1.0, 1e300, 0.0] {
            run.add(time, time, &[(5, 1)]);
            run.until(time);
        }
        assert_eq!(run.len(), 5);
        assert!(run.blocks().len() <= MOST_BLOCKS);
    }

    #[test]
    fn bins_of_equal_name_meet() {
        let (a, b) = (vec![(1, 2), (5, 1)], vec![(1, 1), (4, 4)]);
        assert_eq!(pooled([a, b].iter()), [(1, 3), (4, 4), (5, 1)]);
    }
}
