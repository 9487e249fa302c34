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
mod step;

pub use error::{Field, Owner, TaskSetError};
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
    /// Mutexes, barriers and queues.
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
        }
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
}

impl Resource {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Mutex { name, .. } | Self::Barrier { name, .. } | Self::Queue { name, .. } => {
                name
            }
        }
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Mutex { .. } => Kind::Mutex,
            Self::Barrier { .. } => Kind::Barrier,
            Self::Queue { .. } => Kind::Queue,
        }
    }
}

impl Step {
    /// The resource it is about and the kind that must have.
    #[must_use]
    pub fn resource(&self) -> Option<(&str, Kind)> {
        match self {
            Self::Lock(name) | Self::Unlock(name) => Some((name, Kind::Mutex)),
            Self::Barrier(name) => Some((name, Kind::Barrier)),
            Self::Push(name) | Self::Pop(name) => Some((name, Kind::Queue)),
            Self::Run(_) | Self::Sleep(_) | Self::Yield => None,
        }
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
        })
    }
}

#[cfg(test)]
mod tests;
