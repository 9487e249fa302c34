//! How one change is taken back.
//!
//! Guards and recovery take back by the same code and the same rule: **what somebody else has
//! changed since is left alone**. So each undo carries the value from before and the value that
//! whylate wrote, and puts the first back only where it finds the second.

use std::fmt;
use std::io;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};
use whylate_model::{CpuId, Pid};
use whylate_sys::Errno;
use whylate_sys::hardware_stamps::Configuration;
use whylate_sys::tracefs::Tracefs;

use super::{card_stamps, coalescing, placed, tags_beside};
use crate::bed;
use crate::cpus;
use crate::file_tree;
use crate::files::trimmed;
use crate::kernel;
use crate::tasks::{self, Task};

/// One change and how to take it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "undo")]
pub enum Undo {
    /// Remove a private trace instance.
    RemoveTraceInstance {
        /// Its name, which begins with `whylate-`.
        name: String,
    },
    /// Write a file of `/proc` or `/sys` back.
    WriteFile {
        /// The file.
        path: String,
        /// What it said before.
        value: String,
        /// What whylate wrote.
        ours: String,
    },
    /// Set the affinity of an interrupt back.
    SetIrqAffinity {
        /// Its number.
        irq: u32,
        /// Its CPUs before.
        cpus: Vec<CpuId>,
        /// The CPUs whylate gave it.
        ours: Vec<CpuId>,
    },
    /// Set the affinity of a task back.
    SetAffinity {
        /// The task: a process or a thread.
        pid: Pid,
        /// When it started, in clock ticks after boot: ids are used again.
        start_time: u64,
        /// Its CPUs before.
        cpus: Vec<CpuId>,
        /// The CPUs whylate gave it.
        ours: Vec<CpuId>,
    },
    /// Widen the affinity of tasks that were started by narrowed ones meanwhile, and inherited
    /// what whylate gave their parents.
    WidenInheritors {
        /// The CPUs they inherited.
        ours: Vec<CpuId>,
        /// The CPUs their parents had before.
        cpus: Vec<CpuId>,
        /// Tasks started before this time inherited from somebody else.
        since: u64,
        /// Only children of these processes and their threads, where the move was restricted.
        only: Option<Vec<Pid>>,
    },
    /// Remove an empty directory, such as a cgroup.
    RemoveDir {
        /// The directory.
        path: String,
    },
    /// Remove a tree of files that a disk load reads, or what was made of it so far.
    RemoveTree {
        /// Its top directory, whose name begins with `whylate-load-`.
        path: String,
    },
    /// Take down a private bed: its processes, its namespaces and its notes.
    RemoveBed {
        /// Its name.
        name: String,
    },
    /// Take a controller from the children of a cgroup again.
    DisableController {
        /// The file `cgroup.subtree_control`.
        path: String,
        /// The controller, such as `cpuset`.
        controller: String,
    },
    /// Have the card of an interface stamp what it stamped before.
    SetHardwareStamps {
        /// The interface.
        interface: String,
        /// What it stamped of what it sends: a number of `enum hwtstamp_tx_types`.
        sending: u32,
        /// And of what it receives: a number of `enum hwtstamp_rx_filters`.
        filter: u32,
        /// What whylate told it to stamp of what it sends.
        ours_sending: u32,
        /// And of what it receives.
        ours_filter: u32,
    },
    /// Set the niceness of a thread back.
    SetNiceness {
        /// The thread.
        pid: Pid,
        /// When it started, in clock ticks after boot.
        start_time: u64,
        /// Its niceness before.
        nice: i8,
        /// The niceness whylate gave it.
        ours: i8,
    },
    /// Move everybody out of a cgroup that whylate made, before it is removed.
    EmptyGroup {
        /// Its directory, whose name begins with `whylate-`.
        path: String,
        /// Who was moved in, and from where.
        homes: Vec<Home>,
        /// What their threads could run on: the kernel widens who leaves a cpuset.
        threads: Vec<Bound>,
        /// The cgroup of those who began inside.
        otherwise: String,
    },
    /// Have a card hold packets back for as long as it did before.
    SetCoalescing {
        /// The interface.
        interface: String,
        /// Microseconds before: after a received packet, and after a sent one.
        usecs: [u32; 2],
        /// What whylate set them to.
        ours: [u32; 2],
    },
    /// Have a driver hand over the VLAN tags of frames as before: whylate had it do otherwise.
    SetTagsBeside {
        /// The interface.
        interface: String,
        /// Beside the frames, not in them.
        beside: bool,
    },
}

/// A process that was moved into a cgroup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Home {
    /// Its id.
    pub pid: Pid,
    /// When it started, in clock ticks after boot.
    pub start_time: u64,
    /// The directory of the cgroup that it came from.
    pub cgroup: String,
}

/// What a thread could run on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// Its id.
    pub pid: Pid,
    /// When it started, in clock ticks after boot.
    pub start_time: u64,
    /// Its CPUs.
    pub cpus: Vec<CpuId>,
}

/// What came of taking a change back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// As before, and read back.
    Restored,
    /// It was as before already.
    AsBefore,
    /// Somebody else changed it since: left alone.
    ChangedSince {
        /// What it is now.
        now: String,
    },
    /// The thing itself is gone.
    Gone,
    /// It could not be taken back.
    Failed {
        /// Why.
        why: String,
    },
}

impl Outcome {
    /// Is there nothing left to do about it?
    #[must_use]
    pub fn settled(&self) -> bool {
        !matches!(self, Self::Failed { .. })
    }

    fn failed(error: &io::Error) -> Self {
        Self::Failed { why: error.to_string() }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Restored => f.write_str("restored"),
            Self::AsBefore => f.write_str("is as before"),
            Self::ChangedSince { now } => {
                write!(f, "changed to `{now}` by somebody else since: left alone")
            }
            Self::Gone => f.write_str("is gone"),
            Self::Failed { why } => write!(f, "could not be restored: {why}"),
        }
    }
}

impl fmt::Display for Undo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RemoveTraceInstance { name } => write!(f, "trace instance {name}"),
            Self::WriteFile { path, value, .. } => write!(f, "{path} (before: `{value}`)"),
            Self::SetIrqAffinity { irq, cpus, .. } => {
                write!(f, "affinity of interrupt {irq} (before: {})", cpus::format_list(cpus))
            }
            Self::SetAffinity { pid, cpus, .. } => {
                write!(f, "affinity of task {pid} (before: {})", cpus::format_list(cpus))
            }
            Self::WidenInheritors { ours, .. } => {
                write!(f, "tasks that inherited the affinity {}", cpus::format_list(ours))
            }
            Self::RemoveDir { path } => write!(f, "directory {path}"),
            Self::RemoveTree { path } => write!(f, "files below {path}"),
            Self::RemoveBed { name } => write!(f, "bed {name}"),
            Self::DisableController { path, controller } => {
                write!(f, "controller {controller} in {path}")
            }
            Self::SetHardwareStamps { interface, sending, filter, .. } => {
                let before = Configuration { sending: *sending, filter: *filter };
                write!(f, "stamps of the card of {interface} (before: {before})")
            }
            Self::SetNiceness { pid, nice, .. } => {
                write!(f, "niceness of task {pid} (before: {nice})")
            }
            Self::EmptyGroup { path, .. } => write!(f, "processes in cgroup {path}"),
            Self::SetCoalescing { interface, usecs: [rx, tx], .. } => {
                write!(f, "coalescing of {interface} (before: rx {rx} us, tx {tx} us)")
            }
            Self::SetTagsBeside { interface, .. } => write!(f, "VLAN tags of {interface}"),
        }
    }
}

/// What an undo must know besides itself; read once for many.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    /// CPUs that are online: masks are compared as far as they are.
    online: Vec<CpuId>,
    /// The process that made the changes: its own threads and children placed themselves.
    owner: Pid,
}

impl Surroundings {
    pub(crate) fn of(owner: Pid) -> Self {
        let online = trimmed(Path::new("/sys/devices/system/cpu/online"));
        let online = online.and_then(|list| cpus::parse_list(&list).ok());
        Self { online: online.unwrap_or_default(), owner }
    }

    /// Are these two masks the same, as far as their CPUs are online?
    fn same(&self, a: &[CpuId], b: &[CpuId]) -> bool {
        let online = |mask: &[CpuId]| {
            let mut mask: Vec<CpuId> = mask.to_vec();
            if !self.online.is_empty() {
                mask.retain(|cpu| self.online.contains(cpu));
            }
            mask.sort_unstable();
            mask.dedup();
            mask
        };
        online(a) == online(b)
    }
}

impl Undo {
    /// Takes the change back.
    pub(crate) fn apply(&self, around: &Surroundings) -> Outcome {
        match self {
            Self::RemoveTraceInstance { name } => remove_trace_instance(name),
            Self::WriteFile { path, value, ours } => {
                restore_file(Path::new(path), value, ours, same_text)
            }
            Self::SetIrqAffinity { irq, cpus, ours } => restore_file(
                &irq_file(*irq),
                &cpus::format_list(cpus),
                &cpus::format_list(ours),
                |a, b| match (cpus::parse_list(a), cpus::parse_list(b)) {
                    (Ok(a), Ok(b)) => around.same(&a, &b),
                    _ => a == b,
                },
            ),
            Self::SetAffinity { pid, start_time, cpus, ours } => {
                if Task::alive(*pid, *start_time) {
                    restore_affinity(*pid, cpus, ours, around)
                } else {
                    Outcome::Gone
                }
            }
            Self::WidenInheritors { ours, cpus, since, only } => {
                widen_inheritors(ours, cpus, *since, only.as_deref(), around)
            }
            Self::RemoveDir { path } => remove_dir(Path::new(path)),
            Self::RemoveTree { path } => file_tree::remove(Path::new(path)),
            Self::RemoveBed { name } => bed::remove(name),
            Self::DisableController { path, controller } => {
                disable_controller(Path::new(path), controller)
            }
            Self::SetHardwareStamps { interface, sending, filter, ours_sending, ours_filter } => {
                let before = Configuration { sending: *sending, filter: *filter };
                let ours = Configuration { sending: *ours_sending, filter: *ours_filter };
                card_stamps::restore(interface, before, ours)
            }
            Self::SetNiceness { pid, start_time, nice, ours } => {
                placed::restore_niceness(*pid, *start_time, *nice, *ours)
            }
            Self::EmptyGroup { path, homes, threads, otherwise } => {
                placed::empty_group(Path::new(path), homes, threads, Path::new(otherwise))
            }
            Self::SetCoalescing { interface, usecs, ours } => {
                coalescing::restore(interface, *usecs, *ours)
            }
            Self::SetTagsBeside { interface, beside } => tags_beside::restore(interface, *beside),
        }
    }

    /// Would whylate have written this undo itself? A journal that was tampered with must not make
    /// a privileged process write anywhere: files lie below `writable`, without detours.
    pub(crate) fn plausible(&self, writable: &[&str]) -> Result<(), String> {
        let inside = |path: &str| {
            let plain = Path::new(path)
                .components()
                .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
            if plain && writable.iter().any(|root| Path::new(path).starts_with(root)) {
                Ok(())
            } else {
                Err(format!("{path} lies outside {}", writable.join(", ")))
            }
        };
        match self {
            Self::RemoveTraceInstance { name } if !is_own_instance(name) => {
                Err(format!("`{name}` is no trace instance of whylate"))
            }
            Self::DisableController { path, .. } if !path.ends_with(SUBTREE_CONTROL) => {
                Err(format!("{path} hands no controllers on"))
            }
            Self::WriteFile { path, .. }
            | Self::RemoveDir { path }
            | Self::DisableController { path, .. } => inside(path),
            Self::RemoveTree { path } if !file_tree::is_own(Path::new(path)) => {
                Err(format!("{path} is no tree of whylate's"))
            }
            Self::RemoveBed { name } if !bed::is_name(name) => {
                Err(format!("`{name}` is no name of a bed"))
            }
            Self::SetAffinity { pid, .. } | Self::SetNiceness { pid, .. } if pid.0 <= 0 => {
                Err(format!("{pid} is no task"))
            }
            Self::SetHardwareStamps { interface, .. }
            | Self::SetCoalescing { interface, .. }
            | Self::SetTagsBeside { interface, .. }
                if interface.contains(['/', '\0']) =>
            {
                Err(format!("`{interface}` is no interface"))
            }
            Self::EmptyGroup { path, .. } if !placed::is_own_group(Path::new(path)) => {
                Err(format!("{path} is no cgroup of whylate's"))
            }
            Self::EmptyGroup { path, homes, otherwise, .. } => {
                inside(path)?;
                inside(otherwise)?;
                homes.iter().try_for_each(|home| inside(&home.cgroup))
            }
            _ => Ok(()),
        }
    }
}

/// Where the CPUs of an interrupt are read and written as a list.
pub(crate) fn irq_file(irq: u32) -> std::path::PathBuf {
    format!("/proc/irq/{irq}/smp_affinity_list").into()
}

/// Names of trace instances that whylate makes: `whylate-PID-TAG`.
pub(crate) fn is_own_instance(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    name.len() < 200 && name.strip_prefix("whylate-").is_some_and(|rest| rest.bytes().all(plain))
}

/// How often the removal of something that is busy is tried again, and how long between: a reader
/// of an instance that is just closing, or a thread in a cgroup that is just ending, lets go within
/// milliseconds.
const REMOVALS: u32 = 50;
const BETWEEN_REMOVALS: std::time::Duration = std::time::Duration::from_millis(20);

/// The file of a cgroup that lists what controllers its children have.
const SUBTREE_CONTROL: &str = "/cgroup.subtree_control";

fn remove_dir(path: &Path) -> Outcome {
    let mut attempt = 0;
    loop {
        attempt += 1;
        match std::fs::remove_dir(path) {
            Ok(()) => return Outcome::Restored,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Outcome::Gone,
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && attempt < REMOVALS => {
                std::thread::sleep(BETWEEN_REMOVALS);
            }
            Err(error) => return Outcome::failed(&error),
        }
    }
}

fn disable_controller(path: &Path, controller: &str) -> Outcome {
    let listed = || std::fs::read_to_string(path);
    let has = |text: &str| text.split_whitespace().any(|one| one == controller);
    match listed() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Outcome::Gone,
        Err(error) => return Outcome::failed(&error),
        Ok(text) if !has(&text) => return Outcome::AsBefore,
        Ok(_) => {}
    }
    match kernel::write_setting(path, &format!("-{controller}")) {
        Ok(()) => Outcome::Restored,
        // A child of somebody else uses it by now.
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            Outcome::ChangedSince { now: listed().unwrap_or_default().trim().to_owned() }
        }
        Err(error) => Outcome::failed(&error),
    }
}

fn remove_trace_instance(name: &str) -> Outcome {
    if !is_own_instance(name) {
        return Outcome::Failed { why: format!("`{name}` is no trace instance of whylate") };
    }
    let tracefs = match Tracefs::open() {
        Ok(tracefs) => tracefs,
        Err(error) => return Outcome::Failed { why: error.to_string() },
    };
    let mut attempt = 0;
    loop {
        attempt += 1;
        match tracefs.remove_instance(name) {
            Ok(()) => return Outcome::Restored,
            Err(error) if error.errno() == Some(Errno::NOENT) => return Outcome::Gone,
            Err(error) if error.errno() == Some(Errno::BUSY) && attempt < REMOVALS => {
                std::thread::sleep(BETWEEN_REMOVALS);
            }
            Err(error) => return Outcome::Failed { why: error.to_string() },
        }
    }
}

fn restore_file(
    path: &Path,
    value: &str,
    ours: &str,
    same: impl Fn(&str, &str) -> bool,
) -> Outcome {
    let now = || std::fs::read_to_string(path).map(|text| text.trim().to_owned());
    match now() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Outcome::Gone,
        Err(error) => return Outcome::failed(&error),
        Ok(now) if same(&now, value) => return Outcome::AsBefore,
        Ok(now) if !same(&now, ours) => return Outcome::ChangedSince { now },
        Ok(_) => {}
    }
    if let Err(error) = kernel::write_setting(path, value) {
        return Outcome::failed(&error);
    }
    match now() {
        Ok(now) if same(&now, value) => Outcome::Restored,
        Ok(now) => Outcome::Failed { why: format!("wrote `{value}` and it reads back `{now}`") },
        Err(error) => Outcome::failed(&error),
    }
}

/// Do two texts of a setting say the same? White space does not count, nor do the leading zeros
/// and commas of a CPU mask (`00000000,0000000f`), nor choices that are not in force.
pub(crate) fn same_text(a: &str, b: &str) -> bool {
    let (a, b) = (choice(a.trim()), choice(b.trim()));
    a == b || matches!((mask_digits(a), mask_digits(b)), (Some(a), Some(b)) if a == b)
}

/// What is in force of a setting whose file lists all choices, as in `always [madvise] never`, and
/// what is written to have it so; the whole text where not one word stands in brackets.
pub(crate) fn choice(text: &str) -> &str {
    let Some((_, rest)) = text.split_once('[') else { return text };
    let Some((one, others)) = rest.split_once(']') else { return text };
    let is_word = !one.is_empty() && !one.contains(|c: char| c == '[' || c.is_whitespace());
    if is_word && !others.contains(['[', ']']) { one } else { text }
}

/// The digits of a text that has the form of a CPU mask: groups of eight after each comma.
fn mask_digits(text: &str) -> Option<String> {
    let mut groups = text.split(',');
    let hex = |group: &str| !group.is_empty() && group.bytes().all(|b| b.is_ascii_hexdigit());
    let first = groups.next().filter(|group| hex(group) && group.len() <= 8)?;
    let mut digits = first.to_owned();
    for group in groups {
        if !hex(group) || group.len() != 8 {
            return None;
        }
        digits.push_str(group);
    }
    Some(digits.trim_start_matches('0').to_ascii_lowercase())
}

fn restore_affinity(tid: Pid, cpus: &[CpuId], ours: &[CpuId], around: &Surroundings) -> Outcome {
    match kernel::affinity(tid) {
        Err(error) if kernel::is_gone(&error) => return Outcome::Gone,
        Err(error) => return Outcome::failed(&error),
        Ok(now) if around.same(&now, cpus) => return Outcome::AsBefore,
        Ok(now) if !around.same(&now, ours) => {
            return Outcome::ChangedSince { now: cpus::format_list(&now) };
        }
        Ok(_) => {}
    }
    match kernel::set_affinity(tid, cpus) {
        Err(error) if kernel::is_gone(&error) => return Outcome::Gone,
        Err(error) => return Outcome::failed(&error),
        Ok(()) => {}
    }
    match kernel::affinity(tid) {
        Ok(now) if around.same(&now, cpus) => Outcome::Restored,
        Ok(now) => Outcome::ChangedSince { now: cpus::format_list(&now) },
        Err(error) if kernel::is_gone(&error) => Outcome::Gone,
        Err(error) => Outcome::failed(&error),
    }
}

/// A scan that found somebody to widen is repeated, for what they started meanwhile; this often at
/// most.
const INHERITOR_SCANS: usize = 4;

fn widen_inheritors(
    ours: &[CpuId],
    cpus: &[CpuId],
    since: u64,
    only: Option<&[Pid]>,
    around: &Surroundings,
) -> Outcome {
    let mut widened = 0_usize;
    let mut failed = None;
    for _ in 0..INHERITOR_SCANS {
        let before = widened;
        for (process, task) in tasks::all() {
            let by_owner = process == around.owner || task.parent == around.owner;
            let meant =
                only.is_none_or(|only| only.contains(&process) || only.contains(&task.parent));
            if by_owner || !meant || task.kernel || task.start_time < since {
                continue;
            }
            let inherited = kernel::affinity(task.tid).is_ok_and(|now| around.same(&now, ours));
            if !inherited || !Task::alive(task.tid, task.start_time) {
                continue;
            }
            match restore_affinity(task.tid, cpus, ours, around) {
                Outcome::Restored => widened += 1,
                Outcome::Failed { why } => failed = Some(format!("task {}: {why}", task.tid)),
                _ => {}
            }
        }
        if widened == before {
            break;
        }
    }
    match failed {
        Some(why) => Outcome::Failed { why },
        None if widened > 0 => Outcome::Restored,
        None => Outcome::AsBefore,
    }
}

#[cfg(test)]
mod tests;
