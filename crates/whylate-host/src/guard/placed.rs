//! The threads of a box on the CPUs that are theirs.

use std::collections::{BTreeMap, BTreeSet};

use whylate_model::warning::Warning;
use whylate_model::{CpuId, Pid};
use whylate_sys::SysError;
use whylate_sys::affinity;
use whylate_sys::sched::{self, Policy};

use super::changes::Changes;
use super::{Guard, listed};
use crate::cpus::format_list;
use crate::error::HostError;
use crate::journal::{Journal, Undo};
use crate::kernel;
use crate::tasks::{self, Task};

/// Threads are looked for again, for those started meanwhile, this often at most.
const SCANS: usize = 4;

/// Threads bound to CPUs, and as before when the guard goes.
///
/// What they start inherits their CPUs; that is widened at the end, where it is still exactly what
/// was inherited.
#[derive(Debug)]
pub struct PlacedTasks {
    changes: Changes,
    cpus: Vec<CpuId>,
    processes: Vec<Pid>,
    /// Threads that were bound, or had ended.
    seen: BTreeSet<(Pid, u64)>,
    /// What the first thread of each process could run on.
    first: BTreeMap<Pid, Vec<CpuId>>,
    before: BTreeSet<String>,
    placed: usize,
}

impl PlacedTasks {
    /// Binds every thread of `processes` to `cpus`, those outside of what it could run on before
    /// included. A process that has ended is an error, as is a thread that stays elsewhere.
    pub fn onto(journal: &Journal, processes: &[Pid], cpus: &[CpuId]) -> Result<Self, HostError> {
        let mut cpus = cpus.to_vec();
        cpus.sort_unstable();
        let mut guard = Self {
            changes: Changes::new(journal),
            cpus,
            processes: processes.to_vec(),
            seen: BTreeSet::new(),
            first: BTreeMap::new(),
            before: BTreeSet::new(),
            placed: 0,
        };
        let since = tasks::now_in_start_time().unwrap_or(u64::MAX);
        for scan in 0..SCANS {
            let mut found = 0;
            for &process in processes {
                let threads = tasks::of_process(process);
                if threads.is_empty() && scan == 0 {
                    return Err(HostError::BoxEnded { pid: process });
                }
                for (_, task) in threads {
                    if guard.seen.insert((task.tid, task.start_time)) {
                        guard.place(&task, process, since)?;
                        found += 1;
                    }
                }
            }
            if found == 0 {
                break;
            }
        }
        Ok(guard)
    }

    /// What they could run on before: each list once.
    #[must_use]
    pub fn before(&self) -> String {
        self.before.iter().cloned().collect::<Vec<_>>().join(" | ")
    }

    /// How many threads were bound.
    #[must_use]
    pub fn placed(&self) -> usize {
        self.placed
    }

    /// Threads of the box that began since and have what they inherited: as the first thread of their
    /// process once did, they are to run elsewhere, too.
    fn take_in_those_begun_since(&mut self) {
        for process in std::mem::take(&mut self.processes) {
            let Some(before) = self.first.get(&process) else { continue };
            for (_, task) in tasks::of_process(process) {
                let known = self.seen.contains(&(task.tid, task.start_time));
                let inherited = kernel::affinity(task.tid).is_ok_and(|now| now == self.cpus);
                if known || !inherited {
                    continue;
                }
                let undo = Undo::SetAffinity {
                    pid: task.tid,
                    start_time: task.start_time,
                    cpus: before.clone(),
                    ours: self.cpus.clone(),
                };
                // Without a journal the thread stays where it is, as after any other refusal.
                if self.changes.announce(vec![undo]).is_err() {
                    return;
                }
            }
        }
    }

    fn place(&mut self, task: &Task, process: Pid, since: u64) -> Result<(), HostError> {
        let Some(before) = tasks::mask_of(task.tid) else { return Ok(()) };
        let ours = self.cpus.clone();
        self.first.entry(process).or_insert_with(|| before.clone());
        self.changes.announce(vec![
            Undo::WidenInheritors {
                ours: ours.clone(),
                cpus: before.clone(),
                since,
                only: Some(vec![process]),
            },
            Undo::SetAffinity {
                pid: task.tid,
                start_time: task.start_time,
                cpus: before.clone(),
                ours: ours.clone(),
            },
        ])?;
        match affinity::set_of(task.tid, &ours) {
            Ok(()) => {
                self.before.insert(format_list(&before));
                self.placed += 1;
                Ok(())
            }
            Err(SysError::AffinityPartial { got, .. }) => Err(HostError::KnobNotKept {
                knob: format!("affinity of task {}", task.tid),
                asked: format_list(&ours),
                got: format_list(&got),
            }),
            Err(error) => {
                let tid = task.tid;
                self.changes.withdraw(
                    |undo| matches!(undo, Undo::SetAffinity { pid, .. } if *pid == tid),
                )?;
                // It has ended meanwhile: nothing of it is left to place.
                if Task::alive(task.tid, task.start_time) { Err(error.into()) } else { Ok(()) }
            }
        }
    }
}

impl Guard for PlacedTasks {
    fn describe(&self) -> Vec<String> {
        let (cpus, before) = (format_list(&self.cpus), self.before());
        vec![format!("bound {} threads to cpus {cpus} (before: {before})", self.placed)]
    }

    fn restore(&mut self) -> Vec<Warning> {
        self.take_in_those_begun_since();
        self.changes.restore()
    }
}

impl Drop for PlacedTasks {
    fn drop(&mut self) {
        // What is left goes with the changes, which tell what fails.
        self.take_in_those_begun_since();
    }
}

/// Threads that come before the others of their CPUs, by their niceness.
///
/// Not by a real-time policy: a thread that spins under one keeps the kernel's own threads off its
/// CPU, and loses a twentieth of each second where the kernel limits that.
#[derive(Debug)]
pub struct FavouredTasks {
    changes: Changes,
    nice: i8,
    processes: Vec<Pid>,
    /// Threads that were favoured.
    seen: BTreeSet<(Pid, u64)>,
    /// The niceness that the first thread of each process had.
    first: BTreeMap<Pid, i8>,
    before: BTreeSet<String>,
    /// Threads under another policy, which they keep.
    left: Vec<String>,
}

impl FavouredTasks {
    /// Gives every thread of `processes` this niceness. One that has another policy keeps it.
    pub fn with(journal: &Journal, processes: &[Pid], nice: i8) -> Result<Self, HostError> {
        let mut guard = Self {
            changes: Changes::new(journal),
            nice,
            processes: processes.to_vec(),
            seen: BTreeSet::new(),
            first: BTreeMap::new(),
            before: BTreeSet::new(),
            left: Vec::new(),
        };
        for (process, task) in processes.iter().flat_map(|&process| tasks::of_process(process)) {
            guard.favour(process, &task)?;
        }
        Ok(guard)
    }

    /// Their policies before: each once.
    #[must_use]
    pub fn before(&self) -> String {
        self.before.iter().cloned().collect::<Vec<_>>().join(" | ")
    }

    /// Threads that keep a policy of their own, with it.
    #[must_use]
    pub fn left(&self) -> &[String] {
        &self.left
    }

    /// Threads of the box that began since and inherited our niceness are to lose it with the others.
    fn take_in_those_begun_since(&mut self) {
        for process in std::mem::take(&mut self.processes) {
            let Some(&nice) = self.first.get(&process) else { continue };
            for (_, Task { tid: pid, start_time, .. }) in tasks::of_process(process) {
                let ours = self.nice;
                let inherited =
                    sched::policy_of(pid).is_ok_and(|now| now == Policy::Other { nice: ours });
                if self.seen.contains(&(pid, start_time)) || !inherited || nice == ours {
                    continue;
                }
                let undo = Undo::SetNiceness { pid, start_time, nice, ours };
                if self.changes.announce(vec![undo]).is_err() {
                    return;
                }
            }
        }
    }

    fn favour(&mut self, process: Pid, task: &Task) -> Result<(), HostError> {
        let nice = match sched::policy_of(task.tid) {
            Ok(Policy::Other { nice }) => nice,
            Ok(own) => {
                self.left.push(format!("{} ({}) has {own}", task.comm, task.tid));
                return Ok(());
            }
            Err(_) if !Task::alive(task.tid, task.start_time) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        self.before.insert(Policy::Other { nice }.to_string());
        self.first.entry(process).or_insert(nice);
        self.seen.insert((task.tid, task.start_time));
        if nice == self.nice {
            return Ok(());
        }
        let (pid, start_time, ours) = (task.tid, task.start_time, self.nice);
        let undo = Undo::SetNiceness { pid, start_time, nice, ours };
        self.changes.announce(vec![undo.clone()])?;
        let asked = Policy::Other { nice: self.nice };
        if let Err(error) = sched::set_for(task.tid, asked) {
            self.changes.withdraw(|made| *made == undo)?;
            let ended = !Task::alive(task.tid, task.start_time);
            return if ended { Ok(()) } else { Err(error.into()) };
        }
        match sched::policy_of(task.tid) {
            Ok(got) if got != asked => Err(HostError::KnobNotKept {
                knob: format!("niceness of task {}", task.tid),
                asked: asked.to_string(),
                got: got.to_string(),
            }),
            _ => Ok(()),
        }
    }
}

impl Guard for FavouredTasks {
    fn describe(&self) -> Vec<String> {
        let mut lines = vec![format!("niceness {} (before: {})", self.nice, self.before())];
        if !self.left.is_empty() {
            lines.push(format!("under policies of their own: {}", listed(&self.left)));
        }
        lines
    }

    fn restore(&mut self) -> Vec<Warning> {
        self.take_in_those_begun_since();
        self.changes.restore()
    }
}

impl Drop for FavouredTasks {
    fn drop(&mut self) {
        self.take_in_those_begun_since();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    use super::*;
    use crate::tree::{self, Idle};

    fn journal() -> (tempfile::TempDir, Journal) {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(&dir.path().join("journals")).unwrap();
        (dir, journal)
    }

    #[test]
    fn a_box_leaves_the_cpu_it_was_bound_to_and_comes_back() {
        let _turn = tree::turn(&tree::CPUSETS);
        let all = affinity::get();
        let [first, .., last] = all[..] else {
            return tree::skip(&"this process has a single CPU: there is none to move to");
        };
        let (_dir, journal) = journal();
        let idle = Idle::start();
        kernel::set_affinity(idle.pid(), &[first]).unwrap();
        let guard = PlacedTasks::onto(&journal, &[idle.pid()], &[last]).unwrap();
        assert_eq!(kernel::affinity(idle.pid()).unwrap(), [last]);
        assert_eq!((guard.before(), guard.placed()), (first.to_string(), 1));
        drop(guard);
        assert_eq!(kernel::affinity(idle.pid()).unwrap(), [first]);
        assert_eq!(journal.entries(), []);
    }

    /// Set for the process that the next test starts.
    const STARTS_THREADS: &str = "WHYLATE_TEST_THREADS";

    #[test]
    #[ignore = "the process that a test of threads starts"]
    fn the_one_that_starts_a_thread() {
        if std::env::var_os(STARTS_THREADS).is_none() {
            return tree::skip(&"nobody asked it to");
        }
        println!("\nready");
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                println!("\nthread {}", whylate_sys::process::tid());
                // Until its input ends.
                let _ = std::io::stdin().read_line(&mut String::new());
            });
        });
    }

    #[test]
    fn a_thread_that_the_box_starts_meanwhile_does_not_stay_bound() {
        if tree::emulated() {
            return;
        }
        let _turn = tree::turn(&tree::CPUSETS);
        let all = affinity::get();
        let [_, .., last] = all[..] else {
            return tree::skip(&"this process has a single CPU: there is none to move to");
        };
        let (_dir, journal) = journal();
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "guard::placed::tests::the_one_that_starts_a_thread"]);
        child.args(["--ignored", "--nocapture"]).env(STARTS_THREADS, "1");
        let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(said.any(|line| line == "ready"));
        let pid = Pid(child.id() as i32);
        let before = sched::policy_of(pid).unwrap();
        let favoured = FavouredTasks::with(&journal, &[pid], -20);
        let guard = PlacedTasks::onto(&journal, &[pid], &[last]).unwrap();
        writeln!(input, "go").unwrap();
        let thread = said.find_map(|line| line.strip_prefix("thread ")?.parse().ok());
        let thread = Pid(thread.unwrap());
        assert_eq!(kernel::affinity(thread).unwrap(), [last]);
        drop((guard, favoured));
        assert_eq!(kernel::affinity(thread).unwrap(), all);
        assert_eq!(sched::policy_of(thread).unwrap(), before);
        assert_eq!(journal.entries(), []);
        drop(input);
        child.wait().unwrap();
    }

    #[test]
    fn a_cpu_that_is_not_there_beside_one_that_is_is_a_knob_that_was_not_kept() {
        let _turn = tree::turn(&tree::CPUSETS);
        let (_dir, journal) = journal();
        let idle = Idle::start();
        let before = kernel::affinity(idle.pid()).unwrap();
        let asked = [before[0], CpuId(300_000)];
        let error = PlacedTasks::onto(&journal, &[idle.pid()], &asked).unwrap_err();
        assert!(
            matches!(&error, HostError::KnobNotKept { knob, .. }
            if knob.starts_with("affinity")),
            "{error}"
        );
        assert_eq!(kernel::affinity(idle.pid()).unwrap(), before);
        assert_eq!(journal.entries(), []);
    }

    #[test]
    fn a_process_that_is_not_there_is_no_box() {
        let (_dir, journal) = journal();
        let cpus = affinity::get();
        let error = PlacedTasks::onto(&journal, &[Pid(i32::MAX)], &cpus).unwrap_err();
        assert!(matches!(error, HostError::BoxEnded { .. }), "{error}");
    }

    #[test]
    fn niceness_is_given_and_taken_back() {
        let (_dir, journal) = journal();
        let idle = Idle::start();
        let before = sched::policy_of(idle.pid()).unwrap();
        let guard = match FavouredTasks::with(&journal, &[idle.pid()], -20) {
            Ok(guard) => guard,
            Err(error) => return tree::skip(&error),
        };
        assert_eq!(sched::policy_of(idle.pid()).unwrap(), Policy::Other { nice: -20 });
        assert_eq!(guard.before(), before.to_string());
        drop(guard);
        assert_eq!(sched::policy_of(idle.pid()).unwrap(), before);
        assert_eq!(journal.entries(), []);
    }
}
