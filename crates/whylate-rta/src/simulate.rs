//! A simulator: tasks of one CPU from event to event, in whole nanoseconds.
//!
//! It knows nothing of the equations it is there to check: it releases jobs, gives the CPU to the
//! most urgent or to the earliest deadline, preempts, and notes how long each job took. The first
//! pattern releases all tasks at once, each first job as late as its jitter allows and the others as
//! early as they can; the others have random offsets and jitter from a seed. Blocking is a stretch of
//! CPU time that goes before the task's own; under earliest deadline first there is none.
//!
//! Bounded in events. Does not model overheads: they are part of the tasks it is given.

mod engine;
mod releases;

use whylate_model::Nanos;
use whylate_stats::rng::Rng;

use crate::analysis::task::check;
use crate::analysis::{AnalysisError, Releases, Task};

use engine::{Ended, Engine};
use releases::Pattern;

/// Events of all patterns together: a second of work.
pub const MOST_EVENTS: u64 = 5_000_000;
/// Events of one random pattern, and as many again for each task.
const EVENTS_OF_A_PATTERN: u64 = 2_000;
/// Stretches of the schedule that are kept: more cannot be told apart in a figure.
pub const MOST_SLOTS: usize = 4_096;

/// Who gets the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduling {
    /// The most urgent; equals in the order in which they arrived.
    FixedPriority,
    /// The earliest deadline; equals in the order in which they arrived.
    EarliestDeadline,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simulated {
    /// Each task, in their order.
    pub tasks: Vec<Seen>,
    /// Who had the CPU when all tasks were released at once, from the beginning.
    pub schedule: Vec<Slot>,
    /// Patterns of releases.
    pub patterns: u64,
    /// Events.
    pub events: u64,
    /// It was ended by [`MOST_EVENTS`] before it came to its end.
    pub cut: bool,
}

/// What became of the jobs of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// Jobs done.
    pub jobs: u64,
    /// Of these, after their deadline.
    pub misses: u64,
    /// The longest response from a nominal release; none without a job.
    pub nominal: Option<Nanos>,
    /// The longest response from an actual arrival.
    pub actual: Option<Nanos>,
}

/// A stretch of CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Whose.
    pub task: usize,
    /// From.
    pub start: Nanos,
    /// To.
    pub end: Nanos,
}

/// Simulates tasks released all at once, and with `random` patterns of offsets and jitter from
/// `seed`.
pub fn simulate(
    tasks: &[Task],
    scheduling: Scheduling,
    random: u64,
    seed: u64,
) -> Result<Simulated, AnalysisError> {
    check(tasks)?;
    let mut result = Simulated {
        tasks: vec![Seen::default(); tasks.len()],
        schedule: Vec::new(),
        patterns: 0,
        events: 0,
        cut: false,
    };
    let mut run = |engine: Engine<'_>, of: &[usize], most: u64| {
        let left = MOST_EVENTS.saturating_sub(result.events);
        let Ended { seen, schedule, events, finished } = engine.run(most.min(left));
        result.events += events;
        result.patterns += 1;
        // A random pattern ends when it has had its events.
        result.cut |= !finished && most >= left;
        for &task in of {
            result.tasks[task].add(seen[task]);
        }
        if result.schedule.is_empty() {
            result.schedule = schedule;
        }
        result.events < MOST_EVENTS
    };
    let all: Vec<usize> = (0..tasks.len()).collect();
    let blocked = |task: &Task| scheduling == Scheduling::FixedPriority && task.blocking.0 > 0;
    run(Engine::at_once(tasks, scheduling, None), &all, MOST_EVENTS);
    for index in all.iter().copied().filter(|&index| blocked(&tasks[index])) {
        if !run(Engine::at_once(tasks, scheduling, Some(index)), &[index], MOST_EVENTS) {
            break;
        }
    }
    for number in 0..random {
        let rng = Rng::stream(seed, number);
        let most = EVENTS_OF_A_PATTERN.saturating_mul(tasks.len() as u64 + 1);
        if !run(Engine::new(tasks, scheduling, Pattern::Random(rng)), &all, most) {
            break;
        }
    }
    Ok(result)
}

impl Seen {
    fn add(&mut self, more: Self) {
        self.jobs += more.jobs;
        self.misses += more.misses;
        self.nominal = self.nominal.max(more.nominal);
        self.actual = self.actual.max(more.actual);
    }
}

/// Does the task release its jobs by time?
fn is_timed(task: &Task) -> bool {
    task.releases == Releases::Periodic
}

#[cfg(test)]
mod tests;
