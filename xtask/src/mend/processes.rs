//! Processes that a killed suite left, and their end.
//!
//! A process is left where its environment says that a suite started it which has ended, or where it has
//! the folder of states that tests alone give the program and its parent has ended. Whoever has neither is
//! somebody else's.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::suite::HOLDER;

/// One that is asked to end is looked at so often.
const LOOKS: u32 = 150;
const BETWEEN: Duration = Duration::from_millis(20);
/// Whoever has no parent any more is a child of this one.
const INIT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// When it began, in clock ticks after boot: ids are used again.
    start: u64,
    parent: u32,
    pub(super) name: String,
}

impl Process {
    fn read(machine: &Path, pid: u32) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(machine.join(format!("proc/{pid}/stat"))).ok()?)
    }

    /// Of `71 (a name) S 1 ..`; none of one that has ended.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (pid, rest) = line.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        if matches!(*words.first()?, "Z" | "X") {
            return None;
        }
        let (above, start) = (words.get(1)?.parse().ok()?, words.get(19)?.parse().ok()?);
        Some(Self { pid: pid.parse().ok()?, start, parent: above, name: name.to_owned() })
    }
}

/// Does the process that began then still run?
pub(super) fn lives(machine: &Path, pid: u32, start: u64) -> bool {
    Process::read(machine, pid).is_some_and(|of| of.start == start)
}

/// Processes that a killed suite left.
pub(super) fn left(machine: &Path, state: &Path) -> Vec<Process> {
    let numbers = super::entries(&machine.join("proc"));
    let numbers = numbers.iter().filter_map(|path| path.file_name()?.to_str()?.parse::<u32>().ok());
    let mut found: Vec<Process> = numbers
        .filter(|pid| *pid != std::process::id())
        .filter_map(|pid| Process::read(machine, pid))
        .filter(|of| {
            let environment = std::fs::read(machine.join(format!("proc/{}/environ", of.pid)));
            is_left(machine, of, &environment.unwrap_or_default(), state)
        })
        .collect();
    found.sort_by_key(|of| of.pid);
    found
}

fn is_left(machine: &Path, process: &Process, environment: &[u8], state: &Path) -> bool {
    let value = |name: &str| {
        let mut all = environment.split(|byte| *byte == 0);
        all.find_map(|one| std::str::from_utf8(one).ok()?.strip_prefix(name)?.strip_prefix('='))
    };
    let Some(holder) = value(HOLDER) else {
        let given = value("XDG_STATE_HOME").map(Path::new);
        return process.parent == INIT && given == Some(state);
    };
    let holder = holder
        .split_once('-')
        .and_then(|(pid, start)| Some((pid.parse::<u32>().ok()?, start.parse::<u64>().ok()?)));
    holder.is_some_and(|(pid, start)| !lives(machine, pid, start))
}

/// Ends them; a line for each.
pub(super) fn end(machine: &Path, state: &Path) -> Vec<String> {
    let left = left(machine, state);
    for signal in ["TERM", "KILL"] {
        let alive: Vec<&Process> =
            left.iter().filter(|of| lives(machine, of.pid, of.start)).collect();
        for process in &alive {
            // One that was stopped ends when it goes on.
            for signal in [signal, "CONT"] {
                let pid = process.pid.to_string();
                let _ = Command::new("kill").args(["-s", signal, &pid]).output();
            }
        }
        for _ in 0..LOOKS {
            if !alive.iter().any(|of| lives(machine, of.pid, of.start)) {
                break;
            }
            std::thread::sleep(BETWEEN);
        }
    }
    let told = left.iter().map(|of| {
        let outcome = if lives(machine, of.pid, of.start) { "cannot end" } else { "ended" };
        format!("{outcome} process {} ({}), which tests left", of.pid, of.name)
    });
    told.collect()
}
