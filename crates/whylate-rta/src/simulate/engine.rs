//! One pattern of releases, from event to event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use whylate_model::Nanos;

use crate::analysis::Task;

use super::releases::{Calendar, Pattern, Release, Time};
use super::{MOST_SLOTS, Scheduling, Seen, Slot, is_timed};

/// A job that can run. The greatest runs: the most urgent key, then the first to arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ready {
    urgency: Time,
    order: Reverse<(Time, u64)>,
    job: Job,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Job {
    task: usize,
    nominal: Time,
    arrival: Time,
    left: u64,
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
}

pub(super) struct Engine<'a> {
    tasks: &'a [Task],
    scheduling: Scheduling,
    until_idle: bool,
    calendar: Calendar,
    /// Arrivals to come, one for each task that is released by time.
    coming: BinaryHeap<Reverse<(Time, usize, Time)>>,
    ready: BinaryHeap<Ready>,
    now: Time,
    arrived: u64,
    events: u64,
    seen: Vec<Seen>,
    schedule: Vec<Slot>,
}

impl<'a> Engine<'a> {
    /// All tasks at once, until the CPU is idle; `blocked` has just found what it needs in use.
    pub(super) fn at_once(
        tasks: &'a [Task],
        scheduling: Scheduling,
        blocked: Option<usize>,
    ) -> Self {
        let mut engine = Self::new(tasks, scheduling, Pattern::AtOnce);
        engine.until_idle = true;
        if let Some(task) = blocked {
            let left = tasks[task].blocking.0;
            engine.admit(Job { task, nominal: 0, arrival: -1, left, blocks: true });
        }
        engine
    }

    pub(super) fn new(tasks: &'a [Task], scheduling: Scheduling, pattern: Pattern) -> Self {
        let mut engine = Self {
            tasks,
            scheduling,
            until_idle: false,
            calendar: Calendar::begin(tasks, pattern),
            coming: BinaryHeap::new(),
            ready: BinaryHeap::new(),
            now: 0,
            arrived: 0,
            events: 0,
            seen: vec![Seen::default(); tasks.len()],
            schedule: Vec::new(),
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
            if self.events >= most {
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
            if self.until_idle && !is_timed(&self.tasks[job.task]) && self.seen[job.task].jobs > 0 {
                break true;
            }
            self.execute(running);
        };
        Ended { seen: self.seen, schedule: self.schedule, events: self.events, finished }
    }

    /// Runs a job until it is done or another arrives.
    fn execute(&mut self, mut running: Ready) {
        let job = &mut running.job;
        let done = self.now + Time::from(job.left);
        let next = self.coming.peek().map(|Reverse((at, ..))| *at);
        let end = next.map_or(done, |next| next.min(done));
        let ran = (end - self.now) as u64;
        job.left -= ran;
        let task = job.task;
        if !job.blocks {
            self.note(task, self.now, end);
        }
        self.now = end;
        self.events += 1;
        if running.job.left > 0 {
            self.ready.push(running);
        } else if !running.job.blocks {
            self.finish(running.job);
        }
    }

    fn finish(&mut self, job: Job) {
        let task = &self.tasks[job.task];
        let nominal = self.now - job.nominal;
        let seen = &mut self.seen[job.task];
        seen.jobs += 1;
        seen.misses += u64::from(nominal > Time::from(task.deadline.0));
        seen.nominal = seen.nominal.max(Some(nanos(nominal)));
        seen.actual = seen.actual.max(Some(nanos(self.now - job.arrival)));
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
            self.admit(Job { task, nominal, arrival: at, left, blocks: false });
            self.await_next(task);
            self.events += 1;
        }
    }

    fn admit(&mut self, job: Job) {
        let task = &self.tasks[job.task];
        let urgency = match self.scheduling {
            Scheduling::FixedPriority => Time::from(task.priority),
            Scheduling::EarliestDeadline => -(job.nominal + Time::from(task.deadline.0)),
        };
        let order = Reverse((job.arrival, self.arrived));
        self.arrived += 1;
        self.ready.push(Ready { urgency, order, job });
    }

    fn await_next(&mut self, index: usize) {
        let Release { nominal, arrival } = self.calendar.next(index, &self.tasks[index]);
        self.coming.push(Reverse((arrival, index, nominal)));
    }

    /// The next job of a task that never blocks.
    fn follow(&mut self, task: usize, at: Time) {
        let left = self.tasks[task].execution.0;
        self.admit(Job { task, nominal: at, arrival: at, left, blocks: false });
    }

    /// Keeps a stretch of the schedule, joined to the one before where it goes on.
    fn note(&mut self, task: usize, start: Time, end: Time) {
        let (start, end) = (nanos(start), nanos(end));
        let room = self.schedule.len() < MOST_SLOTS;
        match self.schedule.last_mut() {
            Some(last) if last.task == task && last.end == start => last.end = end,
            _ if start < end && room => {
                self.schedule.push(Slot { task, start, end });
            }
            _ => {}
        }
    }
}

/// A time as it is told; what does not fit is the most there is.
fn nanos(time: Time) -> Nanos {
    Nanos(u64::try_from(time.max(0)).unwrap_or(u64::MAX))
}
