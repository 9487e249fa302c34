//! Earliest deadline first: does demand ever exceed the time that there is (Baruah, Rosier and
//! Howell, "Algorithms and complexity concerning the preemptive scheduling of periodic, real-time
//! tasks", 1990).
//!
//! A job that arrives as late as its jitter allows has that much less until its deadline, and the
//! jobs behind it may come at once. So with `D' = D - J`, in each window `t` of the busy period:
//!
//! ```text
//! h(t) = sum over tasks with D' <= t of (floor((t - D') / T) + 1) C   + B(t) + interruptions(t)
//! ```
//!
//! All deadlines are met if `h(t) <= t` at each deadline of the first busy period. Deadlines may lie
//! behind the next release. Blocking counts for windows that hold a deadline of the task that it
//! may delay. The test is exact without blocking, and sufficient with it. How long each task takes
//! is another question, and [`respond`] answers it.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use whylate_model::Nanos;
use whylate_model::prediction::DemandTest;

use super::error::AnalysisError;
use super::load;
use super::task::{self, Releases, Task};
use super::window::{Halt, Work, fixed_point, request};

mod response;

pub use response::respond;

/// Deadlines that are looked at: some seconds of work.
pub const MOST_DEADLINES: u64 = 5_000_000;

/// Tests a set under earliest deadline first. `interruptions` run before all of it and have no
/// deadline: the tick. A task that never blocks is nobody's deadline to miss but takes every instant
/// up to it: it is refused as overload.
pub fn analyse(tasks: &[Task], interruptions: &[Task]) -> Result<DemandTest, AnalysisError> {
    task::check(tasks)?;
    let all: Vec<Task> = tasks.iter().chain(interruptions).cloned().collect();
    task::check(&all)?;
    if is_overloaded(tasks, &all) {
        return Ok(DemandTest::Overloaded);
    }
    let busy = busy_period(&all)?;
    let mut demand = Demand::begin(tasks, interruptions);
    let mut seen = 0;
    while let Some((window, asked)) = demand.next()? {
        if busy.is_some_and(|busy| window >= busy) {
            break;
        }
        if asked > window {
            let (window, demand) = (Nanos(window), Nanos(asked));
            return Ok(DemandTest::Infeasible { window, demand });
        }
        seen += 1;
        if seen >= MOST_DEADLINES {
            return Ok(DemandTest::Undecided);
        }
    }
    Ok(match busy {
        Some(busy) => DemandTest::Feasible { busy: Nanos(busy), deadlines: seen },
        None => DemandTest::Undecided,
    })
}

/// Do they ask for more than the CPU in the long run?
fn is_overloaded(tasks: &[Task], all: &[Task]) -> bool {
    let endless = tasks.iter().any(|task| task.releases == Releases::AfterTheLast);
    endless || load::of(all).beside_one() == Some(Ordering::Greater)
}

/// The longest time without an idle instant; none where the search was given up, or has no end.
fn busy_period(all: &[Task]) -> Result<Option<u64>, AnalysisError> {
    /// As many terms as there are for all response times of a set.
    const MOST_TERMS: u64 = super::fixed_priority::MOST_TERMS;
    let overflow = || all[0].overflow();
    let blocking = all.iter().map(|task| task.blocking.0).max().unwrap_or_default();
    let pushed = blocking > 0 || all.iter().any(|task| task.jitter.0 > 0);
    if pushed && load::of(all).beside_one() == Some(Ordering::Equal) {
        // What jitter and blocking leave behind is never worked off.
        return Ok(None);
    }
    let others: Vec<&Task> = all.iter().collect();
    let first = all.iter().try_fold(blocking, |sum, task| sum.checked_add(task.execution.0));
    let mut work = Work { left: MOST_TERMS };
    match fixed_point(blocking, first.ok_or_else(overflow)?, &others, &mut work) {
        Ok(busy) => Ok(Some(busy)),
        // A full CPU with jitter never becomes idle: deadlines decide, if they do.
        Err(Halt::Spent) => Ok(None),
        Err(Halt::Overflow) if load::of(all).beside_one() != Some(Ordering::Less) => Ok(None),
        Err(Halt::Overflow) => Err(overflow()),
    }
}

/// Demand with deadlines, from one deadline to the next.
struct Demand<'a> {
    tasks: &'a [Task],
    interruptions: &'a [Task],
    /// The next deadline of each task.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    asked: u64,
    blocking: u64,
}

impl<'a> Demand<'a> {
    fn begin(tasks: &'a [Task], interruptions: &'a [Task]) -> Self {
        // A deadline that jitter alone exceeds is over when its job arrives.
        let first = |task: &Task| task.deadline.0.saturating_sub(task.jitter.0);
        let next = tasks.iter().enumerate().map(|(index, task)| Reverse((first(task), index)));
        Self { tasks, interruptions, next: next.collect(), asked: 0, blocking: 0 }
    }

    /// The next deadline, and what has to be done by then.
    fn next(&mut self) -> Result<Option<(u64, u64)>, AnalysisError> {
        let Some(&Reverse((window, _))) = self.next.peek() else { return Ok(None) };
        while let Some(&Reverse((at, index))) = self.next.peek() {
            if at != window {
                break;
            }
            self.next.pop();
            let task = &self.tasks[index];
            let overflow = || task.overflow();
            self.asked = self.asked.checked_add(task.execution.0).ok_or_else(overflow)?;
            self.blocking = self.blocking.max(task.blocking.0);
            // Behind the last nanosecond there is no deadline that could be missed.
            if let Some(following) = at.checked_add(task.period.0) {
                self.next.push(Reverse((following, index)));
            }
        }
        let interrupted = self.interruptions.iter().try_fold(0_u64, |sum, task| {
            request(task, window)
                .and_then(|more| sum.checked_add(more))
                .ok_or_else(|| task.overflow())
        })?;
        let asked = self
            .asked
            .checked_add(self.blocking)
            .and_then(|sum| sum.checked_add(interrupted))
            .ok_or_else(|| self.tasks[0].overflow())?;
        Ok(Some((window, asked)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn task(execution: u64, period: u64, deadline: u64, jitter: u64) -> Task {
        let (deadline, jitter) = (Nanos(deadline), Nanos(jitter));
        Task { deadline, jitter, ..Task::new("t", Nanos(execution), Nanos(period)) }
    }

    /// Analyses of tasks with the largest times there are, which must end; none of no task.
    pub(super) fn the_largest_times<T: std::fmt::Debug + PartialEq>(
        analyse: impl Fn(&[Task], &[Task]) -> Result<T, AnalysisError>,
    ) {
        let most = u64::MAX;
        for times in [[most; 4], [1, most, most, most], [most, most, most, 0], [1, 1, most, most]] {
            let [execution, period, deadline, jitter] = times;
            let one = task(execution, period, deadline, jitter);
            let _ = analyse(&[one.clone(), one.clone()], &[]);
            let _ = analyse(&[task(1, 3, 3, 0), one.clone()], &[one]);
        }
        assert_eq!(analyse(&[], &[]), Err(AnalysisError::Empty));
    }

    fn verdict(tasks: &[Task]) -> DemandTest {
        analyse(tasks, &[]).unwrap()
    }

    #[test]
    fn a_full_cpu_is_feasible_with_deadlines_at_periods() {
        // Liu and Layland: any load up to one.
        let full = [task(1, 2, 2, 0), task(1, 3, 3, 0), task(1, 6, 6, 0)];
        assert_eq!(verdict(&full), DemandTest::Feasible { busy: Nanos(6), deadlines: 3 });
        let over = [task(1, 2, 2, 0), task(1, 3, 3, 0), task(2, 6, 6, 0)];
        assert_eq!(verdict(&over), DemandTest::Overloaded);
    }

    #[test]
    fn the_first_window_with_too_much_demand_is_named() {
        // 2 by 2, 2 more by 4, and 1 by 4: 5 in 4.
        let tight = [task(2, 4, 2, 0), task(3, 8, 4, 0)];
        let (window, demand) = (Nanos(4), Nanos(5));
        assert_eq!(verdict(&tight), DemandTest::Infeasible { window, demand });
        assert_eq!(verdict(&[task(2, 4, 2, 0), task(3, 8, 7, 0)]).is_feasible(), Some(true));
    }

    #[test]
    fn jitter_takes_from_the_deadline_and_brings_jobs_together() {
        let at_zero = DemandTest::Infeasible { window: Nanos(0), demand: Nanos(1) };
        assert_eq!(verdict(&[task(1, 10, 3, 4)]), at_zero);
        assert_eq!(verdict(&[task(2, 10, 6, 4)]).is_feasible(), Some(true));
        assert_eq!(verdict(&[task(3, 10, 6, 4)]).is_feasible(), Some(false));
        // Two jobs at once, due 5 and 9 after they come.
        assert_eq!(verdict(&[task(3, 4, 13, 8)]).is_feasible(), Some(true));
        assert_eq!(verdict(&[task(3, 4, 10, 8)]).is_feasible(), Some(false));
    }

    #[test]
    fn blocking_and_the_tick_count_against_deadlines() {
        let blocked = Task { blocking: Nanos(2), ..task(2, 10, 3, 0) };
        assert_eq!(verdict(&[blocked]).is_feasible(), Some(false));
        let tick = [task(1, 5, 5, 0)];
        assert_eq!(analyse(&[task(2, 10, 3, 0)], &tick).unwrap().is_feasible(), Some(true));
        assert_eq!(analyse(&[task(3, 10, 3, 0)], &tick).unwrap().is_feasible(), Some(false));
    }

    #[test]
    fn the_largest_times_there_are_end_in_an_error_or_an_answer() {
        the_largest_times(analyse);
    }
}
