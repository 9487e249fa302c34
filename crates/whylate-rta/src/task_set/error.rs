//! What is wrong with a task set: which thread or resource, which of its fields, why, and what to
//! write instead.

use std::fmt;

use whylate_model::{CpuId, Nanos, Printable};

use super::{
    Kind, LARGEST_QUEUE, LONGEST_NAME, MOST_CPUS, MOST_PHASES, MOST_RESOURCES, MOST_STEPS,
    MOST_THREADS,
};
use crate::words::Exact;

/// A thread or a resource, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// A thread.
    Thread(String),
    /// A resource.
    Resource(Kind, String),
}

/// A field of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// The reservation's amount.
    Amount,
    /// The reservation's period.
    Period,
    /// The deadline.
    Deadline,
    /// A step that sleeps.
    Sleep,
}

/// Why a task set cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskSetError {
    /// Nothing to run.
    #[error("there is no thread in the set: add one")]
    NoThreads,
    /// More than are taken.
    #[error(
        "{0} threads: the most is {MOST_THREADS}, for the stack of each (256 KiB) is locked in \
         memory and so are its records; {0} stacks alone are {mib} MiB. Use fewer threads",
        mib = .0 / 4
    )]
    TooManyThreads(usize),
    /// More than are taken.
    #[error(
        "{0} resources: the most is {MOST_RESOURCES}, as many as threads; leave out what no step \
         uses"
    )]
    TooManyResources(usize),
    /// More than are taken.
    #[error(
        "thread {thread} has {count} steps: the most is {MOST_STEPS}; join neighbouring `run` steps"
    )]
    TooManySteps {
        /// Whose.
        thread: String,
        /// How many.
        count: usize,
    },
    /// A name that makes no column or no line.
    #[error(
        "the name of {0} is empty, longer than {LONGEST_NAME} bytes, or has spaces, commas, \
         parentheses or characters that do not print: use letters, digits, - and _"
    )]
    BadName(Owner),
    /// Two of one name.
    #[error("{0} is there twice: give each a different name")]
    Duplicate(Owner),
    /// A time of zero.
    #[error("{} of thread {thread} is zero: write a time such as 3ms, or leave it out", .field)]
    Zero {
        /// Whose.
        thread: String,
        /// Which.
        field: Field,
    },
    /// More than there is.
    #[error(
        "the reservation of thread {thread} asks for {} in each {}: no CPU has more than its \
         period; write the smaller time first", Exact(*.amount), Exact(*.period)
    )]
    AmountAbovePeriod {
        /// Whose.
        thread: String,
        /// Amount.
        amount: Nanos,
        /// Period.
        period: Nanos,
    },
    /// It would end before it begins.
    #[error(
        "thread {thread} finishes at {} and starts at {}: let it finish later",
        Exact(*.finish), Exact(*.start)
    )]
    FinishBeforeStart {
        /// Whose.
        thread: String,
        /// Start.
        start: Nanos,
        /// Finish.
        finish: Nanos,
    },
    /// Nowhere to run.
    #[error("thread {0} may run on no CPU: name one, such as cpus = \"2\", or leave `cpus` out")]
    NoCpus(String),
    /// A CPU no machine has.
    #[error(
        "thread {thread} may run on CPU {cpu}: no kernel numbers CPUs beyond {}", MOST_CPUS - 1
    )]
    NoSuchCpu {
        /// Whose.
        thread: String,
        /// Which.
        cpu: CpuId,
    },
    /// Steps that the workload does not take.
    #[error(
        "thread {thread} has steps, but its workload `{}` has an amount of its own: write the \
         word `steps` in its place, as in `PERIODIC steps 8ms`",
        Printable(workload)
    )]
    StepsUnused {
        /// Whose.
        thread: String,
        /// Its workload.
        workload: String,
    },
    /// A workload of steps without any.
    #[error(
        "the workload of thread {0} is its steps, but it has none: add some, or write an amount \
         in place of `steps`"
    )]
    NoSteps(String),
    /// A job that does nothing that takes time.
    #[error(
        "the steps of thread {0} neither run, sleep, yield nor wait: its jobs would follow each \
         other without end; add a `run` step"
    )]
    EmptyJob(String),
    /// A name that leads nowhere.
    #[error(
        "thread {thread} names the {kind} `{}`, and there is none: declare it as [[{kind}]]",
        Printable(name)
    )]
    UnknownResource {
        /// Whose.
        thread: String,
        /// What the step needs.
        kind: Kind,
        /// Its name.
        name: String,
    },
    /// A name of something else.
    #[error("thread {thread} uses `{name}` as a {wanted}, and it is a {is}")]
    WrongKind {
        /// Whose.
        thread: String,
        /// Its name.
        name: String,
        /// What the step needs.
        wanted: Kind,
        /// What it is.
        is: Kind,
    },
    /// Locked while locked.
    #[error(
        "thread {thread} locks {mutex} while it holds it and would wait for itself: unlock it first"
    )]
    LockedTwice {
        /// Whose.
        thread: String,
        /// Which.
        mutex: String,
    },
    /// Unlocked while not locked.
    #[error("thread {thread} unlocks {mutex} without holding it: lock it first")]
    UnlockWithoutLock {
        /// Whose.
        thread: String,
        /// Which.
        mutex: String,
    },
    /// Waits for a condition without the mutex that goes with it.
    #[error(
        "thread {thread} waits for {condition} with {mutex}, and does not hold it: lock {mutex} \
         first"
    )]
    WaitWithoutLock {
        /// Whose.
        thread: String,
        /// The mutex.
        mutex: String,
        /// The condition.
        condition: String,
    },
    /// A wait that no other thread ends.
    #[error(
        "thread {thread} waits for the {kind} {name}, and no other thread {} it: it would wait for \
         ever; add a step that does",
        if *.kind == Kind::Semaphore { "posts" } else { "signals or resumes" }
    )]
    NeverEnds {
        /// Who waits.
        thread: String,
        /// A condition or a semaphore.
        kind: Kind,
        /// Its name.
        name: String,
    },
    /// A program that does nothing.
    #[error("thread {0} has a program without phases: add one, with a step that runs")]
    NoPhases(String),
    /// More than are taken.
    #[error("thread {thread} has {count} phases: the most is {MOST_PHASES}")]
    TooManyPhases {
        /// Whose.
        thread: String,
        /// How many.
        count: usize,
    },
    /// Never unlocked.
    #[error(
        "thread {thread} still holds {mutex} after its last step, and the next job would lock it \
         again: unlock it"
    )]
    LockWithoutUnlock {
        /// Whose.
        thread: String,
        /// Which.
        mutex: String,
    },
    /// A barrier that waits for a thread that waits for a mutex that is held at the barrier.
    #[error(
        "thread {thread} waits at barrier {barrier} with {mutex} locked, and thread {other} must \
         lock {mutex} before it can come: both can wait for ever; unlock {mutex} before the \
         barrier"
    )]
    LockAtBarrier {
        /// Who holds the mutex.
        thread: String,
        /// Who needs it.
        other: String,
        /// The barrier.
        barrier: String,
        /// The mutex.
        mutex: String,
    },
    /// Two orders of locking.
    #[error(
        "thread {thread} locks {second} while it holds {first}, and elsewhere {first} is locked \
         by way of {second}: they can wait for each other for ever; lock them in one order \
         everywhere"
    )]
    LockOrder {
        /// One of those that do so.
        thread: String,
        /// Held.
        first: String,
        /// Wanted.
        second: String,
    },
    /// A barrier that waits for more or fewer threads than use it.
    #[error("barrier {name} is for {threads} threads, and {users} use it: write threads = {users}")]
    BarrierCount {
        /// Which.
        name: String,
        /// Said.
        threads: u32,
        /// Counted.
        users: usize,
    },
    /// A barrier for nobody.
    #[error("barrier {0} is used by no thread: remove it, or add `barrier {0}` to steps")]
    BarrierUnused(String),
    /// A queue that nobody empties or fills.
    #[error(
        "queue {name} is only {}: the threads that use it would wait for ever; add a thread that \
         {} it",
        if *.pushed { "filled" } else { "emptied" },
        if *.pushed { "empties" } else { "fills" }
    )]
    OneWayQueue {
        /// Which.
        name: String,
        /// Is it the push that exists?
        pushed: bool,
    },
    /// A queue without room, or with more than is taken.
    #[error(
        "queue {name} holds {capacity} items: choose 1 to {LARGEST_QUEUE}, for all are allocated \
         before the run"
    )]
    Capacity {
        /// Which.
        name: String,
        /// How many.
        capacity: u32,
    },
    /// A ceiling that is no real-time priority.
    #[error(
        "the ceiling of mutex {name} is {ceiling}: choose 1 to 98; 99 is left to the kernel's own \
         threads"
    )]
    Ceiling {
        /// Which.
        name: String,
        /// What was asked for.
        ceiling: u8,
    },
}

impl TaskSetError {
    /// The thread that the error is about, where it is about one.
    #[must_use]
    pub fn thread(&self) -> Option<&str> {
        match self {
            Self::TooManySteps { thread, .. }
            | Self::Zero { thread, .. }
            | Self::AmountAbovePeriod { thread, .. }
            | Self::FinishBeforeStart { thread, .. }
            | Self::NoCpus(thread)
            | Self::NoSuchCpu { thread, .. }
            | Self::StepsUnused { thread, .. }
            | Self::NoSteps(thread)
            | Self::EmptyJob(thread)
            | Self::UnknownResource { thread, .. }
            | Self::WrongKind { thread, .. }
            | Self::LockedTwice { thread, .. }
            | Self::UnlockWithoutLock { thread, .. }
            | Self::LockWithoutUnlock { thread, .. }
            | Self::WaitWithoutLock { thread, .. }
            | Self::NeverEnds { thread, .. }
            | Self::NoPhases(thread)
            | Self::TooManyPhases { thread, .. }
            | Self::LockAtBarrier { thread, .. }
            | Self::LockOrder { thread, .. }
            | Self::BadName(Owner::Thread(thread))
            | Self::Duplicate(Owner::Thread(thread)) => Some(thread),
            _ => None,
        }
    }

    /// The resource that the error is about, where it is about one and no thread.
    #[must_use]
    pub fn resource(&self) -> Option<&str> {
        match self {
            Self::BarrierCount { name, .. }
            | Self::BarrierUnused(name)
            | Self::OneWayQueue { name, .. }
            | Self::Capacity { name, .. }
            | Self::Ceiling { name, .. }
            | Self::BadName(Owner::Resource(_, name))
            | Self::Duplicate(Owner::Resource(_, name)) => Some(name),
            _ => None,
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = match self {
            Self::Thread(name) => ("thread".to_owned(), name),
            Self::Resource(kind, name) => (kind.to_string(), name),
        };
        // Names are what this may be about: no more than a line of them, and nothing that acts on
        // the terminal.
        let head: String = name.chars().take(LONGEST_NAME).collect();
        write!(f, "{kind} `{}`", Printable(&head))
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Amount => "the reserved amount",
            Self::Period => "the reservation's period",
            Self::Deadline => "the deadline",
            Self::Sleep => "a sleep",
        })
    }
}
