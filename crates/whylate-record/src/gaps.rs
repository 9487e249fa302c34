//! One gap recording, end to end.

mod preparation;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use whylate_cause::rules::Standing;
use whylate_cause::totals::Beside;
use whylate_clock::facts::RecordingCost;
use whylate_clock::{Counter, HardwareCounter};
use whylate_gap::{Placement, Plan, Policy, Session, State};
use whylate_host::another;
use whylate_host::guard::{InsideCgroup, MovedInterrupts, MovedTasks};
use whylate_host::watch::{HostWatch, Watched};
use whylate_model::directory::RunDir;
use whylate_model::run::{Evidence, Finding, MovedOff, Run, RunState, SelfTest, TraceFacts};
use whylate_model::settings::{self, Settings};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Nanos, Ticks};
use whylate_stats::histogram::Histogram;
use whylate_sys::memory;

use preparation::{
    context, enter_cgroup, leave_cgroup, move_interrupts, move_tasks, moved_off, opened,
};

use crate::actions::{self, Action, Trigger};
use crate::attend::this_turn;
use crate::collector::{Collector, Wanted};
use crate::intervals::Intervals;
use crate::kernel_trace::{self, KernelTrace};
use crate::progress::{Progress, Step};
use crate::storage::{Limits, Storage};
use crate::summary::{self, Setting};
use crate::verdict::{Exceeded, judged, unique};
use crate::workbench::{Ground, Need, Workbench};
use crate::{RecordError, Recorded, scoring, trace_cost};

/// Time between two turns of the drain. A wake-up of the housekeeping CPU each 20 ms is not seen
/// on the measured ones.
const TURN: Duration = crate::kernel_trace::EMPTIED_EVERY;
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
    /// The cgroup to measure in, where one was named.
    pub cgroup: Option<PathBuf>,
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
    /// Inject known interruptions and judge what was found: one of so many of each kind's usual number.
    pub selftest: Option<NonZeroU32>,
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
    let (mut run, mut storage, _bench) = record_open(request, directory, stop, progress)?;
    storage.conclude(&mut run);
    Ok(Recorded { run })
}

/// As [`record`], and leaves the directory and the workbench for what else belongs to the run.
pub(crate) fn record_open(
    request: &Request,
    directory: RunDir,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<(Run, Storage, Workbench), RecordError> {
    let undo = directory.undo();
    let mut recording = match Recording::begin(request, directory, stop, progress) {
        Ok(recording) => recording,
        Err(error) => {
            undo.remove();
            return Err(error);
        }
    };
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
    moved_tasks: Option<MovedTasks>,
    moved_interrupts: Option<MovedInterrupts>,
    _inside: Option<InsideCgroup>,
}

impl<'a> Recording<'a> {
    fn begin(
        request: &'a Request,
        directory: RunDir,
        stop: &AtomicBool,
        progress: &mut dyn Progress,
    ) -> Result<Self, RecordError> {
        let measured = request.plan.placement.cpus().to_vec();
        let need = Need {
            measured: measured.clone(),
            housekeeping: request.housekeeping.clone(),
            hold_idle_states: request.hold_idle_states,
            real_time: matches!(request.plan.policy, Policy::Fifo(_)),
        };
        let open_trace = |ground: Ground<'_>| {
            request
                .trace
                .then(|| KernelTrace::start(ground.journal, &measured, ground.topology.online()))
        };
        let (workbench, trace) = Workbench::set_up_with(&need, open_trace)?;
        if request.selftest.is_some() && workbench.housekeeping.is_empty() {
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
        let mut trace = opened(trace, &mut warnings);
        if request.validate && trace.is_none() {
            progress.say("no kernel trace, so inferred causes have nothing to be checked against");
        }
        let mut inside = enter_cgroup(request, &mut warnings, progress)?;
        let trace_cost = match &mut trace {
            Some(trace) => trace_cost::compare(request, &workbench, trace, stop, progress)?,
            None => None,
        };
        progress.step(&Step::of("warm-up", request.plan.warmup));
        let session =
            Session::prepare_unless(&request.plan, &workbench.counter, workbench.rate, stop)?;
        if let Some(inside) = &mut inside {
            leave_cgroup(inside, &workbench, &mut warnings);
        }
        let mut collector = Collector::new(
            &session,
            context(&session, &workbench, request),
            &Wanted {
                rate: workbench.rate,
                interval: Intervals::width_for(request.duration),
                worst: request.worst,
                validate: request.validate && trace.is_some(),
                keep_all: request.selftest.is_some(),
                counting: request.plan.counting,
            },
        );
        if trace.is_some() {
            collector.expect_trace(&measured, &online);
        }
        let watched: Vec<Watched> = session
            .threads()
            .map(|facts| Watched {
                tid: facts.tid,
                cpus: match &request.plan.placement {
                    Placement::Pinned(_) => vec![facts.cpu],
                    Placement::Floating { allowed, .. } => allowed.clone(),
                },
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
            moved_tasks,
            moved_interrupts,
            _inside: inside,
        })
    }

    fn measure(
        &mut self,
        stop: &AtomicBool,
        progress: &mut dyn Progress,
    ) -> Result<(), RecordError> {
        let rate = self.workbench.rate;
        let start = self.session.start(&mut self.workbench.counter, rate, self.request.duration);
        self.workbench.measurement_begins();
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
            let turn = if armed { TURN_ARMED } else { TURN };
            std::thread::sleep(this_turn(turn, elapsed, self.request.duration));
        }
        self.workbench.measurement_ends();
        self.react(progress);
        self.session.finish()?;
        std::thread::sleep(kernel_trace::LAST_EVENTS);
        self.turn();
        self.collector.finish(&self.session, |gap| self.storage.gap(gap));
        self.store_closed();
        if let Some(injector) = injector {
            let (kept, traced) = (self.collector.kept(), self.trace.is_some());
            let test = injector.judge(kept, traced, rate, |made| self.storage.injection(made));
            self.selftest = Some(test);
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
            |gap| storage.borrow_mut().gap(gap),
            |event| storage.borrow_mut().event(event),
        );
        self.store_closed();
        state
    }

    fn store_closed(&mut self) {
        for closed in self.collector.take_closed() {
            self.storage.interval(&closed.series, &closed.lengths, closed.start, closed.length);
        }
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
            so_far: format!("{gaps} stalls, longest {}", Nanos(longest.unwrap_or(0))),
        });
    }

    /// Others may have begun after us, and ended before we do.
    fn look_for_others(&mut self) {
        let others = another::warnings(self.request.plan.placement.cpus());
        another::add(&mut self.workbench.warnings, others);
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
        for told in actions::perform(&self.request.on_threshold, trigger) {
            progress.say(&told.to_string());
            self.warnings.push(told);
        }
    }

    fn checkpoint(&mut self, state: RunState) {
        self.look_for_others();
        // What the checkpoint counts is in the log, too.
        self.collector.close_intervals(&self.session);
        self.store_closed();
        let mut run = self.run(state, None);
        self.storage.checkpoint(&mut run);
    }

    fn conclude(mut self, progress: &mut dyn Progress) -> (Run, Storage, Workbench) {
        if self.request.lock_memory {
            // Harmless where it was never locked.
            let _ = memory::unlock_all();
        }
        for warning in self.watch.poll() {
            self.warnings.push(warning);
        }
        let (facts, left) = self.workbench.end_beside(self.trace.take(), &mut self.storage);
        for warning in left {
            progress.say(&warning.to_string());
            self.warnings.push(warning);
        }
        let ended_early = self.stopped || self.tripped.is_some();
        let state = if ended_early { RunState::Stopped } else { RunState::Complete };
        let run = self.run(state, facts);
        (run, self.storage, self.workbench)
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
        let mut periods = Vec::new();
        for (index, thread) in self.collector.threads().iter().enumerate() {
            let totals = self.session.totals(index);
            if totals.start == Ticks(0) {
                continue;
            }
            let summary = summary::gaps(thread, &totals, &setting);
            periods.push((index as u16, summary.period_ticks));
            if let Some(deltas) = &thread.deltas {
                series.push(summary::delta_series(
                    deltas.counts(),
                    Some(deltas.intervals()),
                    &summary::delta_description(&setting, &thread.series, &thread.label),
                    self.workbench.rate,
                ));
            }
            series.push(summary::gap_series(thread, &totals, &summary, &setting));
            recording.add(&thread.recording);
            gaps.push(summary);
        }
        let cost = RecordingCost { gap: recording.value_at(50.0).map(Nanos), sample: None };
        let clock = self.workbench.clock_facts(cost);
        let elapsed: Vec<(CpuId, Nanos)> =
            gaps.iter().map(|g| (g.cpu, g.end.since(g.start).to_nanos(clock.hz))).collect();
        self.collector.learn_periods(&periods);
        let context = self.collector.attributor().context();
        let causes = self.collector.causes().summary(context, &elapsed);
        let evidence = self.evidence(ended_trace);
        let findings = self.findings(&evidence);
        let mut warnings = self.all_warnings(&gaps, &evidence);
        warnings.extend(summary::not_stationary(&series));
        let exceeded =
            self.tripped.zip(self.request.plan.stop_at).map(|(by, limit)| Exceeded { by, limit });
        let asked = (&self.request.command_line[..], &*self.request.question, self.request.seed);
        let beginning = self.workbench.beginning(asked, state, clock);
        let moved_off = moved_off(self.moved_tasks.as_ref(), self.moved_interrupts.as_ref());
        let run = Run {
            settings: self.settings(&moved_off),
            moved_off,
            series,
            gaps,
            foreign_threads: self.collector.foreign(&causes.causes),
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
            ..Run::begun(beginning)
        };
        judged(run, exceeded)
    }

    fn settings(&self, moved_off: &[MovedOff]) -> Settings {
        let threads = self.collector.threads().iter();
        let policies = threads.map(|thread| settings::Policy::fifo(thread.facts.fifo)).collect();
        preparation::settings(self.request, policies, &self.workbench.housekeeping, moved_off)
    }

    fn evidence(&self, ended_trace: Option<TraceFacts>) -> Evidence {
        let facts = ended_trace.or_else(|| self.trace.as_ref().map(KernelTrace::facts));
        let mut evidence = self.collector.evidence(self.workbench.evidence(), facts);
        if let (Some(facts), Some(cost)) = (&mut evidence.trace, &self.trace_cost) {
            facts.lost_share_with = Some(cost.with);
            facts.lost_share_without = Some(cost.without);
            facts.lost_share_difference = cost.difference;
        }
        evidence
    }

    fn findings(&self, evidence: &Evidence) -> Vec<Finding> {
        let granted = self.collector.threads().iter().map(|thread| thread.facts.fifo);
        let standing = match granted.min().flatten() {
            Some(priority) => Standing::RealTime(priority),
            None => Standing::Ordinary,
        };
        let context = self.collector.attributor().context();
        self.collector.causes().findings(context, Beside { standing, evidence })
    }

    fn all_warnings(
        &self,
        gaps: &[whylate_model::run::GapSummary],
        evidence: &Evidence,
    ) -> Vec<Warning> {
        let mut warnings = self.warnings.clone();
        // Where FIFO was refused, its throttling takes nothing.
        let real_time = self.collector.threads().iter().any(|thread| thread.facts.fifo.is_some());
        let of_host = self.workbench.warnings.iter().cloned();
        warnings
            .extend(of_host.filter(|w| real_time || !matches!(w, Warning::RtThrottling { .. })));
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
        warnings.extend(evidence.trace.iter().flat_map(kernel_trace::warnings));
        if self.stopped {
            warnings.push(Warning::Interrupted);
        }
        unique(warnings)
    }
}
