//! What a killed process leaves is mended by the next start.
//!
//! The test runs itself again as a child that takes guards and is then killed without a chance to
//! drop them. The child moves only a process that the test started.

#![expect(clippy::unwrap_used, reason = "what a test calls is part of the test")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use whylate_host::another;
use whylate_host::guard::{Guard, MovedTasks, RtThrottling, Scope, TraceInstance};
use whylate_host::journal::{Journal, Outcome, Recovered, Undo, What, recover_in};
use whylate_model::{CpuId, Pid};
use whylate_suite::{absent as skip, missing};
use whylate_sys::affinity;
use whylate_sys::tracefs::Tracefs;

/// Directory of the journal; set in the child only.
const DIRECTORY: &str = "WHYLATE_HOST_TEST_DIRECTORY";
/// What the child does: `tasks PID CPU`, `trace`, `throttling`.
const TASK: &str = "WHYLATE_HOST_TEST_TASK";

const WRITABLE: [&str; 2] = ["/proc/sys", "/sys"];

/// Can this test run itself again? Not where an emulator runs it and the kernel alone cannot.
fn runs_itself() -> bool {
    let listed = Command::new(std::env::current_exe().unwrap()).arg("--list").output();
    let runs = listed.is_ok_and(|output| output.status.success());
    if !runs {
        skip(&"this test cannot run itself again, as under an emulator");
    }
    runs
}

/// Not a test of its own: the child of the others. Without the variables it has nothing to do.
#[test]
fn child_takes_a_guard_and_waits_to_be_killed() {
    let (Ok(directory), Ok(task)) = (std::env::var(DIRECTORY), std::env::var(TASK)) else {
        return;
    };
    let journal = Journal::open_in(Path::new(&directory)).unwrap();
    let words: Vec<&str> = task.split(' ').collect();
    let guard: Box<dyn Guard> = match words[..] {
        ["tasks", pid, cpu] => {
            let scope = Scope::Only(vec![Pid(pid.parse().unwrap())]);
            let cpus = [CpuId(cpu.parse().unwrap())];
            Box::new(MovedTasks::away_from(&journal, &cpus, &scope).unwrap())
        }
        ["trace"] => {
            Box::new(TraceInstance::create(&journal, &Tracefs::open().unwrap(), "kill").unwrap())
        }
        ["throttling"] => Box::new(RtThrottling::lift(&journal).unwrap()),
        _ => panic!("{task}"),
    };
    println!("ready {}", guard.describe().join("; "));
    loop {
        std::thread::park();
    }
}

/// A process of this test, killed at the latest with this value.
struct Doomed(Child);

impl Doomed {
    /// `None` where that cannot be tried.
    fn start(directory: &Path, task: &str) -> Option<Self> {
        if !runs_itself() {
            return None;
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "child_takes_a_guard_and_waits_to_be_killed", "--nocapture"])
            .env(DIRECTORY, directory)
            .env(TASK, task)
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let doomed = Self(child);
        let ready = out.lines().map_while(Result::ok).any(|line| line.contains("ready "));
        assert!(ready, "the child ended before it was ready");
        Some(doomed)
    }

    fn pid(&self) -> Pid {
        Pid(self.0.id() as i32)
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Doomed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn changes(recovered: &[Recovered]) -> Vec<(&Undo, &Outcome)> {
    recovered
        .iter()
        .map(|one| match &one.what {
            What::Change(undo) => (undo, &one.outcome),
            What::Journal(_) => panic!("{one}"),
        })
        .collect()
}

fn journals() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journals");
    (dir, path)
}

#[test]
fn task_moved_by_a_killed_process_comes_back() {
    let before = affinity::get();
    let Some((measured, narrowed)) = before.split_last().filter(|(_, rest)| !rest.is_empty())
    else {
        return skip(&"this process has a single CPU");
    };
    let (_dir, directory) = journals();
    let sleeper = Doomed(Command::new("sleep").arg("600").spawn().unwrap());
    let pid = sleeper.pid();
    let task = format!("tasks {pid} {measured}");
    let Some(mut doomed) = Doomed::start(&directory, &task) else { return };
    assert_eq!(affinity::get_of(pid).unwrap(), narrowed);
    assert_eq!(another::running_in(&directory), [doomed.pid()]);
    // It lives: nothing is taken from it.
    assert_eq!(recover_in(&directory, &WRITABLE), []);
    assert_eq!(affinity::get_of(pid).unwrap(), narrowed);

    doomed.kill();
    assert_eq!(affinity::get_of(pid).unwrap(), narrowed, "a killed process restores nothing");
    assert_eq!(another::running_in(&directory), []);
    let recovered = recover_in(&directory, &WRITABLE);
    assert!(
        changes(&recovered).iter().any(|(undo, outcome)| {
            matches!(undo, Undo::SetAffinity { pid: moved, .. } if *moved == pid)
                && **outcome == Outcome::Restored
        }),
        "{recovered:?}"
    );
    assert!(recovered.iter().all(|one| one.pid == doomed.pid() && one.outcome.settled()));
    assert_eq!(affinity::get_of(pid).unwrap(), before);
    assert_eq!(recover_in(&directory, &WRITABLE), []);
}

#[test]
fn trace_instance_of_a_killed_process_is_removed() {
    let tracefs = match Tracefs::open() {
        Ok(tracefs) => tracefs,
        Err(error) => return missing(&error),
    };
    let (_dir, directory) = journals();
    let Some(mut doomed) = Doomed::start(&directory, "trace") else { return };
    let name = format!("whylate-{}-kill", doomed.pid());
    assert!(tracefs.instances().unwrap().contains(&name));
    doomed.kill();
    assert!(tracefs.instances().unwrap().contains(&name), "a killed process removes nothing");
    let recovered = recover_in(&directory, &WRITABLE);
    let undo = Undo::RemoveTraceInstance { name: name.clone() };
    assert_eq!(changes(&recovered), [(&undo, &Outcome::Restored)]);
    assert!(!tracefs.instances().unwrap().contains(&name));
}

#[test]
fn limit_lifted_by_a_killed_process_is_in_force_again() {
    const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
    let before = std::fs::read_to_string(RUNTIME).unwrap_or_default();
    if std::fs::File::options().write(true).open(RUNTIME).is_err() {
        return skip(&format!("{RUNTIME} cannot be written"));
    }
    if before.trim() == "-1" {
        return skip(&format!("{RUNTIME} is lifted already"));
    }
    let (_dir, directory) = journals();
    let Some(mut doomed) = Doomed::start(&directory, "throttling") else { return };
    doomed.kill();
    assert_eq!(std::fs::read_to_string(RUNTIME).unwrap().trim(), "-1");
    let recovered = recover_in(&directory, &WRITABLE);
    assert_eq!(changes(&recovered).len(), 1);
    assert_eq!(recovered[0].outcome, Outcome::Restored, "{}", recovered[0]);
    assert_eq!(std::fs::read_to_string(RUNTIME).unwrap(), before);
}

#[test]
fn two_starts_at_once_recover_each_change_once() {
    let before = affinity::get();
    let Some((measured, rest)) = before.split_last() else { return };
    if rest.is_empty() {
        return skip(&"this process has a single CPU");
    }
    let (_dir, directory) = journals();
    let sleeper = Doomed(Command::new("sleep").arg("600").spawn().unwrap());
    let pid = sleeper.pid();
    let task = format!("tasks {pid} {measured}");
    let Some(mut doomed) = Doomed::start(&directory, &task) else { return };
    doomed.kill();
    let starts: Vec<_> = (0..4)
        .map(|_| {
            let directory = directory.clone();
            std::thread::spawn(move || recover_in(&directory, &WRITABLE))
        })
        .collect();
    let told: Vec<Recovered> = starts.into_iter().flat_map(|start| start.join().unwrap()).collect();
    let restored =
        changes(&told).iter().filter(|(_, outcome)| **outcome == Outcome::Restored).count();
    assert_eq!(restored, 1, "{told:?}");
}
