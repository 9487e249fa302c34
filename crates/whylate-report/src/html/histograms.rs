//! The histograms of a run directory, pooled by series, as far as they can be read.

use std::collections::BTreeMap;

use whylate_model::directory::RunDir;
use whylate_model::run::{Run, RunState};
use whylate_stats::Histogram;
use whylate_stats::bootstrap::{block_bootstrap, mean};
use whylate_stats::dependence::Exceedances;

/// Series of a page: each takes some 300 kB of memory.
const MOST_SERIES: usize = 64;
/// Intervals kept for the bootstrap; when there are more, neighbours are added together.
const MOST_INTERVALS: usize = 240;
/// Gap lengths that the share of time lost in longer gaps gets an interval for: 1, 2 and 5 times
/// each power of ten, 100 ns to 50 s.
const GRID: usize = 27;
/// Resamples of the bootstrap: enough for two digits of a 95 % interval.
const RESAMPLES: u32 = 1_000;
/// Fewer intervals have no spread worth the name.
const FEWEST_INTERVALS: usize = 3;

/// What the log of a run holds.
#[derive(Debug, Default)]
pub(super) struct Histograms {
    by_name: BTreeMap<String, Pooled>,
    /// What could not be read.
    pub(super) notes: Vec<String>,
}

/// Lines of the logs that are in no histogram.
#[derive(Default)]
struct Left {
    unread: u64,
    strange: u64,
    /// Of series beyond those that a page has room for.
    crowded: u64,
    /// Written after the last checkpoint of a run that did not end.
    later: u64,
}

/// One series.
#[derive(Debug)]
pub(super) struct Pooled {
    pub(super) all: Histogram,
    pub(super) dependence: Exceedances,
    intervals: Vec<Interval>,
    /// Log lines in one of the intervals.
    per_interval: usize,
    lines: usize,
}

#[derive(Debug, Clone, Copy)]
struct Interval {
    length_ns: f64,
    /// Time in values of at least each of the grid.
    above: [f64; GRID],
}

/// The share of time in values of at least this one, between two ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TimeShare {
    pub(super) value_ns: f64,
    pub(super) share: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Histograms {
    /// Reads the logs of some directories, each with what its tags are called here beyond themselves.
    pub(super) fn read(sources: &[(String, &RunDir)], run: &Run) -> Self {
        let mut histograms = Self::default();
        let mut left = Left::default();
        for (prefix, directory) in sources {
            histograms.take(directory, prefix, run, &mut left);
        }
        for series in run.series.iter().filter(|series| series.n > 0) {
            let logged = histograms.get(&series.name).map_or(0, |pooled| pooled.all.len());
            if logged != series.n && logged > 0 {
                histograms.notes.push(format!(
                    "the histogram log holds {logged} of the {} samples of {}",
                    series.n, series.name
                ));
            }
        }
        let Left { unread, strange, crowded, later } = left;
        if unread > 1 {
            histograms.notes.push(format!("{unread} lines of the histogram log cannot be read"));
        }
        if later > 0 {
            histograms.notes.push(format!(
                "{later} {} of the histogram log not drawn: later than the last checkpoint, which \
                 everything else on this page is of",
                if later == 1 { "interval" } else { "intervals" }
            ));
        }
        let lines = |count: u64| match count {
            1 => "1 line of the histogram log is not drawn".to_owned(),
            count => format!("{count} lines of the histogram log are not drawn"),
        };
        if strange > 0 {
            histograms.notes.push(format!("{}: of no series of this run", lines(strange)));
        }
        if crowded > 0 {
            histograms.notes.push(format!(
                "{}: a page has room for {MOST_SERIES} series, and the tables have the numbers of the others",
                lines(crowded)
            ));
        }
        histograms
    }

    fn take(&mut self, directory: &RunDir, prefix: &str, run: &Run, left: &mut Left) {
        let intervals = match directory.histograms_of(run) {
            Ok(intervals) => intervals,
            Err(error) => {
                self.notes.push(format!("figures rest on summaries alone: {error}"));
                return;
            }
        };
        for interval in intervals {
            match interval {
                Ok(interval) if is_behind(run, &interval.tag) => {}
                Ok(interval) => {
                    let tag = format!("{prefix}{}", interval.tag);
                    let summed = run.series.iter().find(|series| series.name == tag);
                    if !(run.series.is_empty() || summed.is_some()) {
                        left.strange += 1;
                        continue;
                    }
                    if !self.has_room(&tag) {
                        left.crowded += 1;
                        continue;
                    }
                    let pooled = self.by_name.entry(tag).or_default();
                    let with_it = pooled.all.len() + interval.histogram.len();
                    let open = run.state == RunState::Running;
                    if summed.is_some_and(|series| open && with_it > series.n) {
                        left.later += 1;
                    } else {
                        pooled.add(&interval.histogram, interval.length_s * 1e9);
                    }
                }
                Err(error) => {
                    left.unread += 1;
                    if left.unread == 1 {
                        self.notes.push(format!("figures lack what cannot be read: {error}"));
                    }
                }
            }
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Pooled> {
        self.by_name.get(name).filter(|pooled| !pooled.all.is_empty())
    }

    /// Series of a log whose run has no summaries yet.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    fn has_room(&self, name: &str) -> bool {
        self.by_name.len() < MOST_SERIES || self.by_name.contains_key(name)
    }
}

impl Default for Pooled {
    fn default() -> Self {
        Self {
            all: Histogram::new(),
            dependence: Exceedances::new(),
            intervals: Vec::new(),
            per_interval: 1,
            lines: 0,
        }
    }
}

impl Pooled {
    fn add(&mut self, histogram: &Histogram, length_ns: f64) {
        self.all.add(histogram);
        self.dependence.add(histogram);
        let above = times_above(histogram);
        if self.lines.is_multiple_of(self.per_interval) {
            if self.intervals.len() == MOST_INTERVALS {
                self.merge_neighbours();
            }
            self.intervals.push(Interval { length_ns: 0.0, above: [0.0; GRID] });
        }
        self.lines += 1;
        if let Some(last) = self.intervals.last_mut() {
            last.add(&Interval { length_ns, above });
        }
    }

    fn merge_neighbours(&mut self) {
        let pairs = self.intervals.chunks(2).map(|pair| {
            let mut both = pair[0];
            pair[1..].iter().for_each(|other| both.add(other));
            both
        });
        self.intervals = pairs.collect();
        self.per_interval *= 2;
    }

    /// Intervals behind [`Pooled::time_shares`].
    pub(super) fn intervals(&self) -> usize {
        self.intervals.len()
    }

    /// 95 % intervals of the share of time lost in gaps of at least each length of the grid, by
    /// block bootstrap over intervals of time; none when there are too few.
    pub(super) fn time_shares(&self, seed: u64) -> Vec<TimeShare> {
        // The last may be cut short, by the end of the run or of the file.
        let longest = self.intervals.iter().map(|i| i.length_ns).fold(0.0, f64::max);
        let whole: Vec<&Interval> =
            self.intervals.iter().filter(|i| i.length_ns > 0.9 * longest).collect();
        if whole.len() < FEWEST_INTERVALS {
            return Vec::new();
        }
        (0..GRID)
            .filter_map(|at| {
                let shares: Vec<f64> = whole.iter().map(|i| i.above[at] / i.length_ns).collect();
                let share = mean(&shares);
                let interval = block_bootstrap(&shares, mean, seed, RESAMPLES);
                (share > 0.0 && interval.is_bounded()).then_some(TimeShare {
                    value_ns: grid(at),
                    share,
                    low: interval.low,
                    high: interval.high,
                })
            })
            .collect()
    }
}

impl Interval {
    fn add(&mut self, other: &Self) {
        self.length_ns += other.length_ns;
        for (above, more) in self.above.iter_mut().zip(other.above) {
            *above += more;
        }
    }
}

/// Does the log have this beside the series? Of a set's threads it has the gaps, of a calibration what its
/// numbers come from; no series sums them up, and no figure lacks them.
fn is_behind(run: &Run, tag: &str) -> bool {
    let gaps = !run.threads.is_empty() && tag.starts_with("gap-");
    gaps || run.calibration_parts.as_deref().is_some_and(|parts| parts.is_behind(tag))
}

fn grid(at: usize) -> f64 {
    [1.0, 2.0, 5.0][at % 3] * 100.0 * 10f64.powi((at / 3) as i32)
}

/// Time in values of at least each of the grid, in one pass.
fn times_above(histogram: &Histogram) -> [f64; GRID] {
    let mut above = [0.0; GRID];
    for (value, count) in histogram.bins() {
        let reached = (0..GRID).take_while(|at| grid(*at) <= value as f64).count();
        if let Some(highest) = reached.checked_sub(1) {
            above[highest] += value as f64 * count as f64;
        }
    }
    for at in (1..GRID).rev() {
        above[at - 1] += above[at];
    }
    above
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_counts_1_2_5() {
        let values: Vec<f64> = (0..4).map(grid).collect();
        assert_eq!(values, [100.0, 200.0, 500.0, 1_000.0]);
        assert!((grid(GRID - 1) - 5e10).abs() < 1.0);
    }

    #[test]
    fn time_shares_are_those_planted_and_their_intervals_hold_them() {
        let mut pooled = Pooled::default();
        for second in 0..1_000_u64 {
            // 1 % of each second in gaps of 10 us, and every other second one gap of 10 ms.
            let mut interval = Histogram::new();
            interval.record_n(10_000, 1_000);
            interval.record_n(10_000_000, second % 2);
            pooled.add(&interval, 1e9);
        }
        assert!(pooled.intervals() <= MOST_INTERVALS);
        let shares = pooled.time_shares(7);
        for (value, planted) in [(1e4, 0.015), (1e7, 0.005), (5e6, 0.005)] {
            let found = shares.iter().find(|s| (s.value_ns - value).abs() < 1.0).unwrap();
            assert!((found.share / planted - 1.0).abs() < 0.01, "{found:?}");
            assert!(found.low <= found.share && found.share <= found.high, "{found:?}");
        }
        assert!(shares.iter().all(|share| share.value_ns <= 1e7));
    }

    #[test]
    fn two_intervals_are_too_few() {
        let mut pooled = Pooled::default();
        for _ in 0..2 {
            pooled.add(&(0..10).map(|n| 1_000 + n).collect(), 1e9);
        }
        assert!(pooled.time_shares(1).is_empty());
    }
}
