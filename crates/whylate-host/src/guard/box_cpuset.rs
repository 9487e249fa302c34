//! A cpuset for the processes of a box: the CPUs, and the memory node, that are theirs.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use whylate_model::warning::Warning;
use whylate_model::{CpuId, Pid};

use super::Guard;
use super::changes::Changes;
use super::group::{Below, Group, Kind, Place};
use crate::cpus::{format_list, parse_list};
use crate::error::HostError;
use crate::files::{required, trimmed};
use crate::journal::{Bound, Home, Journal, PROCESSES, Undo};
use crate::kernel;
use crate::tasks::{self, Task};

const CONTROLLER: &str = "cpuset";
const PARTITION: &str = "cpuset.cpus.partition";
const REMEDY: &str = "another exclusive cpuset, such as that of a container or of a session, holds \
                      one of these CPUs, or this needs root";
const ADOPT_REMEDY: &str = "its threads must be free of deadlines, and the CPUs online";

/// What a cpuset of a box is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoxCpusetShape {
    /// Its CPUs.
    pub cpus: Vec<CpuId>,
    /// The node that memory is taken from; any that the cgroup above has where none is named.
    pub node: Option<u32>,
    /// May no cpuset beside it have these CPUs?
    pub exclusive: bool,
}

/// A cpuset that processes of a box are in, until the guard goes; then each is where it came from,
/// with the CPUs that its threads had.
#[derive(Debug)]
pub struct BoxCpuset {
    changes: Changes,
    group: Group,
    shape: BoxCpusetShape,
    place: Place,
    homes: Vec<String>,
}

impl BoxCpuset {
    /// Makes the cpuset on the host below `root` and moves `processes` in.
    pub fn make(
        journal: &Journal,
        root: &Path,
        shape: BoxCpusetShape,
        processes: &[Pid],
    ) -> Result<Self, HostError> {
        /// Several boxes of one process have one each.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let mut place = Place::find(root, CONTROLLER, Below::Root)?;
        if place.kind == Kind::TwoThreaded {
            // A box is processes.
            place.kind = Kind::TwoProcess;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("whylate-{}-box{number}", journal.owner());
        let mut changes = Changes::new(journal);
        let group = Group::make(&mut changes, &place, &name, CONTROLLER)?;
        let mut guard = Self { changes, group, shape, place, homes: Vec::new() };
        guard.fill()?;
        guard.adopt(processes)?;
        guard.check(processes)?;
        Ok(guard)
    }

    /// Where the box's processes came from, each cgroup once.
    #[must_use]
    pub fn homes(&self) -> &[String] {
        &self.homes
    }

    /// Its CPUs as they read back.
    #[must_use]
    pub fn cpus(&self) -> String {
        trimmed(&self.group.dir.join("cpuset.cpus")).unwrap_or_default()
    }

    /// Its memory nodes as they read back.
    #[must_use]
    pub fn mems(&self) -> String {
        trimmed(&self.group.dir.join("cpuset.mems")).unwrap_or_default()
    }

    fn fill(&self) -> Result<(), HostError> {
        let (group, shape) = (&self.group, &self.shape);
        let cpus = format_list(&shape.cpus);
        let node = shape.node.map(|node| node.to_string());
        if self.place.kind == Kind::One {
            let above = || required(&self.place.parent.join("cpuset.mems"));
            let mems = node.map_or_else(above, Ok)?.trim().to_owned();
            group.write("cpuset.mems", &mems, REMEDY)?;
            group.write("cpuset.cpus", &cpus, REMEDY)?;
            if shape.node.is_some() {
                group.write("cpuset.memory_migrate", "1", REMEDY)?;
            }
            if shape.exclusive {
                group.write("cpuset.cpu_exclusive", "1", REMEDY)?;
            }
        } else {
            group.write("cpuset.cpus", &cpus, REMEDY)?;
            if let Some(node) = node {
                group.write("cpuset.mems", &node, REMEDY)?;
            }
            if shape.exclusive {
                group.write(PARTITION, "root", REMEDY)?;
            }
        }
        Ok(())
    }

    /// Announces everybody, then moves them: the journal knows where to send them back to.
    fn adopt(&mut self, processes: &[Pid]) -> Result<(), HostError> {
        let mut homes = Vec::new();
        let mut threads = Vec::new();
        for &pid in processes {
            let Some(process) = Task::read(pid) else { return Err(HostError::BoxEnded { pid }) };
            let home = self.place.home_of_process(pid);
            let home = home.unwrap_or_else(|| self.place.parent.clone()).display().to_string();
            if !self.homes.contains(&home) {
                self.homes.push(home.clone());
            }
            homes.push(Home { pid, start_time: process.start_time, cgroup: home });
            threads.extend(tasks::of_process(pid).into_iter().filter_map(|(_, task)| {
                let cpus = tasks::mask_of(task.tid)?;
                Some(Bound { pid: task.tid, start_time: task.start_time, cpus })
            }));
        }
        self.changes.announce(vec![Undo::EmptyGroup {
            path: self.group.dir.display().to_string(),
            homes,
            threads,
            otherwise: self.place.parent.display().to_string(),
        }])?;
        let file = self.group.dir.join(PROCESSES);
        for &task in processes {
            fs::write(&file, task.to_string()).map_err(|source| HostError::NotAdopted {
                task,
                path: self.group.dir.clone(),
                source,
                remedy: ADOPT_REMEDY,
            })?;
        }
        Ok(())
    }

    /// Reads back what the kernel may have taken otherwise.
    fn check(&self, processes: &[Pid]) -> Result<(), HostError> {
        let dir = &self.group.dir;
        let not_kept = |knob: &str, asked: String, got: String| HostError::KnobNotKept {
            knob: format!("cpuset ({knob})"),
            asked,
            got,
        };
        let cpus = self.cpus();
        let mut asked = self.shape.cpus.clone();
        asked.sort_unstable();
        if parse_list(&cpus).ok().as_ref() != Some(&asked) {
            return Err(not_kept("cpuset.cpus", format_list(&asked), cpus));
        }
        if let Some(node) = self.shape.node
            && self.mems() != node.to_string()
        {
            return Err(not_kept("cpuset.mems", node.to_string(), self.mems()));
        }
        if self.shape.exclusive {
            let (file, word) = match self.place.kind {
                Kind::One => ("cpuset.cpu_exclusive", "1"),
                Kind::TwoThreaded | Kind::TwoProcess => (PARTITION, "root"),
            };
            let got = trimmed(&dir.join(file)).unwrap_or_default();
            if got != word {
                return Err(not_kept(file, word.to_owned(), got));
            }
        }
        for &pid in processes {
            let Ok(now) = kernel::affinity(pid) else { continue };
            if !now.iter().all(|cpu| asked.contains(cpu)) {
                let got = format!("{} of process {pid}", format_list(&now));
                return Err(not_kept("CPUs in force", format_list(&asked), got));
            }
        }
        Ok(())
    }
}

impl Guard for BoxCpuset {
    fn describe(&self) -> Vec<String> {
        let (dir, alone) = (self.group.dir.display(), self.shape.exclusive);
        let how = if alone { ", exclusively" } else { "" };
        let mems = self.mems();
        vec![format!("the box is in cpuset {dir}: cpus {}{how}, memory node {mems}", self.cpus())]
    }

    fn restore(&mut self) -> Vec<Warning> {
        self.changes.restore()
    }
}

#[cfg(test)]
mod tests {
    use whylate_sys::affinity;

    use super::*;
    use crate::tree::{self, Idle};

    fn cgroup_of(idle: &Idle) -> String {
        fs::read_to_string(format!("/proc/{}/cgroup", idle.pid())).unwrap()
    }

    fn shape(cpu: CpuId) -> BoxCpusetShape {
        BoxCpusetShape { cpus: vec![cpu], node: None, exclusive: false }
    }

    /// A box of this host in a cpuset on the last CPU; it was bound to the first before.
    fn on_this_host(body: impl FnOnce(&Journal, BoxCpuset, &Idle, CpuId, &str)) {
        let _turn = tree::turn(&tree::CPUSETS);
        let all = affinity::get();
        let [first, .., last] = all[..] else {
            return tree::skip(&"this process has a single CPU: there is none to move to");
        };
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(&dir.path().join("journals")).unwrap();
        let idle = Idle::on(first);
        let home = cgroup_of(&idle);
        match BoxCpuset::make(&journal, Path::new("/"), shape(last), &[idle.pid()]) {
            Ok(guard) => body(&journal, guard, &idle, first, &home),
            Err(error) => tree::skip(&error),
        }
    }

    #[test]
    fn a_box_enters_and_comes_back_to_its_cgroup_and_its_cpu() {
        on_this_host(|journal, guard, idle, first, home| {
            assert_ne!(kernel::affinity(idle.pid()).unwrap(), [first]);
            assert_ne!(cgroup_of(idle), home);
            let dir = guard.group.dir.clone();
            drop(guard);
            assert!(!dir.exists());
            assert_eq!(cgroup_of(idle), home);
            assert_eq!(kernel::affinity(idle.pid()).unwrap(), [first]);
            assert_eq!(journal.entries(), []);
        });
    }

    #[test]
    fn what_a_killed_process_left_is_taken_back_though_the_box_lives_on() {
        on_this_host(|journal, guard, idle, first, home| {
            let dir = guard.group.dir.clone();
            let entries = journal.entries();
            std::mem::forget(guard);
            let around = crate::journal::Surroundings::of(journal.owner());
            for entry in entries.iter().rev() {
                assert!(entry.undo.plausible(&["/sys"]).is_ok(), "{}", entry.undo);
                assert!(entry.undo.apply(&around).settled(), "{}", entry.undo);
            }
            journal.strike(&entries.iter().map(|entry| entry.id).collect::<Vec<_>>()).unwrap();
            assert!(!dir.exists());
            assert_eq!(cgroup_of(idle), home);
            assert_eq!(kernel::affinity(idle.pid()).unwrap(), [first]);
        });
    }

    #[test]
    fn a_process_that_is_not_there_leaves_no_cpuset() {
        let _turn = tree::turn(&tree::CPUSETS);
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(&dir.path().join("journals")).unwrap();
        let cpu = affinity::get()[0];
        match BoxCpuset::make(&journal, Path::new("/"), shape(cpu), &[Pid(i32::MAX)]) {
            Err(HostError::BoxEnded { .. }) => assert_eq!(journal.entries(), []),
            Err(error) => tree::skip(&error),
            Ok(_) => panic!("a process that is not there entered"),
        }
    }
}
