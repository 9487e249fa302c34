//! From what was collected to what is printed: series, quantiles with intervals, lost shares.
//!
//! Every number of a thread comes from one store, its histogram and its counters.

use whylate_gap::closure;
use whylate_gap::{Plan, Totals};
use whylate_model::run::{GapSummary, LoopKind, Rate, TimeWeighted};
use whylate_model::series::{
    Class, Definition, Denominator, Quantile, Series, Snr, Stationarity, Tail,
};
use whylate_model::{Hertz, Nanos, TicksDelta};
use whylate_stats::bootstrap::{block_bootstrap, mean};
use whylate_stats::histogram::Histogram;
use whylate_stats::{class, dependence, quantile, rate, snr, stationarity, weighted};

use crate::collector::Thread;
use crate::intervals::Interval;

/// Gap lengths that rates are given for.
const RATES_AT_LEAST: [Nanos; 6] =
    [Nanos(1_000), Nanos(2_000), Nanos(10_000), Nanos(50_000), Nanos(100_000), Nanos(1_000_000)];
/// Shares of the elapsed time for the time-weighted view, in percent.
const TIME_WEIGHTED: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];
/// Above this an event belongs to the tail that the PAM paper calls the Ugly.
const UGLY: Nanos = Nanos(100_000);
/// Resamples of the bootstrap: enough for two digits of a 95 % interval.
const RESAMPLES: u32 = 2_000;
/// Blocks for the tests of stationarity.
const BLOCKS: usize = 10;

/// What the summary of a thread needs beside the thread.
pub struct Setting<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Rate of the counter.
    pub rate: Hertz,
    /// Smallest step of the clock.
    pub resolution_ns: f64,
    /// Kind of counter.
    pub counter: &'a str,
    /// Seed of the bootstrap.
    pub seed: u64,
}

/// The gap measurement of one thread.
#[must_use]
pub fn gaps(thread: &Thread, totals: &Totals, setting: &Setting) -> GapSummary {
    let rate = setting.rate;
    let elapsed_ticks = totals.end.since(totals.start);
    let elapsed = elapsed_ticks.to_nanos(rate);
    let period = totals.period;
    // A run without one quiet block is held against the warm-up's period: its noise is then large
    // and warned about, where a zero would be invented.
    let period_ticks = period.map_or(thread.facts.warmup_period, |period| period.median);
    let lost_share = thread.lost_ns / (elapsed.0 as f64).max(1.0);
    let width_ns = thread.intervals.width().to_nanos(rate).0 as f64;
    let whole = thread.intervals.whole(elapsed_ticks);
    let shares: Vec<f64> = whole.iter().map(|interval| interval.lost_ns / width_ns).collect();
    GapSummary {
        cpu: thread.facts.cpu,
        series: format!("gap-cpu{}", thread.facts.cpu),
        loop_kind: setting.plan.loop_kind,
        start: totals.start,
        end: totals.end,
        iterations: totals.iterations,
        threshold: thread.facts.threshold,
        threshold_rule: setting.plan.threshold.rule(),
        period_ticks,
        period_spread_ticks: period.map_or((0.0, 0.0), |period| (period.p10, period.p90)),
        blocks: period.map_or(0, |period| period.blocks),
        gaps: totals.gaps,
        dropped: totals.dropped,
        migrations: totals.migrations,
        gap_ticks: totals.gap_ticks,
        recording_ticks: totals.recording_ticks,
        unseen_ticks: unseen(totals, setting.plan.loop_kind),
        closure: thread.check.verdict(totals),
        noise_below_threshold: closure::noise_below_threshold(totals, period_ticks).unwrap_or(0.0),
        lost: Nanos(thread.lost_ns.round() as u64),
        lost_share,
        lost_share_interval: lost_interval(&shares, setting.seed),
        rates: RATES_AT_LEAST.iter().map(|at| rate_of(&thread.lengths, *at, elapsed)).collect(),
        time_weighted: time_weighted(&thread.lengths, elapsed),
        interval_lost_ns: whole.iter().map(|interval| interval.lost_ns).collect(),
    }
}

/// Time between pairs, which the `pair` loop does not look at.
fn unseen(totals: &Totals, kind: LoopKind) -> TicksDelta {
    match kind {
        LoopKind::Chain => TicksDelta(0),
        LoopKind::Pair => {
            let seen = totals.inside_ticks + totals.gap_ticks + totals.recording_ticks;
            totals.end.since(totals.start) - seen
        }
    }
}

/// Two intervals have no spread worth the name.
const FEWEST_INTERVALS: usize = 3;

fn lost_interval(shares: &[f64], seed: u64) -> Option<(f64, f64)> {
    if shares.len() < FEWEST_INTERVALS {
        return None;
    }
    let interval = block_bootstrap(shares, mean, seed, RESAMPLES);
    interval.is_bounded().then_some((interval.low, interval.high))
}

fn rate_of(lengths: &Histogram, at_least: Nanos, elapsed: Nanos) -> Rate {
    let count = lengths.count_at_least(at_least.0);
    let seconds = (elapsed.0 as f64 / 1e9).max(1e-9);
    let interval = rate::poisson_interval(count, seconds);
    Rate { at_least, count, per_second: count as f64 / seconds, interval }
}

fn time_weighted(lengths: &Histogram, elapsed: Nanos) -> Vec<TimeWeighted> {
    TIME_WEIGHTED
        .iter()
        .map(|percent| {
            let value =
                weighted::time_weighted_percentile(lengths.bins(), elapsed.0 as f64, *percent);
            TimeWeighted { percent: *percent, value: Nanos(value.unwrap_or(0)) }
        })
        .collect()
}

/// The series of a thread's gaps. Its class is by the time-weighted p99.9: the length of gaps
/// above which a thousandth of the elapsed time was lost.
#[must_use]
pub fn gap_series(
    thread: &Thread,
    totals: &Totals,
    summary: &GapSummary,
    setting: &Setting,
) -> Series {
    let elapsed = totals.end.since(totals.start).to_nanos(setting.rate);
    let whole = thread.intervals.whole(totals.end.since(totals.start));
    let decides = summary.time_weighted.iter().find(|point| (point.percent - 99.9).abs() < 1e-9);
    let class_by = decides.map(|point| point.value);
    let mut series = of_histogram(
        &thread.lengths,
        whole,
        &Description {
            name: summary.series.clone(),
            label: format!("gaps, CPU {}", thread.facts.cpu),
            paper_row: None,
            from: "last reading before the gap",
            to: "first reading after it",
            clock: setting.counter.to_owned(),
            definition: Definition::Gap,
            resolution_ns: setting.resolution_ns,
            lost: 0,
        },
    );
    series.class = class_by.map(|value| classify(value.0));
    series.class_by = class_by;
    series.tail = Some(tail(&thread.lengths, elapsed.0 as f64, Denominator::Elapsed));
    series
}

/// The series of every delta of a counting run, without intervals of time: the paper's own table
/// row. Time shares are over the time inside the readings.
#[must_use]
pub fn delta_series(
    deltas: impl Iterator<Item = (TicksDelta, u64)>,
    description: &Description,
    rate: Hertz,
) -> Series {
    let mut lengths = Histogram::new();
    for (delta, count) in deltas {
        lengths.record_n(delta.to_nanos(rate).0, count);
    }
    of_histogram(&lengths, &[], description)
}

/// How a series is to be read.
#[derive(Debug, Clone)]
pub struct Description {
    /// Identifier and tag.
    pub name: String,
    /// For people.
    pub label: String,
    /// Row of the paper's table.
    pub paper_row: Option<&'static str>,
    /// Where the clock starts.
    pub from: &'static str,
    /// Where it stops.
    pub to: &'static str,
    /// The clock.
    pub clock: String,
    /// What the number is.
    pub definition: Definition,
    /// Smallest step of the clock.
    pub resolution_ns: f64,
    /// Samples lost or censored.
    pub lost: u64,
}

/// A series from its histogram and its intervals of time, which may be empty.
#[must_use]
pub fn of_histogram(
    values: &Histogram,
    intervals: &[Interval],
    description: &Description,
) -> Series {
    let quantiles: Vec<Quantile> = quantile::PERCENTS
        .iter()
        .map(|percent| one_quantile(values, intervals, *percent))
        .collect();
    let p999 = quantiles.iter().find(|q| (q.percent - 99.9).abs() < 1e-9).and_then(|q| q.value);
    let sum = values.mean().unwrap_or(0.0) * values.len() as f64;
    Series {
        name: description.name.clone(),
        label: description.label.clone(),
        paper_row: description.paper_row.map(str::to_owned),
        from: description.from.to_owned(),
        to: description.to.to_owned(),
        clock: description.clock.clone(),
        definition: description.definition,
        resolution_ns: description.resolution_ns,
        n: values.len(),
        lost: description.lost,
        min: values.min().map(Nanos),
        max: values.max().map(Nanos),
        mean_ns: values.mean(),
        class: p999.map(|value| classify(value.0)),
        class_by: p999,
        quantiles,
        tail: Some(tail(values, sum, Denominator::Measured)),
        snr: Some(Snr { by_count: snr::by_count(values), by_time: snr::by_time(values) }),
        stationarity: stationary(intervals),
    }
}

fn one_quantile(values: &Histogram, intervals: &[Interval], percent: f64) -> Quantile {
    let n = values.len();
    let exceedances: Vec<(u64, u64)> = match values.value_at(percent) {
        Some(at) => intervals.iter().map(|interval| exceed(interval, at)).collect(),
        None => Vec::new(),
    };
    let n_eff = dependence::effective_n(n, &exceedances);
    let estimate = quantile::estimate(values, percent, n_eff);
    Quantile {
        percent,
        value: estimate.value.map(Nanos),
        low: estimate.low.map(Nanos),
        high: estimate.high.map(Nanos),
        n_eff,
    }
}

fn exceed(interval: &Interval, at: u64) -> (u64, u64) {
    let above = interval.lengths.range(at + 1..).map(|(_, count)| count).sum();
    (above, interval.lengths.values().sum())
}

fn classify(p999_ns: u64) -> Class {
    match class::class(p999_ns) {
        class::Class::Good => Class::Good,
        class::Class::Bad => Class::Bad,
        class::Class::Ugly => Class::Ugly,
    }
}

fn tail(values: &Histogram, denominator_ns: f64, denominator: Denominator) -> Tail {
    let share = values.sum_above(UGLY.0) as f64 / denominator_ns.max(1.0);
    Tail { count: values.count_above(UGLY.0), share, denominator }
}

/// Ten equal blocks of time; none when there are fewer intervals than that.
fn stationary(intervals: &[Interval]) -> Option<Stationarity> {
    if intervals.len() < BLOCKS {
        return None;
    }
    let per_block = intervals.len() / BLOCKS;
    let blocks: Vec<Histogram> = (0..BLOCKS)
        .map(|block| {
            let mut sum = Histogram::new();
            for interval in &intervals[block * per_block..(block + 1) * per_block] {
                interval.lengths.iter().for_each(|(value, count)| sum.record_n(*value, *count));
            }
            sum
        })
        .collect();
    let at = |percent: f64| -> Vec<Option<Nanos>> {
        blocks.iter().map(|block| quantile_if_supported(block, percent)).collect()
    };
    let (p50, p99) = (at(50.0), at(99.0));
    let trend = |series: &[Option<Nanos>]| {
        let values: Option<Vec<f64>> = series.iter().map(|v| v.map(|v| v.0 as f64)).collect();
        values.map(|values| stationarity::mann_kendall(&values).p_value)
    };
    Some(Stationarity {
        trend_p50: trend(&p50),
        trend_p99: trend(&p99),
        blocks_differ: Some(stationarity::kruskal_wallis_of_histograms(&blocks).p_value),
        p50,
        p99,
    })
}

fn quantile_if_supported(block: &Histogram, percent: f64) -> Option<Nanos> {
    quantile::estimate(block, percent, block.len() as f64).value.map(Nanos)
}

/// The series of every delta of a counting run on `cpu`: row 1c of the paper's table when the loop
/// is the paper's pair.
#[must_use]
pub fn delta_description(setting: &Setting, cpu: whylate_model::CpuId) -> Description {
    let pair = setting.plan.loop_kind == LoopKind::Pair;
    Description {
        name: format!("delta-cpu{cpu}"),
        label: format!("two reads, CPU {cpu}"),
        paper_row: pair.then_some("1c"),
        from: "a reading of the counter",
        to: "the next reading",
        clock: setting.counter.to_owned(),
        definition: Definition::ReadDelta,
        resolution_ns: setting.resolution_ns,
        lost: 0,
    }
}
