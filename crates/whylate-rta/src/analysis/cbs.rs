//! A constant-bandwidth server: what a reservation supplies at least, and how long a task inside it
//! takes (Abeni and Buttazzo, "Integrating multimedia applications in hard real-time systems", 1998;
//! Shin and Lee, "Periodic resource model", 2003).
//!
//! A task that finds its server's deadline behind it when it arrives gets a whole budget and a
//! deadline one period later. So where jobs come far enough apart, each has its server as if new;
//! elsewhere the supply of any window is taken, which may begin just after the budget was used up:
//!
//! ```text
//! from the beginning of a budget:  supply(t) = Q floor(t/P) + max(0, t mod P - (P - Q))
//! in any window:                   supply of t - (P - Q) from the beginning of a budget
//! ```
//!
//! Both hold where the sum of all reservations is no more than the scheduler admits, on one CPU,
//! and nothing else runs before reservations.

use std::cmp::Ordering;

use whylate_model::Nanos;

use super::error::AnalysisError;
use super::fixed_priority::{Bound, MOST_JOBS, Response, Undecided};
use super::load::{self, Load};
use super::task::{self, Releases, Task};

/// A reservation that is kept hard: `budget` in each `period`, and never more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Server {
    /// CPU time.
    pub budget: Nanos,
    /// In each period.
    pub period: Nanos,
}

/// The share of a CPU that a scheduler gives away as reservations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// So much.
    pub runtime: Nanos,
    /// Of so much.
    pub period: Nanos,
}

impl Limit {
    /// Linux, unless sched_rt_runtime_us says otherwise: 95 %.
    pub const LINUX: Self = Self { runtime: Nanos(950_000_000), period: Nanos(1_000_000_000) };
}

impl Server {
    /// CPU time supplied at least within `window` of the beginning of a budget.
    #[must_use]
    pub fn supply_from_budget(&self, window: Nanos) -> Nanos {
        let period = self.period.0.max(1);
        let silent = self.period.0.saturating_sub(self.budget.0);
        let whole = (window.0 / period).saturating_mul(self.budget.0);
        Nanos(whole.saturating_add((window.0 % period).saturating_sub(silent)))
    }

    /// CPU time supplied at least in any `window`.
    #[must_use]
    pub fn supply(&self, window: Nanos) -> Nanos {
        let silent = self.period.0.saturating_sub(self.budget.0);
        self.supply_from_budget(Nanos(window.0.saturating_sub(silent)))
    }

    /// The shortest window from the beginning of a budget in which `amount` is supplied for sure;
    /// none where it does not fit into 64 bits.
    fn window_from_budget(&self, amount: u64) -> Option<u64> {
        let Some(before) = amount.checked_sub(1) else { return Some(0) };
        let (budget, period) = (self.budget.0.max(1), self.period.0);
        let rest = before % budget + 1;
        (before / budget)
            .checked_mul(period)?
            .checked_add(period - self.budget.0)?
            .checked_add(rest)
    }
}

/// Whether reservations are admitted together: their shares against the limit.
#[must_use]
pub fn admitted(servers: &[Server], limit: Limit) -> bool {
    let mut load = Load::NONE;
    for server in servers {
        load.add(server.budget.0, server.period.0);
    }
    // sum <= r/p where sum + (p - r)/p <= 1.
    load.add(limit.period.0.saturating_sub(limit.runtime.0), limit.period.0);
    matches!(load.beside_one(), Some(Ordering::Less | Ordering::Equal))
}

/// The response time of each task inside its own reservation, in their order.
pub fn analyse(tasks: &[Task]) -> Result<Vec<Response>, AnalysisError> {
    task::check(tasks)?;
    tasks
        .iter()
        .map(|task| match task.server {
            Some(server) => response(task, server),
            None => Err(AnalysisError::NoServer { task: task.name.clone() }),
        })
        .collect()
}

fn response(task: &Task, server: Server) -> Result<Response, AnalysisError> {
    let overflow = || task.overflow();
    let silent = server.period.0 - server.budget.0;
    if task.releases == Releases::AfterTheLast {
        // The job before may have used up the budget, and this one has what comes next.
        let fresh = server.window_from_budget(task.execution.0);
        let window = fresh.and_then(|fresh| fresh.checked_add(silent)).ok_or_else(overflow)?;
        let (nominal, actual, busy) = (Nanos(window), Nanos(window), Nanos(window));
        return Ok(Response::Bounded(Bound { nominal, actual, jobs: 1, busy }));
    }
    // Demand and supply, each of the product of both periods.
    let asked = u128::from(task.execution.0) * u128::from(server.period.0);
    let given = u128::from(server.budget.0) * u128::from(task.period.0);
    if asked > given {
        return Ok(Response::Unbounded);
    }
    let fresh = server.window_from_budget(task.execution.0).ok_or_else(overflow)?;
    let budgets = task.execution.0.div_ceil(server.budget.0);
    let until = budgets.checked_mul(server.period.0).ok_or_else(overflow)?;
    let apart = task.period.0.saturating_sub(task.jitter.0);
    if apart >= until {
        let nominal = fresh.checked_add(task.jitter.0).ok_or_else(overflow)?;
        let (nominal, actual) = (Nanos(nominal), Nanos(fresh));
        return Ok(Response::Bounded(Bound { nominal, actual, jobs: 1, busy: actual }));
    }
    // After so many jobs a whole number of budgets is used up and the supply looks as before, later by
    // no more than their periods: what comes then is no worse.
    let cycle =
        server.budget.0 / load::divisor(server.budget.0.into(), task.execution.0.into()) as u64;
    let cycle = cycle.saturating_add(task.jitter.0 / task.period.0);
    let mut worst = Bound { nominal: Nanos(0), actual: Nanos(0), jobs: 0, busy: Nanos(0) };
    for job in 0..MOST_JOBS {
        let amount = task.execution.0.checked_mul(job + 1).ok_or_else(overflow)?;
        let window = server
            .window_from_budget(amount)
            .and_then(|window| window.checked_add(silent))
            .ok_or_else(overflow)?;
        let release = job.checked_mul(task.period.0).ok_or_else(overflow)?;
        let nominal = window.checked_add(task.jitter.0).ok_or_else(overflow)?;
        let nominal = nominal.saturating_sub(release);
        let actual = window.saturating_sub(release.saturating_sub(task.jitter.0));
        worst = Bound {
            nominal: worst.nominal.max(Nanos(nominal)),
            actual: worst.actual.max(Nanos(actual)),
            jobs: job + 1,
            busy: Nanos(window),
        };
        if nominal <= task.period.0 || job > cycle {
            return Ok(Response::Bounded(worst));
        }
    }
    Ok(Response::Undecided(Undecided::Jobs))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn server(budget: u64, period: u64) -> Server {
        Server { budget: Nanos(budget), period: Nanos(period) }
    }

    fn reserved(execution: u64, period: u64, jitter: u64, server: Server) -> Task {
        Task {
            server: Some(server),
            jitter: Nanos(jitter),
            ..Task::new("t", Nanos(execution), Nanos(period))
        }
    }

    fn bound(task: Task) -> (u64, u64) {
        let response = analyse(&[task]).unwrap()[0];
        let bound = response.bound().unwrap();
        (bound.nominal.0, bound.actual.0)
    }

    #[test]
    fn a_window_is_silent_twice_as_long_as_the_beginning_of_a_budget() {
        let server = server(3, 8);
        let from_budget: Vec<u64> =
            (0..=16).map(|t| server.supply_from_budget(Nanos(t)).0).collect();
        assert_eq!(from_budget, [0, 0, 0, 0, 0, 0, 1, 2, 3, 3, 3, 3, 3, 3, 4, 5, 6]);
        let any: Vec<u64> = (0..=21).map(|t| server.supply(Nanos(t)).0).collect();
        assert_eq!(any[..11], [0; 11]);
        assert_eq!(any[11..], [1, 2, 3, 3, 3, 3, 3, 3, 4, 5, 6]);
    }

    #[test]
    fn a_job_that_fits_into_its_budget_is_done_when_the_budget_would_be_and_no_later() {
        // Section 5.6 of Hourglass: 0.1 ms more than is needed.
        assert_eq!(bound(reserved(3_000, 8_000, 0, server(3_100, 8_000))), (7_900, 7_900));
        assert_eq!(bound(reserved(17_000, 33_000, 0, server(17_100, 33_000))), (32_900, 32_900));
        // Two budgets for one job.
        assert_eq!(bound(reserved(4, 16, 0, server(3, 8))), (8 + 5 + 1, 8 + 5 + 1));
    }

    #[test]
    fn jobs_that_come_too_close_may_find_the_budget_used_up() {
        // The first may find it used up 13 before the end of the next; the second comes after 7.
        assert_eq!(bound(reserved(3, 8, 1, server(3, 8))), (1 + 13, 21 - 7));
        assert_eq!(bound(reserved(3, 8, 0, server(3, 8))), (8, 8));
    }

    #[test]
    fn what_never_blocks_finds_its_budget_used_up_by_itself() {
        let task = |execution, period| Task {
            releases: Releases::AfterTheLast,
            ..reserved(execution, period, 0, server(3, 8))
        };
        // From the end of a budget to that of the next; more than is reserved is only later.
        assert_eq!(bound(task(3, 8)), (13, 13));
        assert_eq!(bound(task(4, 8)), (14 + 5, 14 + 5));
    }

    #[test]
    fn a_task_that_asks_for_more_than_it_reserved_is_late_without_end() {
        let responses = analyse(&[reserved(4, 8, 0, server(3, 8))]).unwrap();
        assert_eq!(responses, [Response::Unbounded]);
    }

    #[test]
    fn reservations_are_admitted_up_to_the_limit_and_not_beyond() {
        let paper = [server(3_100, 8_000), server(17_100, 33_000)];
        assert!(admitted(&paper, Limit::LINUX));
        assert!(admitted(&[server(95, 100)], Limit::LINUX));
        assert!(!admitted(&[server(95, 100), server(1, u64::MAX)], Limit::LINUX));
        assert!(!admitted(&[server(1, 2), server(1, 2)], Limit::LINUX));
    }

    #[test]
    fn the_largest_times_there_are_end_in_an_error_or_an_answer() {
        let most = u64::MAX;
        for (execution, period, jitter) in
            [(most, most, most), (1, most, most), (most, most, 0), (most - 1, most, 1)]
        {
            for of in [server(most, most), server(1, 1), server(1, most), server(most - 1, most)] {
                let _ = analyse(&[reserved(execution, period, jitter, of)]);
                let _ = (of.supply(Nanos(most)), of.supply_from_budget(Nanos(most)));
            }
        }
    }

    proptest! {
        #[test]
        fn the_window_of_an_amount_is_the_first_that_supplies_it(
            budget in 1..20_u64, more in 0..20_u64, amount in 1..200_u64,
        ) {
            let server = server(budget, budget + more);
            let window = server.window_from_budget(amount).unwrap();
            prop_assert!(server.supply_from_budget(Nanos(window)).0 >= amount);
            prop_assert!(server.supply_from_budget(Nanos(window - 1)).0 < amount);
        }

        #[test]
        fn a_larger_budget_is_never_slower(
            execution in 1..40_u64, budget in 1..20_u64, more in 0..20_u64,
            period in 1..100_u64, jitter in 0..150_u64,
        ) {
            let of = |budget| analyse(&[reserved(execution, period, jitter, server(budget, 40))]);
            let (small, large) = (of(budget).unwrap()[0], of(budget + more).unwrap()[0]);
            if let (Response::Bounded(small), Response::Bounded(large)) = (small, large) {
                prop_assert!(large.nominal <= small.nominal && large.actual <= small.actual);
            } else {
                prop_assert!(small == Response::Unbounded);
            }
        }
    }
}
