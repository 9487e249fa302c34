//! Response times under fixed priorities with preemption (Tindell, Burns and Wellings, "An extendible
//! approach for analysing fixed priority hard real-time tasks", 1994).
//!
//! For job `q` of the busy period that begins when all tasks arrive at once, after their largest
//! jitter:
//!
//! ```text
//! w(q) = (q+1) C + B + sum over more urgent j of ceil((w(q) + J_j) / T_j) C_j
//! from the nominal release:    R = max over q of J + w(q) - q T
//! from the actual arrival:     R = max over q of w(q) - max(0, q T - J)
//! ```
//!
//! `q` runs until a job is done before the next can arrive. So deadlines behind the next release
//! and jitter of more than a period need no case of their own. Tasks of the same priority count as
//! more urgent: a bound that holds for any order among them.

use std::cmp::Ordering;

use whylate_model::Nanos;

use super::error::AnalysisError;
use super::load::Load;
use super::task::{self, Releases, Task};
use super::window::{Halt, Work, fixed_point};

/// Jobs of one busy period: it would be a thousand periods of a task at 1 kHz, a thousand times.
pub const MOST_JOBS: u64 = 1_000_000;
/// Terms of all equations together: a few seconds of work.
pub const MOST_TERMS: u64 = 200_000_000;

/// What is known of the response time of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Response {
    /// It is never longer.
    Bounded(Bound),
    /// It grows without end: this task and the more urgent ones ask for more than the CPU.
    Unbounded,
    /// It was not found.
    Undecided(Undecided),
}

/// The longest response of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// From the nominal release.
    pub nominal: Nanos,
    /// From the actual arrival.
    pub actual: Nanos,
    /// Jobs of the busy period that were looked at.
    pub jobs: u64,
    /// Length of the busy period.
    pub busy: Nanos,
}

/// Why a search came to no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undecided {
    /// [`MOST_JOBS`].
    Jobs,
    /// [`MOST_TERMS`].
    Terms,
    /// None: the CPU is exactly full, and jitter or blocking leave a backlog that is never worked
    /// off. The busy period has no end to search up to.
    Full,
}

impl Bound {
    /// What is left before a deadline, negative where it may be missed; ns.
    #[must_use]
    pub fn slack_ns(&self, deadline: Nanos) -> i128 {
        i128::from(deadline.0) - i128::from(self.nominal.0)
    }
}

impl Response {
    /// The bound, where there is one.
    #[must_use]
    pub fn bound(&self) -> Option<&Bound> {
        match self {
            Self::Bounded(bound) => Some(bound),
            _ => None,
        }
    }

    /// Is each job done by its deadline? None where that is not known.
    #[must_use]
    pub fn meets(&self, deadline: Nanos) -> Option<bool> {
        match self {
            Self::Bounded(bound) => Some(bound.nominal <= deadline),
            Self::Unbounded => Some(false),
            Self::Undecided(_) => None,
        }
    }
}

/// The response time of each task, in their order.
pub fn analyse(tasks: &[Task]) -> Result<Vec<Response>, AnalysisError> {
    analyse_within(tasks, MOST_TERMS)
}

fn analyse_within(tasks: &[Task], terms: u64) -> Result<Vec<Response>, AnalysisError> {
    search(tasks, terms, |_| Nanos(u64::MAX))
}

/// Is each job of each task done by its deadline? A task is given up with its first job that is not. None where
/// that is not known, or not within so many terms.
pub(crate) fn meet(tasks: &[Task], terms: u64) -> Result<Vec<Option<bool>>, AnalysisError> {
    let responses = search(tasks, terms, |task| task.deadline)?;
    Ok(responses.iter().zip(tasks).map(|(found, task)| found.meets(task.deadline)).collect())
}

/// The response time of each task, or one that is longer than this where that is found first.
fn search(
    tasks: &[Task],
    terms: u64,
    enough: fn(&Task) -> Nanos,
) -> Result<Vec<Response>, AnalysisError> {
    task::check(tasks)?;
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(tasks[index].priority));
    let mut responses = vec![Response::Unbounded; tasks.len()];
    let mut total = Work { left: terms };
    let mut loads = Level { load: Load::NONE, pushed: false, endless: false };
    let (mut done, mut left) = (0, tasks.len() as u64);
    for level in order.chunk_by(|&a, &b| tasks[a].priority == tasks[b].priority) {
        let above = loads;
        for &index in level {
            loads.add(&tasks[index]);
        }
        done += level.len();
        for &index in level {
            let others: Vec<&Task> =
                order[..done].iter().filter(|&&o| o != index).map(|&o| &tasks[o]).collect();
            let own = &tasks[index];
            let known = match own.releases {
                Releases::Periodic => loads.endless_for(own),
                Releases::AfterTheLast => {
                    (above.leaves_nothing() || level.len() > 1).then_some(Response::Unbounded)
                }
            };
            if let Some(known) = known {
                responses[index] = known;
            } else {
                // What one task leaves of its part is there for the others.
                let part = total.left / left;
                let mut work = Work { left: part };
                responses[index] = response(own, &others, enough(own), &mut work)?;
                total.left -= part - work.left;
            }
            left -= 1;
        }
    }
    Ok(responses)
}

/// What the tasks down to a level ask for.
#[derive(Clone, Copy)]
struct Level {
    load: Load,
    /// Some have jitter: a backlog that a full CPU never works off.
    pushed: bool,
    /// One never blocks.
    endless: bool,
}

impl Level {
    fn add(&mut self, task: &Task) {
        match task.releases {
            Releases::Periodic => self.load.add(task.execution.0, task.period.0),
            Releases::AfterTheLast => self.endless = true,
        }
        self.pushed |= task.jitter.0 > 0;
    }

    /// What is known of a task without a search, where its busy period has no end.
    fn endless_for(&self, own: &Task) -> Option<Response> {
        let pushed = self.pushed || own.blocking.0 > 0;
        match self.load.beside_one() {
            _ if self.endless => Some(Response::Unbounded),
            Some(Ordering::Greater) => Some(Response::Unbounded),
            Some(Ordering::Equal) if pushed => Some(Response::Undecided(Undecided::Full)),
            _ => None,
        }
    }

    fn leaves_nothing(&self) -> bool {
        self.endless || matches!(self.load.beside_one(), Some(Ordering::Greater | Ordering::Equal))
    }
}

fn response(
    own: &Task,
    others: &[&Task],
    enough: Nanos,
    work: &mut Work,
) -> Result<Response, AnalysisError> {
    let (period, jitter) = (own.period.0, own.jitter.0);
    let overflow = || own.overflow();
    let mut worst = Bound { nominal: Nanos(0), actual: Nanos(0), jobs: 0, busy: Nanos(0) };
    for job in 0..MOST_JOBS {
        let base = own
            .execution
            .0
            .checked_mul(job + 1)
            .and_then(|own_work| own_work.checked_add(own.blocking.0))
            .ok_or_else(overflow)?;
        let window = match fixed_point(base, worst.busy.0, others, work) {
            Ok(window) => window,
            Err(Halt::Overflow) => return Err(overflow()),
            Err(Halt::Spent) => return Ok(Response::Undecided(Undecided::Terms)),
        };
        let release = job.checked_mul(period).ok_or_else(overflow)?;
        let end = window.checked_add(jitter).ok_or_else(overflow)?;
        // The job before was not done when this one could arrive, so its end lies behind that.
        let nominal = end.saturating_sub(release);
        let actual = window.saturating_sub(release.saturating_sub(jitter));
        worst = Bound {
            nominal: worst.nominal.max(Nanos(nominal)),
            actual: worst.actual.max(Nanos(actual)),
            jobs: job + 1,
            busy: Nanos(window),
        };
        let alone = own.releases == Releases::AfterTheLast;
        if alone || nominal <= period || nominal > enough.0 {
            return Ok(Response::Bounded(worst));
        }
    }
    Ok(Response::Undecided(Undecided::Jobs))
}

#[cfg(test)]
mod tests;
