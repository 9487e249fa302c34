//! A set of threads and what they share.
//!
//! [`TaskSet::check`] finds everything that can be known without running: amounts that cannot be,
//! names that lead nowhere, locks that stay locked, barriers nobody can pass. It does not know
//! which models, timers and priorities there are, and does not ask whether deadlines will be met.

use std::fmt;

use serde::{Deserialize, Serialize};
use whylate_model::{CpuId, Nanos};

use crate::call::Call;
use crate::demand::Demand;

mod check;
mod deadlock;
mod error;
mod program;
mod step;

pub use error::{Field, Owner, TaskSetError};
pub use program::{MOST_PHASES, Phase, Program, TimerMode};
pub use step::StepError;

/// Each thread's stack (256 KiB) is locked in memory, and its ring of records beside it: a thousand
/// threads are some hundred MiB that no other program can use.
pub const MOST_THREADS: usize = 1_024;
/// As many as there are threads to use them.
pub const MOST_RESOURCES: usize = 1_024;
/// A job with more steps is a program.
pub const MOST_STEPS: usize = 256;
/// The largest CPU number any kernel is built for.
pub const MOST_CPUS: u32 = 8_192;
/// Slots of a queue, allocated and touched before the run.
pub const LARGEST_QUEUE: u32 = 65_536;
/// Longer names make no column.
pub const LONGEST_NAME: usize = 48;

/// Threads and what they share.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TaskSet {
    /// The threads; their order is their number.
    pub threads: Vec<Thread>,
    /// Mutexes, barriers, queues, conditions and semaphores.
    pub resources: Vec<Resource>,
}

/// One thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Thread {
    /// Unique in its set.
    pub name: String,
    /// Where it may run; none: where the whole set runs.
    pub cpus: Option<Vec<CpuId>>,
    /// What it does, such as `PERIODIC 3ms 8ms`. Where it has [`steps`](Self::steps), the word
    /// `steps` stands in place of the amount: `PERIODIC steps 8ms`.
    pub workload: Call,
    /// What it waits by.
    pub timer: Call,
    /// Its priority, such as `RTMED` or `fifo(50)`.
    pub priority: Call,
    /// CPU time reserved for it.
    pub reservation: Option<Reservation>,
    /// When it begins, from the beginning of the run.
    pub start: Nanos,
    /// When it ends; none: with the run.
    pub finish: Option<Nanos>,
    /// How long a job may take from its release; none: its period.
    pub deadline: Option<Nanos>,
    /// What one job does, in order; empty: it runs for the workload's amount.
    pub steps: Vec<Step>,
    /// Phases with loops of their own, as rt-app has them; goes with the workload `PROGRAM`.
    pub program: Option<Program>,
}

impl Thread {
    /// A thread with the paper's defaults: CPU-bound, timesharing, the native timer, for the whole
    /// run.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            cpus: None,
            workload: Call::bare("CPU"),
            timer: Call::bare("NATIVE"),
            priority: Call::bare("NORMAL"),
            reservation: None,
            start: Nanos(0),
            finish: None,
            deadline: None,
            steps: Vec::new(),
            program: None,
        }
    }

    /// Every step that is written, phase by phase where there are some.
    pub fn written_steps(&self) -> impl Iterator<Item = &Step> + Clone {
        let phases = self.program.iter().flat_map(|program| &program.phases);
        self.steps.iter().chain(phases.flat_map(|phase| &phase.steps))
    }

    /// Every CPU that it may ever run on; none: where the whole set runs.
    #[must_use]
    pub fn all_cpus(&self) -> Option<Vec<CpuId>> {
        let phases: Vec<&Phase> = self.program.iter().flat_map(|program| &program.phases).collect();
        let own = phases.is_empty() || phases.iter().any(|phase| phase.cpus.is_none());
        let mut all = if own { self.cpus.clone()? } else { Vec::new() };
        all.extend(phases.iter().filter_map(|phase| phase.cpus.as_ref()).flatten());
        all.sort_unstable();
        all.dedup();
        Some(all)
    }
}

/// What a reservation promises when there is CPU time left over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ReservationKind {
    /// Never more than the amount.
    Hard,
    /// At least the amount.
    Soft,
}

/// Who keeps a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ReservationScheduler {
    /// SCHED_DEADLINE: a guarantee, admitted or refused by the kernel.
    #[default]
    Deadline,
    /// The quota of a control group: a limit, without a guarantee.
    Quota,
}

/// An amount of CPU time in each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    /// Hard or soft.
    pub kind: ReservationKind,
    /// CPU time in each period.
    pub amount: Nanos,
    /// The period.
    pub period: Nanos,
    /// Who keeps it.
    pub scheduler: ReservationScheduler,
}

/// One thing a job does.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Uses the CPU for so long.
    Run(Demand),
    /// Locks a mutex.
    Lock(String),
    /// Unlocks it.
    Unlock(String),
    /// Waits until all of a barrier's threads are there.
    Barrier(String),
    /// Puts an item into a queue; waits while it is full.
    Push(String),
    /// Takes an item out of a queue; waits while it is empty.
    Pop(String),
    /// Waits by the thread's timer.
    Sleep(Nanos),
    /// Gives way to others.
    Yield,
    /// Gives up the mutex, waits for a signal of the condition, and takes the mutex again.
    Wait {
        /// The condition.
        condition: String,
        /// The mutex, which the thread holds.
        mutex: String,
    },
    /// Lets the thread go on that has waited longest for the condition.
    Signal(String),
    /// Lets all threads go on that wait for the condition.
    Broadcast(String),
    /// Signals the condition, then waits for it; takes the mutex first where it is not held.
    Sync {
        /// The condition.
        condition: String,
        /// The mutex.
        mutex: String,
    },
    /// Adds one to a semaphore.
    SemPost(String),
    /// Takes one from a semaphore; waits while there is none.
    SemWait(String),
    /// Keeps the CPU busy for so long by the clock, whatever it gets of it.
    Runtime(Nanos),
    /// Ends a job: waits until a period of a timer is over.
    Timer {
        /// The timer; threads that name the same share it.
        name: String,
        /// From one instant to the next.
        period: Nanos,
        /// What an instant that is over means for the next.
        mode: TimerMode,
    },
    /// Waits until a condition is resumed, holding nothing.
    Suspend(String),
    /// Lets all threads go on that are suspended on the condition.
    Resume(String),
    /// Lets one more of the threads begin that wait on this semaphore to be forked.
    Fork(String),
    /// Writes so many bytes to memory.
    Mem(u64),
    /// Writes so many bytes to the device of the program.
    IoRun(u64),
}

/// What becomes of the priority of a thread that holds a mutex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// Nothing: priorities invert.
    #[default]
    None,
    /// It is raised to that of the most urgent thread that waits.
    Inherit,
    /// It is raised to the ceiling for as long as the mutex is held.
    Protect {
        /// A real-time priority, 1 to 98.
        ceiling: u8,
    },
}

/// Something that threads share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    /// One thread at a time.
    Mutex {
        /// Unique among the resources.
        name: String,
        /// What becomes of priorities.
        protocol: Protocol,
    },
    /// A place where threads wait for each other.
    Barrier {
        /// Unique among the resources.
        name: String,
        /// How many.
        threads: u32,
    },
    /// Items on their way from thread to thread.
    Queue {
        /// Unique among the resources.
        name: String,
        /// How many items it holds.
        capacity: u32,
    },
    /// Something that threads wait for until another says so.
    Condition {
        /// Unique among the resources.
        name: String,
    },
    /// A number that threads add to and take from.
    Semaphore {
        /// Unique among the resources.
        name: String,
        /// What it begins with.
        value: u32,
    },
}

/// Which kind of resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A mutex.
    Mutex,
    /// A barrier.
    Barrier,
    /// A queue.
    Queue,
    /// A condition.
    Condition,
    /// A semaphore.
    Semaphore,
}

impl Resource {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Mutex { name, .. }
            | Self::Barrier { name, .. }
            | Self::Queue { name, .. }
            | Self::Condition { name }
            | Self::Semaphore { name, .. } => name,
        }
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Mutex { .. } => Kind::Mutex,
            Self::Barrier { .. } => Kind::Barrier,
            Self::Queue { .. } => Kind::Queue,
            Self::Condition { .. } => Kind::Condition,
            Self::Semaphore { .. } => Kind::Semaphore,
        }
    }
}

impl Step {
    /// The resources it is about, and the kind that each must have.
    pub fn resources(&self) -> impl Iterator<Item = (&str, Kind)> {
        let (first, second) = match self {
            Self::Lock(name) | Self::Unlock(name) => (Some((name, Kind::Mutex)), None),
            Self::Barrier(name) => (Some((name, Kind::Barrier)), None),
            Self::Push(name) | Self::Pop(name) => (Some((name, Kind::Queue)), None),
            Self::Wait { condition, mutex } | Self::Sync { condition, mutex } => {
                (Some((condition, Kind::Condition)), Some((mutex, Kind::Mutex)))
            }
            Self::Signal(name)
            | Self::Broadcast(name)
            | Self::Suspend(name)
            | Self::Resume(name) => (Some((name, Kind::Condition)), None),
            Self::SemPost(name) | Self::SemWait(name) | Self::Fork(name) => {
                (Some((name, Kind::Semaphore)), None)
            }
            Self::Run(_)
            | Self::Runtime(_)
            | Self::Sleep(_)
            | Self::Yield
            | Self::Timer { .. }
            | Self::Mem(_)
            | Self::IoRun(_) => (None, None),
        };
        first.into_iter().chain(second).map(|(name, kind)| (name.as_str(), kind))
    }

    /// May it take time? A loop of steps that do not would go round without end.
    #[must_use]
    pub fn takes_time(&self) -> bool {
        !matches!(
            self,
            Self::Lock(_)
                | Self::Unlock(_)
                | Self::Signal(_)
                | Self::Broadcast(_)
                | Self::Resume(_)
                | Self::SemPost(_)
                | Self::Fork(_)
        )
    }
}

impl TaskSet {
    /// Everything that can be known without running; the first thing that is wrong.
    pub fn check(&self) -> Result<(), TaskSetError> {
        check::check(self)
    }

    /// The resource of this name.
    #[must_use]
    pub fn resource(&self, name: &str) -> Option<&Resource> {
        self.resources.iter().find(|resource| resource.name() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Mutex => "mutex",
            Self::Barrier => "barrier",
            Self::Queue => "queue",
            Self::Condition => "condition",
            Self::Semaphore => "semaphore",
        })
    }
}

#[cfg(test)]
mod tests;
