//! One recording of a set of threads, end to end.

mod attend;
mod commitment;
mod host;
mod ledgers;
mod load;
mod members;
mod passes;
mod phases;
#[cfg(test)]
mod planted;
mod question;
pub mod rt_app_log;
mod rules;
mod settings;
mod summary;
mod trace;
mod wakes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use whylate_cause::rules::Standing;
use whylate_cause::totals::Beside;
use whylate_clock::Counter;
use whylate_clock::facts::RecordingCost;
use whylate_gap::{Source, State, Threshold};
use whylate_host::watch::{HostWatch, Watched};
use whylate_load::Load;
use whylate_model::directory::RunDir;
use whylate_model::execution::Block;
use whylate_model::load::LoadFacts;
use whylate_model::run::{Evidence, Finding, Run, RunState, TraceFacts};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Nanos, Ticks};
use whylate_net::lab::Bed;
use whylate_rta::task_set::TaskSet;
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::sched::Policy;
use whylate_sys::{affinity, memory};
use whylate_threads::set::books::Books;
use whylate_threads::set::watchdog::{self, PATIENCE, Watchdog, by_affinity};
use whylate_threads::set::{Ended, Orders, Seated, Set};
use whylate_threads::{ThreadsError, TimerNanos};

use crate::attend::this_turn;
use crate::collector::{Collector, Wanted};
use crate::intervals::Intervals;
use crate::kernel_trace::{self, KernelTrace};
use crate::progress::{Progress, Step};
use crate::storage::{Limits, Storage};
use crate::verdict::judged;
use crate::workbench::{self, Ground, Need, Workbench};
use crate::{RecordError, Recorded};

use ledgers::{Claim, Tallies};
use members::{Nature, Prepared};
use trace::Execution;

pub use host::Stretch;
pub use members::UnknownWord;
pub use passes::Passes;
pub use question::question;

/// Time between two turns of the drain.
const TURN: Duration = crate::kernel_trace::EMPTIED_EVERY;
/// Turns between two looks at the host, steps of progress and sandwiches of the calibration.
const LOOK_EVERY: u32 = 10;

/// What is asked.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of a command line")]
pub struct Request {
    /// The threads.
    pub set: TaskSet,
    /// Where tables of execution times lie; none for the current directory.
    pub tables_in: Option<PathBuf>,
    /// CPUs of threads that name none.
    pub cpus: Vec<CpuId>,
    /// For how long.
    pub duration: Nanos,
    /// How long a thread of each CPU and kind of work warms up; none for as long as is usual.
    pub warmup: Option<Nanos>,
    /// Which delta is a gap.
    pub threshold: Threshold,
    /// CPUs of the recording's own thread, where the user chose some.
    pub housekeeping: Option<Vec<CpuId>>,
    /// Lock all memory.
    pub lock_memory: bool,
    /// Hold `/dev/cpu_dma_latency` at 0.
    pub hold_idle_states: bool,
    /// Use the kernel's trace where it is to be had.
    pub trace: bool,
    /// Judge evidence B against evidence A.
    pub validate: bool,
    /// Longest gaps to keep.
    pub worst: usize,
    /// Records of the execution trace, in all.
    pub records: u64,
    /// Passes through the phases of programs to keep one by one, in all.
    pub passes: u64,
    /// Disk bound and checkpoints.
    pub storage: Limits,
    /// Seed of everything random.
    pub seed: u64,
    /// The command line, for the record.
    pub command_line: Vec<String>,
    /// The question in one sentence.
    pub question: String,
    /// Load to make on the CPUs of the set while it runs.
    pub load: Vec<whylate_load::Kind>,
    /// Network load goes through this bed; none sends it over loopback.
    pub bed: Option<Bed>,
    /// What is not measured, or otherwise than usual, and why: for the record.
    pub notes: Vec<String>,
}

/// What came of a set: the run as it is stored, and what only memory holds.
#[derive(Debug)]
pub struct SetRecorded {
    /// The run.
    pub recorded: Recorded,
    /// The execution trace, in the order of time.
    pub blocks: Vec<Block>,
    /// Latencies of threads that measure them, in the order of time: thread, instant, latency.
    pub latencies: Vec<(u16, Ticks, Nanos)>,
    /// Blocks and latencies that found no room.
    pub overflow: u64,
    /// First instant of the set.
    pub begin: Ticks,
    /// Of each thread, its jobs in order: execution time, and what interrupts and the host took.
    pub jobs: Vec<Vec<(Nanos, Nanos)>>,
    /// Passes of each thread through the phases of its program, in order.
    pub passes: Passes,
    /// What the host took from the threads, CPU by CPU in the order of time; none where the kernel's
    /// trace does not tell.
    pub host: Option<Vec<Stretch>>,
}

/// Looks up every word of the set: models, timers, priorities, tables.
///
/// # Errors
/// The first word that is not known, with those that are.
pub fn check(request: &Request) -> Result<(), RecordError> {
    members::understood(request).map(|_| ())
}

/// Runs the set into `directory` until the duration is over or `stop` is set.
///
/// # Errors
/// What is asked for cannot be measured on this host, an instrument failed meanwhile, or the run directory
/// cannot be written.
pub fn record(
    request: &Request,
    directory: RunDir,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<SetRecorded, RecordError> {
    let undo = directory.undo();
    let mut recording = match Recording::begin(request, directory, stop, progress) {
        Ok(recording) => recording,
        Err(error) => {
            undo.remove();
            return Err(error);
        }
    };
    if let Err(error) = recording.make_load(progress) {
        undo.remove();
        return Err(error);
    }
    recording.measure(stop, progress);
    recording.conclude(progress)
}

struct Recording<'a> {
    request: &'a Request,
    workbench: Workbench,
    storage: Storage,
    trace: Option<KernelTrace>,
    set: Set,
    orders: Orders,
    ledgers: Vec<whylate_threads::ledger::Ledger>,
    books: Option<Books>,
    collector: Collector,
    tallies: Tallies,
    switches: rules::Switches,
    host: host::Stretches,
    execution: Execution,
    passes: Passes,
    watch: HostWatch,
    load: Option<Load>,
    loads: Vec<LoadFacts>,
    warnings: Vec<Warning>,
    ended: Vec<Ended>,
    begin: Ticks,
    stopped: bool,
    natures: Vec<Nature>,
    /// Of each series and interval, the bins that are in the log.
    logged: BTreeMap<(String, u64), Vec<(u64, u64)>>,
    // Last, so that the host is restored when everything above has ended.
    reserved: BTreeMap<members::Scheduler, members::Held>,
}

/// What a thread may claim that has this seat, and what it asks for.
fn claim(seated: &Seated, demand: commitment::Asked) -> Claim {
    let (above_ordinary, budget) = match seated.policy {
        Policy::Deadline { runtime, .. } => (true, Some(runtime)),
        Policy::Fifo(_) | Policy::RoundRobin(_) => (true, None),
        _ => (false, None),
    };
    let commitment::Asked { of_each_job: asked, overcommitted } = demand;
    Claim { above_ordinary, budget, asked, overcommitted }
}

fn timers_now() -> TimerNanos {
    TimerNanos(clock_ns(Clock::Monotonic))
}

impl<'a> Recording<'a> {
    fn begin(
        request: &'a Request,
        directory: RunDir,
        stop: &AtomicBool,
        progress: &mut dyn Progress,
    ) -> Result<Self, RecordError> {
        // Words that lead nowhere are told before anything is touched.
        let natures = members::understood(request)?;
        let (mut warnings, asked) = commitment::of(request);
        for warning in &warnings {
            progress.say(&warning.to_string());
        }
        let measured = members::cpus(request);
        let need = Need {
            measured: measured.clone(),
            housekeeping: request.housekeeping.clone(),
            hold_idle_states: request.hold_idle_states,
            real_time: members::real_time(request),
        };
        let open_trace = |ground: Ground<'_>| {
            request
                .trace
                .then(|| KernelTrace::start(ground.journal, &measured, ground.topology.online()))
        };
        let (workbench, trace) = Workbench::set_up_with(&need, open_trace)?;
        let storage = Storage::open(directory, workbench.observer.epoch(), request.storage)?;
        if request.lock_memory
            && let Err(error) = memory::lock_all()
        {
            warnings.push(Warning::MemoryNotLocked { reason: error.to_string() });
        }
        let online = workbench.topology.online().to_vec();
        let trace = trace.and_then(|trace| trace.map_err(|no| warnings.push(no.into())).ok());
        let Prepared { set, orders, ledgers, facts, reserved } =
            members::prepare(request, &workbench, stop, &mut warnings, progress)?;
        let context = members::context(request, &set, (&natures, &facts), &workbench);
        let mut collector = Collector::of_threads(
            facts,
            context,
            &Wanted {
                rate: workbench.rate,
                interval: Intervals::width_for(request.duration),
                worst: request.worst,
                validate: request.validate && trace.is_some(),
                keep_all: false,
                counting: false,
            },
        );
        for (index, thread) in request.set.threads.iter().enumerate() {
            let name = &thread.name;
            collector.name(index, format!("gap-{name}"), format!("gaps, thread {name}"));
        }
        if trace.is_some() {
            collector.expect_trace(&measured, &online);
        }
        let watched: Vec<Watched> = set
            .members()
            .zip(&request.set.threads)
            // A thread that moves of its own accord was not moved by others.
            .filter(|(_, thread)| thread.program.as_ref().is_none_or(|program| !program.moves()))
            .map(|(facts, thread)| Watched {
                tid: facts.tid,
                cpus: thread.cpus.clone().unwrap_or_else(|| request.cpus.clone()),
            })
            .collect();
        let watch = HostWatch::start(Path::new("/"), &measured, &watched);
        let traced: Vec<bool> = natures.iter().map(|nature| nature.traced).collect();
        let claims = set.members().zip(asked);
        let claims: Vec<Claim> =
            claims.map(|(member, asked)| claim(&member.seated, asked)).collect();
        Ok(Self {
            request,
            workbench,
            storage,
            trace,
            set,
            orders,
            ledgers,
            books: None,
            collector,
            tallies: Tallies::of(claims.into_iter()),
            switches: rules::Switches::new(),
            host: host::Stretches::new(),
            execution: Execution::of(&traced, request.records),
            passes: Passes::of(traced.len(), request.passes),
            watch,
            load: None,
            loads: Vec::new(),
            warnings,
            ended: Vec::new(),
            begin: Ticks(0),
            stopped: false,
            natures,
            logged: BTreeMap::new(),
            reserved,
        })
    }

    fn measure(&mut self, stop: &AtomicBool, progress: &mut dyn Progress) {
        let rate = self.workbench.rate;
        let counter = &mut self.workbench.counter;
        let (epoch, begin) = self.set.start(counter, &mut timers_now, &self.orders);
        self.begin = begin;
        self.execution.begins_at(begin);
        let ledgers = std::mem::take(&mut self.ledgers).into_iter().enumerate();
        let pages =
            ledgers.map(|(index, ledger)| (ledger, self.set.term(index, epoch, &self.orders)));
        let interval = Intervals::width_for(self.request.duration);
        self.books = Some(Books::open(pages.collect(), epoch, interval));
        self.load_counts_from_here();
        self.workbench.measurement_begins();
        let dog = self.watchdog();
        // All threads of the recording run by now.
        let mut own = workbench::own_threads();
        own.retain(|tid| self.set.members().all(|member| member.tid != *tid));
        self.collector.learn_own(own);
        let mut turns = 0u32;
        while self.turn() == State::Running {
            let elapsed = self.workbench.counter.read().since(begin).to_nanos(rate);
            if turns.is_multiple_of(LOOK_EVERY) {
                self.look_around(elapsed, progress);
                // The first one soon, so that a run that is killed early leaves something.
                if self.storage.checkpoint_is_due(elapsed) || turns == LOOK_EVERY {
                    self.checkpoint();
                }
            }
            if stop.load(Ordering::Relaxed) && !self.stopped {
                self.stopped = true;
                self.set.stop();
            }
            turns = turns.wrapping_add(1);
            std::thread::sleep(this_turn(TURN, elapsed, self.request.duration));
        }
        self.workbench.measurement_ends();
        self.end_load();
        if let Some(cpu) = dog.as_ref().and_then(Watchdog::starved) {
            self.stopped = true;
            let warning = Warning::SetStarved { cpu, patience: PATIENCE };
            progress.say(&warning.to_string());
            self.warnings.push(warning);
        }
        drop(dog);
        self.ended = self.set.finish();
        std::thread::sleep(kernel_trace::LAST_EVENTS);
        self.turn();
        self.finish_books();
    }

    /// A set with real-time threads is watched over.
    fn watchdog(&mut self) -> Option<Watchdog> {
        let policies = self.set.members().map(|member| member.seated.policy);
        let above = policies.filter_map(|policy| match policy {
            Policy::Fifo(priority) | Policy::RoundRobin(priority) => Some(priority),
            _ => None,
        });
        if let Some(priority) = above.max().filter(|priority| *priority >= watchdog::PRIORITY) {
            let what = format!(
                "a thread has the real-time priority {priority}, and the watchdog {}: it could not \
                 end a set that runs away on its CPU",
                watchdog::PRIORITY
            );
            self.warnings.push(Warning::Guard { what });
        }
        if !members::real_time(self.request) && self.reserved.is_empty() {
            return None;
        }
        let settle = match self.reserved.get(&members::Scheduler::Deadline).cloned() {
            Some(deadlines) => Arc::new(move |cpu| {
                deadlines.join()?;
                affinity::set(&[cpu]).map_err(ThreadsError::Resource)
            }),
            None => by_affinity(),
        };
        let cpus = members::cpus(self.request);
        Watchdog::start(&cpus, &self.set.stop_flag(), &settle)
            .inspect_err(|error| self.warnings.push(Warning::Guard { what: error.to_string() }))
            .ok()
    }

    fn look_around(&mut self, elapsed: Nanos, progress: &mut dyn Progress) {
        self.workbench.sample();
        for warning in self.watch.poll() {
            progress.say(&warning.to_string());
            self.warnings.push(warning);
        }
        self.look_at_load(progress);
        let (hits, misses) = self.tallies.deadlines();
        let so_far = match hits + misses {
            0 => format!("{} blocks", self.execution.seen()),
            _ => format!("{hits} deadlines hit, {misses} missed"),
        };
        let duration = self.request.duration;
        progress.step(&Step { what: "threads".to_owned(), elapsed, duration, so_far });
    }

    /// Brings what there is down to the disk, as a run that goes on.
    fn checkpoint(&mut self) {
        self.collector.close_intervals(&self.set);
        self.store_closed();
        let mut run = self.run(RunState::Running, None);
        self.storage.checkpoint(&mut run);
    }

    fn conclude(mut self, progress: &mut dyn Progress) -> Result<SetRecorded, RecordError> {
        if self.request.lock_memory {
            // Harmless where it was never locked.
            let _ = memory::unlock_all();
        }
        self.warnings.extend(self.watch.poll());
        let (facts, left) = self.workbench.end_beside(self.trace.take(), &mut self.storage);
        for warning in left {
            progress.say(&warning.to_string());
            self.warnings.push(warning);
        }
        for ended in &mut self.ended {
            if let Some(failure) = ended.failure.take() {
                return Err(failure.into());
            }
        }
        let state = if self.stopped { RunState::Stopped } else { RunState::Complete };
        let mut run = self.run(state, facts);
        self.storage.conclude(&mut run);
        let begin = self.begin;
        let (blocks, latencies, overflow) = self.execution.finish();
        let jobs = self.tallies.into_jobs();
        let (recorded, passes, host) = (Recorded { run }, self.passes, self.host.finish());
        Ok(SetRecorded { recorded, blocks, latencies, overflow, begin, jobs, passes, host })
    }

    fn run(&mut self, state: RunState, ended_trace: Option<TraceFacts>) -> Run {
        let cost = self.collector.threads().iter().map(|thread| &thread.recording);
        let gap = cost.filter_map(|costs| costs.value_at(50.0)).max().map(Nanos);
        let cost = RecordingCost { gap, sample: None };
        let clock = self.workbench.clock_facts(cost);
        let series = self.series(clock.resolution_ns);
        let threads = self.summaries();
        let elapsed = self.elapsed_by_cpu();
        let context = self.collector.attributor().context();
        let causes = self.collector.causes().summary(context, &elapsed);
        let evidence = self.evidence(ended_trace);
        // They look at the whole trace: too long for a turn between two drains.
        let running = state == RunState::Running;
        let findings = if running { Vec::new() } else { self.findings(&evidence) };
        let warnings = self.all_warnings(&evidence);
        let asked = (&self.request.command_line[..], &*self.request.question, self.request.seed);
        let beginning = self.workbench.beginning(asked, state, clock);
        let run = Run {
            settings: settings::of(self.request, &self.workbench.housekeeping),
            series,
            wakes: self.wakes(),
            threads,
            foreign_threads: self.collector.foreign(&causes.causes),
            causes: causes.causes,
            coverage: causes.coverage,
            worst: causes.worst,
            senders: causes.senders,
            evidence,
            findings,
            validation: self.collector.validation().cloned(),
            warnings,
            segments: self.storage.segments(),
            loads: self.loads_so_far(),
            ..Run::begun(beginning)
        };
        judged(run, None)
    }

    fn evidence(&self, ended_trace: Option<TraceFacts>) -> Evidence {
        let facts = ended_trace.or_else(|| self.trace.as_ref().map(KernelTrace::facts));
        self.collector.evidence(self.workbench.evidence(), facts)
    }

    /// What the rules make of the threads beside each other.
    fn of_the_set(&self) -> Vec<Finding> {
        let threads = self.set.members().enumerate().map(|(index, member)| {
            let totals = self.set.totals(index);
            rules::About {
                name: self.request.set.threads[index].name.clone(),
                always_runs: self.natures[index].always_runs,
                fifo: self.collector.threads()[index].facts.fifo,
                timer: member.timer.name,
                term: (totals.start.max(self.begin), totals.end),
            }
        });
        let threads: Vec<_> = threads.collect();
        let (blocks, latencies) = self.execution.in_order();
        let full_at = self.execution.full_at();
        let traced = rules::Traced { blocks: &blocks, latencies: &latencies, full_at };
        rules::findings(&threads, &traced, &self.switches, self.workbench.rate)
    }

    fn findings(&self, evidence: &Evidence) -> Vec<Finding> {
        let context = self.collector.attributor().context();
        let beside = Beside { standing: Standing::Ordinary, evidence };
        let mut findings = self.of_the_set();
        findings.extend(self.collector.causes().findings(context, beside));
        findings
    }
}
