//! Values of a workload file as checked types; each refusal names the position and what stands
//! there.

use std::ops::RangeInclusive;

use whylate_model::{CpuId, Nanos};

use super::error::RtAppError;
use super::json::{Entry, Node, Value};
use crate::task_set::MOST_CPUS;

/// An hour in microseconds: no event is longer, and a larger number was mistyped.
const LONGEST_US: i64 = 3_600_000_000;
/// Rounds of a loop: a year of microseconds has fewer than a thousand times as many.
const MOST_ROUNDS: i64 = 1_000_000_000;

pub(super) fn object<'a>(node: &'a Node, what: &str) -> Result<&'a [Entry], RtAppError> {
    match &node.value {
        Value::Object(entries) => Ok(entries),
        _ => Err(RtAppError::kind(node, what, "an object { ... }")),
    }
}

pub(super) fn text<'a>(node: &'a Node, what: &str) -> Result<&'a str, RtAppError> {
    match &node.value {
        Value::Text(text) => Ok(text),
        _ => Err(RtAppError::kind(node, &format!("`{what}`"), "text in quotes")),
    }
}

pub(super) fn flag(node: &Node, what: &str) -> Result<bool, RtAppError> {
    match &node.value {
        Value::Bool(flag) => Ok(*flag),
        _ => Err(RtAppError::kind(node, &format!("`{what}`"), "true or false")),
    }
}

pub(super) fn integer(
    node: &Node,
    what: &str,
    range: RangeInclusive<i64>,
) -> Result<i64, RtAppError> {
    let Value::Integer(number) = node.value else {
        return Err(RtAppError::kind(node, &format!("`{what}`"), "a whole number"));
    };
    if range.contains(&number) {
        return Ok(number);
    }
    let (first, last) = (range.start(), range.end());
    let reason = format!("`{what}` is {number}: write a number from {first} to {last}");
    Err(RtAppError::value(node, reason))
}

/// A time in microseconds, up to an hour; zero is one.
pub(super) fn micros(node: &Node, what: &str) -> Result<Nanos, RtAppError> {
    integer(node, what, 0..=LONGEST_US).map(|us| Nanos(us.unsigned_abs() * 1_000))
}

/// How often a loop goes round; none for -1, until the run ends.
pub(super) fn rounds(node: &Node) -> Result<Option<u64>, RtAppError> {
    match integer(node, "loop", -1..=MOST_ROUNDS)? {
        -1 => Ok(None),
        0 => Err(RtAppError::value(node, "`loop` is 0: write 1 or more, or -1 for no end")),
        rounds => Ok(Some(rounds.unsigned_abs())),
    }
}

/// CPUs as a list of numbers.
pub(super) fn cpus(node: &Node) -> Result<Vec<CpuId>, RtAppError> {
    let Value::List(items) = &node.value else {
        return Err(RtAppError::kind(node, "`cpus`", "a list such as [0, 1]"));
    };
    if items.is_empty() {
        return Err(RtAppError::value(node, "`cpus` names no CPU: name one, or leave it out"));
    }
    let cpu = |item| integer(item, "cpus", 0..=i64::from(MOST_CPUS) - 1).map(|n| CpuId(n as u32));
    let mut cpus = items.iter().map(cpu).collect::<Result<Vec<_>, _>>()?;
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// The entries of an object that may have these and no others: `{ "ref" : "a", "mutex" : "b" }`.
pub(super) fn entries<'a, const N: usize>(
    node: &'a Node,
    what: &str,
    names: [&'static str; N],
) -> Result<[Option<&'a Node>; N], RtAppError> {
    let mut found = [None; N];
    for entry in object(node, &format!("`{what}`"))? {
        let Some(index) = names.iter().position(|name| *name == entry.key) else {
            return Err(RtAppError::unknown(entry, &format!("`{what}` has {}", names.join(", "))));
        };
        if found[index].replace(&entry.node).is_some() {
            return Err(RtAppError::twice(entry));
        }
    }
    Ok(found)
}

/// An entry that must be there.
pub(super) fn needed<'a>(
    found: Option<&'a Node>,
    node: &Node,
    what: &str,
    name: &str,
) -> Result<&'a Node, RtAppError> {
    found.ok_or_else(|| RtAppError::value(node, format!("`{what}` lacks its `{name}`")))
}
