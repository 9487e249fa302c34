//! The processes of this machine, and who started whom.

use std::collections::BTreeMap;
use std::path::Path;

/// Each process by its number.
pub(crate) type Processes = BTreeMap<u32, Process>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) parent: u32,
    /// It does not go on: it was stopped, or has ended and was not waited for yet.
    pub(crate) stopped: bool,
}

/// All that there are at the moment.
pub(crate) fn all() -> Processes {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let read = |pid: u32| {
        let line =
            std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
        let mut words = line.rsplit_once(") ")?.1.split_whitespace();
        let stopped = matches!(words.next()?, "T" | "t" | "Z" | "X");
        Some((pid, Process { parent: words.next()?.parse().ok()?, stopped }))
    };
    numbers.filter_map(read).collect()
}

/// Those that a process started itself.
pub(crate) fn children(all: &Processes, of: u32) -> impl Iterator<Item = u32> {
    all.iter().filter(move |(_, process)| process.parent == of).map(|(pid, _)| *pid)
}

/// All that a process has started, and what those have; nothing below none, which is 0.
pub(crate) fn below(all: &Processes, top: u32) -> Vec<u32> {
    if top == 0 {
        return Vec::new();
    }
    let mut found = vec![top];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        // A table that was read while they changed may have a ring.
        found.extend(children(all, parent).filter(|pid| *pid != top));
        at += 1;
    }
    found.split_off(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_a_process_started_is_below_it() {
        let of = |parent| Process { parent, stopped: false };
        let all = [(1, 0), (4, 1), (5, 4), (6, 5), (7, 6), (20, 1)];
        let all = all.map(|(pid, parent)| (pid, of(parent))).into();
        assert_eq!(below(&all, 4), [5, 6, 7]);
        assert_eq!(below(&all, 7), [0; 0]);
        assert_eq!(below(&all, 0), [0; 0]);
        assert_eq!(children(&all, 1).collect::<Vec<_>>(), [4, 20]);
        let ring = [(7, of(8)), (8, of(7))].into();
        assert_eq!(below(&ring, 7), [8]);
    }
}
