//! One recording of what a context switch costs, end to end.
//!
//! First the times of switches without tracing, the kinds in turns; then the same with the kernel's
//! trace, which says what each switch was and costs something itself; then, without tracing again,
//! how fast each level of memory is read, and working sets. What ends early keeps what it has.

mod attend;
mod breaks;
mod direct;
mod evidence;
mod formula;
mod growth;
mod indirect;
mod refill;
mod sizes;
mod times;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use whylate_clock::facts::RecordingCost;
use whylate_host::guard::{RtLimits, RtThrottling};
use whylate_host::{caches, quanta};
use whylate_model::directory::RunDir;
use whylate_model::run::{Run, RunState, TraceFacts};
use whylate_model::series::Series;
use whylate_model::settings::{Setting, Settings};
use whylate_model::switch_cost::{Cache, How, SwitchCost};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Nanos, Ticks, TicksDelta};
use whylate_sys::memory;
use whylate_threads::switch_cost::MOST_RUNNERS;

use crate::kernel_trace::{self, KernelTrace};
use crate::progress::Progress;
use crate::storage::{Limits, Storage};
use crate::verdict::{judged, unique};
use crate::workbench::{Need, Workbench};
use crate::{RecordError, Recorded};

use sizes::Sweep;

pub use sizes::SMALLEST as SMALLEST_SET;

/// Priority of runners that yield to their equals: above ordinary threads, below all that matters.
const PRIORITY: u8 = 10;

/// What is asked.
#[derive(Debug, Clone)]
pub struct Request {
    /// The CPU that the runners share.
    pub cpu: CpuId,
    /// Length of each kind of switch, tracing included; none leaves them out.
    pub direct: Option<Nanos>,
    /// Working sets; none leaves them out.
    pub indirect: Option<Indirect>,
    /// CPUs of the recording's own thread, where the user chose some.
    pub housekeeping: Option<Vec<CpuId>>,
    /// Lock all memory.
    pub lock_memory: bool,
    /// Hold `/dev/cpu_dma_latency` at 0.
    pub hold_idle_states: bool,
    /// Use the kernel's trace where it is to be had.
    pub trace: bool,
    /// Words with which this program becomes a runner, in front of its number.
    pub runner_words: Vec<OsString>,
    /// Seed of everything random.
    pub seed: u64,
    /// The command line, for the record.
    pub command_line: Vec<String>,
    /// The question in one sentence.
    pub question: String,
}

/// Trials over working sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indirect {
    /// Sizes; none for sizes across the caches of the host.
    pub sizes: Option<Vec<u64>>,
    /// CPU time after which a runner yields; none for the quanta of the kernel.
    pub quantum: Option<Nanos>,
    /// Good pairs of trials for each size.
    pub trials: u32,
    /// Length of a trial.
    pub length: Nanos,
}

/// Runners of the larger trial of a pair, as in the paper.
pub const TEN: u32 = 10;

const _: () = assert!(TEN <= MOST_RUNNERS);

/// Measures into `directory` until everything is done or `stop` is set.
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
    let mut recording = match Recording::begin(request, directory, stop) {
        Ok(recording) => recording,
        Err(error) => {
            undo.remove();
            return Err(error);
        }
    };
    recording.measure(progress);
    Ok(recording.conclude())
}

struct Recording<'a> {
    request: &'a Request,
    stop: &'a AtomicBool,
    program: PathBuf,
    bench: Workbench,
    storage: Storage,
    /// Working sets to try, and those that are not.
    sweep: Sweep,
    found: SwitchCost,
    series: Vec<Series>,
    trace: Option<TraceFacts>,
    warnings: Vec<Warning>,
    /// Lengths of ticks that switched to nobody, and interrupts of the timer.
    ticks: (Vec<TicksDelta>, Vec<Ticks>),
    /// Events of the CPU, and those inside breaks of the runners.
    inside: evidence::Inside,
    begin: Ticks,
}

impl<'a> Recording<'a> {
    fn begin(
        request: &'a Request,
        directory: RunDir,
        stop: &'a AtomicBool,
    ) -> Result<Self, RecordError> {
        let root = Path::new("/");
        let caches = caches::of(root, request.cpu);
        let largest = sizes::largest(caches::memory_available(root), TEN);
        let sweep = working_sets(request, &caches, largest)?;
        granted(request.indirect.as_ref(), RtThrottling::detect(root))?;
        let program = std::env::current_exe().map_err(RecordError::NoProgram)?;
        let need = Need {
            measured: vec![request.cpu],
            housekeeping: request.housekeeping.clone(),
            hold_idle_states: request.hold_idle_states,
            real_time: true,
        };
        let bench = Workbench::set_up(&need)?;
        let storage = Storage::open(directory, bench.observer.epoch(), Limits::default())?;
        let mut warnings = Vec::new();
        if request.lock_memory
            && let Err(error) = memory::lock_all()
        {
            warnings.push(Warning::MemoryNotLocked { reason: error.to_string() });
        }
        let found = SwitchCost {
            cpu: request.cpu,
            caches,
            kernel: quanta::read(root),
            direct: Vec::new(),
            tick: None,
            bandwidths: Vec::new(),
            indirect: Vec::new(),
            trials: request.indirect.as_ref().map(indirect::trials),
            growth: None,
        };
        Ok(Self {
            request,
            stop,
            program,
            bench,
            storage,
            sweep,
            found,
            series: Vec::new(),
            trace: None,
            warnings,
            ticks: (Vec::new(), Vec::new()),
            inside: evidence::Inside::default(),
            begin: Ticks(0),
        })
    }

    fn measure(&mut self, progress: &mut dyn Progress) {
        self.begin = whylate_clock::Counter::read(&mut self.bench.counter);
        self.bench.measurement_begins();
        if let Some(length) = self.request.direct {
            self.direct(length, progress);
        }
        if let Some(asked) = &self.request.indirect {
            self.indirect(asked, progress);
        }
        self.bench.measurement_ends();
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// What it shows is on the disk, so that a killed run is readable up to here.
    fn checkpoint(&mut self) {
        let mut run = self.run(RunState::Running);
        self.storage.checkpoint(&mut run);
    }

    fn conclude(mut self) -> Recorded {
        if self.request.lock_memory {
            // Harmless where it was never locked.
            let _ = memory::unlock_all();
        }
        let state = if self.is_stopped() { RunState::Stopped } else { RunState::Complete };
        if state == RunState::Stopped {
            self.warnings.push(Warning::Interrupted);
        }
        self.storage.close();
        self.bench.measure_clock_again();
        let mut run = self.run(state);
        self.storage.conclude(&mut run);
        Recorded { run }
    }

    fn run(&mut self, state: RunState) -> Run {
        let clock = self.bench.clock_facts(RecordingCost::default());
        let mut warnings = self.warnings.clone();
        warnings.extend(self.bench.warnings.iter().cloned());
        warnings.extend(self.storage.warnings());
        warnings.extend(self.trace.iter().flat_map(kernel_trace::warnings));
        let warnings = unique(warnings);
        let mut evidence = self.bench.evidence();
        evidence.trace.clone_from(&self.trace);
        let asked = (&self.request.command_line[..], &*self.request.question, self.request.seed);
        let beginning = self.bench.beginning(asked, state, clock);
        let run = Run {
            settings: settings(self.request, &self.bench.housekeeping),
            series: self.series.clone(),
            evidence,
            warnings,
            segments: self.storage.segments(),
            switch_cost: Some(self.found.clone()),
            ..Run::begun(beginning)
        };
        judged(run, None)
    }

    /// Starts the kernel's trace; a warning where there is none.
    fn start_trace(&mut self) -> Option<KernelTrace> {
        if !self.request.trace {
            return None;
        }
        let online = self.bench.topology.online().to_vec();
        KernelTrace::start(&self.bench.journal, &[self.request.cpu], &online)
            .map_err(|no| self.warnings.push(no.into()))
            .ok()
    }
}

/// Settings as used, while these CPUs keep house.
fn settings(request: &Request, housekeeping: &[CpuId]) -> Settings {
    let indirect = request.indirect.as_ref();
    let left_out = || Setting::On(false);
    let entries: [(_, Setting); 8] = [
        ("cpu", vec![request.cpu].into()),
        ("each kind of switch", request.direct.map_or_else(left_out, Setting::from)),
        ("trial", indirect.map_or_else(left_out, |of| of.length.into())),
        ("pairs of trials", indirect.map_or_else(left_out, |of| of.trials.into())),
        (
            "quantum",
            indirect.map_or_else(left_out, |of| {
                of.quantum.map_or_else(|| "the kernel's".into(), Setting::from)
            }),
        ),
        ("lock memory", request.lock_memory.into()),
        ("hold idle states", request.hold_idle_states.into()),
        ("housekeeping", housekeeping.to_vec().into()),
    ];
    entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The sizes to try, before anything is touched.
fn working_sets(
    request: &Request,
    caches: &[Cache],
    largest: Option<u64>,
) -> Result<Sweep, RecordError> {
    let Some(asked) = &request.indirect else { return Ok(Sweep::default()) };
    let Some(sizes) = &asked.sizes else { return Ok(sizes::across(caches, largest)) };
    match sizes.iter().find(|size| largest.is_some_and(|largest| **size > largest)) {
        Some(bytes) => Err(RecordError::WorkingSet {
            bytes: *bytes,
            runners: TEN,
            largest: largest.unwrap_or_default(),
        }),
        None => Ok(Sweep { sizes: sizes.clone(), left_out: Vec::new() }),
    }
}

/// Of what the kernel grants real-time runners a trial leaves this: they wake up, and warm their
/// caches.
const LEFT: Nanos = Nanos(10_000_000);

/// Trials of real-time runners end before the kernel takes their CPU: what it took would be a break of
/// one trial, and not of the other.
fn granted(asked: Option<&Indirect>, limits: Option<RtLimits>) -> Result<(), RecordError> {
    let asked = asked.filter(|asked| asked.quantum.is_some());
    let limits = limits.filter(|limits| limits.throttles());
    let Some((asked, limits)) = asked.zip(limits) else { return Ok(()) };
    let nanos = |us: i64| Nanos(us.max(0).unsigned_abs().saturating_mul(1_000));
    let (runtime, period) = (nanos(limits.runtime_us), nanos(limits.period_us));
    let longest = Nanos(runtime.0.saturating_sub(LEFT.0));
    if asked.length > longest {
        return Err(RecordError::TrialTooLong { length: asked.length, longest, runtime, period });
    }
    Ok(())
}

/// The kind of a switch by its policy.
fn needs_real_time(how: How) -> bool {
    how == How::Yield
}

#[cfg(test)]
mod tests {
    use whylate_model::settings::unfit;

    use super::*;

    fn request() -> Request {
        Request {
            cpu: CpuId(0),
            direct: None,
            indirect: None,
            housekeeping: None,
            lock_memory: false,
            hold_idle_states: false,
            trace: false,
            runner_words: Vec::new(),
            seed: 1,
            command_line: Vec::new(),
            question: String::new(),
        }
    }

    #[test]
    fn settings_of_switch_costs_are_values_and_words_only_where_nothing_else_says_them() {
        let mut request = request();
        let told = settings(&request, &[]);
        assert_eq!(unfit(&told), [""; 0]);
        assert_eq!(told["each kind of switch"], false.into());
        assert_eq!(told["quantum"], false.into());
        let length = Nanos(20_000_000);
        let indirect = Indirect { sizes: None, quantum: None, trials: 15, length };
        (request.direct, request.indirect) = (Some(Nanos::SECOND), Some(indirect));
        let told = settings(&request, &[CpuId(0)]);
        assert_eq!(unfit(&told), [""; 0]);
        assert_eq!(told["each kind of switch"], Nanos::SECOND.into());
        assert_eq!(told["trial"], length.into());
        assert_eq!(told["quantum"], "the kernel's".into());
    }

    #[test]
    fn a_working_set_that_does_not_fit_ten_times_is_refused_with_the_largest_that_does() {
        let mut request = request();
        assert!(working_sets(&request, &[], None).unwrap().sizes.is_empty());
        let asked = Indirect {
            sizes: Some(vec![4096, 1 << 30]),
            quantum: None,
            trials: 15,
            length: Nanos::SECOND,
        };
        request.indirect = Some(asked);
        let refused = working_sets(&request, &[], Some(1 << 20)).unwrap_err().to_string();
        assert!(refused.contains("1 MiB"), "{refused}");
        assert_eq!(working_sets(&request, &[], None).unwrap().sizes, [4096, 1 << 30]);
    }

    #[test]
    fn trials_that_the_kernel_would_cut_are_refused_with_the_longest_that_it_does_not() {
        let usual = Some(RtLimits { runtime_us: 950_000, period_us: 1_000_000 });
        let mut asked = Indirect {
            sizes: None,
            quantum: Some(Nanos(200_000)),
            trials: 15,
            length: Nanos(940_000_000),
        };
        assert!(granted(Some(&asked), usual).is_ok() && granted(None, usual).is_ok());
        asked.length = Nanos::SECOND;
        let refused = granted(Some(&asked), usual).unwrap_err().to_string();
        for words in ["1.00s", "950ms in every 1.00s", "--trial-time 940ms", "sched_rt_runtime_us"]
        {
            assert!(refused.contains(words), "{words}: {refused}");
        }
        let lifted = Some(RtLimits { runtime_us: -1, period_us: 1_000_000 });
        assert!(granted(Some(&asked), lifted).is_ok() && granted(Some(&asked), None).is_ok());
        // Ordinary runners have the kernel's own quanta.
        asked.quantum = None;
        assert!(granted(Some(&asked), usual).is_ok());
    }
}
