//! Other whylate runs on this host.
//!
//! Two measurements at once disturb each other, and each would see the other's guards as changes
//! from outside. Runs of this user are found by their journals; those of others, whose journals are
//! private, by their measuring threads, whose names anybody may read. A process that is being born
//! or dies meanwhile may be missed: a recording looks more than once.

use std::path::Path;
use std::{fs, process};

use whylate_model::warning::Warning;
use whylate_model::{CpuId, Pid};

use crate::cpus;
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

/// A process below `root` that has measuring threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measuring {
    /// Its process id.
    pub pid: Pid,
    /// The CPUs that its measuring threads may use, ascending.
    pub cpus: Vec<CpuId>,
}

/// Processes below `root` that have measuring threads, of any user, by ascending id; without this process.
#[must_use]
pub fn measuring(root: &Path) -> Vec<Measuring> {
    let numbers = |directory: &Path| -> Vec<i32> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    };
    let name = |of: &str| trimmed(&under(root, &format!("/proc/{of}/comm"))).unwrap_or_default();
    let of = |pid: i32| -> Option<Measuring> {
        let tasks = numbers(&under(root, &format!("/proc/{pid}/task")));
        let tasks = tasks.iter().map(|tid| format!("{pid}/task/{tid}"));
        let measuring: Vec<String> =
            tasks.filter(|task| name(task).starts_with(MEASURING)).collect();
        let mut cpus: Vec<CpuId> = measuring.iter().flat_map(|task| allowed(root, task)).collect();
        cpus.sort_unstable();
        cpus.dedup();
        (!measuring.is_empty()).then_some(Measuring { pid: Pid(pid), cpus })
    };
    let others = numbers(&under(root, "/proc")).into_iter();
    let others =
        others.filter(|pid| *pid != process::id() as i32 && name(&pid.to_string()) == PROGRAM);
    let mut found: Vec<Measuring> = others.filter_map(of).collect();
    found.sort_unstable_by_key(|of| of.pid);
    found
}

/// The CPUs that a task may use; none where that cannot be read.
fn allowed(root: &Path, task: &str) -> Vec<CpuId> {
    let status = fs::read_to_string(under(root, &format!("/proc/{task}/status")));
    let status = status.unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.and_then(|list| cpus::parse_list(list.trim()).ok()).unwrap_or_default()
}

/// Other runs, found either way, as warnings of a run that measures these CPUs. A program that started this
/// one for a part of its own work waits for it, and is no other run.
#[must_use]
pub fn warnings(measured: &[CpuId]) -> Vec<Warning> {
    let measuring = measuring(Path::new("/"));
    let mut pids = running();
    pids.extend(measuring.iter().map(|of| of.pid));
    pids.sort_unstable();
    pids.dedup();
    let parent = std::os::unix::process::parent_id() as i32;
    pids.retain(|pid| pid.0 != parent);
    let same_cpu = |pid: Pid| {
        let mut cpus = measuring.iter().filter(|of| of.pid == pid).flat_map(|of| &of.cpus);
        cpus.any(|cpu| measured.contains(cpu))
    };
    pids.into_iter()
        .map(|pid| Warning::AnotherRun { pid: pid.0, same_cpu: same_cpu(pid) })
        .collect()
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
    use crate::tree::Idle;

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
        let status = "Name:\tgap/0\nCpus_allowed:\t6\nCpus_allowed_list:\t1-2\n";
        tree.file("/proc/11/task/111/status", status);
        let expected = [(11, vec![CpuId(1), CpuId(2)]), (14, vec![])];
        let expected = expected.map(|(pid, cpus)| Measuring { pid: Pid(pid), cpus });
        assert_eq!(measuring(tree.root()), expected);
    }

    #[test]
    fn others_that_live_are_found_and_neither_the_dead_nor_this_process() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(running_in(&dir.path().join("absent")), []);
        let _own = Journal::open_in(dir.path()).unwrap();
        let idle = Idle::start();
        let task = Task::read(idle.pid()).unwrap();
        let journal = |start_time| {
            let name = FileName { pid: task.tid, start_time };
            std::fs::write(dir.path().join(name.to_string()), "{}").unwrap();
        };
        journal(task.start_time + 1);
        assert_eq!(running_in(dir.path()), []);
        journal(task.start_time);
        assert_eq!(running_in(dir.path()), [task.tid]);
        drop(idle);
        assert_eq!(running_in(dir.path()), []);
    }
}
