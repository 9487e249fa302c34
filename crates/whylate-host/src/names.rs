//! Names of the threads that run now, for events that carry a thread id only.

use whylate_model::Pid;

use crate::tasks;

/// Thread id and name of every thread of the host.
#[must_use]
pub fn threads() -> Vec<(Pid, String)> {
    tasks::all().into_iter().map(|(_, task)| (task.tid, task.comm)).collect()
}
