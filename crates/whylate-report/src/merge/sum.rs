//! Series and gap measurements, added up.

use std::collections::{BTreeMap, BTreeSet};

use whylate_model::directory::RunDir;
use whylate_model::hlog::Interval;
use whylate_model::origin::{Measure, Origin, Share, Spread};
use whylate_model::run::{Closure, GapSummary, LoopKind, Run};
use whylate_model::series::summary::{self, Identity};
use whylate_model::series::{Censored, Quantile, Series};
use whylate_model::{CpuId, Nanos, Ticks, TicksDelta};
use whylate_stats::Histogram;
use whylate_stats::dependence::Exceedances;
use whylate_stats::quantile::{self, PERCENTS};

use super::above::{self, LeftOut};
use super::inputs::merged_name;
use super::spread::{self, Quantiles};

/// The sums of all series, by their names in the sum.
#[derive(Default)]
pub(super) struct Sums {
    all: BTreeMap<String, Sum>,
    /// The largest threshold of each series of gaps.
    floors: BTreeMap<String, Nanos>,
    /// Of the directory being read: series recorded with a lower threshold, by their own names, and
    /// from where on they count.
    cut: BTreeMap<String, Nanos>,
    /// Of the directory being read: what is left out of them, and which recordings had some.
    left_out: BTreeMap<String, (LeftOut, BTreeSet<u32>)>,
}

struct Sum {
    identity: Identity,
    clocks: BTreeSet<String>,
    values: Histogram,
    /// Recordings against each other, as intervals of time are within one.
    recordings: Exceedances,
    /// The recording whose intervals are being read.
    reading: Option<Reading>,
    read: BTreeMap<u32, Read>,
    censored: Option<Censored>,
    gaps: Option<GapSum>,
}

struct Reading {
    origin: u32,
    values: Histogram,
    dependence: Exceedances,
    left_out: u64,
    left_out_ns: u128,
}

/// What the intervals of one recording say.
struct Read {
    n: u64,
    max: Option<Nanos>,
    quantiles: Vec<Quantile>,
    left_out: u64,
    left_out_ns: u128,
}

/// What the sums give.
pub(super) struct Finished {
    pub(super) series: Vec<Series>,
    pub(super) gaps: Vec<GapSummary>,
    pub(super) spreads: Vec<Spread>,
}

/// Gap measurements; times in nanoseconds.
struct GapSum {
    cpu: CpuId,
    loop_kind: LoopKind,
    closure: Closure,
    threshold: Nanos,
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
}

impl Sums {
    /// Sums of series whose gaps count from these lengths on.
    pub(super) fn new(floors: BTreeMap<String, Nanos>) -> Self {
        Self { floors, ..Self::default() }
    }

    /// Adds what a run says of its series; their histograms come one by one.
    pub(super) fn add_run(&mut self, run: &Run, across_cpus: bool) {
        self.cut.clear();
        self.left_out.clear();
        for series in &run.series {
            let name = merged_name(&series.name, across_cpus);
            let floor = self.floors.get(&name).copied().unwrap_or_default();
            let sum = self.all.entry(name.clone()).or_insert_with(|| Sum::new(series, name));
            sum.describe(series);
            for gaps in run.gaps.iter().filter(|gaps| gaps.series == series.name) {
                let part = GapSum::of(gaps, run.clock.hz);
                if part.threshold < floor {
                    self.cut.insert(series.name.clone(), floor);
                }
                match &mut sum.gaps {
                    None => sum.gaps = Some(part),
                    Some(all) => all.add(part),
                }
            }
        }
    }

    /// Adds an interval of a recording and returns what of it counts; none when its run has no such
    /// series.
    pub(super) fn add_interval(
        &mut self,
        interval: &Interval,
        name: &str,
        origin: u32,
    ) -> Option<Histogram> {
        let sum = self.all.get_mut(name)?;
        let floor = self.cut.get(&interval.tag);
        let (values, left_out, left_out_ns) = match floor {
            Some(floor) => spread::cut(&interval.histogram, *floor),
            None => (interval.histogram.clone(), 0, 0),
        };
        sum.values.add(&values);
        let reading = sum.reading_of(origin);
        reading.values.add(&values);
        reading.dependence.add(&values);
        if floor.is_some() {
            let (of, origins) = self.left_out.entry(interval.tag.clone()).or_default();
            of.gaps = of.gaps.saturating_add(left_out);
            of.ns = of.ns.saturating_add(left_out_ns);
            origins.insert(origin);
        }
        reading.left_out = reading.left_out.saturating_add(left_out);
        reading.left_out_ns = reading.left_out_ns.saturating_add(left_out_ns);
        Some(values)
    }

    /// Takes the causes of what counts of a directory that was read, where not all of it does, and the
    /// lengths of what does not. Answers whether that was so.
    pub(super) fn cut_causes(
        &mut self,
        directory: &RunDir,
        run: &mut Run,
        across_cpus: bool,
    ) -> bool {
        if self.cut.is_empty() || run.causes.is_empty() {
            return false;
        }
        let left = self.left_out.iter().map(|(series, (of, _))| (series.clone(), *of)).collect();
        for (series, exact) in above::cut(directory, run, &self.cut, &left) {
            let Some((_, origins)) = self.left_out.get(&series) else { continue };
            let name = merged_name(&series, across_cpus);
            // The lengths of single gaps are of the whole directory: of one recording, or of none.
            let ([origin], Some(sum)) =
                (&origins.iter().collect::<Vec<_>>()[..], self.all.get_mut(&name))
            else {
                continue;
            };
            sum.close();
            if let Some(read) = sum.read.get_mut(origin).filter(|of| of.left_out == exact.gaps) {
                read.left_out_ns = exact.ns;
            }
        }
        true
    }

    /// The series and gap measurements of the sum. The shares of the recordings learn what was left
    /// out of them.
    pub(super) fn finish(self, origins: &mut [Origin]) -> Finished {
        let mut places: BTreeMap<String, Vec<(usize, usize)>> = BTreeMap::new();
        for (origin, of) in origins.iter().enumerate() {
            for (share, of) in of.series.iter().enumerate() {
                places.entry(of.series.clone()).or_default().push((origin, share));
            }
        }
        let mut finished = Finished { series: Vec::new(), gaps: Vec::new(), spreads: Vec::new() };
        for (name, mut sum) in self.all {
            sum.close();
            let counted_nothing = sum.gaps.as_ref().is_some_and(|gaps| gaps.gaps == 0);
            if sum.read.is_empty() && !counted_nothing {
                continue;
            }
            let places = places.get(&name).map(Vec::as_slice).unwrap_or_default();
            for (origin, share) in places {
                let share = &mut origins[*origin].series[*share];
                if let Some(read) = sum.read.get(&(*origin as u32)) {
                    read.correct(share, sum.gaps.as_mut());
                }
            }
            let shares: Vec<&Share> = places
                .iter()
                .map(|(origin, share)| (origin, &origins[*origin].series[*share]))
                .filter(|(origin, share)| share.n == 0 || sum.read.contains_key(&(**origin as u32)))
                .map(|(_, share)| share)
                .collect();
            sum.finish(name, &shares, &mut finished);
        }
        finished
    }
}

impl Read {
    /// Corrects what a recording says of itself where not all of it is in the sum, or where it does
    /// not say it: gaps below the threshold of the sum are noise below it.
    fn correct(&self, share: &mut Share, gaps: Option<&mut GapSum>) {
        if share.quantiles.is_empty() || self.left_out > 0 {
            let recorded = std::mem::take(&mut share.quantiles);
            share.quantiles.clone_from(&self.quantiles);
            for (own, recorded) in share.quantiles.iter_mut().zip(recorded) {
                // As dependent as they were before.
                let factor = recorded.n_eff / (share.n as f64).max(1.0);
                own.n_eff = own.n_eff.min(self.n as f64 * factor);
            }
            let at = |percent: f64| {
                share.quantiles.iter().find(|q| (q.percent - percent).abs() < 1e-9)?.value
            };
            (share.p50, share.p99, share.p999) = (at(50.0), at(99.0), at(99.9));
            (share.n, share.max) = (self.n, self.max);
        }
        if self.left_out == 0 {
            return;
        }
        share.left_out = share.left_out.saturating_add(self.left_out);
        let period = share.period_ns.unwrap_or(0.0);
        let left_out = LeftOut { gaps: self.left_out, ns: self.left_out_ns };
        let lost_ns = above::lost_ns(left_out, period);
        let elapsed = share.elapsed.map_or(1.0, |elapsed| elapsed.0 as f64).max(1.0);
        let less = |share: f64| (share - lost_ns / elapsed).max(0.0);
        share.lost_share = share.lost_share.map(less);
        share.lost_share_interval =
            share.lost_share_interval.map(|(low, high)| (less(low), less(high)));
        if let Some(gaps) = gaps {
            gaps.gaps = gaps.gaps.saturating_sub(self.left_out);
            let time = u64::try_from(self.left_out_ns).unwrap_or(u64::MAX);
            gaps.gap = Nanos(gaps.gap.0.saturating_sub(time));
            gaps.lost_ns = (gaps.lost_ns - lost_ns).max(0.0);
            gaps.noise_ns += lost_ns;
        }
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
        Self {
            clocks: BTreeSet::from([series.clock.clone()]),
            identity,
            values: Histogram::new(),
            recordings: Exceedances::new(),
            reading: None,
            read: BTreeMap::new(),
            censored: None,
            gaps: None,
        }
    }

    fn describe(&mut self, series: &Series) {
        let identity = &mut self.identity;
        identity.resolution_ns = identity.resolution_ns.max(series.resolution_ns);
        identity.lost = identity.lost.saturating_add(series.lost);
        if !self.clocks.contains(&series.clock) {
            // Of several where that was allowed by name.
            self.clocks.insert(series.clock.clone());
            let clocks: Vec<&str> = self.clocks.iter().map(String::as_str).collect();
            identity.clock = clocks.join(" and ");
        }
        // Series with different bounds are not alike, but where that was allowed by name.
        self.censored = Censored::of_both(self.censored, series.censored);
        if identity.paper_row != series.paper_row {
            identity.paper_row = None;
        }
    }

    /// The recording to add to. Those of a log come one after the other.
    fn reading_of(&mut self, origin: u32) -> &mut Reading {
        if self.reading.as_ref().is_some_and(|reading| reading.origin != origin) {
            self.close();
        }
        self.reading.get_or_insert_with(|| Reading {
            origin,
            values: Histogram::new(),
            dependence: Exceedances::new(),
            left_out: 0,
            left_out_ns: 0,
        })
    }

    fn close(&mut self) {
        let Some(reading) = self.reading.take() else { return };
        let Reading { origin, values, dependence, left_out, left_out_ns } = reading;
        self.recordings.add(&values);
        let mut quantiles = PERCENTS.map(|percent| {
            let n_eff = dependence.effective_n(&values, percent);
            let found = quantile::estimate(&values, percent, n_eff);
            let [value, low, high] = [found.value, found.low, found.high].map(|at| at.map(Nanos));
            Quantile { percent, value, low, high, n_eff }
        });
        summary::order_ends(&mut quantiles, values.min().map(Nanos));
        let mut read = Read {
            n: values.len(),
            max: values.max().map(Nanos),
            quantiles: quantiles.to_vec(),
            left_out,
            left_out_ns,
        };
        if let Some(before) = self.read.remove(&origin) {
            // Parts of it lie apart in the log: their quantiles are not those of the whole.
            read.n = read.n.saturating_add(before.n);
            read.max = read.max.max(before.max);
            read.quantiles.clear();
            read.left_out = read.left_out.saturating_add(before.left_out);
            read.left_out_ns = read.left_out_ns.saturating_add(before.left_out_ns);
        }
        self.read.insert(origin, read);
    }

    fn finish(self, name: String, shares: &[&Share], into: &mut Finished) {
        let quantiles = Quantiles { values: &self.values, recordings: &self.recordings, shares };
        let n_eff = |percent| quantiles.effective_n(percent);
        let mut one = Series::summarise(self.identity, &self.values, n_eff, None);
        let mut spreads = quantiles.widen(&mut one);
        if let Some(gaps) = self.gaps {
            let elapsed = gaps.elapsed;
            let (summary, mut of_gaps) = gaps.finish(name, &self.values, shares);
            one.weigh_by_time(&self.values, elapsed, &summary.time_weighted);
            spreads.append(&mut of_gaps);
            into.gaps.push(summary);
        }
        if let Some(censored) = self.censored {
            one.censor_sum(&self.values, censored);
            let known = |percent: f64| {
                let at = one.quantiles.iter().find(|q| (q.percent - percent).abs() < 1e-9);
                at.is_some_and(|quantile| quantile.value.is_some())
            };
            spreads.retain(|spread| match spread.of {
                Measure::Quantile { percent } => known(percent),
                Measure::LostShare | Measure::Rate { .. } => true,
            });
        }
        if shares.len() > 1 {
            into.spreads.append(&mut spreads);
        }
        into.series.push(one);
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
            threshold: ns(gaps.threshold),
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
        }
    }

    fn add(&mut self, other: Self) {
        let plus = |a: Nanos, b: Nanos| Nanos(a.0.saturating_add(b.0));
        self.cpu = self.cpu.min(other.cpu);
        self.closure = worse(self.closure.clone(), other.closure);
        self.threshold = self.threshold.max(other.threshold);
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
    }

    /// As a summary whose ticks are nanoseconds, and how far its numbers may be off.
    fn finish(
        self,
        series: String,
        lengths: &Histogram,
        shares: &[&Share],
    ) -> (GapSummary, Vec<Spread>) {
        let ticks = |ns: Nanos| TicksDelta(ns.0);
        let elapsed_ns = (self.elapsed.0 as f64).max(1.0);
        let lost_share = self.lost_ns / elapsed_ns;
        // Nothing is known of gaps that are shorter than the threshold.
        let mut rates = summary::rates(lengths, self.elapsed);
        rates.retain(|rate| rate.at_least >= self.threshold);
        let inside = self.elapsed.0.saturating_sub(self.recording.0 + self.unseen.0);
        let mut time_shares = summary::time_shares(lengths, self.elapsed, Nanos(inside));
        time_shares.retain(|share| share.at_least >= self.threshold);
        let lost = spread::lost_share(&series, lost_share, shares);
        let (rates, of_rates): (Vec<_>, Vec<_>) =
            spread::rates(&series, rates, self.elapsed, shares).into_iter().unzip();
        let summary = GapSummary {
            cpu: self.cpu,
            loop_kind: self.loop_kind,
            start: Ticks(0),
            end: Ticks(self.elapsed.0),
            iterations: self.iterations,
            threshold: ticks(self.threshold),
            threshold_rule: threshold_rule(self.threshold, shares),
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
            lost_share_interval: lost.headline().filter(says_something),
            rates,
            time_weighted: summary::time_weighted(lengths, self.elapsed),
            time_shares,
            counting: None,
            interval_lost_ns: Vec::new(),
            series,
        };
        (summary, std::iter::once(lost).chain(of_rates).collect())
    }
}

/// From nothing to all of the time is no interval: two recordings that differ do not tell where the share
/// lies.
fn says_something((low, high): &(f64, f64)) -> bool {
    *low > 0.0 || *high < 1.0
}

fn threshold_rule(threshold: Nanos, shares: &[&Share]) -> String {
    let lowest = shares.iter().filter_map(|share| share.threshold).min().unwrap_or(threshold);
    let left_out: u64 = shares.iter().map(|share| share.left_out).fold(0, u64::saturating_add);
    if lowest == threshold {
        return threshold.to_string();
    }
    format!(
        "the largest of {} recordings, from {lowest} on; {left_out} stalls below it left out, and causes \
         of the recordings they are of are counted by whole stalls",
        shares.len()
    )
}

/// One closure that does not hold is enough; the first reason is kept.
fn worse(a: Closure, b: Closure) -> Closure {
    match (a, b) {
        (Closure::Broken(why), _) | (_, Closure::Broken(why)) => Closure::Broken(why),
        (Closure::SumsOnly, _) | (_, Closure::SumsOnly) => Closure::SumsOnly,
        (Closure::Holds, Closure::Holds) => Closure::Holds,
    }
}

#[cfg(test)]
mod tests;
