//! Run directories of two planted CPUs over a long time, written as a recording writes them.

use std::path::Path;
use std::sync::Arc;

use whylate_model::directory::{RunDir, parse_run};
use whylate_model::gap::{Evidence, Gap, GapKind, RseqWord};
use whylate_model::run::{Closure, GapSummary, Run, Verdict};
use whylate_model::segments::{Limits, StoredGap, Writer};
use whylate_model::series::{Quantile, Series};
use whylate_model::{CpuId, Hertz, Nanos, Ticks, TicksDelta};
use whylate_stats::dependence::Exceedances;
use whylate_stats::rng::Rng;
use whylate_stats::{Histogram, quantile};

/// One tick is one nanosecond here.
const RATE: Hertz = Hertz(1e9);
/// Where tables count from.
const EPOCH: u64 = 5_000_000_000;
/// From one gap of a CPU to the next, on average.
const DISTANCE: u64 = 180_000;
const SECOND: u64 = 1_000_000_000;
/// What gaps are named after; the last is for those that nobody looked at.
const CAUSES: [&str; 12] = [
    "host",
    "interrupt local_timer",
    "softirq timer",
    "thread kworker/1:1 (ordinary)",
    "softirq rcu",
    "interrupt reschedule",
    "thread rustc (ordinary)",
    "softirq sched",
    "interrupt virtio1-req.0",
    "page fault",
    "NMI",
    "",
];

/// Writes a run of so many gaps on two CPUs; its longest gaps are those of the recorded example.
pub fn run(path: &Path, gaps: u64) {
    let directory = RunDir::create(path).unwrap();
    let recorded = include_bytes!("../../../tests/runs/gaps/run.json");
    let mut run = parse_run(Path::new("run.json"), recorded).unwrap();
    run.question = format!("What did two busy threads not get, with {gaps} planted gaps?");
    run.verdict = Verdict::Trustworthy;
    run.clock.hz = RATE;
    run.clock.epoch = Ticks(EPOCH);
    let template = (run.series[0].clone(), run.gaps[0].clone());
    (run.series, run.gaps) = (Vec::new(), Vec::new());
    let limits = Limits { max_bytes: 16 << 30, ..Limits::default() };
    let mut writer = Writer::new(&directory, run.clock.epoch, limits);
    let mut log = directory.histogram_log().unwrap();
    for thread in 0..2 {
        let (series, summary) = cpu(thread, gaps / 2, &template, &mut writer, &mut log);
        run.series.push(series);
        run.gaps.push(summary);
    }
    writer.checkpoint().unwrap();
    run.segments = writer.segments();
    let end = run.gaps[1].end;
    move_worst(&mut run, end);
    directory.write_run(&run).unwrap();
}

/// Moves the recorded gaps into the planted time.
fn move_worst(run: &mut Run, end: Ticks) {
    let length = end.since(Ticks(EPOCH)).0;
    for (quarter, worst) in (1..).zip(&mut run.worst) {
        let start = EPOCH + length / 4 * quarter;
        let moved = |ticks: Ticks| Ticks(start + ticks.since(worst.start).0);
        worst.parts.iter_mut().for_each(|part| part.start = moved(part.start));
        worst.events.iter_mut().for_each(|event| event.ticks = moved(event.ticks));
        worst.start = Ticks(start);
        worst.length = Nanos(worst.parts.iter().map(|part| part.length.0).sum());
    }
}

fn cpu(
    thread: u16,
    gaps: u64,
    (series, summary): &(Series, GapSummary),
    writer: &mut Writer,
    log: &mut whylate_model::HistogramLog,
) -> (Series, GapSummary) {
    let mut rng = Rng::new(u64::from(thread) + 1);
    let cpu = CpuId(thread.into());
    let name = format!("gap-cpu{cpu}");
    let (mut all, mut interval) = (Histogram::new(), Histogram::new());
    let mut dependence = Exceedances::new();
    let causes = CAUSES.map(|cause| (!cause.is_empty()).then(|| Arc::<str>::from(cause)));
    let (mut now, mut second, mut lost) = (EPOCH, 0, Vec::new());
    for number in 0..gaps {
        now += DISTANCE / 2 + rng.below(DISTANCE);
        while (now - EPOCH) / SECOND > second {
            log.append(&name, &interval, second as f64, 1.0).unwrap();
            dependence.add(&interval);
            lost.push(interval.sum() as f64);
            interval.clear();
            second += 1;
        }
        // Now and then a long one.
        let burst = if number % 20_011 == 7 { 4_000_000 } else { 0 };
        let length = 200 + rng.exponential(3_000.0) as u64 + burst;
        let end = Ticks(now + length);
        let evidence = Evidence { rseq: RseqWord::Set, ..Evidence::default() };
        let resumed = end + TicksDelta(60);
        let start = Ticks(now);
        let gap = Gap {
            start,
            end,
            resumed,
            cpu_before: cpu,
            cpu_after: cpu,
            kind: GapKind::Interruption,
            evidence,
        };
        let cause = causes[(rng.below(1 << 20) as f64).log2() as usize % 12].clone();
        writer.push_gap(&StoredGap { thread, gap, cause }).unwrap();
        interval.record(length);
        all.record(length);
        now += length;
    }
    let rest = (now - EPOCH - second * SECOND) as f64 / 1e9;
    log.append(&name, &interval, second as f64, rest).unwrap();
    dependence.add(&interval);
    let share = all.sum() as f64 / (now - EPOCH) as f64;
    let summary = GapSummary {
        cpu,
        series: name.clone(),
        start: Ticks(EPOCH),
        end: Ticks(now),
        gaps,
        closure: Closure::Holds,
        gap_ticks: TicksDelta(all.sum() as u64),
        lost: Nanos(all.sum() as u64),
        lost_share: share,
        lost_share_interval: Some((share * 0.9, share * 1.1)),
        interval_lost_ns: lost,
        ..summary.clone()
    };
    (summed(&all, &dependence, &name, series), summary)
}

fn summed(all: &Histogram, dependence: &Exceedances, name: &str, series: &Series) -> Series {
    let estimates = quantile::estimates(all, |percent| dependence.effective_n(all, percent));
    let quantile = |estimate: &quantile::Estimate| Quantile {
        percent: estimate.percent,
        value: estimate.value.map(Nanos),
        low: estimate.low.map(Nanos),
        high: estimate.high.map(Nanos),
        n_eff: estimate.n_eff,
    };
    Series {
        name: name.to_owned(),
        label: format!("gaps of a busy thread, CPU {}", &name[7..]),
        n: all.len(),
        min: all.min().map(Nanos),
        max: all.max().map(Nanos),
        mean_ns: all.mean(),
        quantiles: estimates.iter().map(quantile).collect(),
        ..series.clone()
    }
}
