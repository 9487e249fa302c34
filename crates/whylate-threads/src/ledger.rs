//! Making sense of marks: deadlines hit and missed, releases skipped, wake-ups late.
//!
//! A ledger belongs to one thread and sits on the collecting side. It takes that thread's marks in
//! order, each with the line that relates counter and timer's clock around it. All times are
//! nanoseconds; a job's response runs from its *nominal* release.

mod frames;
mod jobs;
mod passes;
mod wakes;

use whylate_model::{Nanos, Ticks, TicksDelta};
use whylate_stats::histogram::Histogram;

use crate::mark::Mark;
use crate::relation::Segment;
use crate::stage::Term;

pub use frames::FrameLedger;
pub use jobs::JobLedger;
pub use passes::PassLedger;
pub use wakes::WakeLedger;
pub use whylate_model::execution::Verdict;

/// Who makes sense of a thread's marks.
#[derive(Debug)]
pub enum Ledger {
    /// Nobody: the thread makes none.
    None,
    /// Jobs with releases and deadlines.
    Jobs(JobLedger),
    /// Frames that follow each other at once.
    Frames(FrameLedger),
    /// Wake-ups.
    Wakes(WakeLedger),
    /// Passes through phases, and jobs that end with a timer.
    Passes(PassLedger),
}

/// What a ledger hands over as it is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// A job was judged.
    Job(Job),
    /// A thread that does nothing else woke.
    Wake {
        /// First reading of the running thread.
        at: Ticks,
        /// How late that was.
        late: Nanos,
    },
    /// A pass through a phase of a program is over.
    Pass(Pass),
}

/// One pass through a phase of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// Number of the phase.
    pub phase: u32,
    /// Where the pass before it ended.
    pub start: Ticks,
    /// Its end.
    pub end: Ticks,
    /// What its run steps received.
    pub run: TicksDelta,
    /// What its steps that keep busy by the clock came to.
    pub busy: Busy,
    /// From the end of its last job to that job's deadline, ns; zero without one.
    pub slack_ns: i64,
    /// How late its timers woke it, in all.
    pub late: Nanos,
}

/// What came of the passes through one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PhaseAccount {
    /// Passes that ended.
    pub passes: u64,
    /// What their run steps received.
    pub run: TicksDelta,
    /// What their steps that keep busy by the clock came to.
    pub busy: Busy,
    /// From begin to begin.
    pub elapsed: TicksDelta,
    /// Of that, what the thread wanted and did not have.
    pub lost: TicksDelta,
    /// What came of its timers.
    pub timers: Activations,
}

/// Steps that keep busy by the clock, whatever they receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Busy {
    /// From their begin to their end.
    pub elapsed: TicksDelta,
    /// Of that, what the thread received, by gap accounting.
    pub received: TicksDelta,
    /// How far one of them went beyond its end, at most.
    pub over: TicksDelta,
}

/// Activations by timers, and the distance of each from the one before by the same timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Activations {
    /// How many.
    pub count: u64,
    /// Their distances in all; the first counts from the timer's beginning.
    pub between: Nanos,
    /// Periods that began later than the one before ended, as its instant was over.
    pub put_off: u64,
    /// By so much in all.
    pub put_off_by: Nanos,
    /// How late the last one was.
    pub last_late: Nanos,
}

/// One job with its deadline judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// Number in the schedule, from 0.
    pub index: u64,
    /// Nominal release.
    pub release: Ticks,
    /// Deadline.
    pub deadline: Ticks,
    /// First reading of the thread at work on it; none for a job that never began.
    pub woke: Option<Ticks>,
    /// Reading at which it had its execution time; none for a job that never did.
    pub done: Option<Ticks>,
    /// The execution time that it asked for and received; zero for a job that never did.
    pub received: TicksDelta,
    /// What came of it.
    pub verdict: Verdict,
}

/// What a ledger holds. All values in nanoseconds.
#[derive(Debug, Default)]
pub struct Account {
    /// Deadlines met.
    pub hits: u64,
    /// Deadlines missed, however.
    pub misses: u64,
    /// Of these, jobs that never began.
    pub skipped: u64,
    /// Of these, jobs that were not done when the run ended.
    pub unfinished: u64,
    /// Jobs of which a record found no room: neither hits nor misses.
    pub unrecorded: u64,
    /// From nominal release to the end of a job.
    pub response: Binned,
    /// From nominal release, or intended wake-up, to the first reading of the running thread.
    pub lateness: Binned,
    /// Lateness with each skipped activation at its own; empty where nothing can be skipped.
    pub corrected: Binned,
    /// From the end of a job that was in time to its deadline.
    pub slack: Binned,
    /// From the deadline to the end of a job that was late.
    pub tardiness: Binned,
    /// How far a re-phased schedule has drifted from an absolute one.
    pub drift: Option<Nanos>,
    /// Passes through the phases of a program.
    pub phases: Vec<PhaseAccount>,
}

/// How a thread's records end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Last {
    /// When it ended, by the counter.
    pub at: Ticks,
    /// Not all of its marks found room: the last ones may be among the others.
    pub lossy: bool,
}

/// Values, as a whole and by interval of the run.
#[derive(Debug, Default)]
pub struct Binned {
    /// All of them.
    pub whole: Histogram,
    /// Those of each interval, by its number.
    pub intervals: std::collections::BTreeMap<u64, Histogram>,
}

/// Where the values of an instant go.
#[derive(Debug, Clone, Copy)]
pub struct Calendar {
    /// The run's beginning.
    pub start: crate::timer::TimerNanos,
    /// Length of an interval.
    pub interval: Nanos,
}

/// Intervals of a run that have histograms of their own; what comes later goes into the last.
const MOST_INTERVALS: u64 = 4_096;

impl Calendar {
    /// Number of the interval that an instant falls into.
    #[must_use]
    pub fn interval_of(&self, at: crate::timer::TimerNanos) -> u64 {
        (at.since(self.start).0 / self.interval.0.max(1)).min(MOST_INTERVALS - 1)
    }
}

impl Binned {
    fn record(&mut self, interval: u64, value: Nanos, times: u64) {
        self.whole.record_n(value.0, times);
        self.intervals.entry(interval).or_default().record_n(value.0, times);
    }
}

impl Ledger {
    /// The thread's schedule begins and ends so.
    pub fn begin(&mut self, term: Term, calendar: Calendar) {
        match self {
            Self::None => {}
            Self::Jobs(jobs) => jobs.begin(term, calendar),
            Self::Frames(frames) => frames.begin(term, calendar),
            Self::Wakes(wakes) => wakes.begin(calendar),
            Self::Passes(passes) => passes.begin(term, calendar),
        }
    }

    /// Takes the next mark; hands over what is entered.
    pub fn take(&mut self, mark: &Mark, around: &Segment, enter: &mut dyn FnMut(Entry)) {
        match self {
            Self::None => {}
            Self::Jobs(jobs) => jobs.take(mark, around, enter),
            Self::Frames(frames) => frames.take(mark, around, enter),
            Self::Wakes(wakes) => wakes.take(mark, around, enter),
            Self::Passes(passes) => passes.take(mark, around, enter),
        }
    }

    /// The run has ended; deadlines up to there are judged.
    pub fn finish(&mut self, last: Last, around: &Segment, enter: &mut dyn FnMut(Entry)) {
        match self {
            Self::None | Self::Wakes(_) => {}
            Self::Jobs(jobs) => jobs.finish(last, around, enter),
            Self::Frames(frames) => frames.finish(last, around, enter),
            Self::Passes(passes) => passes.finish(last, around, enter),
        }
    }

    /// How long each job may take from its release; none where jobs have no deadline, or one that moves.
    #[must_use]
    pub fn deadline(&self) -> Option<Nanos> {
        match self {
            Self::Jobs(jobs) => Some(jobs.deadline()),
            Self::None | Self::Frames(_) | Self::Wakes(_) | Self::Passes(_) => None,
        }
    }

    /// Time between the wake-ups of a thread that does nothing else; none for other threads.
    #[must_use]
    pub fn period_of_wakes(&self) -> Option<Nanos> {
        match self {
            Self::Wakes(wakes) => Some(wakes.period()),
            _ => None,
        }
    }

    /// What it holds; none for threads without marks.
    #[must_use]
    pub fn account(&self) -> Option<&Account> {
        match self {
            Self::None => None,
            Self::Jobs(jobs) => Some(jobs.account()),
            Self::Frames(frames) => Some(frames.account()),
            Self::Wakes(wakes) => Some(wakes.account()),
            Self::Passes(passes) => Some(passes.account()),
        }
    }
}

#[cfg(test)]
mod tests;
