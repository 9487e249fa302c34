//! When jobs come: the critical instant, or chance.

use whylate_stats::rng::Rng;

use crate::analysis::Task;

use super::is_timed;

/// An instant or a distance, ns: 64 bits of times, added up 2^32 times, fit.
pub(super) type Time = i128;

/// How jobs are released.
#[derive(Debug)]
pub(super) enum Pattern {
    /// All tasks at 0: the first job of each as late as its jitter allows, the others as early as
    /// they can be.
    AtOnce,
    /// The same, but for one task: its jobs come that much after the beginning and each period
    /// later, all as late as its jitter allows.
    Aligned {
        /// Which.
        task: usize,
        /// How much later.
        offset: u64,
    },
    /// Offsets and jitter by chance.
    Random(Rng),
}

/// One job to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Release {
    pub(super) nominal: Time,
    pub(super) arrival: Time,
}

/// The releases of all tasks, each in its order.
#[derive(Debug)]
pub(super) struct Calendar {
    pattern: Pattern,
    /// Nominal release of the next job, and arrival of the last.
    next: Vec<(Time, Time)>,
}

impl Calendar {
    pub(super) fn begin(tasks: &[Task], mut pattern: Pattern) -> Self {
        let next = tasks
            .iter()
            .enumerate()
            .map(|(index, task)| match &mut pattern {
                Pattern::Aligned { task: aligned, offset } if *aligned == index => {
                    (Time::from(*offset) - Time::from(task.jitter.0), 0)
                }
                Pattern::AtOnce | Pattern::Aligned { .. } if is_timed(task) => {
                    (-Time::from(task.jitter.0), 0)
                }
                Pattern::AtOnce | Pattern::Aligned { .. } => (0, 0),
                Pattern::Random(rng) => (Time::from(rng.below(task.period.0)), 0),
            })
            .collect();
        Self { pattern, next }
    }

    /// The next release of a task that is released by time.
    pub(super) fn next(&mut self, index: usize, task: &Task) -> Release {
        let (nominal, last) = self.next[index];
        let late = match &mut self.pattern {
            Pattern::Aligned { task: aligned, .. } if *aligned == index => task.jitter.0,
            Pattern::AtOnce | Pattern::Aligned { .. } => 0,
            Pattern::Random(rng) => rng.below(task.jitter.0.saturating_add(1)),
        };
        // Jobs of one task arrive in their order.
        let arrival = (nominal + Time::from(late)).max(last).max(0);
        self.next[index] = (nominal + Time::from(task.period.0), arrival);
        Release { nominal, arrival }
    }
}
