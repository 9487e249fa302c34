//! What is noted while a pattern is simulated.

use whylate_model::Nanos;

use crate::analysis::Task;

use super::releases::Time;
use super::{MOST_SLOTS, Seen, Slot};

/// A job of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Job {
    pub(super) task: usize,
    pub(super) nominal: Time,
    pub(super) arrival: Time,
    pub(super) left: u64,
}

/// What came of a pattern.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) seen: Vec<Seen>,
    pub(super) schedule: Vec<Slot>,
    pub(super) events: u64,
}

impl Tally {
    pub(super) fn of(tasks: usize) -> Self {
        Self { seen: vec![Seen::default(); tasks], schedule: Vec::new(), events: 0 }
    }

    /// A job of `task` is done.
    pub(super) fn done(&mut self, task: &Task, job: Job, now: Time) {
        let nominal = now - job.nominal;
        let seen = &mut self.seen[job.task];
        seen.jobs += 1;
        seen.misses += u64::from(nominal > Time::from(task.deadline.0));
        seen.nominal = seen.nominal.max(Some(nanos(nominal)));
        seen.actual = seen.actual.max(Some(nanos(now - job.arrival)));
    }

    /// Keeps a stretch of the schedule, joined to the one before where it goes on.
    pub(super) fn ran(&mut self, task: usize, start: Time, end: Time) {
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
