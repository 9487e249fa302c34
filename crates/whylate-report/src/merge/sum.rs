//! Series and gap measurements, added up.

use std::collections::BTreeMap;

use whylate_model::run::{Closure, GapSummary, LoopKind, Run};
use whylate_model::series::summary::{self, Identity};
use whylate_model::series::{Censored, Series};
use whylate_model::{CpuId, Nanos, Ticks, TicksDelta};
use whylate_stats::Histogram;
use whylate_stats::dependence::Exceedances;

use super::inputs::merged_name;

/// The sums of all series, by their names in the sum.
#[derive(Default)]
pub(super) struct Sums(BTreeMap<String, Sum>);

struct Sum {
    identity: Identity,
    values: Histogram,
    dependence: Exceedances,
    censored: Option<Censored>,
    /// Were histograms seen? Without them there is nothing to add up.
    stored: bool,
    gaps: Option<GapSum>,
}

/// Gap measurements; times in nanoseconds.
struct GapSum {
    cpu: CpuId,
    loop_kind: LoopKind,
    closure: Closure,
    thresholds: (Nanos, Nanos),
    recordings: u64,
    elapsed: Nanos,
    iterations: u64,
    /// Of iterations times period.
    period_weight: f64,
    period_spread: (f64, f64),
    blocks: u64,
    gaps: u64,
    dropped: u64,
    migrations: u64,
    gap: Nanos,
    recording: Nanos,
    unseen: Nanos,
    noise_ns: f64,
    lost_ns: f64,
    /// Squares of the distances of the ends of the lost time's interval; none once one is unknown.
    lost_off: Option<(f64, f64)>,
}

impl Sums {
    /// Adds what a run says of its series; their histograms come one by one.
    pub(super) fn add_run(&mut self, run: &Run, across_cpus: bool) {
        for series in &run.series {
            let name = merged_name(&series.name, across_cpus);
            let sum = self.0.entry(name.clone()).or_insert_with(|| Sum::new(series, name));
            sum.describe(series);
            for gaps in run.gaps.iter().filter(|gaps| gaps.series == series.name) {
                let part = GapSum::of(gaps, run.clock.hz);
                match &mut sum.gaps {
                    None => sum.gaps = Some(part),
                    Some(all) => all.add(part),
                }
            }
        }
    }

    /// Adds an interval; false when its run has no such series.
    pub(super) fn add_interval(&mut self, name: &str, values: &Histogram) -> bool {
        let Some(sum) = self.0.get_mut(name) else { return false };
        sum.values.add(values);
        sum.dependence.add(values);
        sum.stored = true;
        true
    }

    /// The series and gap measurements of the sum.
    pub(super) fn finish(self) -> (Vec<Series>, Vec<GapSummary>) {
        let (mut series, mut summaries) = (Vec::new(), Vec::new());
        for (name, sum) in self.0 {
            let counted_nothing = sum.gaps.as_ref().is_some_and(|gaps| gaps.gaps == 0);
            if !sum.stored && !counted_nothing {
                continue;
            }
            let n_eff = |percent| sum.dependence.effective_n(&sum.values, percent);
            let mut one = Series::summarise(sum.identity, &sum.values, n_eff, None);
            if let Some(gaps) = sum.gaps {
                let elapsed = gaps.elapsed;
                let summary = gaps.finish(name, &sum.values);
                one.weigh_by_time(&sum.values, elapsed, &summary.time_weighted);
                summaries.push(summary);
            }
            if let Some(censored) = sum.censored {
                one.censor(&sum.values, censored);
            }
            series.push(one);
        }
        (series, summaries)
    }
}

impl Sum {
    fn new(series: &Series, name: String) -> Self {
        let label = if name == series.name {
            series.label.clone()
        } else {
            format!("{}, all CPUs", series.label.split(", CPU").next().unwrap_or_default())
        };
        let identity = Identity {
            name,
            label,
            paper_row: series.paper_row.clone(),
            from: series.from.clone(),
            to: series.to.clone(),
            clock: series.clock.clone(),
            definition: series.definition,
            resolution_ns: 0.0,
            lost: 0,
        };
        let (values, dependence) = (Histogram::new(), Exceedances::new());
        Self { identity, values, dependence, censored: None, stored: false, gaps: None }
    }

    fn describe(&mut self, series: &Series) {
        let identity = &mut self.identity;
        identity.resolution_ns = identity.resolution_ns.max(series.resolution_ns);
        identity.lost = identity.lost.saturating_add(series.lost);
        // All have one bound: series with different ones are not alike.
        self.censored = match (self.censored, series.censored) {
            (Some(a), Some(b)) => Some(Censored { count: a.count.saturating_add(b.count), ..a }),
            (a, b) => a.or(b),
        };
        if identity.paper_row != series.paper_row {
            identity.paper_row = None;
        }
    }
}

impl GapSum {
    fn of(gaps: &GapSummary, hz: whylate_model::Hertz) -> Self {
        let ns = |ticks: TicksDelta| ticks.to_nanos(hz);
        let period = |ticks: f64| ticks * 1e9 / hz.0;
        let elapsed = ns(gaps.end.since(gaps.start));
        let weight = elapsed.0 as f64;
        Self {
            cpu: gaps.cpu,
            loop_kind: gaps.loop_kind,
            closure: gaps.closure.clone(),
            thresholds: (ns(gaps.threshold), ns(gaps.threshold)),
            recordings: 1,
            elapsed,
            iterations: gaps.iterations,
            period_weight: period(gaps.period_ticks) * gaps.iterations as f64,
            period_spread: (period(gaps.period_spread_ticks.0), period(gaps.period_spread_ticks.1)),
            blocks: gaps.blocks,
            gaps: gaps.gaps,
            dropped: gaps.dropped,
            migrations: gaps.migrations,
            gap: ns(gaps.gap_ticks),
            recording: ns(gaps.recording_ticks),
            unseen: ns(gaps.unseen_ticks),
            noise_ns: gaps.noise_below_threshold * weight,
            lost_ns: gaps.lost_share * weight,
            lost_off: gaps.lost_share_interval.map(|(low, high)| {
                let off = |end: f64| ((gaps.lost_share - end) * weight).powi(2);
                (off(low), off(high))
            }),
        }
    }

    fn add(&mut self, other: Self) {
        let plus = |a: Nanos, b: Nanos| Nanos(a.0.saturating_add(b.0));
        self.cpu = self.cpu.min(other.cpu);
        self.closure = worse(self.closure.clone(), other.closure);
        self.thresholds =
            (self.thresholds.0.min(other.thresholds.0), self.thresholds.1.max(other.thresholds.1));
        self.recordings += other.recordings;
        self.elapsed = plus(self.elapsed, other.elapsed);
        self.iterations = self.iterations.saturating_add(other.iterations);
        self.period_weight += other.period_weight;
        self.period_spread = (
            self.period_spread.0.min(other.period_spread.0),
            self.period_spread.1.max(other.period_spread.1),
        );
        self.blocks = self.blocks.saturating_add(other.blocks);
        self.gaps = self.gaps.saturating_add(other.gaps);
        self.dropped = self.dropped.saturating_add(other.dropped);
        self.migrations = self.migrations.saturating_add(other.migrations);
        self.gap = plus(self.gap, other.gap);
        self.recording = plus(self.recording, other.recording);
        self.unseen = plus(self.unseen, other.unseen);
        self.noise_ns += other.noise_ns;
        self.lost_ns += other.lost_ns;
        self.lost_off = self.lost_off.zip(other.lost_off).map(|(a, b)| (a.0 + b.0, a.1 + b.1));
    }

    /// As a summary whose ticks are nanoseconds.
    fn finish(self, series: String, lengths: &Histogram) -> GapSummary {
        let ticks = |ns: Nanos| TicksDelta(ns.0);
        let elapsed_ns = (self.elapsed.0 as f64).max(1.0);
        let lost_share = self.lost_ns / elapsed_ns;
        let (low, high) = self.thresholds;
        GapSummary {
            cpu: self.cpu,
            series,
            loop_kind: self.loop_kind,
            start: Ticks(0),
            end: Ticks(self.elapsed.0),
            iterations: self.iterations,
            threshold: ticks(high),
            threshold_rule: if low == high {
                high.to_string()
            } else {
                format!("{low} to {high} in {} recordings", self.recordings)
            },
            period_ticks: self.period_weight / (self.iterations as f64).max(1.0),
            period_spread_ticks: self.period_spread,
            blocks: self.blocks,
            gaps: self.gaps,
            dropped: self.dropped,
            migrations: self.migrations,
            gap_ticks: ticks(self.gap),
            recording_ticks: ticks(self.recording),
            unseen_ticks: ticks(self.unseen),
            closure: self.closure,
            noise_below_threshold: self.noise_ns / elapsed_ns,
            lost: Nanos(self.lost_ns.round() as u64),
            lost_share,
            lost_share_interval: self.lost_off.map(|(below, above)| {
                ((lost_share - below.sqrt() / elapsed_ns), (lost_share + above.sqrt() / elapsed_ns))
            }),
            rates: summary::rates(lengths, self.elapsed),
            time_weighted: summary::time_weighted(lengths, self.elapsed),
            time_shares: summary::time_shares(
                lengths,
                self.elapsed,
                Nanos(self.elapsed.0.saturating_sub(self.recording.0 + self.unseen.0)),
            ),
            counting: None,
            interval_lost_ns: Vec::new(),
        }
    }
}

/// One closure that does not hold is enough; the first reason is kept.
fn worse(a: Closure, b: Closure) -> Closure {
    match (a, b) {
        (Closure::Broken(why), _) | (_, Closure::Broken(why)) => Closure::Broken(why),
        (Closure::SumsOnly, _) | (_, Closure::SumsOnly) => Closure::SumsOnly,
        (Closure::Holds, Closure::Holds) => Closure::Holds,
    }
}
