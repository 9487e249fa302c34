//! Response times under earliest deadline first (Spuri, "Analysis of deadline scheduled real-time
//! systems", 1996).
//!
//! The longest response of a task ends a time in which the CPU never idles and works for deadlines
//! up to its own alone. All other tasks begin that time together, each after its largest jitter, and
//! go on as early as they can. The task has a job whose nominal release lies `a - J` after the
//! beginning, and as many before it as can be late enough to come inside. With `d = a - J + D`:
//!
//! ```text
//! L(a) = (floor(a / T) + 1) C + B(d) + interruptions(L)
//!        + sum over others j with D_j - J_j <= d of
//!              min(ceil((L + J_j) / T_j), floor((d - D_j + J_j) / T_j) + 1) C_j
//! from the nominal release:    R = max over a of L(a) - a + J
//! from the actual arrival:     R = max over a of L(a) - max(0, a - J)
//! ```
//!
//! `L` changes only where `d` is a deadline of one of the others or a further job of its own counts,
//! so no other `a` is looked at, and none beyond the longest busy period. Exact without blocking if
//! of equal deadlines the task's own is the last to be served; a bound otherwise.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use whylate_model::Nanos;

use super::{busy_period, is_overloaded};
use crate::analysis::error::AnalysisError;
use crate::analysis::fixed_priority::{Bound, MOST_TERMS, Response, Undecided};
use crate::analysis::load;
use crate::analysis::task::{self, Task};
use crate::analysis::window::{Halt, Work, request};

/// The response time of each task, in their order; `interruptions` run before all of them.
pub fn respond(tasks: &[Task], interruptions: &[Task]) -> Result<Vec<Response>, AnalysisError> {
    task::check(tasks)?;
    let all: Vec<Task> = tasks.iter().chain(interruptions).cloned().collect();
    task::check(&all)?;
    if is_overloaded(tasks, &all) {
        // Work for deadlines up to d takes longer than d by more and more, whosever they are.
        return Ok(vec![Response::Unbounded; tasks.len()]);
    }
    let Some(busy) = busy_period(&all)? else {
        let full = load::of(&all).beside_one() != Some(Ordering::Less);
        let why = if full { Undecided::Full } else { Undecided::Terms };
        return Ok(vec![Response::Undecided(why); tasks.len()]);
    };
    let mut left = MOST_TERMS;
    let mut responses = Vec::with_capacity(tasks.len());
    for index in 0..tasks.len() {
        // What one task leaves of its part is there for the others.
        let part = left / (tasks.len() - index) as u64;
        let mut work = Work { left: part };
        let of = Studied { tasks, index, interruptions };
        responses.push(of.response(busy, &mut work)?);
        left -= part - work.left;
    }
    Ok(responses)
}

/// One task among the others.
struct Studied<'a> {
    tasks: &'a [Task],
    index: usize,
    interruptions: &'a [Task],
}

impl Studied<'_> {
    fn own(&self) -> &Task {
        &self.tasks[self.index]
    }

    fn response(&self, busy: u64, work: &mut Work) -> Result<Response, AnalysisError> {
        let own = self.own();
        let (jitter, overflow) = (own.jitter.0, || own.overflow());
        let mut worst = Bound { nominal: Nanos(0), actual: Nanos(0), jobs: 0, busy: Nanos(0) };
        let mut length = 0;
        // A job that is not late comes inside though its `a` lies beyond.
        let end = busy.checked_add(jitter).ok_or_else(overflow)?;
        for place in Places::begin(self.tasks, self.index) {
            if place >= end {
                break;
            }
            length = match self.length(place, length, work) {
                Ok(length) => length,
                Err(Halt::Overflow) => return Err(overflow()),
                Err(Halt::Spent) => return Ok(Response::Undecided(Undecided::Terms)),
            };
            let nominal = length.checked_add(jitter).ok_or_else(overflow)?.saturating_sub(place);
            let actual = length.saturating_sub(place.saturating_sub(jitter));
            worst = Bound {
                nominal: worst.nominal.max(Nanos(nominal)),
                actual: worst.actual.max(Nanos(actual)),
                jobs: place / own.period.0 + 1,
                busy: Nanos(length),
            };
        }
        Ok(Response::Bounded(worst))
    }

    /// `L(a)`, searched upwards from one that is not above it.
    fn length(&self, place: u64, from: u64, work: &mut Work) -> Result<u64, Halt> {
        let own = self.own();
        let deadline = i128::from(place) - i128::from(own.jitter.0) + i128::from(own.deadline.0);
        let reach =
            |task: &Task| deadline - i128::from(task.deadline.0) + i128::from(task.jitter.0);
        let jobs = place / own.period.0 + 1;
        let mine = jobs.checked_mul(own.execution.0).ok_or(Halt::Overflow)?;
        let within = self.tasks.iter().filter(|task| reach(task) >= 0);
        let blocking = within.map(|task| task.blocking.0).max().unwrap_or_default();
        let base = mine.checked_add(blocking).ok_or(Halt::Overflow)?;
        let terms = (self.tasks.len() + self.interruptions.len()) as u64;
        let mut length = from.max(base);
        loop {
            work.left = work.left.checked_sub(terms).ok_or(Halt::Spent)?;
            let mut asked = base;
            let others = self.tasks.iter().enumerate().filter(|(other, _)| *other != self.index);
            for (_, task) in others.filter(|(_, task)| reach(task) >= 0) {
                let due = reach(task) / i128::from(task.period.0) + 1;
                let arrived = request(task, length).ok_or(Halt::Overflow)? / task.execution.0;
                let jobs = u64::try_from(due).map_or(arrived, |due| due.min(arrived));
                let more = jobs.checked_mul(task.execution.0).ok_or(Halt::Overflow)?;
                asked = asked.checked_add(more).ok_or(Halt::Overflow)?;
            }
            for task in self.interruptions {
                let more = request(task, length).ok_or(Halt::Overflow)?;
                asked = asked.checked_add(more).ok_or(Halt::Overflow)?;
            }
            if asked <= length {
                return Ok(length);
            }
            length = asked;
        }
    }
}

/// The `a` at which `L` changes, each once and in their order.
struct Places<'a> {
    tasks: &'a [Task],
    next: BinaryHeap<Reverse<(u64, usize)>>,
}

impl<'a> Places<'a> {
    fn begin(tasks: &'a [Task], index: usize) -> Self {
        let due = |task: &Task| i128::from(task.deadline.0) - i128::from(task.jitter.0);
        let own = due(&tasks[index]);
        let first = tasks.iter().enumerate().filter_map(|(other, task)| {
            let (first, period) = (due(task) - own, i128::from(task.period.0));
            // The first that is not before the beginning.
            let place = if first < 0 { first.rem_euclid(period) } else { first };
            Some(Reverse((u64::try_from(place).ok()?, other)))
        });
        Self { tasks, next: first.collect() }
    }
}

impl Iterator for Places<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let &Reverse((place, _)) = self.next.peek()?;
        while let Some(&Reverse((at, other))) = self.next.peek() {
            if at != place {
                break;
            }
            self.next.pop();
            if let Some(following) = at.checked_add(self.tasks[other].period.0) {
                self.next.push(Reverse((following, other)));
            }
        }
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Releases;
    use crate::analysis::edf::tests::{task, the_largest_times};

    fn bounds(tasks: &[Task], interruptions: &[Task]) -> Vec<(u64, u64)> {
        let responses = respond(tasks, interruptions).unwrap();
        responses.iter().map(|of| of.bound().map(|b| (b.nominal.0, b.actual.0)).unwrap()).collect()
    }

    #[test]
    fn the_longest_response_need_not_be_the_one_after_a_release_of_all() {
        // Released together the first is done at 2. Released 1 later it is due at 5 as the second is,
        // which has begun, and is done at 6.
        let tasks = [task(2, 6, 4, 0), task(4, 12, 5, 0)];
        assert_eq!(bounds(&tasks, &[]), [(5, 5), (6, 6)]);
    }

    #[test]
    fn a_full_cpu_with_deadlines_at_periods_takes_no_longer_than_they_are() {
        let full = [task(1, 2, 2, 0), task(1, 3, 3, 0), task(1, 6, 6, 0)];
        let periods = [2, 3, 6];
        for ((nominal, _), period) in bounds(&full, &[]).into_iter().zip(periods) {
            assert!(nominal <= period, "{nominal} of {period}");
        }
    }

    #[test]
    fn jitter_blocking_and_interruptions_are_in_the_response() {
        assert_eq!(bounds(&[task(2, 10, 10, 4)], &[]), [(6, 2)]);
        // From the arrival the third job is the longest: it comes at 0 with the two before it.
        assert_eq!(bounds(&[task(3, 4, 13, 8)], &[]), [(11, 9)]);
        let blocked = Task { blocking: Nanos(2), ..task(2, 10, 10, 0) };
        assert_eq!(bounds(&[blocked], &[]), [(4, 4)]);
        assert_eq!(bounds(&[task(3, 10, 10, 0)], &[task(1, 3, 3, 0)]), [(5, 5)]);
    }

    #[test]
    fn what_asks_for_more_than_the_cpu_is_late_without_end_and_a_backlog_is_undecided() {
        let over = [task(1, 2, 2, 0), task(2, 3, 3, 0)];
        assert_eq!(respond(&over, &[]).unwrap(), [Response::Unbounded; 2]);
        let endless = Task { releases: Releases::AfterTheLast, ..task(1, 9, 9, 0) };
        assert_eq!(respond(&[endless], &[]).unwrap(), [Response::Unbounded]);
        let full = [task(1, 2, 2, 1), task(1, 2, 2, 0)];
        assert_eq!(respond(&full, &[]).unwrap(), [Response::Undecided(Undecided::Full); 2]);
    }

    #[test]
    fn the_largest_times_there_are_end_in_an_error_or_an_answer() {
        the_largest_times(respond);
    }
}
