//! One recording of requests and replies, end to end.
//!
//! A client on a CPU of its own sends by a plan and takes in what comes; the other end is a
//! reflector that the recording starts in a process of its own, or whoever listens at an address.
//! The recording's own thread looks after the host and writes each interval's histograms down while
//! the client goes on.

mod ends;
mod flow;
mod intervals;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use whylate_clock::facts::RecordingCost;
use whylate_host::watch::Watched;
use whylate_model::directory::RunDir;
use whylate_model::flow::Flow;
use whylate_model::run::{FORMAT_VERSION, Run, RunState};
use whylate_model::series::Series;
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Hertz, Nanos};
use whylate_net::open_loop::{Ended, OpenOutcome};
use whylate_net::schedule::{Arrivals, Plan};
use whylate_net::{Cookie, OpenLoop, Speaks};
use whylate_port::Wait;
use whylate_port::open::Transport;
use whylate_sys::memory;
use whylate_threads::Placement;

use crate::attend::{Attendant, Part};
use crate::progress::Progress;
use crate::storage::{Limits, Storage};
use crate::verdict::{unique, verdict};
use crate::workbench::{Need, Workbench};
use crate::{RecordError, Recorded};

pub use ends::Target;

/// What is asked.
#[derive(Debug, Clone)]
pub struct Request {
    /// The client's CPU.
    pub cpu: CpuId,
    /// The client's real-time priority, where it is to have one.
    pub fifo: Option<u8>,
    /// The other end.
    pub target: Target,
    /// How messages go.
    pub transport: Transport,
    /// What both ends speak.
    pub protocol: Speaks,
    /// How the client waits for replies.
    pub wait: Wait,
    /// Bytes of a request.
    pub bytes: usize,
    /// The pattern of arrivals.
    pub arrivals: Arrivals,
    /// Requests per second.
    pub per_second: f64,
    /// A request without a reply after this time is given up.
    pub timeout: Nanos,
    /// Requests under way at most.
    pub most_under_way: Option<u64>,
    /// Discarded time before the measurement.
    pub warmup: Nanos,
    /// Time measured.
    pub duration: Nanos,
    /// How late the p99.9 of departures may be.
    pub tolerance: Nanos,
    /// CPUs of the recording's own thread, where the user chose some.
    pub housekeeping: Option<Vec<CpuId>>,
    /// Lock all memory.
    pub lock_memory: bool,
    /// Hold `/dev/cpu_dma_latency` at 0.
    pub hold_idle_states: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// The command line, for the record.
    pub command_line: Vec<String>,
    /// The question in one sentence.
    pub question: String,
    /// How long resolving the target's name took, where it has one.
    pub resolved_in: Option<Nanos>,
    /// This program: its command `reflect` is the reflector.
    pub program: PathBuf,
}

impl Request {
    /// Refuses what cannot be measured, before anything is touched.
    pub fn check(&self) -> Result<(), RecordError> {
        // The frequency is found out later, and nothing is refused for it.
        let settings = self.open_loop(Hertz(1e9));
        Ok(settings.check(&*self.protocol.with(Cookie::fresh()))?)
    }

    fn open_loop(&self, rate: Hertz) -> OpenLoop {
        let (arrivals, per_second) = (self.arrivals.clone(), self.per_second);
        OpenLoop {
            plan: Plan { arrivals, per_second, seed: self.seed },
            bytes: self.bytes,
            timeout: self.timeout,
            most_under_way: self.most_under_way,
            warmup: self.warmup,
            duration: self.duration,
            interval: crate::intervals::Intervals::width_for(self.duration),
            rate,
        }
    }
}

/// Measures into `directory` until the plan is over or `stop` is set.
pub fn record(
    request: &Request,
    directory: RunDir,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Recorded, RecordError> {
    let undo = directory.undo();
    let recorded = Recording::begin(request, directory, stop, progress)
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
    warnings: Vec<Warning>,
}

impl<'a> Recording<'a> {
    fn begin(
        request: &'a Request,
        directory: RunDir,
        stop: &'a AtomicBool,
        progress: &mut dyn Progress,
    ) -> Result<Self, RecordError> {
        let mut measured = vec![request.cpu];
        measured.extend(request.target.cpu());
        measured.dedup();
        let need = Need {
            measured,
            housekeeping: request.housekeeping.clone(),
            hold_idle_states: request.hold_idle_states,
            real_time: request.fifo.is_some(),
        };
        let bench = Workbench::set_up(&need, progress)?;
        let storage = Storage::open(directory, bench.observer.epoch(), Limits::default())?;
        let mut warnings = Vec::new();
        if request.lock_memory
            && let Err(error) = memory::lock_all()
        {
            warnings.push(Warning::MemoryNotLocked { reason: error.to_string() });
        }
        let (series, flows) = (Vec::new(), Vec::new());
        Ok(Self { request, stop, bench, storage, series, flows, warnings })
    }

    fn measure(&mut self, progress: &mut dyn Progress) -> Result<(), RecordError> {
        let request = self.request;
        let settings = request.open_loop(self.bench.rate);
        let protocol = request.protocol.with(Cookie::fresh());
        let mut ends = ends::open(request, &self.bench, protocol.framing())?;
        let (mut collected, mut hand) = intervals::between(&settings, self.bench.rate);
        let mut counter = self.bench.counter;
        let placement = Placement { cpu: Some(request.cpu), fifo: request.fifo };
        let watched: Vec<Watched> = ends.watched();
        let mut cpus = vec![request.cpu];
        cpus.extend(request.target.cpu());
        let time = Nanos(request.warmup.0 + request.duration.0);
        let what = Part { what: "round trips", duration: time, cpus: &cpus, watched: &watched };
        let storage = &mut self.storage;
        let mut attendant = Attendant {
            bench: &mut self.bench,
            progress,
            warnings: &mut self.warnings,
            beside: &mut |_| collected.write(storage),
        };
        let (near, stop) = (&mut ends.near, self.stop);
        let placed = attendant.attend(&what, || -> Result<_, RecordError> {
            let (_, warnings) = placement.settle()?;
            let mut watch = |index, of: &mut _| hand.over(index, of);
            let outcome = settings.run(near, &mut counter, &*protocol, stop, &mut watch)?;
            Ok((outcome, warnings))
        })?;
        let (outcome, warnings) = placed?;
        self.warnings.extend(warnings);
        collected.write(&mut self.storage);
        if let Some(reason) = ends.cut_short(&outcome.why, outcome.account.is_some())
            && !self.is_stopped()
        {
            let part = "round trips".to_owned();
            self.warnings.push(Warning::PartEndedEarly { part, reason });
        }
        self.take(&settings, &outcome, &collected);
        Ok(())
    }

    fn take(&mut self, settings: &OpenLoop, outcome: &OpenOutcome, by_time: &intervals::Collected) {
        let length = outcome
            .ended
            .zip(outcome.began)
            .map_or(Nanos(0), |(ended, began)| ended.since(began).to_nanos(self.bench.rate));
        let told = flow::of(self.request, settings, outcome, by_time, self.bench.resolution_ns());
        // What has no intervals is one: the whole.
        for (name, values) in &told.whole {
            self.storage.interval(name, values, Nanos(0), length);
        }
        self.series.extend(told.series);
        self.flows.push(told.flow);
        self.warnings.extend(told.warnings);
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
        self.storage.close();
        let mut run = self.run(state);
        self.storage.conclude(&mut run);
        Recorded { run }
    }

    fn run(&mut self, state: RunState) -> Run {
        let clock = self.bench.final_clock_facts(RecordingCost::default());
        let mut warnings = std::mem::take(&mut self.warnings);
        warnings.extend(self.bench.warnings.iter().cloned());
        warnings.extend(self.storage.warnings());
        warnings.extend(crate::summary::not_stationary(&self.series));
        let warnings = unique(warnings);
        Run {
            format_version: FORMAT_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            command_line: self.request.command_line.clone(),
            question: self.request.question.clone(),
            seed: self.request.seed,
            state,
            host: self.bench.fingerprint.clone(),
            clock,
            settings: self.settings(),
            series: std::mem::take(&mut self.series),
            gaps: Vec::new(),
            threads: Vec::new(),
            causes: Vec::new(),
            coverage: None,
            worst: Vec::new(),
            senders: Vec::new(),
            evidence: self.bench.evidence(),
            findings: Vec::new(),
            validation: None,
            selftest: None,
            verdict: verdict(state, &[], &warnings, None, None),
            warnings,
            segments: self.storage.segments(),
            log_bytes: None,
            origins: Vec::new(),
            spreads: Vec::new(),
            prediction: None,
            wakes: Vec::new(),
            loads: Vec::new(),
            flows: std::mem::take(&mut self.flows),
            switch_cost: None,
        }
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let request = self.request;
        let priority = match request.fifo {
            Some(priority) => format!("SCHED_FIFO {priority}"),
            None => "ordinary".to_owned(),
        };
        let mut settings = BTreeMap::from([
            ("client".to_owned(), format!("CPU {}, {priority}", request.cpu)),
            ("other end".to_owned(), request.target.to_string()),
            ("warm-up".to_owned(), request.warmup.to_string()),
            ("duration".to_owned(), request.duration.to_string()),
            ("timeout".to_owned(), request.timeout.to_string()),
        ]);
        if let Some(took) = request.resolved_in {
            settings.insert("name resolved in".to_owned(), took.to_string());
        }
        if matches!(self.flows.first().map(|flow| flow.began), Some(None)) {
            settings.insert("measured".to_owned(), "nothing".to_owned());
        }
        settings
    }
}

/// Why a flow ended before its time; none when it did not.
fn failure(why: &Ended) -> Option<String> {
    match why {
        Ended::Failed(error) => Some(error.to_string()),
        Ended::Requests | Ended::Duration | Ended::Stopped => None,
    }
}
