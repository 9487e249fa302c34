//! `isolset`: nobody else on the box's CPUs.
//!
//! The paper boots with `isolcpus`; what can be had of that on a host that runs is here.

use std::collections::BTreeSet;

use super::work::Work;
use crate::error::HostError;
use crate::files::under;
use crate::guard::{
    FavouredTasks, MovedInterrupts, MovedTasks, Scope, Settings, interrupts_below, mask_without,
};

/// Before all ordinary threads.
const NICE: i8 = -20;
const NICE_IN_WORDS: &str = "SCHED_OTHER nice -20";

/// CPUs of work that the kernel binds to none, and of writing pages back to disks.
const MASKS: [(&str, &str); 2] = [
    ("workqueue.cpus", "/sys/devices/virtual/workqueue/cpumask"),
    ("writeback.cpus", "/sys/devices/virtual/workqueue/writeback/cpumask"),
];

/// Most interrupts of one card that are looked at.
const MOST_OF_A_CARD: usize = 4096;

pub(super) fn isolate(work: &mut Work<'_>) -> Result<(), HostError> {
    tasks(work)?;
    interrupts(work)?;
    masks(work)?;
    priority(work)
}

fn tasks(work: &mut Work<'_>) -> Result<(), HostError> {
    let scope = match &work.ground.others {
        Some(these) => Scope::Only(these.clone()),
        None => Scope::AllBut(work.subject.pids.clone()),
    };
    let moved = MovedTasks::away_from(work.journal, &work.plan.cpus, &scope);
    let Some(moved) = work.offered("tasks", moved)? else { return Ok(()) };
    let stay = moved.refused() + moved.bound();
    let before = format!("{} others", moved.moved() + stay);
    let got = if stay == 0 { "none".to_owned() } else { format!("{stay} bound there") };
    work.read("tasks", before, Some("none"), got);
    work.keep(moved);
    Ok(())
}

fn interrupts(work: &mut Work<'_>) -> Result<(), HostError> {
    let root = work.ground.root.as_path();
    let own = own_interrupts(work);
    let only = match (&work.ground.interrupts, own.is_empty()) {
        (Some(these), _) => Some(these.clone()),
        (None, true) => None,
        (None, false) => {
            Some(interrupts_below(root).into_iter().filter(|irq| !own.contains(irq)).collect())
        }
    };
    let only = only.as_deref();
    let moved = MovedInterrupts::away_from_below(work.journal, root, &work.plan.cpus, only);
    let Some(moved) = work.offered("interrupts", moved)? else { return Ok(()) };
    let before = format!("{} could come", moved.moved().len() + moved.refused());
    let asked = match own.len() {
        0 => "none".to_owned(),
        own => format!("none but its own {own}"),
    };
    let got = match moved.refused() {
        0 => asked.clone(),
        refused => format!("{asked}, {refused} refuse: {}", moved.stayed()),
    };
    if let Some(why) = moved.default_refused() {
        work.lacks("interrupts.default", why.to_owned());
    }
    work.read("interrupts", before, Some(&asked), got);
    work.keep(moved);
    Ok(())
}

/// A box of the kernel works in the interrupts of its interfaces: they stay with it.
fn own_interrupts(work: &Work<'_>) -> BTreeSet<u32> {
    if !work.subject.pids.is_empty() {
        return BTreeSet::new();
    }
    let of = |name: &String| {
        let dir = under(&work.ground.root, &format!("/sys/class/net/{name}/device/msi_irqs"));
        let entries = std::fs::read_dir(dir).into_iter().flatten();
        let names = entries.take(MOST_OF_A_CARD).flatten().map(|entry| entry.file_name());
        names.filter_map(|name| name.to_str()?.parse().ok()).collect::<Vec<u32>>()
    };
    let plain = |name: &&String| !name.contains('/') && !name.starts_with('.');
    work.subject.interfaces.iter().filter(plain).flat_map(of).collect()
}

fn masks(work: &mut Work<'_>) -> Result<(), HostError> {
    let mut settings = Settings::new(work.journal);
    for (name, path) in MASKS {
        let Some(before) = work.says(path) else {
            work.lacks(name, format!("{path} is absent"));
            continue;
        };
        match mask_without(&before, &work.plan.cpus) {
            Some(narrowed) => work.set(&mut settings, name, path, &narrowed)?,
            None => work.lacks(name, format!("{path} says {before}: no CPU of it would be left")),
        }
    }
    work.keep(settings);
    Ok(())
}

fn priority(work: &mut Work<'_>) -> Result<(), HostError> {
    if work.subject.pids.is_empty() {
        work.lacks("priority", "the box has no process");
        return Ok(());
    }
    if work.plan.is_shared {
        // A box that spins before all others would keep our own threads from ever beginning.
        let why = "there is no third CPU for our own threads: beside a box above all others they hardly run";
        work.lacks("priority", why);
        return Ok(());
    }
    let favoured = FavouredTasks::with(work.journal, &work.subject.pids, NICE);
    let Some(favoured) = work.offered("priority", favoured)? else { return Ok(()) };
    if !favoured.left().is_empty() {
        let own = favoured.left().join(", ");
        work.lacks("priority.own", format!("threads with a policy of their own keep it: {own}"));
    }
    if !favoured.before().is_empty() {
        let got = NICE_IN_WORDS.to_owned();
        work.read("priority", favoured.before(), Some(NICE_IN_WORDS), got);
    }
    work.keep(favoured);
    Ok(())
}
