//! What `/proc` says about one task: enough to know it again.

use std::path::Path;

use whylate_model::{CpuId, Pid};

use crate::cpus;
use crate::files::{text, under};

/// A kernel thread (`PF_KTHREAD`).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// A task as `/proc/PID/stat` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) tid: Pid,
    pub(crate) comm: String,
    pub(crate) parent: Pid,
    pub(crate) kernel: bool,
    /// Clock ticks after boot: with the id it names the task for good.
    pub(crate) start_time: u64,
    pub(crate) dead: bool,
}

impl Task {
    /// Parses a line of `stat`. The name stands in parentheses and may hold any character,
    /// parentheses, blanks and newlines among them: the last closing one ends it.
    pub(crate) fn parse(stat: &str) -> Option<Self> {
        let (head, tail) = stat.rsplit_once(')')?;
        let (tid, comm) = head.split_once(" (")?;
        let mut fields = tail.split_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let flags: u64 = fields.nth(4)?.parse().ok()?;
        let start_time = fields.nth(12)?.parse().ok()?;
        Some(Self {
            tid: Pid(tid.trim().parse().ok()?),
            comm: comm.to_owned(),
            parent: Pid(parent),
            kernel: flags & KERNEL_THREAD != 0,
            start_time,
            dead: matches!(state, "Z" | "X" | "x"),
        })
    }

    /// The task with this id, process or thread; `None` when there is none.
    pub(crate) fn read(tid: Pid) -> Option<Self> {
        Self::parse(&text(Path::new(&format!("/proc/{tid}/stat"))).ok()?)
    }

    /// The task this code runs as: the process, not the thread.
    pub(crate) fn this_process() -> Option<Self> {
        Self::parse(&text(Path::new("/proc/self/stat")).ok()?)
    }

    /// Is there a task with this id that began at this time and has not ended?
    pub(crate) fn alive(tid: Pid, start_time: u64) -> bool {
        Self::read(tid).is_some_and(|task| task.start_time == start_time && !task.dead)
    }
}

/// The CPUs a task may use, those that are offline included; `sched_getaffinity` leaves them out,
/// and a mask put back without them would be narrower than before.
pub(crate) fn mask_of(tid: Pid) -> Option<Vec<CpuId>> {
    let status = text(Path::new(&format!("/proc/{tid}/status"))).ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    cpus::parse_list(list.trim()).ok()
}

/// Every task of the host with the process it belongs to. Tasks that end meanwhile are left out.
pub(crate) fn all() -> Vec<(Pid, Task)> {
    numbers(Path::new("/proc")).into_iter().flat_map(of_process).collect()
}

/// Every task of one process.
pub(crate) fn of_process(process: Pid) -> Vec<(Pid, Task)> {
    let dir = format!("/proc/{process}/task");
    numbers(Path::new(&dir))
        .into_iter()
        .filter_map(|tid| {
            let task = Task::parse(&text(Path::new(&format!("{dir}/{tid}/stat"))).ok()?)?;
            (!task.dead).then_some((process, task))
        })
        .collect()
}

/// Clock ticks since boot: tasks that start from now on have at least this start time.
pub(crate) fn now_in_start_time() -> Option<u64> {
    let uptime = text(&under(Path::new("/"), "/proc/uptime")).ok()?;
    let seconds: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    let ticks = seconds * rustix::param::clock_ticks_per_second() as f64;
    // One less: the two clocks may round differently.
    Some((ticks as u64).saturating_sub(1))
}

fn numbers(dir: &Path) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut found: Vec<Pid> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(Pid))
        .collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_parentheses_and_blanks_do_not_shift_the_fields() {
        let stat = "812 (a) R (b) S 1 812 812 0 -1 4194560 99 0 0 0 4 5 0 0 20 0 1 0 4711 1000 2 3";
        let task = Task::parse(stat).unwrap();
        assert_eq!(task.tid, Pid(812));
        assert_eq!(task.comm, "a) R (b");
        assert_eq!(task.parent, Pid(1));
        assert_eq!(task.start_time, 4711);
        assert!(!task.kernel && !task.dead);
    }

    #[test]
    fn kernel_threads_and_zombies_are_known() {
        let kernel = "16 (ksoftirqd/0) S 2 0 0 0 -1 69238848 0 0 0 0 0 0 0 0 20 0 1 0 23 0 0";
        assert!(Task::parse(kernel).unwrap().kernel);
        let zombie = "90 (sh) Z 1 90 90 0 -1 4227084 0 0 0 0 0 0 0 0 20 0 1 0 99 0 0";
        assert!(Task::parse(zombie).unwrap().dead);
    }

    #[test]
    fn cut_lines_are_no_task() {
        for cut in ["", "1", "1 (", "1 (init", "1 (init) S", "1 (init) S 0 1 1 0 -1 4 0 0"] {
            assert_eq!(Task::parse(cut), None, "{cut}");
        }
    }

    #[test]
    fn this_process_is_alive_under_its_own_start_time_only() {
        let me = Task::this_process().unwrap();
        assert!(Task::alive(me.tid, me.start_time));
        assert!(!Task::alive(me.tid, me.start_time + 1));
        assert!(!Task::alive(Pid(-1), 0));
        assert!(mask_of(me.tid).is_some_and(|mask| !mask.is_empty()));
        assert!(all().iter().any(|(process, _)| *process == me.tid));
        assert!(now_in_start_time().unwrap() >= me.start_time.saturating_sub(1));
    }
}
