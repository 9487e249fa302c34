//! What a thread of an rt-app file does: phases that repeat, one after the other, and over again.

use whylate_model::{CpuId, Nanos};

use super::error::TaskSetError;
use super::{MOST_STEPS, Step, Thread};

/// Phases of one program; the largest workloads known have seven.
pub const MOST_PHASES: usize = 256;

/// Phases one after the other.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Program {
    /// The phases, in order.
    pub phases: Vec<Phase>,
    /// How often all of them are gone through; none: until the run ends.
    pub repeat: Option<u64>,
    /// The semaphore that is waited for before each turn: a thread that others fork.
    pub forked_by: Option<String>,
    /// Bytes that `mem` and `iorun` work on.
    pub buffer: u64,
    /// Where `iorun` writes.
    pub device: String,
}

/// Steps that repeat.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// As the file names it.
    pub name: String,
    /// How often; none: until the run ends.
    pub repeat: Option<u64>,
    /// Where it runs; none: where the thread does.
    pub cpus: Option<Vec<CpuId>>,
    /// What one pass does, in order.
    pub steps: Vec<Step>,
}

/// What becomes of a timer whose instant is over when it is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimerMode {
    /// The next period begins now.
    #[default]
    Relative,
    /// The next period began with that instant, whatever happened since.
    Absolute,
}

impl Program {
    /// Does any phase say where it runs?
    #[must_use]
    pub fn moves(&self) -> bool {
        self.phases.iter().any(|phase| phase.cpus.is_some())
    }
}

impl Phase {
    /// The CPU time that the `run` steps of a pass ask for, drawn ones at their mean.
    #[must_use]
    pub fn run(&self) -> Nanos {
        self.sum(|step| match step {
            Step::Run(demand) => Some(Nanos(demand.mean().round() as u64)),
            _ => None,
        })
    }

    /// How long the `runtime` steps of a pass are to keep busy by the clock; zero without one.
    #[must_use]
    pub fn runtime(&self) -> Nanos {
        self.sum(|step| match step {
            Step::Runtime(time) => Some(*time),
            _ => None,
        })
    }

    /// How long a pass lasts where nothing takes time but its `run`, `runtime` and `sleep` steps,
    /// and nothing is in their way; none where another step decides.
    #[must_use]
    pub fn length(&self) -> Option<Nanos> {
        let known = |step: &Step| {
            !step.takes_time() || matches!(step, Step::Run(_) | Step::Runtime(_) | Step::Sleep(_))
        };
        let may_wait = |step: &Step| matches!(step, Step::Lock(_));
        if !self.steps.iter().all(|step| known(step) && !may_wait(step)) {
            return None;
        }
        let slept = self.sum(|step| match step {
            Step::Sleep(time) => Some(*time),
            _ => None,
        });
        let all = self.run().0.saturating_add(self.runtime().0).saturating_add(slept.0);
        (all > 0).then_some(Nanos(all))
    }

    /// The periods of its timers together; zero without one.
    #[must_use]
    pub fn period(&self) -> Nanos {
        self.sum(|step| match step {
            Step::Timer { period, .. } => Some(*period),
            _ => None,
        })
    }

    /// What steps come to together.
    fn sum(&self, of: impl Fn(&Step) -> Option<Nanos>) -> Nanos {
        let times = self.steps.iter().filter_map(of);
        times.fold(Nanos(0), |sum, time| Nanos(sum.0.saturating_add(time.0)))
    }
}

/// Each phase ends, and no loop goes round without taking time.
pub(super) fn check(thread: &Thread, program: &Program) -> Result<(), TaskSetError> {
    let name = || thread.name.clone();
    match program.phases.len() {
        0 => return Err(TaskSetError::NoPhases(name())),
        count if count > MOST_PHASES => {
            return Err(TaskSetError::TooManyPhases { thread: name(), count });
        }
        _ => {}
    }
    for phase in &program.phases {
        let count = phase.steps.len();
        if count > MOST_STEPS {
            return Err(TaskSetError::TooManySteps { thread: name(), count });
        }
        if phase.repeat != Some(1) && !phase.steps.iter().any(Step::takes_time) {
            return Err(TaskSetError::EmptyJob(name()));
        }
    }
    let takes_time = program.phases.iter().flat_map(|phase| &phase.steps).any(Step::takes_time);
    if program.repeat != Some(1) && !takes_time {
        return Err(TaskSetError::EmptyJob(name()));
    }
    Ok(())
}
