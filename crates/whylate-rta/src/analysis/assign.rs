//! Which task goes before which, where nobody has said so.

use super::task::{Releases, Task};

/// How priorities are given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assignment {
    /// The shorter the period the more urgent: best where deadlines are periods (Liu and Layland,
    /// 1973).
    RateMonotonic,
    /// The shorter the deadline, less the jitter, the more urgent: best where deadlines lie within
    /// periods (Leung and Whitehead, 1982; Zuhily and Burns, 2007).
    DeadlineMonotonic,
}

/// Gives each task a priority of its own, 1 for the least urgent. Equals keep their order; what never
/// blocks comes last.
pub fn assign(tasks: &mut [Task], by: Assignment) {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&index| {
        let task = &tasks[index];
        let length = match by {
            Assignment::RateMonotonic => task.period.0,
            Assignment::DeadlineMonotonic => task.deadline.0.saturating_sub(task.jitter.0),
        };
        (task.releases == Releases::AfterTheLast, length)
    });
    for (rank, index) in order.into_iter().rev().enumerate() {
        tasks[index].priority = u32::try_from(rank + 1).unwrap_or(u32::MAX);
    }
}

#[cfg(test)]
mod tests {
    use whylate_model::Nanos;

    use super::*;

    fn priorities(times: &[(u64, u64, u64)], by: Assignment) -> Vec<u32> {
        let task = |&(period, deadline, jitter): &(u64, u64, u64)| Task {
            deadline: Nanos(deadline),
            jitter: Nanos(jitter),
            ..Task::new("t", Nanos(1), Nanos(period))
        };
        let mut tasks: Vec<Task> = times.iter().map(task).collect();
        assign(&mut tasks, by);
        tasks.iter().map(|task| task.priority).collect()
    }

    #[test]
    fn short_periods_or_short_deadlines_come_first_and_equals_in_their_order() {
        let times = [(33, 10, 0), (8, 8, 0), (33, 33, 0), (50, 12, 5)];
        assert_eq!(priorities(&times, Assignment::RateMonotonic), [3, 4, 2, 1]);
        assert_eq!(priorities(&times, Assignment::DeadlineMonotonic), [2, 3, 1, 4]);
        assert_eq!(priorities(&[], Assignment::RateMonotonic), Vec::<u32>::new());
        let endless =
            Task { releases: Releases::AfterTheLast, ..Task::new("e", Nanos(1), Nanos(2)) };
        let mut tasks = [endless, Task::new("p", Nanos(1), Nanos(9))];
        assign(&mut tasks, Assignment::RateMonotonic);
        assert_eq!((tasks[0].priority, tasks[1].priority), (1, 2));
    }
}
