//! Other whylate runs on this host.
//!
//! Two measurements at once disturb each other, and each would see the other's guards as changes
//! from outside. Runs of this user are found by their journals, which say what CPUs they measure; those of
//! others, whose journals are private, by their measuring threads, whose names anybody may read. A process
//! that is being born or dies meanwhile may be missed: a recording looks more than once.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, process};

use whylate_model::warning::Warning;
use whylate_model::{CpuId, Pid};

use crate::cpus;
use crate::files::{trimmed, under};
use crate::journal::{self, FileName, candidates, names, open_directory};
use crate::tasks::Task;

/// Name of the program's processes.
const PROGRAM: &str = "whylate";
/// How the names of measuring threads begin.
const MEASURING: &str = "gap/";

/// More processes that started one another than this are no chain.
const LONGEST_CHAIN: usize = 64;

/// A process that measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measuring {
    /// Its process id.
    pub pid: Pid,
    /// The CPUs that it measures, or that its measuring threads may use, ascending.
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

/// Other runs, found either way, as warnings of a run that measures these CPUs. Programs that this one started for
/// a part of its work, or that started this one so, and what those started, are no other run.
#[must_use]
pub fn warnings(measured: &[CpuId]) -> Vec<Warning> {
    let root = Path::new("/");
    let of_journals = candidates().into_iter().flat_map(|directory| measuring_in(&directory));
    let own = first_of_chain(root, process::id() as i32);
    let is_own = |pid: Pid| first_of_chain(root, pid.0) == own;
    beside(measured, of_journals.chain(measuring(root)), is_own)
}

/// The warnings of a run on these CPUs, each run once, whichever way it was found.
fn beside(
    measured: &[CpuId],
    found: impl Iterator<Item = Measuring>,
    is_own: impl Fn(Pid) -> bool,
) -> Vec<Warning> {
    let mut others: BTreeMap<Pid, Vec<CpuId>> = BTreeMap::new();
    for one in found {
        others.entry(one.pid).or_default().extend(one.cpus);
    }
    others.retain(|pid, _| !is_own(*pid));
    let same_cpu = |cpus: &[CpuId]| cpus.iter().any(|cpu| measured.contains(cpu));
    others
        .into_iter()
        .map(|(pid, cpus)| Warning::AnotherRun { pid: pid.0, same_cpu: same_cpu(&cpus) })
        .collect()
}

/// Adds these warnings to what was found before: another run that was found on the same CPU later is told once,
/// as that.
pub fn add(found: &mut Vec<Warning>, warnings: Vec<Warning>) {
    for warning in warnings {
        let elsewhere = |of: &Warning| matches!(of, Warning::AnotherRun { same_cpu: false, .. });
        let is_known = |of: &Warning| of.process() == warning.process() && !elsewhere(of);
        if found.contains(&warning) || found.iter().any(is_known) {
            continue;
        }
        found.retain(|of| !(elsewhere(of) && of.process() == warning.process()));
        found.push(warning);
    }
}

/// The first of the programs of ours that started one another until this one was started.
fn first_of_chain(root: &Path, pid: i32) -> i32 {
    let parent = |of: &i32| -> Option<i32> {
        let status = fs::read_to_string(under(root, &format!("/proc/{of}/status"))).ok()?;
        let parent =
            status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
        let name = trimmed(&under(root, &format!("/proc/{parent}/comm")))?;
        (name == PROGRAM).then_some(parent)
    };
    std::iter::successors(Some(pid), parent).take(LONGEST_CHAIN).last().unwrap_or(pid)
}

/// Other runs that keep their journal in `directory`.
#[must_use]
pub fn running_in(directory: &Path) -> Vec<Pid> {
    measuring_in(directory).into_iter().map(|of| of.pid).collect()
}

/// The same with the CPUs that they measure.
fn measuring_in(directory: &Path) -> Vec<Measuring> {
    let Ok(handle) = open_directory(directory, false) else { return Vec::new() };
    let me = Task::this_process().map(|task| task.tid);
    let files = names(&handle).unwrap_or_default();
    let files = files.iter().filter_map(|name| FileName::parse(name));
    files
        .filter(|file| Some(file.pid) != me && Task::alive(file.pid, file.start_time))
        .map(|file| Measuring { pid: file.pid, cpus: journal::measured(&handle, file) })
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

    #[test]
    fn a_journal_says_which_cpus_its_process_measures() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(dir.path()).unwrap();
        journal.measures(&[CpuId(3), CpuId(5)]).unwrap();
        let handle = open_directory(dir.path(), false).unwrap();
        let file = FileName::parse(journal.path().file_name().unwrap().to_str().unwrap()).unwrap();
        assert_eq!(journal::measured(&handle, file), [CpuId(3), CpuId(5)]);
        let other = FileName { pid: file.pid, start_time: file.start_time + 1 };
        assert_eq!(journal::measured(&handle, other), [], "there is no such file");
        // It is no change that a later start had to undo.
        assert_eq!(journal.entries(), []);
        let path = journal.path();
        drop(journal);
        assert!(!path.exists());
    }

    #[test]
    fn another_run_is_on_the_same_cpu_where_it_measures_or_may_use_one_of_those() {
        let found = [
            (11, vec![0, 2]),
            (12, vec![1]),
            (13, vec![]),
            (13, vec![3]),
            (14, vec![]),
            (20, vec![2]),
        ];
        let found = found.map(|(pid, cpus)| Measuring {
            pid: Pid(pid),
            cpus: cpus.into_iter().map(CpuId).collect(),
        });
        let warnings = beside(&[CpuId(2), CpuId(3)], found.into_iter(), |pid| pid == Pid(20));
        let expected = [(11, true), (12, false), (13, true), (14, false)];
        assert_eq!(warnings, expected.map(|(pid, same_cpu)| Warning::AnotherRun { pid, same_cpu }));
    }

    #[test]
    fn programs_that_started_one_another_are_one_run() {
        let tree = crate::tree::Tree::empty();
        // A shell starts 10 and 20; 10 starts 11, which starts 12; 20 starts 21 by a shell of its own.
        for (pid, name, parent) in [
            (5, "sh", 1),
            (10, "whylate", 5),
            (11, "whylate", 10),
            (12, "whylate", 11),
            (20, "whylate", 5),
            (22, "sh", 20),
            (21, "whylate", 22),
            (30, "whylate", 31),
            (31, "whylate", 30),
        ] {
            tree.file(&format!("/proc/{pid}/comm"), &format!("{name}\n"))
                .file(&format!("/proc/{pid}/status"), &format!("Name:\t{name}\nPPid:\t{parent}\n"));
        }
        let first = |pid| first_of_chain(tree.root(), pid);
        assert_eq!([10, 11, 12, 20, 21].map(first), [10, 10, 10, 20, 21]);
        assert_eq!(first(99), 99, "one that has gone");
        assert!([30, 31].contains(&first(30)), "a table that was read while it changed");
    }

    #[test]
    fn another_run_is_told_once_and_as_on_the_same_cpu_where_it_ever_was() {
        let other = |pid, same_cpu| Warning::AnotherRun { pid, same_cpu };
        let mut found = vec![Warning::Interrupted, other(7, false), other(8, true)];
        add(&mut found, vec![other(7, true), other(8, false), other(9, false)]);
        add(&mut found, vec![other(7, false), other(9, false)]);
        assert_eq!(found, [Warning::Interrupted, other(8, true), other(7, true), other(9, false)]);
    }
}
