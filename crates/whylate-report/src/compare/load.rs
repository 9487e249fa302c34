//! Reading the runs of one side, in memory that does not grow with their duration.

use std::collections::BTreeMap;
use std::path::PathBuf;

use whylate_model::directory::RunDir;
use whylate_model::origin::{self, Origin};
use whylate_model::run::{GapSummary, Run};
use whylate_model::series::{Censored, Definition, Series};
use whylate_model::{Nanos, Printable, Ticks};
use whylate_stats::Histogram;
use whylate_stats::dependence::Exceedances;
use whylate_stats::sample::{Blocks, Counts, Sample, counts};

use super::Caution;
use crate::ReportError;

/// Blocks of a recording that logged no interval.
const QUIET_BLOCKS: f64 = 30.0;

/// A run of a side.
pub(super) struct Loaded {
    directory: RunDir,
    /// Its directory as it was named, safe to print.
    pub(super) name: String,
    pub(super) run: Run,
}

/// A series to read, and the length from which on its values count.
pub(super) struct Wanted {
    pub(super) series: String,
    pub(super) floor: Nanos,
}

/// A series of one side.
#[derive(Default)]
pub(super) struct Measured {
    pub(super) sample: Sample,
    /// Of all intervals: for bands around curves.
    pub(super) dependence: Exceedances,
    /// Largest value of each run.
    pub(super) maxima: Vec<f64>,
    /// Samples of which only a lower bound is known: the largest ones.
    pub(super) censored: Option<Censored>,
    /// Time measured, where it is known, of all runs.
    pub(super) elapsed: Option<Nanos>,
    /// For gaps: lost share of each block, run by run.
    pub(super) lost: Vec<Vec<f64>>,
    /// For gaps: seconds that each of these runs measured.
    pub(super) seconds: Vec<f64>,
    /// Intervals of time in the logs.
    pub(super) intervals: usize,
    /// Samples in the logs, those below the floor among them.
    pub(super) logged: u64,
}

/// Reads `run.json` of each directory; the same recording counts once.
pub(super) fn runs(paths: &[PathBuf]) -> Result<Vec<Loaded>, ReportError> {
    let mut loaded: Vec<Loaded> = Vec::new();
    for path in paths {
        let directory = RunDir::open(path)?;
        let run = directory.read_checked()?;
        let name = Printable(&path.display().to_string()).to_string();
        let new = Loaded { directory, name, run };
        if let Some(known) = loaded.iter().find(|known| known.shares_a_recording(&new)) {
            let (first, second) = (known.name.clone(), new.name);
            return Err(ReportError::ComparedTwice { first, second });
        }
        loaded.push(new);
    }
    Ok(loaded)
}

/// What no two recordings have in common.
#[derive(PartialEq)]
struct Fingerprint<'a> {
    began: Option<u64>,
    host: &'a str,
    epoch: Ticks,
    seed: u64,
    command_line: &'a [String],
}

impl<'a> Fingerprint<'a> {
    fn of(origin: &'a Origin) -> Self {
        Self {
            began: origin.began(),
            host: &origin.host.hostname,
            epoch: origin.clock.epoch,
            seed: origin.seed,
            command_line: &origin.command_line,
        }
    }
}

impl Loaded {
    fn recorded(&self) -> Vec<Fingerprint<'_>> {
        let run = &self.run;
        if run.is_merged() {
            return run.origins.iter().map(Fingerprint::of).collect();
        }
        vec![Fingerprint {
            began: origin::began(&run.clock),
            host: &run.host.hostname,
            epoch: run.clock.epoch,
            seed: run.seed,
            command_line: &run.command_line,
        }]
    }

    /// Is a recording in both?
    pub(super) fn shares_a_recording(&self, other: &Self) -> bool {
        let known = self.recorded();
        other.recorded().iter().any(|recording| known.contains(recording))
    }

    pub(super) fn series(&self, name: &str) -> Option<&Series> {
        self.run.series.iter().find(|series| series.name == name)
    }

    pub(super) fn gaps(&self, name: &str) -> Option<&GapSummary> {
        self.run.gaps.iter().find(|gaps| gaps.series == name)
    }

    /// The threshold behind a series of gaps.
    pub(super) fn threshold(&self, name: &str) -> Option<Nanos> {
        self.gaps(name).map(|gaps| gaps.threshold.to_nanos(self.run.clock.hz))
    }

    /// Time measured by a recording in this run.
    pub(super) fn elapsed(&self, name: &str, origin: Option<u32>) -> Option<Nanos> {
        match origin {
            None => {
                let gaps = self.gaps(name)?;
                Some(gaps.end.since(gaps.start).to_nanos(self.run.clock.hz))
            }
            Some(index) => {
                let shares = &self.run.origins.get(index as usize)?.series;
                let own = shares.iter().filter(|share| share.series == name);
                let elapsed: Option<u64> = own.map(|share| share.elapsed.map(|e| e.0)).sum();
                elapsed.map(Nanos)
            }
        }
    }

    /// Recordings of a series of gaps, by origin, with the seconds that each took.
    fn quiet(&self, name: &str) -> Vec<(Option<u32>, f64)> {
        let seconds = |origin| Some((origin, self.elapsed(name, origin)?.0 as f64 / 1e9));
        match self.run.origins.len() {
            0 => seconds(None).into_iter().collect(),
            several => (0..several as u32).filter_map(|index| seconds(Some(index))).collect(),
        }
    }

    pub(super) fn period_ns(&self, name: &str) -> f64 {
        self.gaps(name).map_or(0.0, |gaps| gaps.period_ticks * 1e9 / self.run.clock.hz.0)
    }

    pub(super) fn directory(&self) -> &RunDir {
        &self.directory
    }

    pub(super) fn recordings(&self) -> usize {
        self.run.origins.len().max(1)
    }
}

/// One recording's part of a series while its log is read.
struct Recording {
    blocks: Blocks,
    /// Start of its first interval: in a merged log, starts count from the earliest recording.
    begin: f64,
    max: u64,
}

/// Reads the wanted series of all runs of a side, each log once.
pub(super) fn side(
    runs: &[Loaded],
    wanted: &[Wanted],
    cautions: &mut Vec<Caution>,
) -> Vec<Measured> {
    let recordings = runs.iter().map(Loaded::recordings).sum();
    let mut measured: Vec<Measured> = wanted.iter().map(|_| Measured::default()).collect();
    for loaded in runs {
        let mut parts: BTreeMap<(usize, Option<u32>), Recording> = BTreeMap::new();
        let mut logged = vec![0u64; wanted.len()];
        let log = match loaded.directory.histograms_of(&loaded.run) {
            Ok(log) => log,
            Err(error) => {
                cautions.push(Caution::Damaged { what: error.to_string() });
                continue;
            }
        };
        for interval in log {
            let interval = match interval {
                Ok(interval) => interval,
                Err(error) => {
                    cautions.push(Caution::Damaged { what: error.to_string() });
                    continue;
                }
            };
            let Some(index) = wanted.iter().position(|one| one.series == interval.tag) else {
                continue;
            };
            logged[index] += interval.histogram.len();
            measured[index].logged += interval.histogram.len();
            let values = at_least(interval.histogram, wanted[index].floor);
            let part = parts.entry((index, interval.origin)).or_insert_with(|| Recording {
                blocks: Blocks::new(recordings),
                begin: if interval.origin.is_some() { interval.start_s } else { 0.0 },
                max: 0,
            });
            let start = interval.start_s - part.begin;
            part.blocks.add(start, interval.length_s, &counts(&values));
            part.max = part.max.max(values.max().unwrap_or(0));
            let into = &mut measured[index];
            into.intervals += 1;
            into.dependence.add(&values);
            into.sample.add_values(&values);
        }
        for (index, one) in wanted.iter().enumerate() {
            for (origin, seconds) in loaded.quiet(&one.series) {
                parts.entry((index, origin)).or_insert_with(|| quiet(recordings, seconds));
            }
        }
        for ((index, origin), part) in parts {
            take(&mut measured[index], loaded, &wanted[index], origin, part);
        }
        for ((one, have), into) in wanted.iter().zip(logged).zip(&mut measured) {
            let series = loaded.series(&one.series);
            let counted = series.map_or(0, |series| series.n);
            let censored = series.and_then(|series| series.censored);
            into.censored = Censored::of_both(into.censored, censored);
            if have < counted {
                let (directory, series) = (loaded.name.clone(), one.series.clone());
                cautions.push(Caution::Incomplete { directory, series, have, counted });
            }
        }
    }
    measured
}

/// A recording without a single gap: blocks of time, all empty.
fn quiet(recordings: usize, seconds: f64) -> Recording {
    let mut blocks = Blocks::new(recordings);
    blocks.add(0.0, (seconds / QUIET_BLOCKS).min(1.0), &[]);
    Recording { blocks, begin: 0.0, max: 0 }
}

fn take(
    into: &mut Measured,
    loaded: &Loaded,
    wanted: &Wanted,
    origin: Option<u32>,
    mut part: Recording,
) {
    let name = &*wanted.series;
    let elapsed = loaded.elapsed(name, origin);
    let is_gap = loaded.series(name).is_some_and(|s| s.definition == Definition::Gap);
    if let Some(elapsed) = elapsed.filter(|_| is_gap) {
        let seconds = elapsed.0 as f64 / 1e9;
        part.blocks.until(seconds);
        let width = part.blocks.width();
        let whole = ((seconds / width + 1e-6) as usize).min(part.blocks.blocks().len());
        let period = loaded.period_ns(name);
        let blocks = part.blocks.blocks();
        let share = |block: &Counts| lost_ns(block, period) / (width * 1e9);
        let shares = blocks[..whole].iter().map(share).collect();
        // What the run says itself, where nothing of it is left out here.
        let own = loaded.gaps(name).filter(|_| origin.is_none());
        let own = own.filter(|_| loaded.threshold(name) >= Some(wanted.floor));
        let all = own.map_or_else(
            || blocks.iter().map(|block| lost_ns(block, period)).sum::<f64>() / elapsed.0 as f64,
            |gaps| gaps.lost_share,
        );
        into.lost.push(centred(shares, all));
        into.seconds.push(seconds);
        into.elapsed = Some(Nanos(into.elapsed.map_or(0, |e| e.0).saturating_add(elapsed.0)));
    }
    if !part.blocks.is_empty() {
        into.maxima.push(part.max as f64);
    }
    into.sample.push_run(part.blocks);
}

/// Blocks whose mean is that of the whole recording: what is left of it behind the last whole block counts, too. How
/// they scatter stays.
pub(super) fn centred(mut blocks: Vec<f64>, all: f64) -> Vec<f64> {
    let mean = blocks.iter().sum::<f64>() / (blocks.len() as f64).max(1.0);
    for block in &mut blocks {
        *block += all - mean;
    }
    blocks
}

/// Time lost in these gaps: of each, what is more than one period of the loop.
fn lost_ns(gaps: &Counts, period_ns: f64) -> f64 {
    gaps.iter().map(|(length, count)| (*length as f64 - period_ns).max(0.0) * *count as f64).sum()
}

/// The values that are not below `floor`.
fn at_least(histogram: Histogram, floor: Nanos) -> Histogram {
    if histogram.min().is_none_or(|min| min >= floor.0) {
        return histogram;
    }
    let mut kept = Histogram::new();
    for (value, count) in histogram.bins().filter(|(value, _)| *value >= floor.0) {
        kept.record_n(value, count);
    }
    kept
}
