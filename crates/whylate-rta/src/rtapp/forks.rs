//! Tasks that are forked: how many threads wait for it, and that none forks itself.
//!
//! A thread to be forked exists from the beginning and waits, for no thread can be made while
//! others are measured. One whose program has ended waits to be forked again; a fork that finds all
//! of them at work begins when one is done.

use std::collections::{BTreeMap, BTreeSet};

use super::error::RtAppError;
use super::json::{Entry, Value};
use super::tasks::Task;
use super::{Notes, is_absent};
use crate::task_set::Step;

/// Threads of one task that wait to be forked: each has a locked stack and a ring of records.
const LARGEST_POOL: u64 = 16;

/// The task that a fork names.
pub(super) fn target(entry: &Entry) -> String {
    match &entry.node.value {
        Value::Text(name) => name.clone(),
        Value::Object(entries) => {
            let named =
                entries.iter().find(|entry| entry.key == "ref" && !is_absent(&entry.node.value));
            match named.map(|entry| &entry.node.value) {
                Some(Value::Text(name)) => name.clone(),
                _ => String::new(),
            }
        }
        _ => String::new(),
    }
}

/// How many threads of each task wait to be forked.
pub(super) fn pools(
    tasks: &[Task<'_>],
    notes: &mut Notes,
) -> Result<BTreeMap<String, u32>, RtAppError> {
    let mut asked: BTreeMap<String, u64> = BTreeMap::new();
    let mut onward: Onward<'_> = BTreeMap::new();
    for task in tasks {
        let targets = task.forks.iter().map(|(target, _)| target.as_str());
        onward.entry(task.name).or_default().extend(targets);
    }
    let ringed = ringed(&onward);
    for task in tasks {
        for (target, at) in &task.forks {
            if !onward.contains_key(target.as_str()) {
                let reason = format!("there is no task `{target}` to fork");
                return Err(RtAppError::Malformed { at: *at, reason });
            }
            if ringed.contains(target.as_str()) && leads(&onward, target, task.name) {
                let reason = format!(
                    "task `{}` forks itself by way of `{target}`, and there would be ever more \
                     threads: let another task fork it",
                    task.name
                );
                return Err(RtAppError::Malformed { at: *at, reason });
            }
        }
        for (target, count) in times(task) {
            let known = asked.entry(target).or_default();
            *known = known.saturating_add(count);
        }
    }
    // A forked task forks as often as it is forked, at least; an exact number is not needed.
    let pools = asked.into_iter().map(|(target, count)| {
        if count > LARGEST_POOL
            && let Some(task) = tasks.iter().find(|task| task.name == target)
        {
            let text = format!(
                "task `{target}` can be forked more often than {LARGEST_POOL} times at once: \
                 {LARGEST_POOL} threads wait for it, and a fork beyond them begins when one is done"
            );
            notes.add(task.at, text);
        }
        (target, count.min(LARGEST_POOL) as u32)
    });
    Ok(pools.collect())
}

/// How often a task forks which, in all its threads; a loop without end counts as very often.
fn times(task: &Task<'_>) -> Vec<(String, u64)> {
    let mut targets = task.forks.iter().map(|(target, _)| target.clone());
    let mut times = Vec::new();
    let Some(program) = &task.thread.program else { return times };
    let rounds = |of: Option<u64>| of.unwrap_or(u64::MAX);
    let instances = u64::from(task.instances.max(1));
    for phase in &program.phases {
        let each = rounds(program.repeat).saturating_mul(rounds(phase.repeat));
        for _ in phase.steps.iter().filter(|step| matches!(step, Step::Fork(_))) {
            times.extend(targets.next().map(|to| (to, each.saturating_mul(instances))));
        }
    }
    times
}

/// Of each task, those that it forks.
type Onward<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Tasks from which a chain of forks has no end: they are part of a ring, or lead into one. So a file
/// without rings is looked at once, whatever its size.
fn ringed<'a>(onward: &Onward<'a>) -> BTreeSet<&'a str> {
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    let mut back: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (task, targets) in onward {
        let known = targets.iter().filter(|target| onward.contains_key(**target));
        left.insert(task, known.clone().count());
        for target in known {
            back.entry(target).or_default().push(task);
        }
    }
    let ends = left.iter().filter(|(_, count)| **count == 0);
    let mut ended: Vec<&str> = ends.map(|(task, _)| *task).collect();
    while let Some(task) = ended.pop() {
        left.remove(task);
        for from in back.get(task).into_iter().flatten() {
            if let Some(count) = left.get_mut(from) {
                *count -= 1;
                if *count == 0 {
                    ended.push(from);
                }
            }
        }
    }
    onward.keys().filter(|task| left.contains_key(**task)).copied().collect()
}

/// Does a chain of forks lead from one task to the other?
fn leads(onward: &Onward<'_>, from: &str, to: &str) -> bool {
    let (mut seen, mut next) = (BTreeSet::from([from]), vec![from]);
    while let Some(at) = next.pop() {
        if at == to {
            return true;
        }
        let targets = onward.get(at).into_iter().flatten().copied();
        next.extend(targets.filter(|name| seen.insert(name)));
    }
    false
}
