//! A run directory of any size, without measuring: for what a report costs.

use std::path::Path;
use std::sync::Arc;

use whylate_model::directory::RunDir;
use whylate_model::gap::{Evidence, Gap, GapKind, RseqWord};
use whylate_model::segments::{Limits, StoredGap, Writer};
use whylate_model::series::summary;
use whylate_model::{CpuId, Hertz, Nanos, Ticks, TicksDelta};
use whylate_stats::Histogram;
use whylate_stats::rng::Rng;

use crate::program;

/// Time between the starts of two gaps.
const APART: u64 = 5_000;
/// Gaps of one interval of the histogram log.
const PER_INTERVAL: u64 = 200_000;
/// Texts of causes, as a recording stores them.
const CAUSES: [&str; 4] =
    ["interrupt local_timer", "softirq timer", "thread kworker/1:1 (ordinary)", "host"];

/// Writes the run of the recorded example with so many gaps in its tables and histograms. Its ticks
/// are nanoseconds; what it says of single gaps is the example's.
pub fn run(directory: &Path, gaps: u64) {
    let example = program::file("runs/gaps");
    let mut run = RunDir::open(example).unwrap().read_run().unwrap();
    run.clock.hz = Hertz(1e9);
    let start = run.gaps[0].start;
    let elapsed = Nanos((gaps * APART).max(10_000_000_000));
    let directory = RunDir::create(directory).unwrap();
    let mut writer = Writer::new(&directory, run.clock.epoch, Limits::default());
    let mut log = directory.histogram_log().unwrap();
    let causes = CAUSES.map(Arc::<str>::from);
    let (mut rng, mut all, mut interval) = (Rng::new(1), Histogram::new(), Histogram::new());
    let seconds = |gaps: u64| (gaps * APART) as f64 / 1e9;
    for number in 0..gaps {
        let length = 150 + (rng.exponential(600.0) as u64).min(APART / 2);
        let cause = &causes[(rng.next_u64() % causes.len() as u64) as usize];
        let at = start + TicksDelta(number * APART);
        writer.push_gap(&gap(at, length, number, cause)).unwrap();
        interval.record(length);
        if (number + 1) % PER_INTERVAL == 0 || number + 1 == gaps {
            let first = number / PER_INTERVAL * PER_INTERVAL;
            let length_s = seconds(number + 1 - first);
            log.append(&run.gaps[0].series, &interval, seconds(first), length_s).unwrap();
            all.add(&interval);
            interval.clear();
        }
    }
    writer.checkpoint().unwrap();
    run.segments = writer.segments();
    let series = &mut run.series[0];
    (series.n, series.min, series.max) = (all.len(), all.min().map(Nanos), all.max().map(Nanos));
    for quantile in &mut series.quantiles {
        quantile.value = all.value_at(quantile.percent).map(Nanos);
        (quantile.low, quantile.high) = (None, None);
    }
    let summary = &mut run.gaps[0];
    summary.gaps = gaps;
    summary.end = start + TicksDelta(elapsed.0);
    summary.rates = summary::rates(&all, elapsed);
    summary.time_weighted = summary::time_weighted(&all, elapsed);
    directory.write_run(&run).unwrap();
}

fn gap(start: Ticks, length: u64, number: u64, cause: &Arc<str>) -> StoredGap {
    let end = start + TicksDelta(length);
    let evidence =
        Evidence { rseq: RseqWord::Set, involuntary_switches: None, in_recording: false };
    let resumed = end + TicksDelta(60);
    let gap = Gap {
        start,
        end,
        resumed,
        cpu_before: CpuId(1),
        cpu_after: CpuId(1),
        kind: GapKind::Interruption,
        evidence,
    };
    // One in fifty was attributed to nothing.
    let cause = (!number.is_multiple_of(50)).then(|| cause.clone());
    StoredGap { thread: 0, gap, cause }
}
