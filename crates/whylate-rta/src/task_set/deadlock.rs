//! Waits that can never end, as far as the steps alone show them: barriers and queues that nobody
//! completes, conditions that nobody signals, semaphores that nobody posts, mutexes held at a
//! barrier, and two orders of locking.
//!
//! Decided is what the order of steps can lead to, not what will happen: a set is refused when it
//! *can* stop for ever, however seldom. Queues that are filled faster than they are emptied are not
//! looked for; neither are waits through a queue, a condition or a semaphore while a mutex is held,
//! nor signals that come before anybody waits. Of a program each phase is followed once.

use std::collections::{BTreeMap, BTreeSet};

use super::error::TaskSetError;
use super::{Kind, Protocol, Resource, Step, TaskSet, Thread};

/// Every lock is unlocked and every name is known.
pub(super) fn check(set: &TaskSet) -> Result<(), TaskSetError> {
    for resource in &set.resources {
        match resource {
            Resource::Barrier { name, threads } => barrier(set, name, *threads)?,
            Resource::Queue { name, .. } => queue(set, name)?,
            Resource::Condition { name } => condition(set, name)?,
            Resource::Semaphore { name, value: 0 } => semaphore(set, name)?,
            Resource::Mutex { .. } | Resource::Semaphore { .. } => {}
        }
    }
    lock_order(set)
}

fn queue(set: &TaskSet, name: &str) -> Result<(), TaskSetError> {
    let mut steps = set.threads.iter().flat_map(Thread::written_steps);
    let pushed = steps.clone().any(|step| matches!(step, Step::Push(to) if to == name));
    let popped = steps.any(|step| matches!(step, Step::Pop(from) if from == name));
    if pushed == popped {
        return Ok(());
    }
    Err(TaskSetError::OneWayQueue { name: name.to_owned(), pushed })
}

/// A condition that is waited for is signalled by somebody.
fn condition(set: &TaskSet, name: &str) -> Result<(), TaskSetError> {
    let waits = |step: &Step| match step {
        Step::Wait { condition, .. } | Step::Sync { condition, .. } | Step::Suspend(condition) => {
            condition == name
        }
        _ => false,
    };
    let signals = |step: &Step| match step {
        Step::Signal(condition)
        | Step::Broadcast(condition)
        | Step::Resume(condition)
        | Step::Sync { condition, .. } => condition == name,
        _ => false,
    };
    never_ends(set, Kind::Condition, name, &waits, &signals)
}

/// A semaphore that is waited for is posted by somebody.
fn semaphore(set: &TaskSet, name: &str) -> Result<(), TaskSetError> {
    let waits = |step: &Step| matches!(step, Step::SemWait(one) if one == name);
    let posts = |step: &Step| matches!(step, Step::SemPost(one) | Step::Fork(one) if one == name);
    never_ends(set, Kind::Semaphore, name, &waits, &posts)
}

/// Refuses a wait that another thread would have to end, where none does.
fn never_ends(
    set: &TaskSet,
    kind: Kind,
    name: &str,
    waits: &dyn Fn(&Step) -> bool,
    ends: &dyn Fn(&Step) -> bool,
) -> Result<(), TaskSetError> {
    for thread in set.threads.iter().filter(|thread| thread.written_steps().any(waits)) {
        let mut others = set.threads.iter().filter(|other| other.name != thread.name);
        if !others.any(|other| other.written_steps().any(ends)) {
            let (thread, name) = (thread.name.clone(), name.to_owned());
            return Err(TaskSetError::NeverEnds { thread, kind, name });
        }
    }
    Ok(())
}

fn barrier(set: &TaskSet, name: &str, threads: u32) -> Result<(), TaskSetError> {
    let users: Vec<(&Thread, Vec<Arrival<'_>>)> = set
        .threads
        .iter()
        .map(|thread| (thread, arrivals(thread, name)))
        .filter(|(_, arrivals)| !arrivals.is_empty())
        .collect();
    if users.is_empty() {
        return Err(TaskSetError::BarrierUnused(name.to_owned()));
    }
    if users.len() != threads as usize {
        return Err(TaskSetError::BarrierCount {
            name: name.to_owned(),
            threads,
            users: users.len(),
        });
    }
    // Who can lock a mutex on its way to the barrier: by number of the arrival where all threads
    // arrive equally often in a job, else by any.
    let in_step = users.windows(2).all(|pair| pair[0].1.len() == pair[1].1.len());
    for (at, (thread, own)) in users.iter().enumerate() {
        for (number, arrival) in own.iter().enumerate() {
            for mutex in &arrival.held {
                let needs = |other: &Vec<Arrival<'_>>| {
                    if in_step {
                        other[number].locked.contains(mutex)
                    } else {
                        other.iter().any(|arrival| arrival.locked.contains(mutex))
                    }
                };
                let others = users.iter().enumerate().filter(|(index, _)| *index != at);
                let mut in_need = others.filter(|(_, (_, other))| needs(other));
                if let Some((_, (other, _))) = in_need.next() {
                    return Err(TaskSetError::LockAtBarrier {
                        thread: thread.name.clone(),
                        other: other.name.clone(),
                        barrier: name.to_owned(),
                        mutex: (*mutex).to_owned(),
                    });
                }
            }
        }
    }
    Ok(())
}

/// One arrival of a job at a barrier.
struct Arrival<'a> {
    /// Mutexes held there.
    held: Vec<&'a str>,
    /// Mutexes locked since the arrival before, in the previous job where this is the first.
    locked: BTreeSet<&'a str>,
}

fn arrivals<'a>(thread: &'a Thread, barrier: &str) -> Vec<Arrival<'a>> {
    let mut arrivals: Vec<Arrival<'a>> = Vec::new();
    let (mut held, mut locked) = (Vec::new(), BTreeSet::new());
    for step in thread.written_steps() {
        match step {
            Step::Lock(mutex) => {
                held.push(mutex.as_str());
                locked.insert(mutex.as_str());
            }
            Step::Unlock(mutex) => held.retain(|one| one != mutex),
            Step::Barrier(name) if name == barrier => {
                arrivals.push(Arrival { held: held.clone(), locked: std::mem::take(&mut locked) });
            }
            _ => {}
        }
    }
    if let Some(first) = arrivals.first_mut() {
        first.locked.extend(locked);
    }
    arrivals
}

/// Mutexes that are locked in two orders. Those that all have the protocol `protect` are left out:
/// on one CPU their ceilings let nobody in between.
fn lock_order(set: &TaskSet) -> Result<(), TaskSetError> {
    let mut edges: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for thread in &set.threads {
        let mut held: Vec<&str> = Vec::new();
        for step in thread.written_steps() {
            match step {
                Step::Lock(mutex) => {
                    for first in &held {
                        let to = edges.entry(first).or_default();
                        to.entry(mutex.as_str()).or_insert(&thread.name);
                    }
                    held.push(mutex);
                }
                Step::Unlock(mutex) => held.retain(|one| one != mutex),
                _ => {}
            }
        }
    }
    let protects = |name: &str| {
        let protocol = set.resource(name);
        matches!(protocol, Some(Resource::Mutex { protocol: Protocol::Protect { .. }, .. }))
    };
    for (first, to) in &edges {
        for (second, thread) in to {
            if !(protects(first) && protects(second)) && leads(&edges, second, first) {
                return Err(TaskSetError::LockOrder {
                    thread: (*thread).to_owned(),
                    first: (*first).to_owned(),
                    second: (*second).to_owned(),
                });
            }
        }
    }
    Ok(())
}

/// Is there a way from one mutex to the other?
fn leads(edges: &BTreeMap<&str, BTreeMap<&str, &str>>, from: &str, to: &str) -> bool {
    let (mut seen, mut next) = (BTreeSet::from([from]), vec![from]);
    while let Some(at) = next.pop() {
        if at == to {
            return true;
        }
        let onward = edges.get(at).into_iter().flat_map(BTreeMap::keys);
        next.extend(onward.filter(|mutex| seen.insert(mutex)));
    }
    false
}
