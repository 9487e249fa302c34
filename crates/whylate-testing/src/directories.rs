//! Run directories whose content is known: planted, not recorded.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;

use whylate_model::cause::{Cause, CauseTotal};
use whylate_model::directory::RunDir;
use whylate_model::gap::{Evidence, Gap, GapKind, RseqWord};
use whylate_model::origin;
use whylate_model::run::{GapSummary, Run};
use whylate_model::segments::{Limits, StoredGap, Writer};
use whylate_model::series::summary::{self, Identity};
use whylate_model::series::{Definition, Series};
use whylate_model::{CpuId, Hertz, Nanos, Ticks, TicksDelta};
use whylate_stats::Histogram;
use whylate_stats::rng::Rng;

use crate::program;

/// A run directory in the making.
pub struct Planted {
    pub run: Run,
    intervals: Vec<(String, Histogram)>,
    gaps: Vec<StoredGap>,
    /// Intervals that the run counts; none for all of them.
    counted: Option<usize>,
}

impl Planted {
    /// A run of the recorded example's host without anything measured, begun at this second.
    pub fn new(host: &str, second: u64) -> Self {
        let example = program::file("runs/gaps");
        let mut run = RunDir::open(example).unwrap().read_run().unwrap();
        host.clone_into(&mut run.host.hostname);
        run.command_line = vec!["whylate".to_owned(), host.to_owned()];
        for (anchor, after) in run.clock.anchors.iter_mut().zip([0, 1]) {
            anchor.realtime_ns = (1_795_000_000 + second + after) * 1_000_000_000;
        }
        run.clock.anchors.truncate(1);
        run.clock.anchors[0].ticks = run.clock.epoch;
        run.series.clear();
        run.gaps.clear();
        run.segments.clear();
        (run.log_bytes, run.log_digest) = (None, None);
        run.causes.clear();
        run.worst.clear();
        run.senders.clear();
        run.warnings.clear();
        run.verdict = whylate_model::run::Verdict::Trustworthy;
        assert!(origin::began(&run.clock).is_some());
        Self { run, intervals: Vec::new(), gaps: Vec::new(), counted: None }
    }

    /// Adds a series with its intervals of a second.
    pub fn series(mut self, name: &str, from: &str, intervals: &[Histogram]) -> Self {
        let identity = Identity {
            name: name.to_owned(),
            label: format!("planted {name}"),
            paper_row: None,
            from: from.to_owned(),
            to: "the next reading".to_owned(),
            clock: "tsc".to_owned(),
            definition: Definition::ReadDelta,
            resolution_ns: 0.5,
            lost: 0,
        };
        let all = pooled(intervals);
        let n = all.len() as f64;
        self.run.series.push(Series::summarise(identity, &all, |_| n, None));
        self.intervals.extend(intervals.iter().map(|i| (name.to_owned(), i.clone())));
        self
    }

    /// Adds gaps of a CPU: a series, its summary, and a table with a row for each.
    pub fn gaps(mut self, cpu: u32, threshold: Nanos, intervals: &[Histogram]) -> Self {
        let name = format!("gap-cpu{cpu}");
        self = self.series(&name, "last reading before the gap", intervals);
        let hz = self.run.clock.hz;
        let all = pooled(intervals);
        let elapsed = Nanos(intervals.len() as u64 * Nanos::SECOND.0);
        let series = self.run.series.last_mut().unwrap();
        series.definition = Definition::Gap;
        let weighted = summary::time_weighted(&all, elapsed);
        series.weigh_by_time(&all, elapsed, &weighted);
        let example = example_gaps();
        let start = self.run.clock.epoch;
        let lost_share = all.sum() as f64 / elapsed.0 as f64;
        self.run.gaps.push(GapSummary {
            cpu: CpuId(cpu),
            series: name,
            start,
            end: start + elapsed.to_ticks(hz),
            threshold: threshold.to_ticks(hz),
            gaps: all.len(),
            dropped: 0,
            gap_ticks: Nanos(all.sum() as u64).to_ticks(hz),
            lost: Nanos(all.sum() as u64),
            lost_share,
            lost_share_interval: Some((lost_share * 0.9, lost_share * 1.1)),
            rates: summary::rates(&all, elapsed),
            time_weighted: weighted,
            ..example
        });
        for (value, count) in all.bins().take(20) {
            for _ in 0..count.min(3) {
                let at = start + TicksDelta(1_000 * (self.gaps.len() as u64 + 1));
                self.gaps.push(gap(cpu, at, Nanos(value).to_ticks(hz)));
            }
        }
        self
    }

    /// Gaps of a CPU of these lengths, as many a second for 10 s, each named after a cause; the loop takes
    /// 10 ns, and the counter counts nanoseconds. What the causes took is told as recordings tell it.
    pub fn named_gaps(mut self, cpu: u32, threshold: Nanos, lengths: &[(u64, u64, Cause)]) -> Self {
        const PERIOD: u64 = 10;
        self.run.clock.hz = Hertz(1e9);
        let mut interval = Histogram::new();
        for (length, count, _) in lengths {
            interval.record_n(*length, *count);
        }
        let rows = self.gaps.len();
        self = self.gaps(cpu, threshold, &vec![interval; 10]);
        let thread = self.run.gaps.len() as u16 - 1;
        let summary = self.run.gaps.last_mut().unwrap();
        summary.period_ticks = PERIOD as f64;
        summary.lost = Nanos(summary.lost.0 - PERIOD * summary.gaps);
        summary.lost_share = summary.lost.0 as f64 / 10e9;
        self.gaps.truncate(rows);
        let epoch = self.run.clock.epoch;
        for (length, count, cause) in lengths {
            for _ in 0..10 * count {
                let at = epoch + TicksDelta(100_000 * (self.gaps.len() as u64 + 1));
                let named = Some(cause.stored().into());
                self.gaps.push(StoredGap {
                    thread,
                    cause: named,
                    ..gap(cpu, at, TicksDelta(*length))
                });
            }
            let gaps = 10 * count;
            let total = CauseTotal {
                cause: cause.clone(),
                cpu: None,
                gaps,
                parts: gaps,
                lost_ns: ((length - PERIOD) * gaps) as f64,
                share_of_lost: 0.0,
                share_of_elapsed: 0.0,
                longest: Nanos(*length),
            };
            self.run.causes.push(CauseTotal { cpu: Some(CpuId(cpu)), ..total.clone() });
            self.run.causes.push(total);
        }
        share(&mut self.run.causes);
        self
    }

    /// Leaves the last rows out of the table of gaps, as a bound of the disk does.
    pub fn without_rows(mut self, rows: usize) -> Self {
        self.gaps.truncate(self.gaps.len() - rows);
        self
    }

    /// Adds intervals to the log alone, as a run that is killed leaves after its last checkpoint.
    pub fn and_later(mut self, name: &str, intervals: &[Histogram]) -> Self {
        self.counted = Some(self.intervals.len());
        self.intervals.extend(intervals.iter().map(|i| (name.to_owned(), i.clone())));
        self
    }

    /// Writes it all to a directory below `home`.
    pub fn write(mut self, home: &Path, name: &str) -> PathBuf {
        let path = home.join(name);
        let directory = RunDir::create(&path).unwrap();
        let mut log = directory.histogram_log().unwrap();
        log.count_in(&mut self.run);
        let mut start = std::collections::BTreeMap::new();
        for (number, (tag, histogram)) in self.intervals.iter().enumerate() {
            let start = start.entry(tag.clone()).or_insert(0.0);
            log.append(tag, histogram, *start, 1.0).unwrap();
            *start += 1.0;
            if self.counted.is_none_or(|counted| number < counted) {
                log.count_in(&mut self.run);
            }
        }
        let mut writer = Writer::new(&directory, self.run.clock.epoch, Limits::default());
        for gap in &self.gaps {
            writer.push_gap(gap).unwrap();
        }
        writer.checkpoint().unwrap();
        self.run.segments = writer.segments();
        directory.write_run(&self.run).unwrap();
        path
    }
}

/// Intervals of a second with values around a level that wanders.
pub fn latencies(seed: u64, seconds: usize, level: f64) -> Vec<Histogram> {
    let mut rng = Rng::new(seed);
    let mut state = 0.0;
    (0..seconds)
        .map(|_| {
            state = 0.4 * state + 0.9 * (rng.unit() + rng.unit() - 1.0);
            let floor = level * (1.0 + 0.3 * state);
            (0..200).map(|_| (floor + rng.exponential(level)) as u64).collect()
        })
        .collect()
}

/// Intervals of a second with so many values each, around a level.
pub fn steady(seed: u64, per_second: usize, level: f64) -> Vec<Histogram> {
    let mut rng = Rng::new(seed);
    let one = |rng: &mut Rng| (level + rng.exponential(level)) as u64;
    (0..30).map(|_| (0..per_second).map(|_| one(&mut rng)).collect()).collect()
}

/// All intervals together.
pub fn pooled(intervals: &[Histogram]) -> Histogram {
    let mut all = Histogram::new();
    for interval in intervals {
        all.add(interval);
    }
    all
}

/// Says of each cause how much of all that was lost it took, of its CPU or of all.
fn share(causes: &mut [CauseTotal]) {
    let mut lost: BTreeMap<Option<CpuId>, f64> = BTreeMap::new();
    for of in causes.iter() {
        *lost.entry(of.cpu).or_default() += of.lost_ns;
    }
    for of in causes {
        of.share_of_lost = of.lost_ns / lost[&of.cpu];
    }
}

fn gap(cpu: u32, start: Ticks, length: TicksDelta) -> StoredGap {
    let end = start + length;
    let evidence =
        Evidence { rseq: RseqWord::Set, involuntary_switches: None, in_recording: false };
    let (cpu_before, cpu_after) = (CpuId(cpu), CpuId(cpu));
    let resumed = end + TicksDelta(100);
    let gap =
        Gap { start, end, resumed, cpu_before, cpu_after, kind: GapKind::Interruption, evidence };
    StoredGap { thread: 0, gap, cause: None }
}

fn example_gaps() -> GapSummary {
    let example = program::file("runs/gaps");
    RunDir::open(example).unwrap().read_run().unwrap().gaps.remove(0)
}

/// Brings the files of a run into this directory, which is made where there is none.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Runs `whylate merge` on these.
pub fn merge(words: &[&str], directories: &[PathBuf], into: &Path) -> Output {
    let mut command = program::whylate(["merge"]);
    command.args(directories).args(words).arg("-o").arg(into).output().unwrap()
}

/// All intervals of a series in a log, and how many there are.
pub fn log(directory: &Path, series: &str) -> (Histogram, usize) {
    let intervals = RunDir::open(directory).unwrap().histograms().unwrap();
    let of_series: Vec<Histogram> = intervals
        .map(Result::unwrap)
        .filter(|interval| interval.tag == series)
        .map(|interval| interval.histogram)
        .collect();
    (pooled(&of_series), of_series.len())
}
