//! Other whylate runs on this host.
//!
//! Two measurements at once disturb each other, and each would see the other's guards as changes
//! from outside. Runs are found by their journals: those of this user, alive, and not this process.

use std::path::Path;

use whylate_model::Pid;
use whylate_model::warning::Warning;

use crate::journal::{FileName, candidates, names, open_directory};
use crate::tasks::Task;

/// Process ids of other runs of this user, ascending.
#[must_use]
pub fn running() -> Vec<Pid> {
    let mut found: Vec<Pid> =
        candidates().iter().flat_map(|directory| running_in(directory)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// [`running`] as warnings of a run.
#[must_use]
pub fn warnings() -> Vec<Warning> {
    running().into_iter().map(|pid| Warning::AnotherRun { pid: pid.0 }).collect()
}

/// Other runs that keep their journal in `directory`.
#[must_use]
pub fn running_in(directory: &Path) -> Vec<Pid> {
    let names = open_directory(directory, false).and_then(|handle| names(&handle));
    let me = Task::this_process().map(|task| task.tid);
    names
        .unwrap_or_default()
        .iter()
        .filter_map(|name| FileName::parse(name))
        .filter(|file| Some(file.pid) != me && Task::alive(file.pid, file.start_time))
        .map(|file| file.pid)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Journal;

    #[test]
    fn others_that_live_are_found_and_neither_the_dead_nor_this_process() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(running_in(&dir.path().join("absent")), []);
        let _own = Journal::open_in(dir.path()).unwrap();
        let mut other = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let task = Task::read(Pid(other.id() as i32)).unwrap();
        let journal = |start_time| {
            let name = FileName { pid: task.tid, start_time };
            std::fs::write(dir.path().join(name.to_string()), "{}").unwrap();
        };
        journal(task.start_time + 1);
        assert_eq!(running_in(dir.path()), []);
        journal(task.start_time);
        assert_eq!(running_in(dir.path()), [task.tid]);
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(running_in(dir.path()), []);
    }
}
