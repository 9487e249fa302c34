//! How close each backend of this host comes to the truth, and up to which percentile it may be trusted.
//!
//! A client sends through a delay line that writes down when each message came and left (`part.rs`); both logs
//! are joined by number (`join.rs`), and what the client measured is set beside the truth (`judge.rs`). First
//! all backends are brought to one rate (`rates.rs`); then rounds begin, in each of which every backend is
//! measured through the line at every delay and back to back, in an order that the seed draws. The first
//! delay is the one that curves are of; the others tell how a backend's median follows what was set.
//!
//! Every measurement is a process of its own with a run directory below that of the calibration: what is
//! said of a backend comes from these directories alone, and can be looked at again.
//!
//! A client of somebody else is judged by `foreign.rs`.

pub mod foreign;
pub mod join;
mod judge;
mod kept;
mod part;
pub mod planted;
pub(crate) mod rates;
mod request;
pub mod rows;
mod setting;

use std::sync::atomic::{AtomicBool, Ordering};

use whylate_clock::Counter;
use whylate_clock::facts::RecordingCost;
use whylate_model::calibration::{
    CalibratedBackend, Calibration, CalibrationLine, Emulator, NotCalibrated,
};
use whylate_model::calibration_parts::{
    BackendSlope, CalibrationPart, CalibrationParts, HeldRate, PartOf, back_to_back_tag, slug,
};
use whylate_model::directory::RunDir;
use whylate_model::host::Fingerprint;
use whylate_model::run::{Run, RunState};
use whylate_model::series::Series;
use whylate_model::warning::Warning;
use whylate_model::{Nanos, Ticks};
use whylate_stats::Histogram;
use whylate_stats::rng::Rng;
use whylate_stats::slope::least_squares;

use crate::delay;
use crate::progress::{Progress, Step};
use crate::rtt::backends::Backend;
use crate::storage::{Limits, Storage};
use crate::verdict::{judged, unique};
use crate::{RecordError, Recorded, date_ns};

use judge::{Facts, Medians, Pooled, stored_slope};
use part::{Left, Plan};
use request::RATE_TIME;
use setting::Setting;

pub(crate) use kept::trust;
pub use kept::{is_poor, kept};
pub use request::{Request, refusal};
pub use whylate_model::calibration_parts::error_tags;

/// What a calibration's slope is of.
const SLOPE_OF: &str = "ns of the median over ns of delay";

/// Measures into `directory` until all rounds are over or `stop` is set.
///
/// # Errors
/// What is asked for cannot be measured on this host, an instrument failed meanwhile, or the run directory
/// cannot be written.
pub fn record(
    request: &Request,
    directory: RunDir,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Recorded, RecordError> {
    let undo = directory.undo();
    let recorded = Calibrating::begin(request, directory, stop).and_then(|mut of| {
        of.measure_netem(progress);
        match &request.foreign {
            Some(foreign) => foreign::measure(&mut of, foreign, progress)?,
            None => of.measure(progress)?,
        }
        of.conclude()
    });
    if recorded.is_err() {
        undo.remove();
    }
    recorded
}

/// One backend while it is calibrated.
struct Slot {
    backend: Backend,
    name: String,
    /// At the first delay.
    pooled: Pooled,
    /// What its client measures back to back.
    base: Histogram,
    /// Delay and median of each part, ns.
    points: Vec<(f64, f64)>,
    achieved: Vec<f64>,
    /// Where its clock starts and stops, and the bytes of its frames, as its client tells.
    ends: Option<(String, String, Option<u32>)>,
    failed: Option<String>,
}

struct Calibrating<'a> {
    request: &'a Request,
    setting: Setting<'a>,
    storage: Storage,
    slots: Vec<Slot>,
    parts: CalibrationParts,
    line: Option<CalibrationLine>,
    /// How far the line is off, as it says itself, and netem beside it.
    line_error: Option<Emulator>,
    netem: Option<Emulator>,
    /// Of a foreign client.
    judged: Vec<CalibratedBackend>,
    warnings: Vec<Warning>,
    began: Ticks,
}

impl<'a> Calibrating<'a> {
    fn begin(
        request: &'a Request,
        directory: RunDir,
        stop: &'a AtomicBool,
    ) -> Result<Self, RecordError> {
        let setting = Setting::set_up(request, directory.path(), stop)?;
        let storage = Storage::open(directory, setting.bench.observer.epoch(), Limits::default())?;
        let mut warnings = Vec::new();
        if let Some(plant) = request.plant {
            warnings.push(Warning::Planted { what: plant.to_string() });
        }
        let slots = request.backends.iter().map(|backend| Slot::new(*backend, request)).collect();
        let mut counter = setting.bench.counter;
        let began = counter.read();
        let parts = CalibrationParts { wanted_pps: request.per_second, ..Default::default() };
        Ok(Self {
            request,
            setting,
            storage,
            slots,
            parts,
            line: None,
            line_error: None,
            netem: None,
            judged: Vec::new(),
            warnings,
            began,
        })
    }

    fn is_stopped(&self) -> bool {
        self.setting.site.stop.load(Ordering::Relaxed)
    }

    /// How long it goes on already.
    fn elapsed(&self) -> Nanos {
        let mut counter = self.setting.bench.counter;
        counter.read().since(self.began).to_nanos(self.setting.bench.rate)
    }

    fn step(&self, what: &str, progress: &mut dyn Progress) {
        let (elapsed, duration) = (self.elapsed(), self.request.about().max(self.elapsed()));
        let so_far = String::new();
        progress.step(&Step { what: what.to_owned(), elapsed, duration, so_far });
    }

    /// What netem of this kernel makes of the first delay, before anything else runs.
    fn measure_netem(&mut self, progress: &mut dyn Progress) {
        self.step("netem of this kernel", progress);
        self.netem = Some(delay::emulator(self.first_delay()));
    }

    fn measure(&mut self, progress: &mut dyn Progress) -> Result<(), RecordError> {
        self.bring_to_one_rate(progress)?;
        for round in 0..self.request.runs {
            let plans = self.in_turns(round);
            self.parts.order.push(Vec::new());
            for (slot, between) in plans {
                if self.is_stopped() {
                    return Ok(());
                }
                // What failed in this round already is not tried again.
                if self.slots[slot].failed.is_none() {
                    self.one(slot, between, round, progress);
                }
            }
            self.checkpoint();
        }
        Ok(())
    }

    /// Every backend through every delay and back to back, in an order of this round.
    fn in_turns(&self, round: u32) -> Vec<(usize, PartOf)> {
        let line = |delay: &Nanos| PartOf::Line { delay: *delay };
        let between: Vec<PartOf> =
            self.request.delays.iter().map(line).chain([PartOf::BackToBack]).collect();
        let alive = (0..self.slots.len()).filter(|slot| self.slots[*slot].failed.is_none());
        let mut plans: Vec<(usize, PartOf)> =
            alive.flat_map(|slot| between.iter().map(move |of| (slot, *of))).collect();
        Rng::stream(self.request.seed, u64::from(round)).shuffle(&mut plans);
        plans
    }

    /// Lowers the rate until all hold it.
    fn bring_to_one_rate(&mut self, progress: &mut dyn Progress) -> Result<(), RecordError> {
        let mut asked = self.request.per_second;
        for attempt in 0..rates::MOST_TRIES {
            let mut held = Vec::new();
            for slot in 0..self.slots.len() {
                if self.is_stopped() || self.slots[slot].failed.is_some() {
                    continue;
                }
                let name = self.slots[slot].name.clone();
                self.step(&format!("rate of {name}"), progress);
                match self.held(slot, asked, attempt, progress) {
                    Ok((_, received)) if rates::are_ports_swapped(received) => {
                        return Err(RecordError::NotCalibrated(format!(
                            "{} of the client's messages came to the delay line by its second port, and \
                             {} by the first: its ports are swapped, or something else joins them",
                            received[1], received[0]
                        )));
                    }
                    Ok((rate, _)) if rates::is_alive(&rate) => held.push(rate),
                    Ok((rate, _)) => {
                        let why = format!(
                            "of {:.0} messages a second {:.0} came behind the line",
                            rate.asked_pps, rate.received_pps
                        );
                        self.slots[slot].failed = Some(why);
                    }
                    Err(error) => self.slots[slot].failed = Some(error.to_string()),
                }
            }
            let next = rates::next(asked, &held);
            self.parts.held.extend(held.iter().cloned());
            match next {
                rates::Next::Try(lower) if !held.is_empty() => {
                    progress.say(&format!(
                        "not all hold {asked:.0} messages a second: all are asked for {lower:.0}"
                    ));
                    asked = lower;
                }
                _ => break,
            }
        }
        self.parts.common_pps = asked;
        let alive = self.slots.iter().any(|slot| slot.failed.is_none());
        if alive || self.is_stopped() {
            return Ok(());
        }
        let why: Vec<String> = self.slots.iter().map(Slot::why).collect();
        Err(RecordError::NotCalibrated(format!(
            "nothing arrives behind the delay line by any backend: {}",
            why.join("; ")
        )))
    }

    /// What a backend holds of a rate, by a short run through the line, and what came to the line by each
    /// port.
    fn held(
        &mut self,
        slot: usize,
        asked_pps: f64,
        attempt: usize,
        progress: &mut dyn Progress,
    ) -> Result<(HeldRate, [u64; 2]), RecordError> {
        let Slot { backend, name, .. } = &self.slots[slot];
        let plan = Plan {
            backend: *backend,
            between: PartOf::Line { delay: self.first_delay() },
            per_second: asked_pps,
            duration: RATE_TIME,
            warmup: self.request.warmup.min(RATE_TIME),
            directory: format!("rates/{}-{}", attempt + 1, slug(name)),
        };
        let backend = name.clone();
        let left = self.setting.measure(&plan, progress)?;
        let (sent_pps, received_pps) = left.rates()?;
        self.take_line(&left);
        let line = left.line.as_ref().and_then(|(_, run)| run.delay.as_deref());
        let received = [0, 1].map(|way: usize| {
            line.and_then(|line| line.directions.get(way)).map_or(0, |of| of.counts.received)
        });
        let attempt = u32::try_from(attempt).unwrap_or(u32::MAX);
        Ok((HeldRate { backend, attempt, asked_pps, sent_pps, received_pps }, received))
    }

    fn first_delay(&self) -> Nanos {
        self.request.delays.first().copied().unwrap_or(Nanos(0))
    }

    /// One part. What fails is noted, and the others go on.
    fn one(&mut self, slot: usize, between: PartOf, round: u32, progress: &mut dyn Progress) {
        let Slot { backend, name, .. } = &self.slots[slot];
        let (backend, name) = (*backend, name.clone());
        let lies = match between {
            PartOf::Line { delay } => format!("through {delay}"),
            PartOf::BackToBack => "back to back".to_owned(),
        };
        self.step(&format!("{name} {lies}, run {} of {}", round + 1, self.request.runs), progress);
        let number = self.parts.parts.len();
        let duration = self.request.length(between);
        let plan = Plan {
            backend,
            between,
            per_second: self.parts.common_pps,
            duration,
            warmup: self.request.warmup,
            directory: format!("parts/{:03}-{}", number + 1, slug(&name)),
        };
        if let Some(order) = self.parts.order.last_mut() {
            order.push(number as u32);
        }
        let start = self.elapsed();
        let mut part = CalibrationPart {
            backend: name,
            between,
            round,
            directory: plan.directory.clone(),
            commands: Vec::new(),
            achieved_pps: 0.0,
            met: None,
            measured_p50: None,
            truth_p50: None,
            failed: None,
        };
        let left = self.setting.measure(&plan, progress);
        let taken = left.and_then(|left| self.take(slot, &left, (start, duration), &mut part));
        if let Err(error) = taken {
            if self.is_stopped() {
                part.failed = Some("stopped".to_owned());
            } else {
                part.failed = Some(error.to_string());
                self.slots[slot].failed.clone_from(&part.failed);
            }
        }
        self.parts.parts.push(part);
    }

    fn take(
        &mut self,
        slot: usize,
        left: &Left,
        (start, length): (Nanos, Nanos),
        part: &mut CalibrationPart,
    ) -> Result<(), RecordError> {
        part.commands.clone_from(&left.commands);
        part.achieved_pps = left.rates()?.0;
        self.take_line(left);
        let medians = if let (PartOf::Line { delay }, Some((log, _))) = (part.between, &left.line) {
            let first = delay == self.first_delay();
            let (of, storage) = (&mut self.slots[slot], &mut self.storage);
            let mut other = Pooled::new(&format!("{} at {delay}", of.name), None);
            let pooled = if first { &mut of.pooled } else { &mut other };
            let mut intake = pooled.part(left.client.1.clock.hz, length);
            let requests = rows::requests(&left.client.0, 0)?;
            let met = join::join(requests, rows::passed(log, 0)?, |of| intake.take(of))?;
            let medians = intake.finish(&met, (start, length), storage);
            part.met = Some(met);
            if let Some(median) = medians.measured {
                of.points.push((delay.0 as f64, median.0 as f64));
            }
            if first {
                of.achieved.push(part.achieved_pps);
                of.pooled.planted_by(&left.client.1);
                of.take_ends(&left.client.1);
            }
            medians
        } else {
            let (of, storage) = (&mut self.slots[slot], &mut self.storage);
            let base = back_to_back(left)?;
            let tag = back_to_back_tag(&of.name);
            if !base.is_empty() {
                storage.interval(&tag, &base, start, length);
            }
            of.base.add(&base);
            Medians { measured: base.value_at(50.0).map(Nanos), truth: None }
        };
        part.measured_p50 = medians.measured;
        part.truth_p50 = medians.truth;
        Ok(())
    }

    /// What the line says of itself: the last one speaks.
    fn take_line(&mut self, left: &Left) {
        if let Some((_, run)) = &left.line {
            self.take_line_run(run);
        }
    }

    fn take_line_run(&mut self, run: &Run) {
        if let Some(base) = run.delay.as_ref().map(|delay| delay.base) {
            self.line_error = Some(delay::own_error(&base));
            self.line = Some(CalibrationLine {
                transport: self.setting.site.line_port.to_string(),
                delay: self.first_delay().to_string(),
                base: base.base,
                error: base.error,
                frames: base.frames,
                resolution_ns: base.resolution.0 as f64,
            });
        }
    }

    fn checkpoint(&mut self) {
        let elapsed = self.elapsed();
        if self.storage.checkpoint_is_due(elapsed) {
            let mut run = self.run(RunState::Running);
            self.storage.checkpoint(&mut run);
        }
    }

    fn conclude(mut self) -> Result<Recorded, RecordError> {
        let state = if self.is_stopped() { RunState::Stopped } else { RunState::Complete };
        if state == RunState::Stopped {
            self.warnings.push(Warning::Interrupted);
        }
        let judged = self.slots.iter().any(|slot| !slot.pooled.is_empty());
        if !judged && self.judged.is_empty() && state == RunState::Complete {
            let why: Vec<String> = self.slots.iter().map(Slot::why).collect();
            return Err(RecordError::NotCalibrated(why.join("; ")));
        }
        self.storage.close();
        self.setting.bench.measure_clock_again();
        let mut run = self.run(state);
        self.storage.conclude(&mut run);
        Ok(Recorded { run })
    }

    /// Everything that is known so far.
    fn found(&self) -> (Calibration, CalibrationParts, Vec<Series>) {
        let (mut series, mut parts) = (Vec::new(), self.parts.clone());
        let mut backends = self.judged.clone();
        let achieved: Vec<(String, f64)> =
            self.slots.iter().filter_map(|of| Some((of.name.clone(), of.achieved()?))).collect();
        parts.not_compared.extend(rates::apart(&achieved));
        let mut missing = Vec::new();
        for slot in &self.slots {
            if let (Some(why), true) = (&slot.failed, slot.pooled.is_empty()) {
                missing.push(NotCalibrated { backend: slot.name.clone(), why: why.clone() });
            }
            if slot.pooled.is_empty() {
                continue;
            }
            let mut judged = slot.judge(self.request, &self.setting, parts.common_pps);
            let unkept = kept::too_few(&judged.backend);
            let notes = &mut judged.backend.notes;
            notes.extend(unkept);
            notes.extend(parts.not_compared.iter().cloned());
            notes.extend(slot.failed.iter().map(|why| format!("it ended early: {why}")));
            if slot.base.is_empty() {
                notes.push("nothing was measured back to back: no base is taken off".to_owned());
            }
            if let Some(planted) = judged.planted {
                notes.push(format!("PLANTED ON PURPOSE: {}", planted.what));
                parts.planted.push(planted);
            }
            backends.push(judged.backend);
            series.extend(judged.series);
            let slope = least_squares(&slot.points);
            let slope = slope.map(|slope| stored_slope(SLOPE_OF, &slope));
            parts.slopes.push(BackendSlope { backend: slot.name.clone(), slope });
        }
        let host = &self.setting.bench.fingerprint;
        let nothing = || CalibrationLine {
            transport: self.setting.site.line_port.to_string(),
            delay: self.first_delay().to_string(),
            base: Nanos(0),
            error: Nanos(0),
            frames: 0,
            resolution_ns: self.setting.bench.resolution_ns(),
        };
        let calibration = Calibration {
            tolerance: self.request.tolerance,
            made_at_ns: date_ns(),
            host_identity: identity(host),
            line: self.line.clone().unwrap_or_else(nothing),
            backends,
            missing,
            emulators: self.line_error.iter().chain(&self.netem).cloned().collect(),
        };
        (calibration, parts, series)
    }

    fn run(&mut self, state: RunState) -> Run {
        let (calibration, parts, series) = self.found();
        let bench = &mut self.setting.bench;
        let clock = bench.clock_facts(RecordingCost::default());
        let mut warnings = self.warnings.clone();
        warnings.extend(bench.warnings.iter().cloned());
        warnings.extend(self.storage.warnings());
        warnings.extend(clock.wall_clock_stepped());
        let warnings = unique(warnings);
        let question = self.request.question();
        let asked = (&self.request.command_line[..], question.as_str(), self.request.seed);
        let beginning = bench.beginning(asked, state, clock);
        let run = Run {
            settings: self.setting.told(self.request, parts.common_pps),
            series,
            warnings,
            segments: self.storage.segments(),
            calibration: Some(Box::new(calibration)),
            calibration_parts: Some(Box::new(parts)),
            ..Run::begun(beginning)
        };
        judged(run, None)
    }
}

impl Slot {
    fn new(backend: Backend, request: &Request) -> Self {
        let name = backend.to_string();
        let plant = request.plant.map(|plant| (plant, request.seed));
        Self {
            backend,
            pooled: Pooled::new(&name, plant),
            name,
            base: Histogram::new(),
            points: Vec::new(),
            achieved: Vec::new(),
            ends: None,
            failed: refusal(backend).map(str::to_owned),
        }
    }

    fn why(&self) -> String {
        let why = self.failed.as_deref().unwrap_or("nothing was measured");
        format!("{}: {why}", self.name)
    }

    /// Messages a second at the first delay, in the mean of its runs.
    fn achieved(&self) -> Option<f64> {
        let n = self.achieved.len();
        (n > 0).then(|| self.achieved.iter().sum::<f64>() / n as f64)
    }

    fn take_ends(&mut self, client: &Run) {
        let Some(flow) = client.flows.first() else { return };
        let of = client.series.iter().find(|series| Some(&series.name) == flow.service.as_ref());
        if let Some(series) = of {
            let frame = flow.asked.frame_bytes;
            self.ends = Some((series.from.clone(), series.to.clone(), frame));
        }
    }

    fn judge(&self, request: &Request, setting: &Setting<'_>, asked_pps: f64) -> judge::Judged {
        let (from, to, frame_bytes) = self.ends.clone().unwrap_or_default();
        self.pooled.judge(&Facts {
            from,
            to,
            definition: "one-way",
            frame_bytes,
            asked_pps,
            achieved_pps: self.achieved().unwrap_or(0.0),
            base: (!self.base.is_empty()).then_some(&self.base),
            tolerance: request.tolerance,
            resolution_ns: setting.bench.resolution_ns(),
            seed: request.seed,
        })
    }
}

/// What a client measured with nothing between.
fn back_to_back(left: &Left) -> Result<Histogram, RecordError> {
    let (directory, run) = &left.client;
    let mut base = Histogram::new();
    for row in rows::requests(directory, 0)? {
        let row = row?;
        if let Some(received) = row.received {
            base.record(received.since(row.sent).to_nanos(run.clock.hz).0);
        }
    }
    Ok(base)
}

/// What tells a host from others, whatever is changed on it.
fn identity(host: &Fingerprint) -> String {
    format!("{} ({})", host.hostname, host.architecture)
}
