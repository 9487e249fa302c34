//! `quiet`: what else the paper turns off against jitter: NUMA balancing, transparent huge pages,
//! interrupts that a card holds back; the watchdog's interrupts with them. Auditing is read only: to
//! turn it off would be to hide what the host's owner wants to see.

use super::work::Work;
use crate::error::HostError;
use crate::files::{text, under};
use crate::guard::{NoCoalescing, Settings};

/// Files and what they say when they are quiet.
const FILES: [(&str, &str, &str); 3] = [
    ("numa_balancing", "/proc/sys/kernel/numa_balancing", "0"),
    ("thp", "/sys/kernel/mm/transparent_hugepage/enabled", "never"),
    ("nmi_watchdog", "/proc/sys/kernel/nmi_watchdog", "0"),
];

/// Most processes that are looked at for the one that audits.
const MOST_PROCESSES: usize = 65_536;

pub(super) fn quiet(work: &mut Work<'_>) -> Result<(), HostError> {
    let mut settings = Settings::new(work.journal);
    for (name, path, value) in FILES {
        work.set(&mut settings, name, path, value)?;
    }
    work.keep(settings);
    audit(work);
    for interface in work.subject.interfaces.clone() {
        coalescing(work, &interface)?;
    }
    Ok(())
}

fn audit(work: &mut Work<'_>) {
    let root = &work.ground.root;
    let line = text(&under(root, "/proc/cmdline")).unwrap_or_default();
    let asked = line.split_whitespace().rev().find(|word| word.starts_with("audit="));
    let is_auditd = |entry: std::fs::DirEntry| {
        let name = text(&entry.path().join("comm")).unwrap_or_default();
        name.trim() == "auditd"
    };
    let processes = std::fs::read_dir(under(root, "/proc")).into_iter().flatten();
    let runs = processes.take(MOST_PROCESSES).flatten().any(is_auditd);
    let daemon = if runs { "auditd runs" } else { "auditd is not seen" };
    let at_boot = asked.unwrap_or("audit= not given at boot");
    let said = format!("{daemon}, {at_boot}");
    work.read("audit", said.clone(), None, said);
}

fn coalescing(work: &mut Work<'_>, interface: &str) -> Result<(), HostError> {
    let knob = format!("{interface}.coalescing");
    if !work.ground.is_here() {
        work.lacks(&knob, "a port of the running machine, which a tree of files has not");
        return Ok(());
    }
    let held = NoCoalescing::of(work.journal, interface);
    if let Some(held) = work.offered(&knob, held)? {
        let (before, got) = held.read_back();
        work.read(&knob, before, Some("rx 0 us, tx 0 us"), got);
        work.keep(held);
    }
    Ok(())
}
