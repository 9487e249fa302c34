//! Moving other tasks off the measured CPUs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use whylate_model::warning::Warning;
use whylate_model::{CpuId, Pid};

use super::changes::{Changes, Written};
use super::{Guard, listed, mask};
use crate::cpus::format_list;
use crate::error::HostError;
use crate::files::trimmed;
use crate::journal::{Journal, Undo};
use crate::kernel;
use crate::tasks::{self, Task};
use crate::topology::Topology;

/// The CPUs of work that the kernel does not bind to one: its threads refuse to be moved by
/// themselves.
const WORKQUEUE_MASK: &str = "/sys/devices/virtual/workqueue/cpumask";

/// Tasks are looked for again, for those started during the move, this often at most.
const SCANS: usize = 4;

/// Which tasks are moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All of the host, and unbound kernel work; never this process.
    Everything,
    /// The threads of these processes only.
    Only(Vec<Pid>),
    /// All of the host but these processes, and never this one.
    AllBut(Vec<Pid>),
}

/// Tasks moved off CPUs: their affinity without those CPUs, and back when the guard goes.
///
/// A task started meanwhile by a moved one inherits the narrowed affinity; such tasks are widened
/// at the end, when their affinity is still exactly what they inherited. Tasks bound to the
/// measured CPUs alone (kernel threads of those CPUs, tasks somebody pinned there) stay and are
/// counted.
#[derive(Debug)]
pub struct MovedTasks {
    changes: Changes,
    cpus: Vec<CpuId>,
    moved: usize,
    moved_kernel: usize,
    /// Bound to the measured CPUs alone.
    bound: Vec<String>,
    bound_kernel: usize,
    refused: Vec<String>,
    refused_kernel: usize,
    workqueues: Option<Result<Written, String>>,
}

/// A task that may be moved.
struct Candidate {
    task: Task,
    before: Vec<CpuId>,
    ours: Vec<CpuId>,
}

impl MovedTasks {
    /// Moves the tasks of `scope` away from `cpus`. Tasks that cannot be moved are no error.
    pub fn away_from(journal: &Journal, cpus: &[CpuId], scope: &Scope) -> Result<Self, HostError> {
        let topology = Topology::read(Path::new("/"))?;
        if topology.online().iter().all(|cpu| cpus.contains(cpu)) {
            return Err(HostError::NowhereToMove { cpus: format_list(cpus) });
        }
        let mut guard = Self {
            changes: Changes::new(journal),
            cpus: cpus.to_vec(),
            moved: 0,
            moved_kernel: 0,
            bound: Vec::new(),
            bound_kernel: 0,
            refused: Vec::new(),
            refused_kernel: 0,
            workqueues: None,
        };
        let since = tasks::now_in_start_time().unwrap_or(u64::MAX);
        let mut seen = BTreeSet::new();
        for _ in 0..SCANS {
            let candidates = guard.scan(journal.owner(), scope, &topology, &mut seen);
            if candidates.is_empty() {
                break;
            }
            guard.announce(&candidates, scope, since)?;
            guard.shift(candidates)?;
        }
        if *scope == Scope::Everything {
            guard.workqueues = guard.restrict_workqueues();
        }
        Ok(guard)
    }

    /// How many tasks were moved, kernel threads included.
    #[must_use]
    pub fn moved(&self) -> usize {
        self.moved + self.moved_kernel
    }

    /// How many tasks refused to be moved, kernel threads included.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.refused.len() + self.refused_kernel
    }

    /// What of the move was refused; none where everything went that may go. Kernel threads that are bound
    /// to their CPU for good refuse on every machine: they are told where nothing was moved.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        refusal(self.moved(), self.refused.len(), self.refused_kernel)
    }

    /// How many tasks are bound to the measured CPUs alone and stay, kernel threads included.
    #[must_use]
    pub fn bound(&self) -> usize {
        self.bound.len() + self.bound_kernel
    }

    /// Tasks on the measured CPUs that were not seen in an earlier scan.
    fn scan(
        &mut self,
        own: Pid,
        scope: &Scope,
        topology: &Topology,
        seen: &mut BTreeSet<(Pid, u64)>,
    ) -> Vec<Candidate> {
        let found = match scope {
            Scope::Everything => tasks::all(),
            Scope::Only(processes) => {
                processes.iter().flat_map(|&process| tasks::of_process(process)).collect()
            }
            Scope::AllBut(processes) => {
                let others = |(process, _): &(Pid, Task)| !processes.contains(process);
                tasks::all().into_iter().filter(others).collect()
            }
        };
        let mut candidates = Vec::new();
        for (process, task) in found {
            if process == own {
                continue;
            }
            let Some(before) = tasks::mask_of(task.tid) else { continue };
            if !before.iter().any(|cpu| self.cpus.contains(cpu)) {
                continue;
            }
            if !seen.insert((task.tid, task.start_time)) {
                continue;
            }
            let elsewhere = |cpu: &&CpuId| !self.cpus.contains(cpu);
            let ours: Vec<CpuId> = before.iter().filter(elsewhere).copied().collect();
            if ours.iter().any(|cpu| topology.online().contains(cpu)) {
                candidates.push(Candidate { task, before, ours });
            } else if task.kernel {
                self.bound_kernel += 1;
            } else {
                self.bound.push(format!("{} ({})", task.comm, task.tid));
            }
        }
        candidates
    }

    /// Journals the moves. Inheritors come before them, so that they are looked for after all
    /// parents are back.
    fn announce(
        &mut self,
        candidates: &[Candidate],
        scope: &Scope,
        since: u64,
    ) -> Result<(), HostError> {
        // Parents that were narrowed to the same CPUs may have had different ones before: their
        // children get what all of them had.
        let mut common: BTreeMap<&[CpuId], Vec<CpuId>> = BTreeMap::new();
        for candidate in candidates.iter().filter(|candidate| !candidate.task.kernel) {
            common
                .entry(&candidate.ours)
                .and_modify(|cpus| cpus.retain(|cpu| candidate.before.contains(cpu)))
                .or_insert_with(|| candidate.before.clone());
        }
        let only = match scope {
            Scope::Everything | Scope::AllBut(_) => None,
            Scope::Only(processes) => Some(processes.clone()),
        };
        let inheritors = common.into_iter().map(|(ours, cpus)| Undo::WidenInheritors {
            ours: ours.to_vec(),
            cpus,
            since,
            only: only.clone(),
        });
        let moves = candidates.iter().map(|candidate| Undo::SetAffinity {
            pid: candidate.task.tid,
            start_time: candidate.task.start_time,
            cpus: candidate.before.clone(),
            ours: candidate.ours.clone(),
        });
        let undos = inheritors.chain(moves).collect();
        self.changes.announce(undos)
    }

    /// Moves, reads back, and strikes those that did not move.
    fn shift(&mut self, candidates: Vec<Candidate>) -> Result<(), HostError> {
        let mut stayed = BTreeSet::new();
        for Candidate { task, ours, .. } in candidates {
            let moved = kernel::set_affinity(task.tid, &ours).and_then(|()| {
                let now = kernel::affinity(task.tid)?;
                Ok(!now.iter().any(|cpu| self.cpus.contains(cpu)))
            });
            let why = match moved {
                Ok(true) => {
                    *(if task.kernel { &mut self.moved_kernel } else { &mut self.moved }) += 1;
                    continue;
                }
                Ok(false) => "it moved back".to_owned(),
                Err(error) if kernel::is_gone(&error) => {
                    stayed.insert((task.tid, task.start_time));
                    continue;
                }
                Err(error) => error.to_string(),
            };
            stayed.insert((task.tid, task.start_time));
            if task.kernel {
                self.refused_kernel += 1;
            } else {
                self.refused.push(format!("{} ({}): {why}", task.comm, task.tid));
            }
        }
        self.changes.withdraw(|undo| match undo {
            Undo::SetAffinity { pid, start_time, .. } => stayed.contains(&(*pid, *start_time)),
            _ => false,
        })
    }

    fn restrict_workqueues(&mut self) -> Option<Result<Written, String>> {
        let path = Path::new(WORKQUEUE_MASK);
        let narrowed = mask::without(&trimmed(path)?, &self.cpus)?;
        let remedy = "run as root, or accept the kernel's deferred work on the measured CPUs";
        self.changes.write(path, &narrowed, remedy).map_err(|error| error.to_string()).transpose()
    }
}

fn refusal(moved: usize, refused: usize, refused_kernel: usize) -> Option<String> {
    match (moved, refused) {
        (0, refused) if refused + refused_kernel > 0 => {
            Some(format!("no task was moved off: {} refused", refused + refused_kernel))
        }
        (_, 0) => None,
        (moved, refused) => {
            Some(format!("{refused} of {} tasks refused to be moved off", moved + refused))
        }
    }
}

impl Guard for MovedTasks {
    fn describe(&self) -> Vec<String> {
        let cpus = format_list(&self.cpus);
        let mut lines = vec![format!(
            "moved {} tasks and {} kernel threads off cpus {cpus}",
            self.moved, self.moved_kernel
        )];
        match &self.workqueues {
            Some(Ok(Written { before, now })) => {
                lines.push(format!("unbound kernel work: {WORKQUEUE_MASK} {before} -> {now}"));
            }
            Some(Err(error)) => lines.push(format!("unbound kernel work stays: {error}")),
            None => {}
        }
        if self.bound_kernel + self.refused_kernel > 0 {
            lines.push(format!(
                "{} kernel threads belong to cpus {cpus} and {} more refuse to be moved",
                self.bound_kernel, self.refused_kernel
            ));
        }
        if !self.bound.is_empty() {
            lines.push(format!("pinned to cpus {cpus}, left there: {}", listed(&self.bound)));
        }
        if !self.refused.is_empty() {
            lines.push(format!("not moved: {}", listed(&self.refused)));
        }
        lines
    }

    fn restore(&mut self) -> Vec<Warning> {
        self.changes.restore()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, ChildStdout, Command, Stdio};
    use std::sync::MutexGuard;

    use super::*;
    use crate::tree;

    /// A shell of this test, which starts what it is told to start; gone with the value.
    struct Shell {
        process: Child,
        out: BufReader<ChildStdout>,
        children: Vec<Pid>,
    }

    impl Shell {
        fn start() -> Self {
            let mut command = Command::new("sh");
            let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let out = BufReader::new(process.stdout.take().unwrap());
            let mut started = Self { process, out, children: Vec::new() };
            // It answers: so it is the shell by now, and no longer a copy of this test.
            assert_eq!(started.ask("echo here"), "here");
            started
        }

        fn pid(&self) -> Pid {
            Pid(self.process.id() as i32)
        }

        fn ask(&mut self, command: &str) -> String {
            writeln!(self.process.stdin.as_mut().unwrap(), "{command}").unwrap();
            let mut line = String::new();
            self.out.read_line(&mut line).unwrap();
            line.trim().to_owned()
        }

        /// Starts a process in the shell and returns its id.
        fn begin(&mut self) -> Pid {
            let child = Pid(self.ask("sleep 600 >/dev/null 2>&1 & echo $!").parse().unwrap());
            self.children.push(child);
            child
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            let input = self.process.stdin.as_mut().unwrap();
            for child in &self.children {
                // Not reaped before the shell ends, so the id is still that of its child.
                let _ = writeln!(input, "kill {child}");
            }
            let _ = writeln!(input, "exit");
            let _ = self.process.wait();
        }
    }

    struct Bed {
        _turn: MutexGuard<'static, ()>,
        dir: tempfile::TempDir,
        journal: Journal,
        /// The CPU that is measured, and the affinity everything here begins with.
        measured: CpuId,
        before: Vec<CpuId>,
    }

    fn bed() -> Option<Bed> {
        let turn = tree::turn(&tree::CPUSETS);
        let before = whylate_sys::affinity::get();
        if before.len() < 2 {
            tree::skip(&"this process has a single CPU: there is none to move to");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(&dir.path().join("journals")).unwrap();
        let measured = before[before.len() - 1];
        Some(Bed { _turn: turn, dir, journal, measured, before })
    }

    fn affinity(pid: Pid) -> Vec<CpuId> {
        kernel::affinity(pid).unwrap()
    }

    #[test]
    fn tasks_that_refuse_beside_those_that_moved_are_told_and_kernel_threads_alone_are_not() {
        assert_eq!(refusal(12, 0, 3), None);
        assert_eq!(refusal(0, 0, 0), None);
        assert_eq!(refusal(12, 1, 3).as_deref(), Some("1 of 13 tasks refused to be moved off"));
        assert_eq!(refusal(0, 1, 2).as_deref(), Some("no task was moved off: 3 refused"));
        assert_eq!(refusal(0, 0, 2).as_deref(), Some("no task was moved off: 2 refused"));
    }

    #[test]
    fn tasks_leave_the_measured_cpu_and_come_back() {
        let Some(bed) = bed() else { return };
        let mut shell = Shell::start();
        let pids = [shell.pid(), shell.begin()];
        let scope = Scope::Only(pids.to_vec());
        let guard = MovedTasks::away_from(&bed.journal, &[bed.measured], &scope).unwrap();
        assert_eq!((guard.moved(), guard.refused()), (2, 0), "{:?}", guard.describe());
        assert!(guard.describe()[0].contains("moved 2 tasks"), "{:?}", guard.describe());
        let narrowed = &bed.before[..bed.before.len() - 1];
        for pid in pids {
            assert_eq!(affinity(pid), narrowed);
        }
        drop(guard);
        for pid in pids {
            assert_eq!(affinity(pid), bed.before);
        }
        assert_eq!(bed.journal.entries(), []);
    }

    #[test]
    fn tasks_stay_when_the_journal_cannot_be_written() {
        let Some(bed) = bed() else { return };
        let shell = Shell::start();
        std::fs::remove_dir_all(bed.dir.path().join("journals")).unwrap();
        let scope = Scope::Only(vec![shell.pid()]);
        let error = MovedTasks::away_from(&bed.journal, &[bed.measured], &scope).unwrap_err();
        assert!(matches!(error, HostError::JournalWrite { .. }), "{error}");
        assert_eq!(affinity(shell.pid()), bed.before);
    }

    #[test]
    fn tasks_started_meanwhile_do_not_stay_narrowed() {
        let Some(bed) = bed() else { return };
        let mut shell = Shell::start();
        let scope = Scope::Only(vec![shell.pid()]);
        let guard = MovedTasks::away_from(&bed.journal, &[bed.measured], &scope).unwrap();
        let child = shell.begin();
        assert!(!affinity(child).contains(&bed.measured));
        drop(guard);
        assert_eq!(affinity(child), bed.before);
    }

    #[test]
    fn task_that_placed_itself_meanwhile_is_left_alone() {
        let Some(bed) = bed() else { return };
        let shell = Shell::start();
        let scope = Scope::Only(vec![shell.pid()]);
        let mut guard = MovedTasks::away_from(&bed.journal, &[bed.measured], &scope).unwrap();
        kernel::set_affinity(shell.pid(), &[bed.measured]).unwrap();
        assert_eq!(guard.restore(), []);
        assert_eq!(affinity(shell.pid()), [bed.measured]);
    }

    #[test]
    fn task_pinned_to_the_measured_cpu_stays_and_is_named() {
        let Some(bed) = bed() else { return };
        let shell = Shell::start();
        kernel::set_affinity(shell.pid(), &[bed.measured]).unwrap();
        let scope = Scope::Only(vec![shell.pid()]);
        let guard = MovedTasks::away_from(&bed.journal, &[bed.measured], &scope).unwrap();
        assert_eq!(guard.moved(), 0);
        let told = guard.describe().join("\n");
        assert!(told.contains(&format!("left there: sh ({})", shell.pid())), "{told}");
        assert_eq!(affinity(shell.pid()), [bed.measured]);
        assert_eq!(bed.journal.entries(), []);
    }

    #[test]
    fn kernel_threads_that_refuse_are_counted_and_nothing_of_them_stays_in_the_journal() {
        let Some(bed) = bed() else { return };
        let unbound = |task: &Task| {
            task.kernel
                && task.comm.starts_with("kworker/u")
                && tasks::mask_of(task.tid).is_some_and(|cpus| cpus.contains(&bed.measured))
        };
        let fixed: Vec<Pid> = tasks::all()
            .into_iter()
            .filter(|(_, task)| unbound(task))
            .map(|(process, _)| process)
            .take(3)
            .collect();
        if fixed.is_empty() {
            return tree::skip(&"this process sees no unbound kernel worker");
        }
        let scope = Scope::Only(fixed.clone());
        let guard = MovedTasks::away_from(&bed.journal, &[bed.measured], &scope).unwrap();
        assert_eq!(guard.moved(), 0);
        // The kernel ends workers that have nothing to do.
        let gone = fixed.iter().all(|pid| Task::read(*pid).is_none());
        assert!(gone || guard.refused() + guard.bound_kernel > 0, "{:?}", guard.describe());
        assert_eq!(bed.journal.entries(), []);
    }

    #[test]
    fn clearing_every_cpu_is_refused() {
        let Some(bed) = bed() else { return };
        let topology = Topology::read(Path::new("/")).unwrap();
        let scope = Scope::Only(Vec::new());
        let error = MovedTasks::away_from(&bed.journal, topology.online(), &scope).unwrap_err();
        assert!(matches!(error, HostError::NowhereToMove { .. }), "{error}");
    }
}
