//! How far a task is moved for one of its deadlines to fall on another's.

use std::collections::BTreeSet;

use crate::analysis::Task;

use super::is_timed;
use super::releases::Time;

/// Offsets of the task `index`, at most `most` of them and each below its period, at which one of its
/// deadlines is one of a task that was released at the beginning and went on until `end`.
pub(super) fn offsets(tasks: &[Task], index: usize, end: Time, most: u64) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    let own = &tasks[index];
    let due = |task: &Task| Time::from(task.deadline.0) - Time::from(task.jitter.0);
    for task in tasks.iter().filter(|task| is_timed(task)) {
        let period = Time::from(task.period.0);
        let mut place = due(task) - due(own);
        if place < 0 {
            place = place.rem_euclid(period);
        }
        // Places may repeat for ever: as many are looked at as are wanted.
        let mut looks = 0;
        while place < end && (found.len() as u64) < most && looks < most {
            found.insert((place % Time::from(own.period.0)) as u64);
            place += period;
            looks += 1;
        }
    }
    found
}
