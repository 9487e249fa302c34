//! Reservations: each task inside a server of its own, whose deadline is postponed.
//!
//! Of the servers with work and budget the one whose deadline is next has the CPU. A job that finds
//! its server without work, and the deadline over or so near that what is left of the budget would
//! be more than the reserved share until then, gets a whole budget and a deadline one period later.
//! A server whose budget is used up waits for its deadline; then it has a whole budget again, and the
//! deadline is postponed by a period (Abeni and Buttazzo, "Integrating multimedia applications in
//! hard real-time systems", 1998, kept hard as Linux does).

use std::collections::{BTreeSet, VecDeque};

use crate::analysis::Task;
use crate::analysis::cbs::Server;

use super::engine::Ended;
use super::is_timed;
use super::releases::{Calendar, Pattern, Release, Time};
use super::tally::{Job, Tally};

/// A server at work.
struct Serving {
    server: Server,
    /// What is left of its budget.
    budget: u64,
    deadline: Time,
    jobs: VecDeque<Job>,
    /// The next job of a task that is released by time.
    coming: Option<Release>,
}

/// What comes by itself; of two at one instant the budget is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Budget,
    Arrival,
}

pub(super) struct Reserved<'a> {
    tasks: &'a [Task],
    servers: Vec<Serving>,
    calendar: Calendar,
    /// Servers with work and budget, by their deadlines.
    ready: BTreeSet<(Time, usize)>,
    coming: BTreeSet<(Time, What, usize)>,
    until_idle: bool,
    now: Time,
    tally: Tally,
}

impl<'a> Reserved<'a> {
    /// Tasks with their servers; the first pattern ends when the CPU has nothing to do.
    pub(super) fn new(tasks: &'a [Task], servers: Vec<Server>, pattern: Pattern) -> Self {
        let serving = |server: Server| Serving {
            server,
            budget: 0,
            deadline: 0,
            jobs: VecDeque::new(),
            coming: None,
        };
        let mut engine = Self {
            tasks,
            servers: servers.into_iter().map(serving).collect(),
            until_idle: matches!(pattern, Pattern::AtOnce),
            calendar: Calendar::begin(tasks, pattern),
            ready: BTreeSet::new(),
            coming: BTreeSet::new(),
            now: 0,
            tally: Tally::of(tasks.len()),
        };
        for (index, task) in tasks.iter().enumerate() {
            if is_timed(task) {
                engine.await_next(index);
            } else {
                engine.admit(index, Release { nominal: 0, arrival: 0 });
            }
        }
        engine
    }

    pub(super) fn run(mut self, most: u64) -> Ended {
        let finished = loop {
            if self.tally.events >= most {
                break false;
            }
            let idle = self.servers.iter().all(|serving| serving.jobs.is_empty());
            if self.until_idle && self.now > 0 && idle {
                break true;
            }
            self.take_what_came();
            let next = self.coming.first().map(|(at, ..)| *at);
            match (self.ready.first().copied(), next) {
                (Some((deadline, index)), _) => self.execute(deadline, index, next),
                (None, Some(at)) => self.now = at,
                (None, None) => break true,
            }
        };
        let Tally { seen, schedule, events } = self.tally;
        Ended { seen, schedule, events, finished, end: self.now }
    }

    /// Runs a server's first job until it is done, the budget is used up, or something comes.
    fn execute(&mut self, deadline: Time, index: usize, next: Option<Time>) {
        let serving = &mut self.servers[index];
        let Some(job) = serving.jobs.front_mut() else { return };
        let most = Time::from(job.left.min(serving.budget));
        let end = next.map_or(self.now + most, |next| next.min(self.now + most));
        let ran = (end - self.now) as u64;
        job.left -= ran;
        serving.budget -= ran;
        let done = if job.left == 0 { serving.jobs.pop_front() } else { None };
        let used_up = serving.budget == 0;
        self.tally.ran(index, self.now, end);
        self.tally.events += 1;
        self.now = end;
        if let Some(job) = done {
            let task = &self.tasks[index];
            self.tally.done(task, job, end);
            if !is_timed(task) {
                self.servers[index].jobs.push_back(fresh(index, task, end, end));
            }
        }
        if used_up {
            self.coming.insert((deadline.max(end), What::Budget, index));
        }
        if used_up || self.servers[index].jobs.is_empty() {
            self.ready.remove(&(deadline, index));
        }
    }

    fn take_what_came(&mut self) {
        while let Some(&(at, what, index)) = self.coming.first() {
            if at > self.now {
                return;
            }
            self.coming.pop_first();
            self.tally.events += 1;
            let serving = &mut self.servers[index];
            match what {
                What::Budget => {
                    serving.budget = serving.server.budget.0;
                    serving.deadline += Time::from(serving.server.period.0);
                    if !serving.jobs.is_empty() {
                        self.ready.insert((serving.deadline, index));
                    }
                }
                What::Arrival => {
                    if let Some(release) = serving.coming.take() {
                        self.admit(index, release);
                    }
                    self.await_next(index);
                }
            }
        }
    }

    fn await_next(&mut self, index: usize) {
        let release = self.calendar.next(index, &self.tasks[index]);
        self.coming.insert((release.arrival, What::Arrival, index));
        self.servers[index].coming = Some(release);
    }

    /// A job arrives in its server, and wakes it where it had none.
    fn admit(&mut self, index: usize, release: Release) {
        let serving = &mut self.servers[index];
        let woken = serving.jobs.is_empty();
        serving.jobs.push_back(fresh(index, &self.tasks[index], release.nominal, release.arrival));
        if !woken {
            return;
        }
        let Server { budget, period } = serving.server;
        // A deadline to come is no further than a period.
        let until = u128::try_from(serving.deadline - self.now).unwrap_or_default();
        let (left, share) = (u128::from(serving.budget), u128::from(budget.0));
        if until == 0 || left * u128::from(period.0) > share * until {
            serving.budget = budget.0;
            serving.deadline = self.now + Time::from(period.0);
        }
        if serving.budget > 0 {
            self.ready.insert((serving.deadline, index));
        }
    }
}

fn fresh(index: usize, task: &Task, nominal: Time, arrival: Time) -> Job {
    Job { task: index, nominal, arrival, left: task.execution.0 }
}
