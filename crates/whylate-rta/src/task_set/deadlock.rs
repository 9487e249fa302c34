//! Waits that can never end, as far as the steps alone show them: barriers and queues that nobody
//! completes, mutexes held at a barrier, and two orders of locking.
//!
//! Decided is what the order of steps can lead to, not what will happen: a set is refused when it
//! *can* stop for ever, however seldom. Queues that are filled faster than they are emptied are not
//! looked for; neither are waits through a queue while a mutex is held.

use std::collections::{BTreeMap, BTreeSet};

use super::error::TaskSetError;
use super::{Protocol, Resource, Step, TaskSet, Thread};

/// Every lock is unlocked and every name is known.
pub(super) fn check(set: &TaskSet) -> Result<(), TaskSetError> {
    for resource in &set.resources {
        match resource {
            Resource::Barrier { name, threads } => barrier(set, name, *threads)?,
            Resource::Queue { name, .. } => queue(set, name)?,
            Resource::Mutex { .. } => {}
        }
    }
    lock_order(set)
}

fn queue(set: &TaskSet, name: &str) -> Result<(), TaskSetError> {
    let mut steps = set.threads.iter().flat_map(|thread| &thread.steps);
    let pushed = steps.clone().any(|step| matches!(step, Step::Push(to) if to == name));
    let popped = steps.any(|step| matches!(step, Step::Pop(from) if from == name));
    if pushed == popped {
        return Ok(());
    }
    Err(TaskSetError::OneWayQueue { name: name.to_owned(), pushed })
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
    for step in &thread.steps {
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
        for step in &thread.steps {
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
