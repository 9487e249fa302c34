//! A task: what it asks of the CPU, how often, and how late that may be.

use whylate_model::Nanos;

use super::cbs::Server;
use super::error::{Amount, AnalysisError};
use crate::task_set::MOST_THREADS;

/// As many as a set has threads: a prediction is there to be compared with them.
pub const MOST_TASKS: usize = MOST_THREADS;

/// A task of one CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// How urgent it is: larger is more urgent. Tasks of one priority are served in the order in
    /// which they arrive; the analysis counts all of their work against each other, which is never
    /// too little.
    pub priority: u32,
    /// What a job asks for at most.
    pub execution: Nanos,
    /// Least distance of two nominal releases.
    pub period: Nanos,
    /// From the nominal release.
    pub deadline: Nanos,
    /// How much later than its nominal release a job may arrive.
    pub jitter: Nanos,
    /// How long a less urgent task may keep it waiting at most.
    pub blocking: Nanos,
    /// What releases its jobs.
    pub releases: Releases,
    /// Its reservation, where it has one.
    pub server: Option<Server>,
}

/// What releases the jobs of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Releases {
    /// Time: one each period.
    #[default]
    Periodic,
    /// The end of the job before: the task never blocks, and takes what is left of the CPU.
    AfterTheLast,
}

impl Task {
    /// A task whose deadline is its period, without jitter, blocking or priority.
    #[must_use]
    pub fn new(name: impl Into<String>, execution: Nanos, period: Nanos) -> Self {
        Self {
            name: name.into(),
            priority: 0,
            execution,
            period,
            deadline: period,
            jitter: Nanos(0),
            blocking: Nanos(0),
            releases: Releases::Periodic,
            server: None,
        }
    }

    /// Are its times such that something can be computed from them?
    fn check(&self) -> Result<(), AnalysisError> {
        let times = [
            (self.execution, Amount::Execution),
            (self.period, Amount::Period),
            (self.deadline, Amount::Deadline),
        ];
        let servers = self
            .server
            .map(|server| [(server.budget, Amount::Budget), (server.period, Amount::ServerPeriod)]);
        let zero = times.iter().chain(servers.iter().flatten()).find(|(time, _)| *time == Nanos(0));
        if let Some((_, amount)) = zero {
            return Err(AnalysisError::Zero { task: self.name.clone(), amount: *amount });
        }
        if self.server.is_some_and(|server| server.budget > server.period) {
            return Err(AnalysisError::BudgetAbovePeriod { task: self.name.clone() });
        }
        Ok(())
    }

    pub(super) fn overflow(&self) -> AnalysisError {
        AnalysisError::Overflow { task: self.name.clone() }
    }
}

/// Refuses an empty set, one of too many tasks, and times of zero.
pub(crate) fn check(tasks: &[Task]) -> Result<(), AnalysisError> {
    match tasks.len() {
        0 => Err(AnalysisError::Empty),
        // What overheads add is not the user's.
        count if count > MOST_TASKS + 1 => Err(AnalysisError::TooMany(count)),
        _ => tasks.iter().try_for_each(Task::check),
    }
}
