//! Runs a process until it ends, its time is over or this one is interrupted, and ends with it whatever it
//! started.
//!
//! Whoever loses its parent becomes a child of this process, so that all that was started can be found. What
//! descended from this process before is left alone; what the kernel does not let go of is left, and told.

use std::collections::BTreeMap;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};
use whylate_sys::nanosleep::{Clock, clock_ns};

use crate::interrupt;

/// How long what is asked to end has to do it, and then how long the kernel.
const ASKED: Duration = Duration::from_secs(5);
const KILLED: Duration = Duration::from_secs(10);
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// What became of a process.
#[derive(Debug)]
pub struct Ended {
    /// How it ended; none where its time was over before, or this process was interrupted.
    pub status: Option<ExitStatus>,
    /// Was this process interrupted meanwhile?
    pub interrupted: bool,
    /// Names of processes that it left, or had when it was to end: ended, too.
    pub left: Vec<String>,
    /// Names of those that did not end.
    pub remain: Vec<String>,
}

/// What is waited for.
pub(crate) enum News {
    /// It has ended.
    Ended(std::io::Result<ExitStatus>),
    /// This process is to end.
    Interrupted,
}

/// Runs this, for no longer than `limit`.
pub fn run(command: &mut Command, limit: Duration) -> Result<Ended> {
    set_child_subreaper(Some(getpid())).context("orphans cannot be had")?;
    let before = descendants();
    let child = command.stdin(Stdio::null()).spawn();
    let mut child = child.with_context(|| format!("{command:?}"))?;
    let (tell, told) = mpsc::channel();
    interrupt::tell(tell.clone());
    // This thread sleeps meanwhile: looking again and again would take from what is measured.
    let waiting = std::thread::spawn(move || {
        let _ = tell.send(News::Ended(child.wait()));
    });
    let (mut status, mut interrupted) = (None, false);
    match told.recv_timeout(limit) {
        Ok(News::Ended(ended)) => status = Some(ended.with_context(|| format!("{command:?}"))?),
        Ok(News::Interrupted) => interrupted = true,
        Err(_) => {}
    }
    let started = || {
        let mut all = descendants();
        all.retain(|pid, _| !before.contains_key(pid));
        all
    };
    let left = end(&started, Signal::TERM, ASKED);
    end(&started, Signal::KILL, KILLED);
    let remain = names(&started());
    if status.is_some() || remain.is_empty() {
        let _ = waiting.join();
    }
    reap();
    Ok(Ended { status, interrupted, left, remain })
}

/// Sends a signal to all and waits for their end; the names of those that it was sent to.
fn end(
    started: &dyn Fn() -> BTreeMap<i32, String>,
    signal: Signal,
    patience: Duration,
) -> Vec<String> {
    let mut sent = BTreeMap::new();
    let over = clock_ns(Clock::Monotonic) + patience.as_nanos() as u64;
    loop {
        let alive = started();
        if alive.is_empty() || clock_ns(Clock::Monotonic) > over {
            break;
        }
        for (pid, name) in alive {
            // One that was stopped ends when it goes on.
            if sent.insert(pid, name).is_none() {
                for signal in [signal, Signal::CONT] {
                    let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, signal));
                }
            }
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
    names(&sent)
}

fn names(of: &BTreeMap<i32, String>) -> Vec<String> {
    let mut names: Vec<String> = of.values().cloned().collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Takes note of those that have ended, so that their time counts as ours.
fn reap() {
    while matches!(wait(WaitOptions::NOHANG), Ok(Some(_))) {}
}

/// All that descend from this process and have not ended, by number.
fn descendants() -> BTreeMap<i32, String> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let stat = |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/stat")).ok();
    let all: Vec<Process> = numbers.filter_map(|pid| Process::parse(&stat(pid)?)).collect();
    below(&all, getpid().as_raw_nonzero().get())
}

#[derive(Debug)]
struct Process {
    pid: i32,
    parent: i32,
    name: String,
    has_ended: bool,
}

impl Process {
    /// Of `71 (a name) S 1 ..`.
    fn parse(line: &str) -> Option<Self> {
        let (pid, rest) = line.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let mut words = rest.split_whitespace();
        let has_ended = matches!(words.next()?, "Z" | "X");
        let (pid, parent) = (pid.parse().ok()?, words.next()?.parse().ok()?);
        Some(Self { pid, parent, name: name.to_owned(), has_ended })
    }
}

/// Those of which `root` is the parent, or the parent's parent, and so on, and that have not ended.
fn below(all: &[Process], root: i32) -> BTreeMap<i32, String> {
    let mut found = BTreeMap::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for of in all.iter().filter(|of| of.parent == parent && of.pid != root) {
            parents.push(of.pid);
            if !of.has_ended {
                found.insert(of.pid, of.name.clone());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Process, below};

    #[test]
    fn who_descends_from_a_process_is_found_whatever_it_is_called_and_through_one_that_has_ended() {
        let lines = [
            "1 (init) S 0 1 1",
            "7 (a driver) S 1 7 7",
            "8 (a) round) R 7 7 7",
            "9 (shell) Z 8 9 9",
            "10 (sleep) D 9 10 10",
            "11 (other) S 1 11 11",
            "cut",
        ];
        let all: Vec<Process> = lines.iter().filter_map(|line| Process::parse(line)).collect();
        assert_eq!(all.len(), 6);
        let found: Vec<(i32, String)> = below(&all, 7).into_iter().collect();
        assert_eq!(found, [(8, "a) round".to_owned()), (10, "sleep".to_owned())]);
        assert!(below(&all, 10).is_empty());
    }
}
