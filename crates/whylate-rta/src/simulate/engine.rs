//! One pattern of releases, from event to event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::analysis::Task;

use super::releases::{Calendar, Pattern, Release, Time};
use super::tally::{Job, Tally};
use super::{Scheduling, Seen, Slot, is_timed};

/// A job that can run. The greatest runs: the most urgent key, then the first to arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ready {
    urgency: Time,
    order: Reverse<(Time, u64)>,
    job: Job,
    /// Stands for a less urgent task that holds what the task needs.
    blocks: bool,
}

/// What came of a pattern.
pub(super) struct Ended {
    pub(super) seen: Vec<Seen>,
    pub(super) schedule: Vec<Slot>,
    pub(super) events: u64,
    /// The CPU became idle, so that nothing of the beginning was left.
    pub(super) finished: bool,
    /// When it ended.
    pub(super) end: Time,
}

/// Who gets the CPU, in detail.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    pub(super) scheduling: Scheduling,
    /// Tasks from this number on run before all others.
    pub(super) interrupting: usize,
}

pub(super) struct Engine<'a> {
    tasks: &'a [Task],
    rule: Rule,
    /// Of equals it is the last.
    last: Option<usize>,
    until_idle: bool,
    calendar: Calendar,
    /// Arrivals to come, one for each task that is released by time.
    coming: BinaryHeap<Reverse<(Time, usize, Time)>>,
    ready: BinaryHeap<Ready>,
    now: Time,
    arrived: u64,
    tally: Tally,
}

impl<'a> Engine<'a> {
    /// All tasks at once, until the CPU is idle; `blocked` has just found what it needs in use.
    pub(super) fn at_once(tasks: &'a [Task], rule: Rule, blocked: Option<usize>) -> Self {
        let mut engine = Self::new(tasks, rule, Pattern::AtOnce);
        if let Some(task) = blocked {
            let left = tasks[task].blocking.0;
            engine.admit(Job { task, nominal: 0, arrival: -1, left }, true);
        }
        engine
    }

    /// Ends when the CPU is idle, but for a random pattern.
    pub(super) fn new(tasks: &'a [Task], rule: Rule, pattern: Pattern) -> Self {
        let mut engine = Self {
            tasks,
            rule,
            last: match pattern {
                Pattern::Aligned { task, .. } => Some(task),
                _ => None,
            },
            until_idle: !matches!(pattern, Pattern::Random(_)),
            calendar: Calendar::begin(tasks, pattern),
            coming: BinaryHeap::new(),
            ready: BinaryHeap::new(),
            now: 0,
            arrived: 0,
            tally: Tally::of(tasks.len()),
        };
        for (index, task) in tasks.iter().enumerate() {
            if is_timed(task) {
                engine.await_next(index);
            } else {
                engine.follow(index, 0);
            }
        }
        engine
    }

    pub(super) fn run(mut self, most: u64) -> Ended {
        let finished = loop {
            if self.tally.events >= most {
                break false;
            }
            // What arrives now begins another busy period.
            if self.until_idle && self.now > 0 && self.ready.is_empty() {
                break true;
            }
            self.arrive();
            let Some(running) = self.ready.pop() else {
                match self.coming.peek() {
                    Some(Reverse((at, ..))) if !self.until_idle => self.now = *at,
                    _ => break true,
                }
                continue;
            };
            // Nothing but what takes all that is left: no task of a time waits.
            let job = running.job;
            if self.until_idle
                && !is_timed(&self.tasks[job.task])
                && self.tally.seen[job.task].jobs > 0
            {
                break true;
            }
            self.execute(running);
        };
        let Tally { seen, schedule, events } = self.tally;
        Ended { seen, schedule, events, finished, end: self.now }
    }

    /// Runs a job until it is done or another arrives.
    fn execute(&mut self, mut running: Ready) {
        let job = &mut running.job;
        let done = self.now + Time::from(job.left);
        let next = self.coming.peek().map(|Reverse((at, ..))| *at);
        let end = next.map_or(done, |next| next.min(done));
        let ran = (end - self.now) as u64;
        job.left -= ran;
        if !running.blocks {
            self.tally.ran(running.job.task, self.now, end);
        }
        self.now = end;
        self.tally.events += 1;
        if running.job.left > 0 {
            self.ready.push(running);
        } else if !running.blocks {
            self.finish(running.job);
        }
    }

    fn finish(&mut self, job: Job) {
        let task = &self.tasks[job.task];
        self.tally.done(task, job, self.now);
        if !is_timed(task) {
            self.follow(job.task, self.now);
        }
    }

    /// Admits everything that has arrived by now.
    fn arrive(&mut self) {
        while let Some(&Reverse((at, task, nominal))) = self.coming.peek() {
            if at > self.now {
                return;
            }
            self.coming.pop();
            let left = self.tasks[task].execution.0;
            self.admit(Job { task, nominal, arrival: at, left }, false);
            self.await_next(task);
            self.tally.events += 1;
        }
    }

    fn admit(&mut self, job: Job, blocks: bool) {
        let task = &self.tasks[job.task];
        let urgency = match self.rule.scheduling {
            _ if job.task >= self.rule.interrupting => Time::MAX,
            Scheduling::FixedPriority => Time::from(task.priority),
            Scheduling::EarliestDeadline => -(job.nominal + Time::from(task.deadline.0)),
        };
        let place = if self.last == Some(job.task) { Time::MAX } else { job.arrival };
        let order = Reverse((place, self.arrived));
        self.arrived += 1;
        self.ready.push(Ready { urgency, order, job, blocks });
    }

    fn await_next(&mut self, index: usize) {
        let Release { nominal, arrival } = self.calendar.next(index, &self.tasks[index]);
        self.coming.push(Reverse((arrival, index, nominal)));
    }

    /// The next job of a task that never blocks.
    fn follow(&mut self, task: usize, at: Time) {
        let left = self.tasks[task].execution.0;
        self.admit(Job { task, nominal: at, arrival: at, left }, false);
    }
}
