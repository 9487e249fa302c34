//! One recording of requests and replies, end to end.
//!
//! Each flow has a client on a CPU of its own, which sends by a plan and takes in what comes; the
//! other end is a reflector that the recording starts in a process of its own, or whoever listens at
//! an address. The recording's own thread looks after the host and writes each interval's histograms
//! down while the clients go on.

mod across;
mod anomalies;
pub mod backends;
mod breakdown;
mod checkpoint;
mod ends;
mod flow;
mod intervals;
mod late;
mod line;
mod link;
mod looking;
mod pace;
mod packets;
mod process;
mod request;
mod settings;
mod tail;
pub mod tap;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use whylate_breakdown::compose::Composed;
use whylate_clock::Counter;
use whylate_clock::facts::RecordingCost;
use whylate_gap::GapError;
use whylate_host::calibrations::{Asked, Store};
use whylate_host::watch::Watched;
use whylate_model::breakdown::Breakdown;
use whylate_model::calibration::Trust;
use whylate_model::directory::RunDir;
use whylate_model::flow::Flow;
use whylate_model::run::{Evidence, Run, RunState, TraceFacts};
use whylate_model::series::Series;
use whylate_model::warning::Warning;
use whylate_model::{Nanos, Ticks};
use whylate_net::open_loop::{Ended, OpenOutcome};
use whylate_sys::memory;

use crate::attend::{Attendant, Part};
use crate::calibrate;
use crate::composed;
use crate::kernel_trace::KernelTrace;
use crate::progress::Progress;
use crate::storage::{Limits, Storage};
use crate::verdict::{judged, unique};
use crate::workbench::{Ground, Need, Workbench};
use crate::{RecordError, Recorded, date_ns};

pub use across::{OuterPort, OuterPorts};
pub use breakdown::{TakeApart, TapFile};
pub use ends::Target;
pub use flow::frame_of;
pub(crate) use flow::{HEARD, SENT};
pub use looking::measurements;
pub use request::{FlowRequest, Replayed, Request};
pub use tail::Causes;

use backends::Backend;
use breakdown::Apart;
use checkpoint::Checkpoint;
use line::{Beside, Line, Watches};
use pace::{Due, Shared};
use tail::{Extent, OfFlow, TailWatch};

/// Measures into `directory` until the plan is over or `stop` is set.
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
    let recorded = Recording::begin(request, directory, (stop, tail::open_trace))
        .and_then(|mut recording| recording.measure(progress).map(|()| recording));
    match recorded {
        Ok(recording) => Ok(recording.conclude()),
        Err(error) => {
            undo.remove();
            Err(error)
        }
    }
}

struct Recording<'a> {
    request: &'a Request,
    stop: &'a AtomicBool,
    bench: Workbench,
    storage: Storage,
    series: Vec<Series>,
    flows: Vec<Flow>,
    odd: Vec<anomalies::Odds>,
    warnings: Vec<Warning>,
    /// The kernel's trace, until the flows are there to be looked at.
    opened: Option<tail::Opened>,
    /// The same when they have ended, until it is removed.
    instances: Option<KernelTrace>,
    trace: Option<TraceFacts>,
    /// Of messages on their way.
    way_trace: Option<TraceFacts>,
    /// What is known of how far this host's backends may be trusted.
    calibrations: Store,
}

impl<'a> Recording<'a> {
    fn begin(
        request: &'a Request,
        directory: RunDir,
        (stop, open_trace): (
            &'a AtomicBool,
            impl FnOnce(&Request, Ground<'_>) -> Option<tail::Opened> + Send,
        ),
    ) -> Result<Self, RecordError> {
        let need = Need {
            measured: request.cpus(),
            housekeeping: request.housekeeping.clone(),
            hold_idle_states: request.hold_idle_states,
            real_time: request.flows.iter().any(|flow| flow.fifo.is_some()),
        };
        let open_trace = |ground: Ground<'_>| open_trace(request, ground);
        let (bench, opened) = Workbench::set_up_with(&need, open_trace)?;
        let limits = Limits { checkpoint: request.checkpoint, ..Limits::default() };
        let storage = Storage::open(directory, bench.observer.epoch(), limits)?;
        let mut warnings = Vec::new();
        if request.lock_memory
            && let Err(error) = memory::lock_all()
        {
            warnings.push(Warning::MemoryNotLocked { reason: error.to_string() });
        }
        let (series, flows, odd) = (Vec::new(), Vec::new(), Vec::new());
        let (trace, way_trace) = (None, None);
        // A file that cannot be used tells nothing; `whylate calibrate` begins a new one.
        let calibrations = Store::load().unwrap_or_default();
        Ok(Self {
            request,
            stop,
            bench,
            storage,
            series,
            flows,
            odd,
            warnings,
            opened,
            instances: None,
            trace,
            way_trace,
            calibrations,
        })
    }

    fn measure(&mut self, progress: &mut dyn Progress) -> Result<(), RecordError> {
        let request = self.request;
        let extent = Extent::of(request, &self.bench.housekeeping);
        let shared = Shared::of(request, &self.bench.housekeeping);
        let apart = breakdown::Extent::of(request, shared, |number| extent.looks_at(number));
        let pace = extent.pace;
        let (bench, warnings) = (&self.bench, &mut self.warnings);
        let (mut lines, mut left) = (Vec::new(), None);
        for of in request.flows.iter().enumerate() {
            lines.push(Line::open(
                request,
                of,
                bench,
                (&extent, &apart),
                (&mut left, &mut *warnings),
            )?);
        }
        warnings.extend(apart.left_out);
        let trace = self.opened.take();
        let tail = TailWatch::begin(extent, trace, bench, &mut lines, warnings);
        let parts = lines.iter_mut().filter_map(|line| line.parts.take()).collect();
        let directory = self.storage.path().to_owned();
        let asked = request.take_apart.as_ref();
        let apart = asked.and_then(|asked| {
            Apart::begin(request, (bench, asked), Some(&directory), parts, warnings)
        });
        let mut beside_them = Watches { tail, apart };
        let watched: Vec<Watched> = lines.iter().flat_map(|line| line.ends.watched()).collect();
        let cpus = request.cpus();
        let time = Nanos(request.warmup.0 + request.duration.0);
        let what = if request.is_across() { "one-way times" } else { "requests" };
        let what = Part { what, duration: time, cpus: &cpus, watched: &watched };
        let mut checkpoint =
            Checkpoint::new(self.run(RunState::Running), request.timeout, self.bench.rate);
        let (mut clients, mut beside): (Vec<_>, Vec<_>) =
            lines.iter_mut().map(Line::halves).unzip();
        let mut counter = self.bench.counter;
        // One flow that fails ends the others: what they would measure is another question.
        let halt = AtomicBool::new(false);
        let (storage, stop) = (&mut self.storage, self.stop);
        let (began, rate) = (counter.read(), self.bench.rate);
        let wait = pace.histograms(request.interval(), request.flows.len());
        let wait = wait.min(Duration::from_nanos(request.checkpoint.0));
        let (mut records, mut histograms) = (Due::every(pace.records), Due::every(wait));
        let mut attendant = Attendant {
            bench: &mut self.bench,
            progress,
            warnings: &mut self.warnings,
            every: pace.wake,
            host_every: pace.host,
            beside: &mut |now| {
                if stop.load(Ordering::Relaxed) || beside.iter().any(Beside::is_deserted) {
                    halt.store(true, Ordering::Relaxed);
                }
                let elapsed = now.since(began).to_nanos(rate);
                if records.is_now(elapsed) {
                    line::take_records(&mut beside, &mut beside_them, now, storage);
                }
                if histograms.is_now(elapsed) {
                    for of in &mut beside {
                        of.collected.write(storage);
                    }
                    checkpoint.look(now, &beside, storage);
                }
            },
        };
        let outcomes = attendant.attend(&what, || line::run_all(&mut clients, counter, &halt))?;
        drop((clients, beside));
        let (mut found, mut composed) = self.found(beside_them, &mut lines, || counter.read());
        let mut sent = 0;
        for (number, (mut line, left)) in lines.into_iter().zip(outcomes).enumerate() {
            line.finish(&mut self.storage, &mut |_| ());
            let line::Left { outcome, warnings, unlogged } = left?;
            self.warnings.extend(warnings);
            sent += outcome.departures.sent;
            if unlogged > 0 && request.log_packets {
                self.warnings.push(Warning::PacketsUnlogged { records: unlogged });
            }
            let why = line.ends.cut_short(&outcome.why, outcome.account.is_some());
            if let Some(reason) = why.filter(|_| !self.is_stopped()) {
                let part = line.what();
                self.warnings.push(Warning::PartEndedEarly { part, reason });
            }
            let mut parts = composed.remove(&number);
            if let Some(of) = &mut parts {
                breakdown::unheard(&mut of.breakdown.left_out, unlogged, outcome.abandoned);
            }
            self.take(&line, &outcome, (found.remove(&number), parts));
        }
        if sent == 0 && self.is_stopped() {
            return Err(GapError::Stopped.into());
        }
        self.cost_of_looking(progress)
    }

    /// What was found out about slow requests, and what requests are composed of, by the numbers of
    /// their flows.
    fn found(
        &mut self,
        watches: Watches,
        lines: &mut [Line<'_>],
        mut now: impl FnMut() -> Ticks,
    ) -> (BTreeMap<usize, OfFlow>, BTreeMap<usize, Composed>) {
        let mut watches = watches;
        watches.last_look(&mut now);
        let Watches { tail, mut apart } = watches;
        let storage = &mut self.storage;
        let found = tail.map(|watch| {
            watch.finish(&mut now, |number, each| {
                let Some(line) = lines.get_mut(number) else { return };
                line.finish(storage, &mut |settled| {
                    each(settled);
                    if let Some(apart) = &mut apart {
                        apart.request(number, settled);
                    }
                });
            })
        });
        let composed = apart.map(|apart| apart.finish(storage));
        let mut tails = BTreeMap::new();
        if let Some(found) = found {
            self.warnings.extend(found.warnings);
            (self.trace, self.instances) = (found.trace, found.instances);
            tails = found.flows.into_iter().collect();
        }
        let mut parts = BTreeMap::new();
        if let Some(found) = composed {
            self.warnings.extend(found.warnings);
            self.way_trace = found.trace;
            parts = found.flows.into_iter().collect();
        }
        (tails, parts)
    }

    /// What looking costs, where that was asked, beside what was found by looking.
    fn cost_of_looking(&mut self, progress: &mut dyn Progress) -> Result<(), RecordError> {
        let asked = self.request.take_apart.as_ref().and_then(|of| of.cost_rounds);
        let Some(rounds) = asked.filter(|_| !self.is_stopped()) else { return Ok(()) };
        // Nothing is removed while something is measured.
        let left = self.instances.take().map(KernelTrace::finish);
        self.warnings.extend(left.into_iter().flat_map(|(_, left)| left));
        let cost = looking::cost(self, rounds, progress)?;
        let first = self.flows.first_mut().and_then(|flow| flow.breakdown.as_mut());
        if let Some(breakdown) = first {
            breakdown.cost = cost;
        }
        Ok(())
    }

    fn take(
        &mut self,
        line: &Line<'_>,
        outcome: &OpenOutcome,
        (found, composed): (Option<OfFlow>, Option<Composed>),
    ) {
        let length = outcome
            .ended
            .zip(outcome.began)
            .map_or(Nanos(0), |(ended, began)| ended.since(began).to_nanos(self.bench.rate));
        let told = flow::of(self.request, line, outcome);
        // What has no intervals is one: the whole.
        for (name, values) in &told.whole {
            self.storage.interval(name, values, Nanos(0), length);
        }
        if let Some(planted) = &line.planted {
            self.warnings.push(Warning::Planted { what: planted.what() });
        }
        self.series.extend(told.series);
        self.odd.extend(anomalies::Odds::of(outcome, self.flows.len(), line.settings.timeout));
        let mut flow = told.flow;
        self.warnings.extend(told.warnings);
        flow.trust = self.trust(line.flow, (flow.asked.per_second, flow.asked.bytes));
        flow.planted = line.planted.as_ref().map(late::Planted::told);
        if let Some(OfFlow { tail, named }) = found {
            flow.tail = Some(tail);
            flow.departures.pacing.iter_mut().for_each(|pacing| pacing.named.clone_from(&named));
        }
        if let Some(composed) = composed {
            self.series.extend(composed::series(&composed));
            composed::log(&composed, length, &mut self.storage);
            let stamps = outcome.stamps.as_ref().map_or_else(Vec::new, breakdown::counted);
            let mut dropped = composed.breakdown.dropped.clone();
            let of_stamps = outcome.stamps.as_ref();
            dropped.extend(
                of_stamps.into_iter().flat_map(|of| breakdown::dropped(of, outcome.stamps_untold)),
            );
            flow.breakdown = Some(Box::new(Breakdown { stamps, dropped, ..composed.breakdown }));
        }
        self.flows.push(flow);
    }

    /// How far the numbers of a flow may be trusted that asks for so many messages a second of so many bytes,
    /// where its backend was calibrated on this host.
    fn trust(&self, asked: &FlowRequest, (per_second, bytes): (Option<f64>, u32)) -> Option<Trust> {
        let backend = Backend { transport: asked.transport, wait: asked.wait }.to_string();
        let way = asked.target.way();
        let asked = Asked { backend: &backend, per_second, bytes, way: &way };
        calibrate::trust(&self.calibrations, &self.bench.fingerprint, asked, date_ns())
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn conclude(mut self) -> Recorded {
        // Harmless where it was never locked.
        let _ = memory::unlock_all();
        let state = if self.is_stopped() { RunState::Stopped } else { RunState::Complete };
        if state == RunState::Stopped {
            self.warnings.push(Warning::Interrupted);
        }
        let (_, left) = self.bench.end_beside(self.instances.take(), &mut self.storage);
        self.warnings.extend(left);
        let mut run = self.run(state);
        anomalies::keep(&self.odd, &mut run, &mut self.storage);
        self.storage.conclude(&mut run);
        Recorded { run }
    }

    fn run(&mut self, state: RunState) -> Run {
        let clock = self.bench.clock_facts(RecordingCost::default());
        let mut warnings = self.warnings.clone();
        warnings.extend(self.bench.warnings.iter().cloned());
        warnings.extend(self.storage.warnings());
        warnings.extend(crate::summary::not_stationary(&self.series));
        warnings.extend(clock.wall_clock_stepped());
        let warnings = unique(warnings);
        let asked = (&self.request.command_line[..], &*self.request.question, self.request.seed);
        let beginning = self.bench.beginning(asked, state, clock);
        let run = Run {
            settings: settings::of(self.request),
            series: std::mem::take(&mut self.series),
            // Of both the one that names causes.
            evidence: Evidence {
                trace: self.trace.take().or_else(|| self.way_trace.clone()),
                messages: self.way_trace.clone(),
                ..self.bench.evidence()
            },
            warnings,
            segments: self.storage.segments(),
            flows: std::mem::take(&mut self.flows),
            ..Run::begun(beginning)
        };
        judged(run, None)
    }
}

/// Why a flow ended before its time; none when it did not.
fn failure(why: &Ended) -> Option<String> {
    match why {
        Ended::Failed(error) => Some(error.to_string()),
        Ended::Requests | Ended::Duration | Ended::Stopped => None,
    }
}
