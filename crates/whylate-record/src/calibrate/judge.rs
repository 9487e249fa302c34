//! From joined requests to what is said of a backend.
//!
//! All parts of a backend at one delay are pooled, each a run of its own and, for the dependence of
//! neighbours, cut into blocks of time. The interval of an error is the wider one of two: that of the pooled
//! samples, and that between the runs where there are three and more. Where a single run is too short for a
//! percentile, runs are the blocks by which the pooled samples are worth something there. Where the client
//! planted something into its stamps it is in all numbers, and messages with it and without are judged apart
//! by the same rules.
//!
//! What the line handed over and the client never had has no error that could be written down, and one beyond
//! any tolerance: a client that drops what is late is trusted up to the share that it had, and no further.

use whylate_clock::{Counter, HardwareCounter};
use whylate_model::calibration::{
    CalibratedBackend, ErrorAtPercent, Limit, LimitEnd, SignedQuantile, Slope as StoredSlope,
};
use whylate_model::calibration_parts::{Met, PlantedFound, error_tags, slug};
use whylate_model::flow::PlantedLate;
use whylate_model::run::Run;
use whylate_model::series::{Definition, Series};
use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};
use whylate_stats::Histogram;
use whylate_stats::dependence::Exceedances;
use whylate_stats::error_curve::{ErrorAt, compensated, error_curve};
use whylate_stats::order::{SignedHistogram, limits};
use whylate_stats::quantile::PERCENTS;
use whylate_stats::slope::Slope;
use whylate_stats::student::Spread;
use whylate_stats::trust_limit::{EndedBy, trust_limit};

use super::join::Joined;
use super::planted::{Differences, Plant};
use crate::intervals::{Interval, Tables};
use crate::rtt::{HEARD, SENT};
use crate::storage::Storage;
use crate::summary::{self, Description};

/// Blocks of time of a part.
const BLOCKS: u64 = 20;
/// Runs that say how far runs lie apart.
const FEWEST_RUNS: usize = 3;
/// Messages beyond a percentile that a single run needs to have one.
const FEWEST_BEYOND: f64 = 5.0;
/// What lies below and above a 95 % interval, each.
const TAIL: f64 = 0.025;

/// Values of one kind: all together, and by blocks.
struct Values {
    all: Histogram,
    block: Histogram,
    tables: Tables,
}

impl Values {
    fn new() -> Self {
        Self { all: Histogram::new(), block: Histogram::new(), tables: Tables::new(TicksDelta(1)) }
    }

    /// The block is over: its number stands for time.
    fn close(&mut self, number: u64) {
        if !self.block.is_empty() {
            self.tables.add(TicksDelta(number), Interval::of(&self.block));
            self.all.add(&self.block);
            self.block.clear();
        }
    }
}

/// What was measured and the truth of the same messages.
#[derive(Default)]
struct Pair {
    measured: Histogram,
    truth: Histogram,
}

impl Pair {
    fn record(&mut self, measured: Nanos, truth: Nanos) {
        self.measured.record(measured.0);
        self.truth.record(truth.0);
    }
}

/// What is planted, and both sides of it.
struct Planting {
    plant: Plant,
    seed: u64,
    /// Each run with it and without, and the one that is being taken in.
    runs: Vec<[Pair; 2]>,
    run: [Pair; 2],
    differences: Differences,
    counts: (u64, u64),
    /// What the clients say of it.
    sizes: Vec<PlantedLate>,
}

/// All parts of one backend at one delay.
pub(super) struct Pooled {
    backend: String,
    measured: Values,
    truth: Values,
    /// Errors that are not below zero; by what the others are below it, `below`.
    above: Values,
    below: Histogram,
    errors: SignedHistogram,
    /// Errors with those below zero at zero, and how they lie in each run.
    floored: Histogram,
    floored_by_run: Exceedances,
    runs: Vec<Pair>,
    blocks: u64,
    met: Met,
    planting: Option<Planting>,
}

/// What else is known of a backend.
pub(super) struct Facts<'a> {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) definition: &'static str,
    pub(super) frame_bytes: Option<u32>,
    pub(super) asked_pps: f64,
    pub(super) achieved_pps: f64,
    /// What its client measures back to back.
    pub(super) base: Option<&'a Histogram>,
    pub(super) tolerance: Nanos,
    pub(super) resolution_ns: f64,
    pub(super) seed: u64,
}

/// What came of it.
pub(super) struct Judged {
    pub(super) backend: CalibratedBackend,
    pub(super) series: Vec<Series>,
    pub(super) planted: Option<PlantedFound>,
}

/// Takes the messages of one part in.
pub(super) struct Intake<'a> {
    pooled: &'a mut Pooled,
    rate: Hertz,
    block: TicksDelta,
    began: Option<Ticks>,
    /// Block of this part that is being filled.
    number: u64,
    run: Pair,
    above: Histogram,
    below: Histogram,
}

/// Medians of a part.
pub(super) struct Medians {
    pub(super) measured: Option<Nanos>,
    pub(super) truth: Option<Nanos>,
}

impl Pooled {
    pub(super) fn new(backend: &str, plant: Option<(Plant, u64)>) -> Self {
        let planting = plant.map(|(plant, seed)| Planting {
            plant,
            seed,
            runs: Vec::new(),
            run: <[Pair; 2]>::default(),
            differences: Differences::default(),
            counts: (0, 0),
            sizes: Vec::new(),
        });
        Self {
            backend: backend.to_owned(),
            measured: Values::new(),
            truth: Values::new(),
            above: Values::new(),
            below: Histogram::new(),
            errors: SignedHistogram::new(),
            floored: Histogram::new(),
            floored_by_run: Exceedances::new(),
            runs: Vec::new(),
            blocks: 0,
            met: Met::default(),
            planting,
        }
    }

    /// A part of this length begins.
    pub(super) fn part(&mut self, rate: Hertz, length: Nanos) -> Intake<'_> {
        let ticks = (length.0 as f64 * rate.0 / 1e9 / BLOCKS as f64) as u64;
        Intake {
            pooled: self,
            rate,
            block: TicksDelta(ticks.max(1)),
            began: None,
            number: 0,
            run: Pair::default(),
            above: Histogram::new(),
            below: Histogram::new(),
        }
    }

    /// What the client of a part says of what it planted.
    pub(super) fn planted_by(&mut self, client: &Run) {
        if let Some(planting) = &mut self.planting {
            planting.sizes.extend(client.flows.first().and_then(|flow| flow.planted));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.met.joined == 0
    }

    fn close_block(&mut self) {
        for values in [&mut self.measured, &mut self.truth, &mut self.above] {
            values.close(self.blocks);
        }
        if let Some(planting) = &mut self.planting {
            planting.differences.close();
        }
        self.blocks += 1;
    }

    fn take(&mut self, joined: &Joined, rate: Hertz) -> (Nanos, Nanos, i64) {
        let (measured, truth) = (joined.measured.to_nanos(rate), joined.truth.to_nanos(rate));
        let error = (joined.error() as f64 * 1e9 / rate.0).round() as i64;
        self.measured.block.record(measured.0);
        self.truth.block.record(truth.0);
        self.errors.record(error);
        if error >= 0 {
            self.above.block.record(error.unsigned_abs());
        } else {
            self.below.record(error.unsigned_abs());
        }
        if let Some(planting) = &mut self.planting {
            planting.take(joined.number, (measured, truth, error));
        }
        (measured, truth, error)
    }

    /// What is said of it.
    pub(super) fn judge(&self, facts: &Facts<'_>) -> Judged {
        let series = |of: &str, values: &Values, definition| {
            let slug = slug(&self.backend);
            let description = Description {
                name: format!("{slug}-{of}"),
                label: format!("{of}, {}", self.backend),
                paper_row: None,
                from: if of == "truth" { "seen in the line's ring" } else { SENT },
                to: if of == "truth" { "handed over by the line" } else { HEARD },
                clock: HardwareCounter::KIND.to_owned(),
                definition,
                resolution_ns: facts.resolution_ns,
                lost: 0,
            };
            let tables = values.tables.whole(TicksDelta(self.blocks));
            summary::of_histogram(&values.all, tables, &description)
        };
        let measured = series("measured", &self.measured, Definition::OneWay);
        let truth = series("truth", &self.truth, Definition::Residence);
        let errors = series("error", &self.above, Definition::OneWay);
        let [measured_by_run, truth_by_run] = self.by_run();
        let worth = |percent: f64| {
            let by_blocks = n_eff(&measured, percent).min(n_eff(&truth, percent));
            if self.between(percent).is_some() {
                return by_blocks;
            }
            // What a run moves its blocks share: they alone do not show it.
            let by_runs = measured_by_run.effective_n(&self.measured.all, percent);
            by_blocks.min(by_runs).min(truth_by_run.effective_n(&self.truth.all, percent))
        };
        let worth_of_error = |percent: f64| {
            let by_runs = self.floored_by_run.effective_n(&self.floored, percent);
            n_eff(&errors, percent).min(by_runs)
        };
        let base = facts.base.and_then(|base| base.value_at(50.0)).map(Nanos);
        let raw = self.curve(worth);
        let off = compensated(&raw, base.map_or(0.0, |base| base.0 as f64));
        let tolerance = facts.tolerance.0 as f64;
        let backend = CalibratedBackend {
            backend: self.backend.clone(),
            from: facts.from.clone(),
            to: facts.to.clone(),
            definition: facts.definition.to_owned(),
            frame_bytes: facts.frame_bytes,
            runs: u32::try_from(self.runs.len()).unwrap_or(u32::MAX),
            n: self.met.joined,
            without_truth: self.met.without_truth,
            without_measurement: self.met.never_had(),
            asked_pps: Some(facts.asked_pps),
            achieved_pps: facts.achieved_pps,
            measured: measured.quantiles.clone(),
            truth: truth.quantiles.clone(),
            errors_raw: raw.iter().map(stored).collect(),
            errors_compensated: off.iter().map(stored).collect(),
            base,
            base_n: facts.base.map_or(0, Histogram::len),
            limit_raw: limit(&self.with_lost(&raw), tolerance),
            limit_compensated: limit(&self.with_lost(&off), tolerance),
            error_min_ns: self.errors.min().unwrap_or(0),
            error_quantiles: PERCENTS
                .iter()
                .map(|percent| signed(&self.errors, *percent, worth_of_error(*percent)))
                .collect(),
            foreign: None,
            notes: self.notes(),
        };
        let planted = self
            .planting
            .as_ref()
            .map(|of| of.found((&self.backend, self.met.never_had()), worth, base, facts));
        Judged { backend, series: vec![measured, truth], planted }
    }

    /// The errors with the wider one of both intervals.
    fn curve(&self, worth: impl Fn(f64) -> f64) -> Vec<ErrorAt> {
        let pooled = error_curve(&self.measured.all, &self.truth.all, &PERCENTS, worth);
        let runs: Vec<&Pair> = self.runs.iter().collect();
        pooled.into_iter().map(|at| widened(&runs, at)).collect()
    }

    fn between(&self, percent: f64) -> Option<(f64, f64)> {
        between(&self.runs.iter().collect::<Vec<_>>(), percent)
    }

    /// Percentiles of messages that came, as percentiles of all that the line handed over: beyond the share
    /// that came the error is that of a message that never does.
    fn with_lost(&self, curve: &[ErrorAt]) -> Vec<ErrorAt> {
        beyond_what_came(curve, self.came())
    }

    /// Share of what the line handed over that the client had.
    fn came(&self) -> f64 {
        share_that_came(self.met.joined, self.met.never_had())
    }

    /// How what was measured, and its truth, lie in each run.
    fn by_run(&self) -> [Exceedances; 2] {
        let mut of = [Exceedances::new(), Exceedances::new()];
        for run in &self.runs {
            of[0].add(&run.measured);
            of[1].add(&run.truth);
        }
        of
    }

    fn notes(&self) -> Vec<String> {
        let met = &self.met;
        let counted = [
            (met.without_truth, "came without a row in the line's log"),
            (met.without_request, "have a row in the line's log alone"),
            (met.again, "came to the line a second time"),
            (met.too_early, "were taken in before the line had handed them over"),
            (met.lost_in, "were lost in the line"),
            (met.lost_behind, "were lost behind it"),
            (met.lost_before, "were lost before it"),
        ];
        let known = counted.iter().filter(|(count, _)| *count > 0);
        let mut notes: Vec<String> =
            known.map(|(count, what)| format!("{count} messages {what}")).collect();
        if met.never_had() > 0 {
            notes.push(format!(
                "of what the line handed over {:.4} % came: beyond that percentile nothing is trusted",
                100.0 * self.came()
            ));
        }
        notes
    }
}

impl Intake<'_> {
    /// One more message.
    pub(super) fn take(&mut self, joined: &Joined) {
        let began = *self.began.get_or_insert(joined.sent);
        // One that was taken in late may have been sent before the first of the log.
        let number = joined.sent.0.saturating_sub(began.0) / self.block.0;
        if number > self.number {
            self.pooled.close_block();
            self.number = number;
        }
        let (measured, truth, error) = self.pooled.take(joined, self.rate);
        self.run.record(measured, truth);
        let side = if error < 0 { &mut self.below } else { &mut self.above };
        side.record(error.unsigned_abs());
    }

    /// The part is over; its errors go to the log.
    pub(super) fn finish(
        self,
        met: &Met,
        (start, length): (Nanos, Nanos),
        storage: &mut Storage,
    ) -> Medians {
        self.pooled.close_block();
        self.pooled.met.add(met);
        self.pooled.errors.record_lost(met.never_had());
        let medians = Medians {
            measured: self.run.measured.value_at(50.0).map(Nanos),
            truth: self.run.truth.value_at(50.0).map(Nanos),
        };
        let slug = slug(&self.pooled.backend);
        let [above, below] = error_tags(&self.pooled.backend);
        for (tag, values) in [
            (format!("{slug}-measured"), &self.run.measured),
            (format!("{slug}-truth"), &self.run.truth),
            (above, &self.above),
            (below, &self.below),
        ] {
            if !values.is_empty() {
                storage.interval(&tag, values, start, length);
            }
        }
        let mut floored = self.above;
        floored.record_n(0, self.below.len());
        self.pooled.floored_by_run.add(&floored);
        self.pooled.floored.add(&floored);
        if medians.measured.is_some() {
            self.pooled.runs.push(self.run);
            if let Some(planting) = &mut self.pooled.planting {
                let run = std::mem::take(&mut planting.run);
                planting.runs.push(run);
            }
        }
        medians
    }
}

/// A curve in percentiles of all that was handed over, of which this share came: beyond it no message has an
/// error that is small enough.
fn beyond_what_came(curve: &[ErrorAt], came: f64) -> Vec<ErrorAt> {
    let at = |at: &ErrorAt| {
        if at.percent <= 100.0 * came + 1e-9 {
            return *at;
        }
        let never = Some(f64::INFINITY);
        ErrorAt { error_ns: never, low_ns: never, high_ns: never, ..*at }
    };
    curve.iter().map(at).collect()
}

/// The share that came, of as many that did and as many that did not.
fn share_that_came(came: u64, lost: u64) -> f64 {
    let (came, lost) = (came as f64, lost as f64);
    if came + lost > 0.0 { came / (came + lost) } else { 1.0 }
}

/// Runs that differ by more than their samples can explain make the interval as wide as they differ.
fn widened(runs: &[&Pair], at: ErrorAt) -> ErrorAt {
    let Some((between_low, between_high)) = between(runs, at.percent) else { return at };
    ErrorAt {
        low_ns: at.low_ns.map(|low| low.min(between_low)),
        high_ns: at.high_ns.map(|high| high.max(between_high)),
        ..at
    }
}

/// Where the error lies by how far runs lie apart; none where there are too few of them, or one of them is too
/// short for this percentile.
fn between(runs: &[&Pair], percent: f64) -> Option<(f64, f64)> {
    let of_run = |run: &&Pair| {
        let beyond = run.measured.len() as f64 * (1.0 - percent / 100.0);
        let error = run.measured.value_at(percent)? as f64 - run.truth.value_at(percent)? as f64;
        (beyond >= FEWEST_BEYOND).then_some(error)
    };
    let errors: Vec<f64> = runs.iter().filter_map(of_run).collect();
    if errors.len() < FEWEST_RUNS || errors.len() < runs.len() {
        return None;
    }
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let between = Spread::of_mean(&errors)?.around(mean);
    Some((between.low, between.high))
}

impl Planting {
    /// What was measured has it already.
    fn take(&mut self, number: u64, (measured, truth, error): (Nanos, Nanos, i64)) {
        let planted = self.plant.is_in(number, self.seed);
        let count = if planted { &mut self.counts.0 } else { &mut self.counts.1 };
        *count += 1;
        let [with, without] = &mut self.run;
        if !planted {
            without.record(measured, truth);
        }
        match self.plant {
            Plant::Bias(_) => {
                if planted {
                    with.record(measured, truth);
                }
                self.differences.take(error, planted);
            }
            // A tail is one of all messages.
            Plant::Tail(_) => with.record(measured, truth),
        }
    }

    /// What is said of the plant. Of what never came nobody knows whether it had it: on each side it is all
    /// of that side.
    fn found(
        &self,
        (backend, lost): (&str, u64),
        worth: impl Fn(f64) -> f64,
        base: Option<Nanos>,
        facts: &Facts<'_>,
    ) -> PlantedFound {
        let of = |side: usize| {
            let runs: Vec<&Pair> = self.runs.iter().map(|run| &run[side]).collect();
            let mut all = Pair::default();
            for run in &runs {
                all.measured.add(&run.measured);
                all.truth.add(&run.truth);
            }
            let curve = error_curve(&all.measured, &all.truth, &PERCENTS, &worth);
            let curve: Vec<ErrorAt> = curve.into_iter().map(|at| widened(&runs, at)).collect();
            let off = compensated(&curve, base.map_or(0.0, |base| base.0 as f64));
            let came = share_that_came(all.measured.len(), lost);
            limit(&beyond_what_came(&off, came), facts.tolerance.0 as f64)
        };
        let (difference_ns, interval_ns, blocks) = self.differences.found(facts.seed);
        let planted: u64 = self.sizes.iter().map(|of| of.messages).sum();
        let sum: f64 = self.sizes.iter().map(|of| of.median_ns * of.messages as f64).sum();
        PlantedFound {
            backend: backend.to_owned(),
            what: self.plant.to_string(),
            planted: self.counts.0,
            unplanted: self.counts.1,
            size_ns: (planted > 0).then(|| sum / planted as f64),
            difference_ns,
            interval_ns,
            blocks,
            limit_without: of(1),
            limit_with: of(0),
        }
    }
}

/// Independent samples behind a percentile of a series.
fn n_eff(series: &Series, percent: f64) -> f64 {
    let of = series.quantiles.iter().find(|of| (of.percent - percent).abs() < 1e-9);
    of.map_or(1.0, |of| of.n_eff)
}

/// An error, as it is stored.
pub(super) fn stored(at: &ErrorAt) -> ErrorAtPercent {
    ErrorAtPercent {
        percent: at.percent,
        error_ns: at.error_ns,
        low_ns: at.low_ns,
        high_ns: at.high_ns,
        n_eff: at.n_eff,
    }
}

fn signed(errors: &SignedHistogram, percent: f64, n_eff: f64) -> SignedQuantile {
    let of = limits(errors, percent, n_eff, TAIL);
    SignedQuantile {
        percent,
        value_ns: of.value,
        low_ns: of.low,
        high_ns: of.high,
        n_eff: of.n_eff,
    }
}

/// The limit of a curve, as it is stored.
pub(super) fn limit(curve: &[ErrorAt], tolerance_ns: f64) -> Limit {
    let of = trust_limit(curve, tolerance_ns);
    let ended_by = match of.ended_by {
        EndedBy::Nothing => LimitEnd::Nothing,
        EndedBy::Error => LimitEnd::Error,
        EndedBy::Interval => LimitEnd::Interval,
        EndedBy::Sample => LimitEnd::Sample,
    };
    Limit { percent: of.percent, ended_by, fails_at: of.fails_at }
}

/// A slope, as it is stored.
pub(super) fn stored_slope(of: &str, slope: &Slope) -> StoredSlope {
    StoredSlope {
        of: of.to_owned(),
        method: "least squares".to_owned(),
        value: slope.value,
        low: slope.low,
        high: slope.high,
        intercept: slope.intercept,
        points: u32::try_from(slope.points).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests;
