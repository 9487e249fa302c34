//! From what was collected to what is printed: series, quantiles with intervals, lost shares.
//!
//! Every number of a thread comes from one store, its histogram and its counters.

use whylate_gap::closure;
use whylate_gap::{Plan, Totals};
use whylate_model::run::{CountingCost, GapSummary, LoopKind, Rate};
use whylate_model::series::summary::{self, Identity};
use whylate_model::series::{Definition, Series, Stationarity};
use whylate_model::warning::Warning;
use whylate_model::{Hertz, Nanos, TicksDelta};
use whylate_stats::histogram::Histogram;
use whylate_stats::{bootstrap, dependence, rate, stationarity};

use crate::collector::{Thread, delta_series_name};
use crate::intervals::{Interval, Load};

/// A run whose percentiles do not move is called moving in one of so many cases, by all tests of
/// the run together.
const FALSE_ALARMS: f64 = 0.01;

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
    let lost_ns = closure::lost_ticks(totals, period_ticks) * 1e9 / rate.0;
    let lost_share = lost_ns / (elapsed.0 as f64).max(1.0);
    let width_ns = thread.intervals.width().to_nanos(rate).0 as f64;
    let loads = thread.intervals.loads(elapsed_ticks);
    let interval_lost_ns: Vec<f64> =
        loads.iter().map(|load| load.lost_ns(period_ticks, rate)).collect();
    let unseen_ticks = unseen(totals, setting.plan.loop_kind);
    let inside = elapsed_ticks - totals.recording_ticks - unseen_ticks;
    let without = thread.facts.plain_period.filter(|_| setting.plan.counting);
    let shares: Vec<f64> = interval_lost_ns.iter().map(|lost| lost / width_ns).collect();
    let threshold = thread.facts.threshold.to_nanos(rate);
    let mut time_shares = summary::time_shares(&thread.lengths, elapsed, inside.to_nanos(rate));
    time_shares.retain(|share| share.at_least >= threshold);
    GapSummary {
        cpu: thread.facts.cpu,
        series: thread.series.clone(),
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
        unseen_ticks,
        closure: thread.check.verdict(totals),
        noise_below_threshold: closure::noise_below_threshold(totals, period_ticks).unwrap_or(0.0),
        lost: Nanos(lost_ns.round() as u64),
        lost_share,
        lost_share_interval: lost_interval(&shares, setting.seed),
        counting: without.map(|period_without| CountingCost {
            period_with: thread.facts.warmup_period,
            period_without,
        }),
        rates: rates(thread, elapsed, loads, threshold, setting.seed),
        time_weighted: summary::time_weighted(&thread.lengths, elapsed),
        time_shares,
        interval_lost_ns,
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
    let interval = bootstrap::of_mean(shares, seed);
    interval.is_bounded().then_some((interval.low.max(0.0), interval.high.min(1.0)))
}

/// Rates whose intervals know that gaps come in bursts. Of lengths below the threshold nothing is
/// known.
fn rates(
    thread: &Thread,
    elapsed: Nanos,
    loads: &[Load],
    threshold: Nanos,
    seed: u64,
) -> Vec<Rate> {
    let mut rates = summary::rates(&thread.lengths, elapsed);
    let loads = if loads.len() < FEWEST_INTERVALS { &[] } else { loads };
    let seconds = elapsed.0 as f64 / 1e9;
    for (index, of) in rates.iter_mut().enumerate() {
        let counts: Vec<u64> = loads.iter().map(|load| load.at_least[index]).collect();
        of.interval = rate::clustered_interval(of.count, seconds, &counts, seed);
    }
    rates.retain(|rate| rate.at_least >= threshold);
    rates
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
    let tables = thread.intervals.tables(totals.end.since(totals.start));
    let mut series = of_histogram(
        &thread.lengths,
        tables,
        &Description {
            name: summary.series.clone(),
            label: thread.label.clone(),
            paper_row: None,
            from: "last reading before the gap",
            to: "first reading after it",
            clock: setting.counter.to_owned(),
            definition: Definition::Gap,
            resolution_ns: setting.resolution_ns,
            lost: 0,
        },
    );
    series.weigh_by_time(&thread.lengths, elapsed, &summary.time_weighted);
    series
}

/// The series of every delta of a counting run: the paper's own table row. Time shares are over the
/// time inside the readings. Without `intervals` of time nothing is known of how the deltas depend
/// on each other, and quantiles have no interval: that of 10^8 independent readings is none.
#[must_use]
pub fn delta_series(
    deltas: impl Iterator<Item = (TicksDelta, u64)>,
    intervals: Option<&[Interval]>,
    description: &Description,
    rate: Hertz,
) -> Series {
    let mut lengths = Histogram::new();
    for (delta, count) in deltas {
        lengths.record_n(delta.to_nanos(rate).0, count);
    }
    summarised(&lengths, intervals.filter(|of| of.len() >= FEWEST_INTERVALS), identity(description))
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
    /// What was to be measured and was lost.
    pub lost: u64,
}

/// A series from its histogram and its intervals of time, which may be empty.
#[must_use]
pub fn of_histogram(
    values: &Histogram,
    intervals: &[Interval],
    description: &Description,
) -> Series {
    summarised(values, Some(intervals), identity(description))
}

/// A series of values that depend on each other in a way that is not known: its quantiles have no
/// intervals.
#[must_use]
pub fn without_intervals(values: &Histogram, description: &Description) -> Series {
    summarised(values, None, identity(description))
}

/// The same of a series that is described already, such as a part of requests.
#[must_use]
pub fn of_identity(values: &Histogram, identity: Identity) -> Series {
    summarised(values, None, identity)
}

fn summarised(values: &Histogram, intervals: Option<&[Interval]>, identity: Identity) -> Series {
    let known = intervals.unwrap_or_default();
    let n_eff = |percent: f64| effective_n(values, known, percent);
    let mut series = Series::summarise(identity, values, n_eff, stationary(known));
    if intervals.is_none() {
        for quantile in &mut series.quantiles {
            (quantile.low, quantile.high, quantile.n_eff) = (None, None, 0.0);
        }
    }
    series
}

fn identity(description: &Description) -> Identity {
    Identity {
        name: description.name.clone(),
        label: description.label.clone(),
        paper_row: description.paper_row.map(str::to_owned),
        from: description.from.to_owned(),
        to: description.to.to_owned(),
        clock: description.clock.clone(),
        definition: description.definition,
        resolution_ns: description.resolution_ns,
        lost: description.lost,
    }
}

fn effective_n(values: &Histogram, intervals: &[Interval], percent: f64) -> f64 {
    let counts: Vec<(u64, u64, u64)> = match values.value_at(percent) {
        Some(at) => {
            let bin = values.bin_of(at);
            // Bins are named by their highest value: one that is lower by 1 lies in no other bin above the next lower.
            let [bin, below] = [bin, bin.saturating_sub(1)].map(Nanos);
            let around = |of: &Interval| (of.above(bin), of.above(below), of.len());
            intervals.iter().map(around).collect()
        }
        None => Vec::new(),
    };
    dependence::effective_n_of_bin(values.len(), &counts)
}

/// Ten equal blocks of time; none when there are fewer intervals than that.
fn stationary(intervals: &[Interval]) -> Option<Stationarity> {
    if intervals.len() < stationarity::BLOCKS {
        return None;
    }
    let mut blocks = vec![Histogram::new(); stationarity::BLOCKS];
    for (number, interval) in intervals.iter().enumerate() {
        let block = stationarity::block_of(number, intervals.len(), stationarity::BLOCKS);
        interval.bins().for_each(|(value, count)| blocks[block].record_n(value, count));
    }
    Some(summary::stationarity(&blocks))
}

/// Which percentiles move over the run, by their trends over ten blocks. The limit is that of one
/// test over the number of tests (Bonferroni): a run of many series has many of them, and one in
/// twenty of those would cry wolf. The test over all values of the blocks is not judged: it takes
/// them as independent, and gaps are not.
#[must_use]
pub fn not_stationary(series: &[Series]) -> Vec<Warning> {
    let tests: Vec<(&Series, &str, f64)> = series
        .iter()
        .filter_map(|of| of.stationarity.as_ref().map(|found| (of, found)))
        .flat_map(|(of, found)| {
            [("trend of the p50", found.trend_p50), ("trend of the p99", found.trend_p99)]
                .map(|(test, p_value)| (of, test, p_value))
        })
        .filter_map(|(of, test, p_value)| p_value.map(|p_value| (of, test, p_value)))
        .collect();
    let limit = FALSE_ALARMS / (tests.len() as f64).max(1.0);
    let beyond = tests.into_iter().filter(|(_, _, p_value)| *p_value < limit);
    beyond
        .map(|(of, test, p_value)| Warning::NotStationary {
            series: of.label.clone(),
            test: format!("{test} over ten blocks"),
            p_value,
        })
        .collect()
}

/// The series of every delta of a counting run, by name and label of the series of its gaps: row 1c
/// of the paper's table when the loop is the paper's pair.
#[must_use]
pub fn delta_description(setting: &Setting, series: &str, label: &str) -> Description {
    let pair = setting.plan.loop_kind == LoopKind::Pair;
    Description {
        name: delta_series_name(series),
        label: label.replacen("gaps", "two reads", 1),
        paper_row: pair.then_some("1c"),
        from: "a reading of the counter",
        to: "the next reading",
        clock: setting.counter.to_owned(),
        definition: Definition::ReadDelta,
        resolution_ns: setting.resolution_ns,
        lost: 0,
    }
}

#[cfg(test)]
mod tests {
    use whylate_stats::rng::Rng;

    use super::*;

    fn description(label: &str) -> Description {
        Description {
            name: label.to_owned(),
            label: label.to_owned(),
            paper_row: None,
            from: "scheduled instant",
            to: "running",
            clock: "mock".to_owned(),
            definition: Definition::DispatchLatency,
            resolution_ns: 1.0,
            lost: 0,
        }
    }

    /// 30 intervals of 1000 values around 1 us, `drift` ns longer from each to the next.
    fn series(label: &str, drift: u64, seed: u64) -> Series {
        let mut dice = Rng::new(seed);
        let mut all = Histogram::new();
        let intervals: Vec<Interval> = (0..30)
            .map(|number| {
                let value = |dice: &mut Rng| 1_000 + number * drift + dice.below(500);
                let histogram: Histogram = (0..1_000).map(|_| value(&mut dice)).collect();
                all.add(&histogram);
                Interval::of(&histogram)
            })
            .collect();
        of_histogram(&all, &intervals, &description(label))
    }

    #[test]
    fn a_percentile_that_moves_is_warned_of_and_none_that_stands_is() {
        let warnings = not_stationary(&[series("moves", 20, 1), series("stands", 0, 2)]);
        let named = |warning: &Warning| matches!(warning, Warning::NotStationary { series, .. } if series == "moves");
        assert_eq!(warnings.len(), 2, "p50 and p99: {warnings:?}");
        assert!(warnings.iter().all(named), "{warnings:?}");
    }

    #[test]
    fn many_series_that_stand_still_cry_wolf_no_more_often_than_one() {
        let alarms = (0..24u64).filter(|run| {
            let many: Vec<Series> =
                (0..8).map(|cpu| series("stands", 0, run * 100 + cpu)).collect();
            !not_stationary(&many).is_empty()
        });
        assert!(alarms.count() <= 2, "of 24 runs of 16 tests each at 1 %");
    }

    #[test]
    fn all_intervals_are_in_the_ten_blocks() {
        // 19 intervals, of which nine had no block when each block had one.
        let quiet = Histogram::from_iter([100u64; 50]);
        let loud = Histogram::from_iter([900u64; 50]);
        let intervals: Vec<Interval> =
            (0..19).map(|number| Interval::of(if number < 10 { &quiet } else { &loud })).collect();
        let found = stationary(&intervals).expect("19 intervals");
        assert_eq!(found.p50.first(), Some(&Some(Nanos(100))));
        assert_eq!(found.p50.last(), Some(&Some(Nanos(900))));
    }
}
