//! One gap recording, end to end.

mod preparation;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use whylate_cause::rules::{Corroboration, Standing};
use whylate_cause::totals::Beside;
use whylate_clock::facts::RecordingCost;
use whylate_clock::{Counter, HardwareCounter};
use whylate_gap::{Placement, Plan, Policy, Session, State};
use whylate_host::guard::{MovedInterrupts, MovedTasks};
use whylate_host::watch::{HostWatch, Watched};
use whylate_model::directory::RunDir;
use whylate_model::run::{
    Closure, Evidence, FORMAT_VERSION, Finding, Run, RunState, SelfTest, TraceFacts, Verdict,
};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Nanos, Ticks};
use whylate_stats::histogram::Histogram;
use whylate_sys::memory;

use preparation::{context, move_interrupts, move_tasks, open_trace, settings};

use crate::actions::{self, Action, Trigger};
use crate::collector::{Collector, Wanted};
use crate::intervals::Intervals;
use crate::kernel_trace::KernelTrace;
use crate::progress::{Progress, Step};
use crate::storage::{Limits, Storage};
use crate::summary::{self, Setting};
use crate::workbench::{Need, Workbench};
use crate::{RecordError, Recorded, scoring, trace_cost};

/// Time between two turns of the drain. A wake-up of the housekeeping CPU each 20 ms is not seen
/// on the measured ones.
const TURN: Duration = Duration::from_millis(20);
/// The same while a stop limit is armed: the evidence must not be overwritten meanwhile.
const TURN_ARMED: Duration = Duration::from_millis(2);
/// Turns between two looks at the host, steps of progress and sandwiches of the calibration.
const LOOK_EVERY: u32 = 10;
/// Share of elapsed time that noise below the threshold may reach without a warning.
const NOISE_LIMIT: f64 = 0.01;
/// A threshold below this many periods is close to the loop itself.
const NEAR_PERIOD: f64 = 3.0;

/// What is asked.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of a command line")]
pub struct Request {
    /// How to measure.
    pub plan: Plan,
    /// For how long.
    pub duration: Nanos,
    /// CPU of the recording's own thread, where the user chose one.
    pub housekeeping: Option<Vec<CpuId>>,
    /// Lock all memory.
    pub lock_memory: bool,
    /// Hold `/dev/cpu_dma_latency` at 0.
    pub hold_idle_states: bool,
    /// Use the kernel's trace where it is to be had.
    pub trace: bool,
    /// Judge evidence B against evidence A.
    pub validate: bool,
    /// Inject known interruptions and judge what was found.
    pub selftest: bool,
    /// Longest gaps to keep.
    pub worst: usize,
    /// Move other tasks off the measured CPUs.
    pub move_tasks: bool,
    /// Move interrupts off the measured CPUs.
    pub move_interrupts: bool,
    /// What to do at the first gap above the plan's stop limit.
    pub on_threshold: Vec<Action>,
    /// Disk bound and checkpoints.
    pub storage: Limits,
    /// Seed of everything random.
    pub seed: u64,
    /// The command line, for the record.
    pub command_line: Vec<String>,
    /// The question in one sentence.
    pub question: String,
}

/// Records gaps into `directory` until the duration is over or `stop` is set.
pub fn record(
    request: &Request,
    directory: RunDir,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Recorded, RecordError> {
    let (run, storage) = record_open(request, directory, stop, progress)?;
    storage.conclude(&run)?;
    Ok(Recorded { run })
}

/// As [`record`], and leaves the directory open for what else belongs to the run.
pub(crate) fn record_open(
    request: &Request,
    directory: RunDir,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<(Run, Storage), RecordError> {
    let mut recording = Recording::begin(request, directory, progress)?;
    recording.measure(stop, progress)?;
    Ok(recording.conclude(progress))
}

struct Recording<'a> {
    request: &'a Request,
    workbench: Workbench,
    storage: Storage,
    trace: Option<KernelTrace>,
    session: Session,
    collector: Collector,
    watch: HostWatch,
    warnings: Vec<Warning>,
    trace_cost: Option<trace_cost::Compared>,
    tripped: Option<Trigger>,
    stopped: bool,
    selftest: Option<SelfTest>,
    // Last, so that the host is restored when everything above has ended.
    _moved_tasks: Option<MovedTasks>,
    _moved_interrupts: Option<MovedInterrupts>,
}

impl<'a> Recording<'a> {
    fn begin(
        request: &'a Request,
        directory: RunDir,
        progress: &mut dyn Progress,
    ) -> Result<Self, RecordError> {
        let measured = request.plan.placement.cpus().to_vec();
        let need = Need {
            measured: measured.clone(),
            housekeeping: request.housekeeping.clone(),
            hold_idle_states: request.hold_idle_states,
            real_time: matches!(request.plan.policy, Policy::Fifo(_)),
        };
        let workbench = Workbench::set_up(&need, progress)?;
        if request.selftest && workbench.housekeeping.is_none() {
            return Err(RecordError::NoCpuToInjectFrom);
        }
        let storage = Storage::open(directory, workbench.observer.epoch(), request.storage)?;
        let mut warnings = Vec::new();
        let moved_tasks = move_tasks(request, &workbench, &mut warnings, progress);
        let moved_interrupts = move_interrupts(request, &workbench, &mut warnings, progress);
        if request.lock_memory
            && let Err(error) = memory::lock_all()
        {
            warnings.push(Warning::MemoryNotLocked { reason: error.to_string() });
        }
        let online = workbench.topology.online().to_vec();
        let mut trace = open_trace(request, &workbench, &mut warnings);
        let trace_cost = match &mut trace {
            Some(trace) => trace_cost::compare(request, &workbench, trace)?,
            None => None,
        };
        let session = Session::prepare(&request.plan, &workbench.counter, workbench.rate)?;
        let mut collector = Collector::new(
            &session,
            context(&session, &workbench, request),
            &Wanted {
                rate: workbench.rate,
                interval: Intervals::width_for(request.duration),
                worst: request.worst,
                validate: request.validate && trace.is_some(),
                keep_all: request.selftest,
            },
        );
        if trace.is_some() {
            collector.expect_trace(&measured, &online);
        }
        let watched: Vec<Watched> = session
            .threads()
            .map(|facts| match &request.plan.placement {
                Placement::Pinned(_) => Watched { tid: facts.tid, cpus: vec![facts.cpu] },
                Placement::Floating { allowed, .. } => {
                    Watched { tid: facts.tid, cpus: allowed.clone() }
                }
            })
            .collect();
        let watch = HostWatch::start(Path::new("/"), &measured, &watched);
        Ok(Self {
            request,
            workbench,
            storage,
            trace,
            session,
            collector,
            watch,
            warnings,
            trace_cost,
            tripped: None,
            stopped: false,
            selftest: None,
            _moved_tasks: moved_tasks,
            _moved_interrupts: moved_interrupts,
        })
    }

    fn measure(
        &mut self,
        stop: &AtomicBool,
        progress: &mut dyn Progress,
    ) -> Result<(), RecordError> {
        let rate = self.workbench.rate;
        let start = self.session.start(&mut self.workbench.counter, rate, self.request.duration);
        let injector = scoring::Injector::start(self.request, &self.session, &self.workbench);
        self.checkpoint(RunState::Running);
        let armed = self.request.plan.stop_at.is_some();
        let mut turns = 0u32;
        loop {
            let state = self.turn();
            if state == State::Ended {
                break;
            }
            let now = self.workbench.counter.read();
            let elapsed = now.since(start).to_nanos(rate);
            if turns.is_multiple_of(LOOK_EVERY) {
                self.look_around(elapsed, progress);
            }
            if self.storage.checkpoint_is_due(elapsed) {
                self.checkpoint(RunState::Running);
            }
            let injected_all = injector.as_ref().is_some_and(scoring::Injector::has_ended);
            if stop.load(Ordering::Relaxed) || injected_all {
                self.stopped = !injected_all;
                self.session.stop();
            }
            turns = turns.wrapping_add(1);
            std::thread::sleep(if armed { TURN_ARMED } else { TURN });
        }
        self.react(progress);
        self.session.finish()?;
        // Events still on their way are in the buffers by now.
        std::thread::sleep(TURN);
        self.turn();
        self.collector.finish(&self.session);
        if let Some(injector) = injector {
            self.selftest = Some(injector.judge(&self.collector, self.trace.is_some(), rate));
        }
        Ok(())
    }

    /// Drains everything once.
    fn turn(&mut self) -> State {
        let now = self.workbench.counter.read();
        let storage = std::cell::RefCell::new(&mut self.storage);
        let state = self.collector.turn(
            &mut self.session,
            self.trace.as_mut(),
            now,
            |thread, gap| storage.borrow_mut().gap(thread, gap),
            |event| storage.borrow_mut().event(event),
        );
        for closed in self.collector.take_closed() {
            let tag = format!("gap-cpu{}", self.collector.threads()[closed.thread].facts.cpu);
            self.storage.interval(&tag, &closed.lengths, closed.start, closed.length);
        }
        state
    }

    fn look_around(&mut self, elapsed: Nanos, progress: &mut dyn Progress) {
        self.workbench.sample();
        for warning in self.watch.poll() {
            progress.say(&warning.to_string());
            self.warnings.push(warning);
        }
        let gaps: u64 = self.collector.threads().iter().map(|thread| thread.lengths.len()).sum();
        let longest =
            self.collector.threads().iter().filter_map(|thread| thread.lengths.max()).max();
        progress.step(&Step {
            what: "gaps".to_owned(),
            elapsed,
            duration: self.request.duration,
            so_far: format!("{gaps} gaps, longest {}", Nanos(longest.unwrap_or(0))),
        });
    }

    /// Notices the gap that stopped the measurement and does what was asked.
    fn react(&mut self, progress: &mut dyn Progress) {
        let Some(limit) = self.request.plan.stop_at else { return };
        let mut threads = self.collector.threads().iter().enumerate();
        let Some((_, thread)) =
            threads.find(|(index, _)| self.session.totals(*index).tripped.is_some())
        else {
            return;
        };
        if let Some(trace) = &self.trace {
            trace.switch(false);
        }
        let length = Nanos(thread.lengths.max().unwrap_or(0)).max(limit);
        let trigger = Trigger { length, cpu: thread.facts.cpu };
        self.tripped = Some(trigger);
        for failed in actions::perform(&self.request.on_threshold, trigger) {
            progress.say(&format!("could not act on the threshold: {failed}"));
            self.warnings.push(Warning::Guard { what: failed });
        }
    }

    fn checkpoint(&mut self, state: RunState) {
        let run = self.run(state, None);
        self.storage.checkpoint(&run);
    }

    fn conclude(mut self, progress: &mut dyn Progress) -> (Run, Storage) {
        if self.request.lock_memory {
            // Harmless where it was never locked.
            let _ = memory::unlock_all();
        }
        for warning in self.watch.poll() {
            self.warnings.push(warning);
        }
        let facts = self.trace.take().map(|trace| {
            let (facts, left) = trace.finish();
            for warning in left {
                progress.say(&warning.to_string());
                self.warnings.push(warning);
            }
            facts
        });
        let ended_early = self.stopped || self.tripped.is_some();
        let state = if ended_early { RunState::Stopped } else { RunState::Complete };
        self.storage.close();
        let run = self.run(state, facts);
        (run, self.storage)
    }

    /// The run as it stands.
    fn run(&mut self, state: RunState, ended_trace: Option<TraceFacts>) -> Run {
        let setting = Setting {
            plan: &self.request.plan,
            rate: self.workbench.rate,
            resolution_ns: self.workbench.resolution_ns(),
            counter: HardwareCounter::KIND,
            seed: self.request.seed,
        };
        let mut series = Vec::new();
        let mut gaps = Vec::new();
        let mut recording = Histogram::new();
        for (index, thread) in self.collector.threads().iter().enumerate() {
            let totals = self.session.totals(index);
            if totals.start == Ticks(0) {
                continue;
            }
            let summary = summary::gaps(thread, &totals, &setting);
            if self.request.plan.counting {
                series.push(summary::delta_series(
                    self.session.deltas(index),
                    &summary::delta_description(&setting, thread.facts.cpu),
                    self.workbench.rate,
                ));
            }
            series.push(summary::gap_series(thread, &totals, &summary, &setting));
            recording.add(&thread.recording);
            gaps.push(summary);
        }
        let cost = RecordingCost { gap: recording.value_at(50.0).map(Nanos), sample: None };
        let clock = match state {
            RunState::Running => self.workbench.clock_facts(cost),
            _ => self.workbench.final_clock_facts(cost),
        };
        let elapsed: Vec<(CpuId, Nanos)> =
            gaps.iter().map(|g| (g.cpu, g.end.since(g.start).to_nanos(clock.hz))).collect();
        let context = self.collector.attributor().context();
        let causes = self.collector.causes().summary(context, &elapsed);
        let evidence = self.evidence(ended_trace);
        let findings = self.findings(&evidence);
        let warnings = self.all_warnings(&gaps, &evidence);
        Run {
            format_version: FORMAT_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            command_line: self.request.command_line.clone(),
            question: self.request.question.clone(),
            seed: self.request.seed,
            state,
            host: self.workbench.fingerprint.clone(),
            clock,
            settings: settings(self.request, &self.workbench),
            series,
            verdict: self.verdict(state, &gaps, &warnings),
            gaps,
            causes: causes.causes,
            coverage: causes.coverage,
            worst: causes.worst,
            senders: causes.senders,
            evidence,
            findings,
            validation: self.collector.validation().cloned(),
            selftest: self.selftest.clone(),
            warnings,
            segments: self.storage.segments(),
        }
    }

    fn evidence(&self, ended_trace: Option<TraceFacts>) -> Evidence {
        let mut evidence = self.workbench.evidence();
        evidence.rseq = self.collector.threads().iter().all(|thread| thread.facts.rseq);
        let facts = ended_trace.or_else(|| self.trace.as_ref().map(|t| t.facts().clone()));
        evidence.trace = facts.map(|mut facts| {
            let counts = self.collector.attributor().event_counts();
            facts.events_in_gaps = counts.values().map(|count| count.inside).sum();
            facts.events_measured = counts.values().map(|count| count.inside + count.outside).sum();
            facts.events_in_recording = counts.values().map(|count| count.in_recording).sum();
            if let Some(cost) = &self.trace_cost {
                facts.lost_share_with = Some(cost.with);
                facts.lost_share_without = Some(cost.without);
            }
            facts
        });
        evidence
    }

    fn findings(&self, evidence: &Evidence) -> Vec<Finding> {
        let standing = match self.request.plan.policy {
            Policy::Fifo(_) => Standing::HighestNeverBlocks,
            Policy::Ordinary => Standing::Ordinary,
        };
        let corroboration =
            Corroboration { steal_ns: evidence.steal_ns, smi_count: evidence.smi_count };
        let context = self.collector.attributor().context();
        self.collector.causes().findings(context, Beside { standing, corroboration })
    }

    fn all_warnings(
        &self,
        gaps: &[whylate_model::run::GapSummary],
        evidence: &Evidence,
    ) -> Vec<Warning> {
        let mut warnings = self.warnings.clone();
        warnings.extend(self.workbench.warnings.iter().cloned());
        warnings.extend(self.storage.warnings());
        for thread in self.collector.threads() {
            warnings.extend(thread.facts.warnings.iter().cloned());
        }
        let rate = self.workbench.rate;
        for summary in gaps {
            let cpu = summary.cpu;
            if summary.noise_below_threshold.abs() > NOISE_LIMIT {
                let share = summary.noise_below_threshold;
                warnings.push(Warning::NoiseBelowThreshold { cpu, share });
            }
            if summary.dropped > 0 {
                warnings.push(Warning::RecordsDropped { cpu, dropped: summary.dropped });
            }
            if (summary.threshold.0 as f64) < NEAR_PERIOD * summary.period_ticks {
                warnings.push(Warning::ThresholdNearPeriod {
                    threshold: summary.threshold.to_nanos(rate),
                    period: Nanos((summary.period_ticks * 1e9 / rate.0).round() as u64),
                });
            }
        }
        if let Some(trace) = evidence.trace.as_ref().filter(|trace| trace.lost > 0) {
            for cpu in self.request.plan.placement.cpus() {
                let known = self.trace.as_ref().and_then(|trace| trace.lost().get(cpu).copied());
                let events = known.or(Some(trace.lost));
                warnings.push(Warning::TraceLost { cpu: *cpu, events });
            }
        }
        if self.stopped {
            warnings.push(Warning::Interrupted);
        }
        let mut unique: Vec<Warning> = Vec::new();
        for warning in warnings {
            if !unique.contains(&warning) {
                unique.push(warning);
            }
        }
        unique
    }

    fn verdict(
        &self,
        state: RunState,
        gaps: &[whylate_model::run::GapSummary],
        warnings: &[Warning],
    ) -> Verdict {
        if state == RunState::Running {
            return Verdict::Pending;
        }
        let mut reasons: Vec<String> =
            warnings.iter().filter(|w| w.spoils_trust()).map(ToString::to_string).collect();
        for summary in gaps {
            if let Closure::Broken(why) = &summary.closure {
                reasons.push(format!("the closure of CPU {} is broken: {why}", summary.cpu));
            }
        }
        match (&self.tripped, self.request.plan.stop_at) {
            (Some(trigger), Some(limit)) => Verdict::LimitExceeded {
                what: format!("a gap of {} on CPU {}, limit {limit}", trigger.length, trigger.cpu),
            },
            _ if reasons.is_empty() => Verdict::Trustworthy,
            _ => Verdict::Untrustworthy { reasons },
        }
    }
}
