//! CPUs for some threads alone, as a scheduling domain of their own.
//!
//! SCHED_DEADLINE takes no thread that is bound to fewer CPUs than its scheduling domain has. So a
//! thread that is to have a reservation on one CPU needs a domain of that CPU. Version 1: two
//! exclusive sibling cpusets (the CPUs, and the rest) and no load balancing at the root. Version 2:
//! a cpuset partition.
//!
//! Tasks that run on the CPUs already are not sent away; [`super::MovedTasks`] does that.

use std::fmt;
use std::path::Path;

use whylate_model::warning::Warning;
use whylate_model::{CpuId, Pid};

use super::Guard;
use super::changes::{Changes, Written};
use super::group::{Below, Group, Kind, Place};
use crate::cpus::format_list;
use crate::error::HostError;
use crate::files::{required, trimmed};
use crate::journal::Journal;
use crate::topology::Topology;

const CONTROLLER: &str = "cpuset";
const LOAD_BALANCE: &str = "cpuset.sched_load_balance";
const PARTITION: &str = "cpuset.cpus.partition";
const EXCLUSIVE_REMEDY: &str = "another exclusive cpuset, such as that of a container or of a \
                                session, holds one of these CPUs, or this needs root";
const ADOPT_REMEDY: &str = "the thread must be free of a deadline, and its CPUs online";

/// What would be changed to give CPUs a domain of their own; nothing is changed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpusetPlan {
    place: Place,
    cpus: String,
    rest: String,
    mems: String,
}

impl CpusetPlan {
    /// Looks at the host below `root`.
    pub fn of(root: &Path, cpus: &[CpuId]) -> Result<Self, HostError> {
        let topology = Topology::read(root)?;
        let rest: Vec<CpuId> =
            topology.online().iter().copied().filter(|cpu| !cpus.contains(cpu)).collect();
        if rest.is_empty() || cpus.is_empty() {
            return Err(HostError::NowhereToMove { cpus: format_list(cpus) });
        }
        let place = Place::find(root, CONTROLLER, Below::Root)?;
        let mems = match place.kind {
            Kind::One => required(&place.parent.join("cpuset.mems"))?.trim().to_owned(),
            Kind::TwoThreaded | Kind::TwoProcess => String::new(),
        };
        Ok(Self { place, cpus: format_list(cpus), rest: format_list(&rest), mems })
    }

    /// What would be changed, and what that does to others; for an offer.
    #[must_use]
    pub fn what_would_be_changed(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for CpusetPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, cpus, rest, .. } = self;
        let parent = place.parent.display();
        match place.kind {
            Kind::One => write!(
                f,
                "two exclusive cpusets are made below {parent}, one with cpus {cpus} for the \
                 measured threads and one with cpus {rest}, and {parent}/{LOAD_BALANCE} is set to \
                 0: until the end the scheduler does not move tasks between cpus {cpus} and cpus \
                 {rest} to balance load, and who runs on cpus {cpus} already stays; then all of it \
                 is undone"
            ),
            Kind::TwoThreaded | Kind::TwoProcess => {
                let who = match self.place.kind {
                    Kind::TwoProcess => "this whole process",
                    _ => "the measured threads",
                };
                write!(
                    f,
                    "a cpuset partition with cpus {cpus} is made below {parent} for {who}: until \
                     the end all other tasks are kept off cpus {cpus}; then it is undone"
                )
            }
        }
    }
}

/// CPUs of the adopted threads alone, until the guard goes.
#[derive(Debug)]
pub struct ExclusiveCpuset {
    // Before the changes: nobody may be inside when the groups are removed.
    measured: Group,
    rest: Option<Group>,
    changes: Changes,
    balance: Option<Written>,
    cpus: String,
}

impl ExclusiveCpuset {
    /// Carries a plan out.
    pub fn make(journal: &Journal, plan: &CpusetPlan) -> Result<Self, HostError> {
        let mut changes = Changes::new(journal);
        let name = |tag: &str| format!("whylate-{}-{tag}", journal.owner());
        let measured = Group::make(&mut changes, &plan.place, &name("measured"), CONTROLLER)?;
        let mut guard =
            Self { measured, rest: None, changes, balance: None, cpus: plan.cpus.clone() };
        if plan.place.kind == Kind::One {
            let rest = Group::make(&mut guard.changes, &plan.place, &name("rest"), CONTROLLER)?;
            for (group, cpus) in [(&guard.measured, &plan.cpus), (&rest, &plan.rest)] {
                group.write("cpuset.mems", &plan.mems, EXCLUSIVE_REMEDY)?;
                group.write("cpuset.cpus", cpus, EXCLUSIVE_REMEDY)?;
                group.write("cpuset.cpu_exclusive", "1", EXCLUSIVE_REMEDY)?;
            }
            guard.rest = Some(rest);
            let balance = plan.place.parent.join(LOAD_BALANCE);
            guard.balance = guard.changes.write(&balance, "0", "run as root")?;
        } else {
            guard.measured.write("cpuset.cpus", &plan.cpus, EXCLUSIVE_REMEDY)?;
            guard.measured.write(PARTITION, "root", EXCLUSIVE_REMEDY)?;
            guard.is_partition()?;
        }
        Ok(guard)
    }

    /// Moves a thread of this process in: from then on it runs on these CPUs. Where the kernel
    /// moves whole processes only, this process moves.
    pub fn adopt(&self, thread: Pid) -> Result<(), HostError> {
        self.measured.adopt(thread, ADOPT_REMEDY)
    }

    /// The kernel takes the word and may say in the same file that it is not so.
    fn is_partition(&self) -> Result<(), HostError> {
        let path = self.measured.dir.join(PARTITION);
        match trimmed(&path) {
            Some(found) if found != "root" => {
                Err(HostError::NotKept { path, wanted: "root".to_owned(), found })
            }
            _ => Ok(()),
        }
    }
}

impl Guard for ExclusiveCpuset {
    fn describe(&self) -> Vec<String> {
        let (dir, cpus) = (self.measured.dir.display(), &self.cpus);
        let mut lines = vec![format!("cpus {cpus} are a scheduling domain of their own: {dir}")];
        if self.measured.moves_the_process() {
            lines.push(format!("the whole process runs on cpus {cpus}, housekeeping included"));
        }
        if let Some(Written { before, now }) = &self.balance {
            lines.push(format!("no load balancing at the root: {LOAD_BALANCE} {before} -> {now}"));
        }
        lines
    }

    fn restore(&mut self) -> Vec<Warning> {
        let mut warnings = self.measured.evacuate();
        warnings.extend(self.rest.iter().flat_map(Group::evacuate));
        warnings.extend(self.changes.restore());
        warnings
    }
}

impl Drop for ExclusiveCpuset {
    fn drop(&mut self) {
        for warning in self.restore() {
            super::say(warning);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use whylate_model::Nanos;
    use whylate_sys::sched::{self, DeadlineFlags, Policy};
    use whylate_sys::{affinity, process};

    use super::*;
    use crate::files::under;
    use crate::tree::{self, Tree};

    fn two_cpus(mounts: &str, own: &str) -> Tree {
        let tree = Tree::empty();
        let cpu = "/sys/devices/system/cpu";
        for list in ["possible", "present", "online"] {
            tree.file(&format!("{cpu}/{list}"), "0-3\n");
        }
        tree.file("/proc/mounts", mounts).file("/proc/thread-self/cgroup", own);
        tree
    }

    fn version_two(own: &str) -> Tree {
        let tree = two_cpus("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", own);
        tree.file("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io\n")
            .file("/sys/fs/cgroup/cgroup.subtree_control", "cpu\n")
            .file("/sys/fs/cgroup/cgroup.procs", "");
        tree
    }

    #[test]
    fn an_offer_says_what_would_be_changed_and_changes_nothing() {
        let tree = two_cpus("cgroup /cg/cpuset cgroup rw,cpuset 0 0\n", "3:cpuset:/\n");
        tree.file("/cg/cpuset/cpuset.mems", "0\n").file(&format!("/cg/cpuset/{LOAD_BALANCE}"), "1");
        let plan = CpusetPlan::of(tree.root(), &[CpuId(1), CpuId(3)]).unwrap();
        let text = plan.what_would_be_changed();
        for part in ["cpus 1,3", "cpus 0,2", LOAD_BALANCE, "undone"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let files = fs::read_dir(under(tree.root(), "/cg/cpuset")).unwrap().count();
        assert_eq!(files, 2);
        let plan = CpusetPlan::of(version_two("0::/x\n").root(), &[CpuId(1)]).unwrap();
        assert!(plan.what_would_be_changed().contains("this whole process"), "{plan}");
    }

    #[test]
    fn a_host_without_the_controller_or_without_another_cpu_is_refused() {
        let tree = two_cpus("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", "0::/\n");
        let error = CpusetPlan::of(tree.root(), &[CpuId(0)]).unwrap_err().to_string();
        assert!(error.contains("cpuset") && error.contains("/sys/fs/cgroup"), "{error}");
        let all: Vec<CpuId> = (0..4).map(CpuId).collect();
        let error = CpusetPlan::of(version_two("0::/\n").root(), &all).unwrap_err();
        assert!(matches!(error, HostError::NowhereToMove { .. }), "{error}");
    }

    #[test]
    fn a_partition_of_version_two_is_made_threaded_and_its_controller_taken_back() {
        let tree = version_two("0::/\n");
        let journal = Journal::open_in(&tree.root().join("journals")).unwrap();
        let plan = CpusetPlan::of(tree.root(), &[CpuId(2)]).unwrap();
        let mut guard = ExclusiveCpuset::make(&journal, &plan).unwrap();
        let dir = guard.measured.dir.clone();
        let says = |file: &str| fs::read_to_string(dir.join(file)).unwrap();
        assert_eq!((says("cgroup.type"), says("cpuset.cpus")), ("threaded".into(), "2".into()));
        assert_eq!(says(PARTITION), "root");
        let control = under(tree.root(), "/sys/fs/cgroup/cgroup.subtree_control");
        assert_eq!(fs::read_to_string(&control).unwrap(), "+cpuset");
        guard.adopt(Pid(77)).unwrap();
        assert_eq!(says("cgroup.threads"), "77");
        // A real cgroup is empty of files when it is removed, and lists what it handed on.
        for file in fs::read_dir(&dir).unwrap() {
            fs::remove_file(file.unwrap().path()).unwrap();
        }
        fs::write(&control, "cpuset cpu\n").unwrap();
        assert_eq!(guard.restore(), []);
        assert!(!dir.exists());
        assert_eq!(fs::read_to_string(&control).unwrap(), "-cpuset");
        assert_eq!(journal.entries(), []);
    }

    #[test]
    fn a_partition_that_the_kernel_calls_invalid_is_an_error() {
        let tree = version_two("0::/\n");
        let journal = Journal::open_in(&tree.root().join("journals")).unwrap();
        let plan = CpusetPlan::of(tree.root(), &[CpuId(2)]).unwrap();
        let guard = ExclusiveCpuset::make(&journal, &plan).unwrap();
        fs::write(guard.measured.dir.join(PARTITION), "root invalid (Cpu list in use)").unwrap();
        let error = guard.is_partition().unwrap_err().to_string();
        assert!(error.contains("Cpu list in use"), "{error}");
        fs::remove_dir_all(&guard.measured.dir).unwrap();
    }

    /// A cpuset of this host, or why not. Tests that hold one may not run at once.
    fn on_this_host(body: impl FnOnce(&Journal, &CpusetPlan, CpuId)) {
        let _alone = tree::turn(&tree::CPUSETS);
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(&dir.path().join("journals")).unwrap();
        let cpu = *affinity::get().last().unwrap();
        match CpusetPlan::of(Path::new("/"), &[cpu]) {
            Ok(plan) => body(&journal, &plan, cpu),
            Err(error) => tree::skip(&error),
        }
    }

    #[test]
    fn a_thread_bound_to_one_cpu_of_this_host_gets_a_deadline_and_all_is_as_before() {
        on_this_host(|journal, plan, cpu| {
            let balance = plan.place.parent.join(LOAD_BALANCE);
            let before = trimmed(&balance);
            let guard = match ExclusiveCpuset::make(journal, plan) {
                Ok(guard) => guard,
                Err(error) => return tree::skip(&error),
            };
            let dir = guard.measured.dir.clone();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let me = process::tid();
                    let home = guard.measured.place_of(me);
                    guard.adopt(me).unwrap();
                    assert_eq!(affinity::get(), [cpu]);
                    let deadline = Policy::Deadline {
                        runtime: Nanos(1_000_000),
                        deadline: Nanos(20_000_000),
                        period: Nanos(20_000_000),
                        flags: DeadlineFlags::NONE,
                    };
                    if let Err(refusal) = sched::set(deadline) {
                        tree::skip(&refusal);
                    }
                    sched::set_other(0).unwrap();
                    assert_ne!(guard.measured.place_of(me), home);
                    assert_eq!(guard.measured.evacuate(), []);
                    assert_eq!(guard.measured.place_of(me), home, "it went back");
                });
            });
            drop(guard);
            assert!(!dir.exists());
            assert_eq!(trimmed(&balance), before);
            assert_eq!(journal.entries(), []);
        });
    }

    #[test]
    fn what_a_killed_process_left_is_taken_back_by_the_next_start() {
        on_this_host(|journal, plan, _| {
            let before = trimmed(&plan.place.parent.join(LOAD_BALANCE));
            let guard = match ExclusiveCpuset::make(journal, plan) {
                Ok(guard) => guard,
                Err(error) => return tree::skip(&error),
            };
            let dirs = [&guard.measured, guard.rest.as_ref().unwrap_or(&guard.measured)]
                .map(|group| group.dir.clone());
            // As if it were killed: no destructor runs, and the journal is all that is known.
            let entries = journal.entries();
            std::mem::forget(guard);
            let around = crate::journal::Surroundings::of(journal.owner());
            for entry in entries.iter().rev() {
                assert!(entry.undo.plausible(&["/sys"]).is_ok(), "{}", entry.undo);
                assert!(entry.undo.apply(&around).settled(), "{}", entry.undo);
            }
            journal.strike(&entries.iter().map(|entry| entry.id).collect::<Vec<_>>()).unwrap();
            assert!(dirs.iter().all(|dir| !dir.exists()));
            assert_eq!(trimmed(&plan.place.parent.join(LOAD_BALANCE)), before);
        });
    }
}
