//! How long a task may wait for a less urgent one that holds a mutex.
//!
//! With priority inheritance (Sha, Rajkumar and Lehoczky, "Priority inheritance protocols", 1990) a
//! task waits for at most one outermost critical section of each less urgent thread, and for at most
//! one section of each mutex; the smaller sum is the bound. Where sections are nested only the first
//! is used. With a ceiling it waits for one section in all. Both count only mutexes that it or
//! something more urgent locks. A mutex without a protocol bounds nothing and is refused, where
//! threads of different priority share it.

use std::collections::BTreeSet;

use whylate_model::Nanos;

use super::of_set::{NotAnalysed, Reason};
use super::task::Task;
use crate::task_set::{Protocol, Resource, TaskSet};

/// A critical section of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    /// The mutex that it holds.
    pub(super) mutex: String,
    /// Mutexes that are locked inside.
    pub(super) inner: BTreeSet<String>,
    /// What is run inside at most.
    pub(super) length: Nanos,
    /// No other is held when it begins.
    pub(super) outermost: bool,
}

/// A thread with locks: its priority, its name, its sections.
pub(super) type Locking = (Option<u32>, String, Vec<Section>);

/// Adds to each task what it may have to wait for.
pub(super) fn add(
    set: &TaskSet,
    threads: &[Locking],
    tasks: &mut [Task],
) -> Result<(), NotAnalysed> {
    for resource in &set.resources {
        if let Resource::Mutex { name, protocol } = resource {
            check(name, *protocol, threads)?;
        }
    }
    for task in tasks {
        let below =
            |protocol: fn(Protocol) -> bool| relevant(set, threads, task.priority, protocol);
        let inherit = below(|protocol| protocol == Protocol::Inherit);
        let protect = below(|protocol| matches!(protocol, Protocol::Protect { .. }));
        let once = protect.iter().flatten().map(|section| section.length.0).max();
        let waits = inherited(&inherit).saturating_add(once.unwrap_or_default());
        task.blocking = Nanos(task.blocking.0.saturating_add(waits));
    }
    Ok(())
}

/// A mutex without a protocol is shared among equals only; a ceiling lies above who locks.
fn check(mutex: &str, protocol: Protocol, threads: &[Locking]) -> Result<(), NotAnalysed> {
    let mut users: Vec<&Locking> = threads
        .iter()
        .filter(|(_, _, sections)| sections.iter().any(|section| section.mutex == mutex))
        .collect();
    users.sort_by_key(|(priority, ..)| *priority);
    let (Some((lowest, holder, _)), Some((highest, waiter, _))) = (users.first(), users.last())
    else {
        return Ok(());
    };
    let refused = |reason| Err(NotAnalysed { thread: waiter.clone(), reason });
    match (protocol, *highest) {
        (Protocol::None, _) if lowest < highest => {
            refused(Reason::Inversion { mutex: mutex.to_owned(), holder: holder.clone() })
        }
        (Protocol::Protect { ceiling }, Some(priority)) if priority > u32::from(ceiling) => {
            refused(Reason::Ceiling { mutex: mutex.to_owned(), ceiling, priority })
        }
        _ => Ok(()),
    }
}

/// Of each less urgent thread, the sections that may delay a task of this priority.
fn relevant<'a>(
    set: &TaskSet,
    threads: &'a [Locking],
    priority: u32,
    of_protocol: fn(Protocol) -> bool,
) -> Vec<Vec<&'a Section>> {
    let raises = |mutex: &str| {
        let Some(Resource::Mutex { protocol, .. }) = set.resource(mutex) else { return false };
        let users = threads.iter().filter(|(own, _, sections)| {
            own.is_some_and(|own| own >= priority)
                && sections.iter().any(|section| section.mutex == mutex)
        });
        let ceiling = match protocol {
            Protocol::Protect { ceiling } => u32::from(*ceiling) >= priority,
            _ => false,
        };
        of_protocol(*protocol) && (ceiling || users.count() > 0)
    };
    threads
        .iter()
        .filter(|(own, ..)| own.is_none_or(|own| own < priority))
        .map(|(_, _, sections)| {
            let delays = |section: &&Section| {
                raises(&section.mutex) || section.inner.iter().any(|inner| raises(inner))
            };
            sections.iter().filter(delays).collect()
        })
        .collect()
}

fn inherited(threads: &[Vec<&Section>]) -> u64 {
    let longest = |sections: &mut dyn Iterator<Item = &Section>| {
        sections.map(|section| section.length.0).max().unwrap_or_default()
    };
    let by_thread = threads
        .iter()
        .map(|sections| longest(&mut sections.iter().copied().filter(|section| section.outermost)))
        .fold(0, u64::saturating_add);
    let all = || threads.iter().flatten().copied();
    if all().any(|section| !section.inner.is_empty() || !section.outermost) {
        return by_thread;
    }
    let mutexes: BTreeSet<&str> = all().map(|section| section.mutex.as_str()).collect();
    let by_mutex = mutexes
        .iter()
        .map(|mutex| longest(&mut all().filter(|section| section.mutex == *mutex)))
        .fold(0, u64::saturating_add);
    by_thread.min(by_mutex)
}
