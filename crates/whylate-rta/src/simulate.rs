//! A simulator: tasks of one CPU from event to event, in whole nanoseconds.
//!
//! It knows nothing of the equations it is there to check: it releases jobs, gives the CPU to the
//! most urgent, to the earliest deadline, or to servers that reserve it, preempts, and notes how long
//! each job took. The first pattern releases all tasks at once, each first job as late as its jitter
//! allows and the others as early as they can. Under earliest deadline first that is not yet the
//! worst for everybody: there each task is also moved so that one of its deadlines falls on one of
//! the others'. Further patterns have random offsets and jitter from a seed. Blocking is a stretch of
//! CPU time that goes before the task's own; it is for fixed priorities alone.
//!
//! Bounded in events. Does not model overheads: they are part of the tasks it is given, or interrupt
//! them.

mod aligned;
mod engine;
mod releases;
mod reserved;
mod tally;

use whylate_model::Nanos;
use whylate_stats::rng::Rng;

use crate::analysis::cbs::Server;
use crate::analysis::task::check;
use crate::analysis::{AnalysisError, Releases, Task};

use engine::{Ended, Engine, Rule};
use releases::{Pattern, Time};
use reserved::Reserved;

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

/// Which patterns are simulated beside the one that releases all tasks at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Patterns {
    /// With random offsets and jitter.
    pub random: u64,
    /// Seed of these.
    pub seed: u64,
    /// Under earliest deadline first, for each task: moved so that deadlines meet.
    pub aligned: u64,
}

/// Simulates tasks released all at once, and with `random` patterns of offsets and jitter from
/// `seed`.
pub fn simulate(
    tasks: &[Task],
    scheduling: Scheduling,
    random: u64,
    seed: u64,
) -> Result<Simulated, AnalysisError> {
    simulate_interrupted(tasks, &[], scheduling, Patterns { random, seed, aligned: 0 })
}

/// Simulates tasks among `interruptions`, which run before all of them.
pub fn simulate_interrupted(
    tasks: &[Task],
    interruptions: &[Task],
    scheduling: Scheduling,
    patterns: Patterns,
) -> Result<Simulated, AnalysisError> {
    check(tasks)?;
    let all: Vec<Task> = tasks.iter().chain(interruptions).cloned().collect();
    check(&all)?;
    let rule = Rule { scheduling, interrupting: tasks.len() };
    let mut sum = Sum::of(tasks.len());
    let every: Vec<usize> = (0..tasks.len()).collect();
    let end = sum.add(&every, MOST_EVENTS, |most| Engine::at_once(&all, rule, None).run(most));
    match scheduling {
        Scheduling::FixedPriority => {
            for index in every.iter().copied().filter(|&index| tasks[index].blocking.0 > 0) {
                let engine = Engine::at_once(&all, rule, Some(index));
                sum.add(&[index], MOST_EVENTS, |most| engine.run(most));
            }
        }
        Scheduling::EarliestDeadline => {
            for index in every.iter().copied().filter(|&index| is_timed(&tasks[index])) {
                for offset in aligned::offsets(tasks, index, end, patterns.aligned) {
                    let engine = Engine::new(&all, rule, Pattern::Aligned { task: index, offset });
                    sum.add(&[index], MOST_EVENTS, |most| engine.run(most));
                }
            }
        }
    }
    sum.random(tasks.len(), patterns, |rng, most| {
        Engine::new(&all, rule, Pattern::Random(rng)).run(most)
    });
    Ok(sum.result)
}

/// Simulates tasks inside their reservations: all released at once, and random patterns.
pub fn simulate_reserved(tasks: &[Task], patterns: Patterns) -> Result<Simulated, AnalysisError> {
    check(tasks)?;
    let server = |task: &Task| {
        task.server.ok_or_else(|| AnalysisError::NoServer { task: task.name.clone() })
    };
    let servers: Vec<Server> = tasks.iter().map(server).collect::<Result<_, _>>()?;
    let mut sum = Sum::of(tasks.len());
    let every: Vec<usize> = (0..tasks.len()).collect();
    // It may never be idle: jobs wait for budgets, not for each other.
    sum.add(&every, events_of_a_pattern(tasks.len()), |most| {
        Reserved::new(tasks, servers.clone(), Pattern::AtOnce).run(most)
    });
    sum.random(tasks.len(), patterns, |rng, most| {
        Reserved::new(tasks, servers.clone(), Pattern::Random(rng)).run(most)
    });
    Ok(sum.result)
}

/// What came of all patterns so far.
struct Sum {
    result: Simulated,
}

impl Sum {
    fn of(tasks: usize) -> Self {
        let result = Simulated {
            tasks: vec![Seen::default(); tasks],
            schedule: Vec::new(),
            patterns: 0,
            events: 0,
            cut: false,
        };
        Self { result }
    }

    /// Adds a pattern of at most so many events, of which these tasks count; when it ended.
    fn add(&mut self, of: &[usize], most: u64, run: impl FnOnce(u64) -> Ended) -> Time {
        let result = &mut self.result;
        let left = MOST_EVENTS.saturating_sub(result.events);
        if left == 0 {
            result.cut = true;
            return 0;
        }
        let Ended { seen, schedule, events, finished, end } = run(most.min(left));
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
        end
    }

    fn random(&mut self, tasks: usize, patterns: Patterns, run: impl Fn(Rng, u64) -> Ended) {
        let all: Vec<usize> = (0..tasks).collect();
        for number in 0..patterns.random {
            if self.result.events >= MOST_EVENTS {
                break;
            }
            let rng = Rng::stream(patterns.seed, number);
            self.add(&all, events_of_a_pattern(tasks), |most| run(rng, most));
        }
    }
}

fn events_of_a_pattern(tasks: usize) -> u64 {
    EVENTS_OF_A_PATTERN.saturating_mul(tasks as u64 + 1)
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
