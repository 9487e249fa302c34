//! Why a late job is late.
//!
//! The reasons stand in one order, and the first of them that reaches the lateness is the one: without it
//! the job would have been in time. What was asked for comes first, so that nobody is named for what no
//! machine could have done; then what the other threads of the set took, throttling, and a late wake-up; last
//! what the gaps of the job are made of, of which the largest part counts. What jobs in time do without, too,
//! is no reason: a part counts with what it took beyond that.
//!
//! A lateness is explained when everything together reaches it: what the job asked for, what the one before it
//! left over, and all parts. Where it is not, no part is named that does not reach it alone.
//!
//! Pure: knows neither clock nor trace. Says nothing of a job that was in time.

use whylate_model::cause::Cause;

/// So much of a lateness counts as all of it: gaps below the threshold are in no part.
const REACHES: f64 = 0.95;

/// What can take time from a job, in the order in which it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// Other threads of the set.
    Set,
    /// Threads of a lower class, while the job could run and was not let.
    Throttled,
    /// Its wake-up: a late timer, a CPU that had yet to leave idle.
    Waking,
    /// Foreign threads, and those of the tool.
    Threads,
    /// Interrupts, softirqs, NMIs, and the kernel's way in and out around them, while it had the CPU.
    Interrupts,
    /// No kernel event, while it had the CPU.
    NoEvent,
    /// Interrupts and time without a kernel event, while it did not have the CPU.
    Away,
    /// Others that held, or had yet to provide, what it waited for.
    Blocked,
    /// Nothing that is known.
    Unknown,
}

/// Time by share, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Shares([f64; Share::ALL.len()]);

/// A job that missed its deadline. Times in nanoseconds, from its release.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LateJob {
    /// Its deadline.
    pub deadline_ns: f64,
    /// Its end; none where it was never done.
    pub response_ns: Option<f64>,
    /// Did it begin, or was its deadline over before the job before it ended?
    pub began: bool,
    /// What it asks for: its execution time, and what it waits for of its own accord. None where that is not
    /// known.
    pub asked_ns: Option<f64>,
    /// When the job before it ended; zero where that was before its release.
    pub left_over_ns: f64,
    /// Its set asks for more than its CPUs have.
    pub overcommitted: bool,
    /// It used up what was reserved for it: whoever ran then, it was not let.
    pub over_budget: bool,
    /// What was taken from it behind what was left over.
    pub taken: Shares,
    /// What is taken from a job in time, on average.
    pub ordinary: Shares,
}

/// What a late job is named after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It asks for more than lies before its deadline, or its set for more than the CPUs have.
    OwnDemand,
    /// The job before it left it too little time.
    LeftOver,
    /// Something took the time.
    Taken(Share),
    /// Nothing that is known reaches its lateness.
    Unknown,
}

/// Why a job is late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Why {
    /// What it is named after.
    pub reason: Reason,
    /// Do all parts together reach its lateness?
    pub explained: bool,
}

impl Share {
    /// All of them, in the order in which they are asked.
    pub const ALL: [Self; 9] = [
        Self::Set,
        Self::Throttled,
        Self::Waking,
        Self::Threads,
        Self::Interrupts,
        Self::NoEvent,
        Self::Away,
        Self::Blocked,
        Self::Unknown,
    ];

    /// These are asked one after the other; of those behind them the largest counts.
    const ASKED_IN_TURN: usize = 3;

    /// What a part of a gap counts for.
    #[must_use]
    pub fn of(cause: &Cause) -> Self {
        match cause {
            Cause::Member { .. } => Self::Set,
            Cause::Throttled => Self::Throttled,
            Cause::Thread { .. } | Cause::Whylate | Cause::ContextSwitch | Cause::Migration => {
                Self::Threads
            }
            Cause::TimerLate | Cause::IdleExit => Self::Waking,
            Cause::Blocked | Cause::Stopped => Self::Blocked,
            Cause::Interrupt { .. }
            | Cause::Tick
            | Cause::Softirq { .. }
            | Cause::PageFault
            | Cause::Nmi
            | Cause::Signal { .. }
            | Cause::EntryResidual
            | Cause::InnerResidual
            | Cause::ExitResidual => Self::Interrupts,
            Cause::Host | Cause::Hypervisor | Cause::Firmware => Self::NoEvent,
            Cause::TraceLost
            | Cause::NotSwitched
            | Cause::OwnDemand
            | Cause::LeftOver
            | Cause::Unknown => Self::Unknown,
        }
    }

    /// Did another thread have the CPU?
    #[must_use]
    pub fn is_thread(self) -> bool {
        matches!(self, Self::Set | Self::Throttled | Self::Threads)
    }
}

impl Shares {
    /// The time of one share.
    #[must_use]
    pub fn get(&self, share: Share) -> f64 {
        self.0[share as usize]
    }

    /// Adds time to a share.
    pub fn add(&mut self, share: Share, ns: f64) {
        self.0[share as usize] += ns;
    }

    /// All of it.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.0.iter().sum()
    }

    /// Adds the shares of another.
    pub fn add_all(&mut self, more: &Self) {
        self.0.iter_mut().zip(more.0).for_each(|(sum, ns)| *sum += ns);
    }

    /// Each divided by so many.
    #[must_use]
    pub fn divided(&self, by: f64) -> Self {
        Self(self.0.map(|ns| ns / by))
    }

    fn beyond(&self, ordinary: &Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] - ordinary.0[at]))
    }

    /// The time of all other threads counts as throttling.
    fn throttled(mut self) -> Self {
        for share in [Share::Set, Share::Threads] {
            let moved = std::mem::take(&mut self.0[share as usize]);
            self.add(Share::Throttled, moved);
        }
        self
    }
}

/// Why a job is late.
#[must_use]
pub fn why(job: &LateJob) -> Why {
    let asked = job.asked_ns.unwrap_or(0.0);
    let accounted = asked + job.left_over_ns + job.taken.total() - job.deadline_ns;
    // A job that was never done is late by what is known of it, at least.
    let late = match job.response_ns {
        Some(response) => Some(response - job.deadline_ns),
        None => job.asked_ns.map(|_| accounted.max(0.0)),
    };
    let reaches = |ns: f64| late.is_some_and(|late| ns > 0.0 && ns >= REACHES * late);
    let explained = !job.began || late.is_some_and(|late| accounted >= REACHES * late);
    let by_the_set = asked + job.left_over_ns + job.taken.get(Share::Set) > job.deadline_ns;
    let reason = if asked > job.deadline_ns || (job.overcommitted && (by_the_set || !job.began)) {
        Reason::OwnDemand
    } else if !job.began || reaches(job.left_over_ns) {
        Reason::LeftOver
    } else {
        of_parts(job, &reaches, explained || late.is_none())
    };
    Why { reason, explained }
}

fn of_parts(job: &LateJob, reaches: &dyn Fn(f64) -> bool, explained: bool) -> Reason {
    let mut beyond = job.taken.beyond(&job.ordinary);
    if job.over_budget {
        beyond = beyond.throttled();
    }
    let first =
        Share::ALL[..Share::ASKED_IN_TURN].iter().find(|share| reaches(beyond.get(**share)));
    if let Some(first) = first {
        return Reason::Taken(*first);
    }
    let larger = |a: &Share, b: &Share| beyond.get(*a).total_cmp(&beyond.get(*b));
    let of = |among: &[Share]| among.iter().rev().copied().max_by(larger);
    let gaps = of(&Share::ALL[Share::ASKED_IN_TURN..]).filter(|share| reaches(beyond.get(*share)));
    let largest = of(&Share::ALL).filter(|share| explained && beyond.get(*share) > 0.0);
    gaps.or(largest).map_or(Reason::Unknown, Reason::Taken)
}

#[cfg(test)]
mod tests;
