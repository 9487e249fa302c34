//! Other whylate runs on this host.
//!
//! Two measurements at once disturb each other, and each would see the other's guards as changes
//! from outside. Runs of this user are found by their journals; those of others, whose journals are
//! private, by their measuring threads, whose names anybody may read. A process that is being born
//! or dies meanwhile may be missed: a recording looks more than once.

use std::path::Path;
use std::{fs, process};

use whylate_model::Pid;
use whylate_model::warning::Warning;

use crate::files::{trimmed, under};
use crate::journal::{FileName, candidates, names, open_directory};
use crate::tasks::Task;

/// Name of the program's processes.
const PROGRAM: &str = "whylate";
/// How the names of measuring threads begin.
const MEASURING: &str = "gap/";

/// Process ids of other runs of this user, ascending.
#[must_use]
pub fn running() -> Vec<Pid> {
    let mut found: Vec<Pid> =
        candidates().iter().flat_map(|directory| running_in(directory)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Process ids of processes below `root` that have measuring threads, of any user, ascending;
/// without this process.
#[must_use]
pub fn measuring(root: &Path) -> Vec<Pid> {
    let numbers = |directory: &Path| -> Vec<i32> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    };
    let name = |of: &str| trimmed(&under(root, &format!("/proc/{of}/comm"))).unwrap_or_default();
    let mut found: Vec<Pid> = numbers(&under(root, "/proc"))
        .into_iter()
        .filter(|pid| *pid != process::id() as i32 && name(&pid.to_string()) == PROGRAM)
        .filter(|pid| {
            let tasks = numbers(&under(root, &format!("/proc/{pid}/task")));
            tasks.iter().any(|tid| name(&format!("{pid}/task/{tid}")).starts_with(MEASURING))
        })
        .map(Pid)
        .collect();
    found.sort_unstable();
    found
}

/// Other runs, found either way, as warnings of a run. A program that started this one for a part of
/// its own work waits for it, and is no other run.
#[must_use]
pub fn warnings() -> Vec<Warning> {
    let mut pids = running();
    pids.extend(measuring(Path::new("/")));
    pids.sort_unstable();
    pids.dedup();
    let parent = std::os::unix::process::parent_id() as i32;
    pids.retain(|pid| pid.0 != parent);
    pids.into_iter().map(|pid| Warning::AnotherRun { pid: pid.0 }).collect()
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
    fn runs_of_anybody_are_known_by_their_measuring_threads() {
        let tree = crate::tree::Tree::empty();
        for (pid, program, thread) in [
            (11, "whylate", "gap/0"),
            (12, "whylate", "whylate"),
            (13, "sleep", "gap/0"),
            (14, "whylate", "gap/1"),
        ] {
            tree.file(&format!("/proc/{pid}/comm"), &format!("{program}\n"))
                .file(&format!("/proc/{pid}/task/{pid}/comm"), &format!("{program}\n"))
                .file(&format!("/proc/{pid}/task/{}/comm", pid + 100), &format!("{thread}\n"));
        }
        assert_eq!(measuring(tree.root()), [Pid(11), Pid(14)]);
    }

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
