//! Moving interrupts off the measured CPUs.

use std::io;
use std::path::{Path, PathBuf};

use whylate_model::CpuId;
use whylate_model::warning::Warning;

use super::changes::{Changes, Written};
use super::{Guard, listed, mask};
use crate::cpus::{format_list, parse_list};
use crate::error::HostError;
use crate::files::{trimmed, under};
use crate::journal::{Journal, Undo, irq_file};
use crate::kernel;
use crate::tasks;
use crate::topology::Topology;

/// The CPUs of interrupts that are requested from now on.
const DEFAULT_MASK: &str = "/proc/irq/default_smp_affinity";

/// Interrupts moved off CPUs, and back when the guard goes.
///
/// Interrupts whose driver has the kernel manage them (queues of NVMe and virtio disks) refuse, and
/// so do timers and others tied to one CPU; they are counted and named.
#[derive(Debug)]
pub struct MovedInterrupts {
    changes: Changes,
    root: PathBuf,
    cpus: Vec<CpuId>,
    moved: Vec<u32>,
    refused: Vec<String>,
    default: Option<Result<Written, String>>,
    balanced: bool,
}

impl MovedInterrupts {
    /// Moves interrupts away from `cpus`: those in `only`, or all, and then those to come as well.
    pub fn away_from(
        journal: &Journal,
        cpus: &[CpuId],
        only: Option<&[u32]>,
    ) -> Result<Self, HostError> {
        Self::away_from_below(journal, Path::new("/"), cpus, only)
    }

    /// The same on the host whose `/proc` and `/sys` lie below `root`.
    pub(crate) fn away_from_below(
        journal: &Journal,
        root: &Path,
        cpus: &[CpuId],
        only: Option<&[u32]>,
    ) -> Result<Self, HostError> {
        let topology = Topology::read(root)?;
        let elsewhere: Vec<CpuId> =
            topology.online().iter().copied().filter(|cpu| !cpus.contains(cpu)).collect();
        if elsewhere.is_empty() {
            return Err(HostError::NowhereToMove { cpus: format_list(cpus) });
        }
        let mut guard = Self {
            changes: Changes::new(journal),
            root: root.to_owned(),
            cpus: cpus.to_vec(),
            moved: Vec::new(),
            refused: Vec::new(),
            default: None,
            balanced: tasks::all().iter().any(|(_, task)| task.comm == "irqbalance"),
        };
        if only.is_none() {
            // First: an interrupt requested during the move is in the right place then.
            guard.default = guard.move_default();
        }
        let irqs = only.map_or_else(|| all(root), <[u32]>::to_vec);
        let planned = irqs.into_iter().filter_map(|irq| guard.plan(irq, &elsewhere)).collect();
        guard.shift(planned)?;
        Ok(guard)
    }

    /// Numbers of the interrupts that were moved.
    #[must_use]
    pub fn moved(&self) -> &[u32] {
        &self.moved
    }

    /// How many interrupts refused to be moved.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.refused.len()
    }

    /// Why interrupts to come may be on the measured CPUs still, where that was to be changed.
    pub(crate) fn default_refused(&self) -> Option<&str> {
        match &self.default {
            Some(Err(why)) => Some(why),
            _ => None,
        }
    }

    /// Those that stay, with the reason of each.
    pub(crate) fn stayed(&self) -> String {
        listed(&self.refused)
    }

    /// What to do about an interrupt; `None` when it is elsewhere already.
    fn plan(&self, irq: u32, elsewhere: &[CpuId]) -> Option<(u32, Vec<CpuId>, Vec<CpuId>)> {
        let before = parse_list(&trimmed(&self.file(irq))?).ok()?;
        if !before.iter().any(|cpu| self.cpus.contains(cpu)) {
            return None;
        }
        let mut ours: Vec<CpuId> =
            before.iter().copied().filter(|cpu| elsewhere.contains(cpu)).collect();
        if ours.is_empty() {
            // It was spread to a measured CPU alone: anywhere else will do.
            ours = elsewhere.to_vec();
        }
        Some((irq, before, ours))
    }

    fn shift(&mut self, planned: Vec<(u32, Vec<CpuId>, Vec<CpuId>)>) -> Result<(), HostError> {
        let here = self.root == Path::new("/");
        let undo = |(irq, before, ours): &(u32, Vec<CpuId>, Vec<CpuId>)| {
            if here {
                return Undo::SetIrqAffinity {
                    irq: *irq,
                    cpus: before.clone(),
                    ours: ours.clone(),
                };
            }
            Undo::WriteFile {
                path: self.file(*irq).display().to_string(),
                value: format_list(before),
                ours: format_list(ours),
            }
        };
        if planned.is_empty() {
            return Ok(());
        }
        let undos = planned.iter().map(undo).collect();
        self.changes.announce(undos)?;
        let mut stayed = Vec::new();
        for (irq, _, ours) in planned {
            match write_and_read_back(&self.file(irq), &ours, &self.cpus) {
                Ok(()) => self.moved.push(irq),
                Err(error) => {
                    stayed.push(irq);
                    self.refused.push(format!("{} ({})", called(irq), reason(&error)));
                }
            }
        }
        self.changes.withdraw(
            |undo| matches!(undo, Undo::SetIrqAffinity { irq, .. } if stayed.contains(irq)),
        )
    }

    /// Where the CPUs of an interrupt are read and written.
    fn file(&self, irq: u32) -> PathBuf {
        under(&self.root, &irq_file(irq).display().to_string())
    }

    fn move_default(&mut self) -> Option<Result<Written, String>> {
        let path = under(&self.root, DEFAULT_MASK);
        let narrowed = mask::without(&trimmed(&path)?, &self.cpus)?;
        let remedy = "run as root, or accept new interrupts on the measured CPUs";
        self.changes.write(&path, &narrowed, remedy).map_err(|error| error.to_string()).transpose()
    }
}

impl Guard for MovedInterrupts {
    fn describe(&self) -> Vec<String> {
        let cpus = format_list(&self.cpus);
        let mut lines = vec![format!("moved {} interrupts off cpus {cpus}", self.moved.len())];
        match &self.default {
            Some(Ok(Written { before, now })) => {
                lines.push(format!("interrupts to come: {DEFAULT_MASK} {before} -> {now}"));
            }
            Some(Err(error)) => lines.push(format!("interrupts to come stay: {error}")),
            None => {}
        }
        if !self.refused.is_empty() {
            let refused = self.refused.len();
            lines.push(format!("{refused} stay where they are: {}", listed(&self.refused)));
        }
        if self.balanced && !self.moved.is_empty() {
            lines.push(
                "irqbalance runs and may move them back: stop it, or give it IRQBALANCE_BANNED_CPULIST"
                    .to_owned(),
            );
        }
        lines
    }

    fn restore(&mut self) -> Vec<Warning> {
        self.changes.restore()
    }
}

/// Numbers of the interrupts of the host below `root`.
pub(crate) fn all(root: &Path) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(under(root, "/proc/irq")) else { return Vec::new() };
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    let mut irqs: Vec<u32> = entries.flatten().filter_map(number).collect();
    irqs.sort_unstable();
    irqs
}

fn write_and_read_back(file: &Path, ours: &[CpuId], cpus: &[CpuId]) -> io::Result<()> {
    kernel::write_setting(file, &format_list(ours))?;
    let now = trimmed(file).and_then(|list| parse_list(&list).ok());
    if now.is_some_and(|now| !now.iter().any(|cpu| cpus.contains(cpu))) {
        Ok(())
    } else {
        Err(io::Error::other("the kernel did not keep the new CPUs"))
    }
}

/// Number and handlers of an interrupt: each handler has a directory.
fn called(irq: u32) -> String {
    let entries = std::fs::read_dir(format!("/proc/irq/{irq}"));
    let names = entries.into_iter().flatten().flatten().filter_map(|entry| {
        entry.file_type().ok().filter(std::fs::FileType::is_dir)?;
        entry.file_name().into_string().ok()
    });
    let names = names.collect::<Vec<_>>().join(", ");
    if names.is_empty() { irq.to_string() } else { format!("{irq} {names}") }
}

/// The two refusals that have a meaning of their own here.
fn reason(error: &io::Error) -> String {
    match error.raw_os_error().map(whylate_sys::Errno::from_raw_os_error) {
        Some(whylate_sys::Errno::IO) => "managed by the kernel".to_owned(),
        Some(whylate_sys::Errno::PERM) => "managed by the kernel or not permitted".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::MutexGuard;

    use super::*;
    use crate::tree;

    struct Bed {
        _turn: MutexGuard<'static, ()>,
        _dir: tempfile::TempDir,
        journal: Journal,
        measured: CpuId,
    }

    impl Bed {
        /// Root and two CPUs.
        fn new() -> Option<Self> {
            let turn = tree::turn(&tree::INTERRUPTS);
            let online = Topology::read(Path::new("/")).unwrap().online().to_vec();
            if online.len() < 2 || !rustix::process::geteuid().is_root() {
                tree::skip(&"moving interrupts needs root and two CPUs");
                return None;
            }
            let measured = *online.last().unwrap();
            let dir = tempfile::tempdir().unwrap();
            let journal = Journal::open_in(&dir.path().join("journals")).unwrap();
            Some(Self { _turn: turn, _dir: dir, journal, measured })
        }

        fn cleared(&self, irq: u32) -> MovedInterrupts {
            MovedInterrupts::away_from(&self.journal, &[self.measured], Some(&[irq])).unwrap()
        }

        /// An interrupt that can be moved, as a trial under the guard shows.
        fn movable(&self) -> Option<u32> {
            let found =
                all(Path::new("/")).into_iter().find(|&irq| !self.cleared(irq).moved().is_empty());
            if found.is_none() {
                tree::skip(&"no interrupt of this machine can be moved");
            }
            found
        }

        fn refusing(&self) -> Option<u32> {
            let found =
                all(Path::new("/")).into_iter().find(|&irq| self.cleared(irq).refused() > 0);
            if found.is_none() {
                tree::skip(&"every interrupt of this machine can be moved");
            }
            found
        }
    }

    fn affinity(irq: u32) -> Vec<CpuId> {
        parse_list(&trimmed(&irq_file(irq)).unwrap()).unwrap()
    }

    #[test]
    fn interrupt_leaves_the_measured_cpu_and_comes_back() {
        let Some(bed) = Bed::new() else { return };
        let Some(irq) = bed.movable() else { return };
        let before = affinity(irq);
        let guard = bed.cleared(irq);
        assert_eq!(guard.moved(), [irq], "{:?}", guard.describe());
        assert!(!affinity(irq).contains(&bed.measured));
        assert_eq!(bed.journal.entries().len(), 1);
        drop(guard);
        assert_eq!(affinity(irq), before);
        assert_eq!(bed.journal.entries(), []);
    }

    #[test]
    fn interrupts_that_refuse_are_named_and_leave_nothing_in_the_journal() {
        let Some(bed) = Bed::new() else { return };
        let Some(irq) = bed.refusing() else { return };
        let before = affinity(irq);
        let guard = bed.cleared(irq);
        assert_eq!((guard.moved().len(), guard.refused()), (0, 1));
        let told = guard.describe().join("\n");
        assert!(told.contains(&format!("1 stay where they are: {irq}")), "{told}");
        assert_eq!(bed.journal.entries(), []);
        assert_eq!(affinity(irq), before);
    }

    #[test]
    fn interrupts_that_do_not_exist_or_are_elsewhere_are_not_touched() {
        let Some(bed) = Bed::new() else { return };
        let guard = bed.cleared(999_999);
        assert_eq!((guard.moved().len(), guard.refused()), (0, 0));
        let Some(irq) = bed.movable() else { return };
        let first = bed.cleared(irq);
        let second = bed.cleared(irq);
        assert!(second.moved().is_empty());
        drop(first);
        drop(second);
        assert!(affinity(irq).contains(&bed.measured));
    }

    #[test]
    fn clearing_every_cpu_is_refused() {
        let Some(bed) = Bed::new() else { return };
        let online = Topology::read(Path::new("/")).unwrap().online().to_vec();
        let error = MovedInterrupts::away_from(&bed.journal, &online, Some(&[])).unwrap_err();
        assert!(matches!(error, HostError::NowhereToMove { .. }), "{error}");
    }
}
