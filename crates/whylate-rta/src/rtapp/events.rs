//! The events of a phase, one step each.

use whylate_model::Nanos;

use super::error::RtAppError;
use super::fields;
use super::global::LARGEST_BUFFER;
use super::json::{Entry, Node, Value};
use super::names::{Names, Space};
use super::{Notes, is_absent, unnumbered};
use crate::demand::Demand;
use crate::task_set::{Step, TimerMode};

/// What there is, for an error.
const KNOWN: &str = "an event is run, runtime, sleep, timer, suspend, resume, lock, unlock, wait, \
                     signal, broad, sync, barrier, fork, mem, iorun, yield, sem_post or sem_wait";

/// Keys that rt-app has or had, and why they are not taken.
const UNSUPPORTED: [(&str, &str); 14] = [
    ("memrun", "its memory is chased by a calibrated loop; write `mem` or `run`"),
    ("util_min", "clamping of utilisation is left to the system; remove it"),
    ("util_max", "clamping of utilisation is left to the system; remove it"),
    ("uclamp", "clamping of utilisation is left to the system; remove it"),
    ("taskgroup", "control groups are left to the system; start whylate in the group"),
    ("nodes_membind", "memory is taken from where the threads run; start whylate under numactl"),
    ("numa_interleave", "memory is taken from where the threads run; start whylate under numactl"),
    ("slice", "the slice of an ordinary thread is left to the system; remove it"),
    ("exec", "it belongs to the grammar of rt-app before 1.0; write `run` and `timer`"),
    ("period", "it belongs to the grammar of rt-app before 1.0; write a `timer`"),
    ("deadline", "it belongs to the grammar of rt-app before 1.0; write `dl-deadline`"),
    ("lock_order", "it belongs to the grammar of rt-app before 1.0; write `lock` and `unlock`"),
    ("resources", "it belongs to the grammar of rt-app before 1.0; write events"),
    ("access", "it belongs to the grammar of rt-app before 1.0; write events"),
];

/// Refuses a key that is none of an event, by its name where it is known.
pub(super) fn refused(entry: &Entry, instead: &str) -> RtAppError {
    let name = unnumbered(&entry.key);
    match UNSUPPORTED.iter().find(|(known, _)| *known == name || *known == entry.key) {
        Some((_, why)) => RtAppError::Unsupported { at: entry.at, name: entry.key.clone(), why },
        None => RtAppError::unknown(entry, instead),
    }
}

/// A step, or none for an event without effect; names of timers that each thread has for itself
/// still end with [`UNIQUE`].
pub(super) fn step(
    entry: &Entry,
    task: &str,
    names: &mut Names,
    notes: &mut Notes,
) -> Result<Option<Step>, RtAppError> {
    let (event, node) = (unnumbered(&entry.key), &entry.node);
    let mut about = |space, make: fn(String) -> Step| -> Result<Option<Step>, RtAppError> {
        Ok(Some(make(names.of(space, name(node, event)?))))
    };
    Ok(match event {
        "run" => time(node, event)?.map(|time| Step::Run(Demand::Fixed(time))),
        "runtime" => time(node, event)?.map(Step::Runtime),
        "sleep" => time(node, event)?.map(Step::Sleep),
        "lock" => return about(Space::Mutex, Step::Lock),
        "unlock" => return about(Space::Mutex, Step::Unlock),
        "signal" => return about(Space::Condition, Step::Signal),
        "broad" => return about(Space::Condition, Step::Broadcast),
        "barrier" => return about(Space::Barrier, Step::Barrier),
        "sem_post" => return about(Space::Semaphore, Step::SemPost),
        "sem_wait" => return about(Space::Semaphore, Step::SemWait),
        "resume" => return about(Space::Condition, Step::Resume),
        "suspend" if is_absent(&node.value) => {
            Some(Step::Suspend(names.of(Space::Condition, task)))
        }
        "suspend" => return about(Space::Condition, Step::Suspend),
        "wait" | "sync" => {
            let [condition, mutex] = fields::entries(node, event, ["ref", "mutex"])?;
            let condition = name(fields::needed(condition, node, event, "ref")?, "ref")?;
            let mutex = name(fields::needed(mutex, node, event, "mutex")?, "mutex")?;
            let condition = names.of(Space::Condition, condition);
            let mutex = names.of(Space::Mutex, mutex);
            Some(match event {
                "wait" => Step::Wait { condition, mutex },
                _ => Step::Sync { condition, mutex },
            })
        }
        "timer" => timer(entry, notes)?,
        "fork" => {
            let target = match &node.value {
                Value::Object(_) => {
                    let [target] = fields::entries(node, event, ["ref"])?;
                    fields::needed(target, node, event, "ref")?
                }
                _ => node,
            };
            Some(Step::Fork(names.of(Space::Fork, name(target, event)?)))
        }
        "mem" => bytes(node, event)?.map(Step::Mem),
        "iorun" => bytes(node, event)?.map(Step::IoRun),
        "yield" => match &node.value {
            Value::Text(_) | Value::Absent | Value::Null => Some(Step::Yield),
            _ => return Err(RtAppError::kind(node, "`yield`", "text, or stands alone")),
        },
        _ => return Err(refused(entry, KNOWN)),
    })
}

fn name<'a>(node: &'a Node, what: &str) -> Result<&'a str, RtAppError> {
    match fields::text(node, what)? {
        "" => Err(RtAppError::value(node, format!("`{what}` is empty: write a name"))),
        name => Ok(name),
    }
}

/// A time; none for zero, which is done as soon as it is begun.
fn time(node: &Node, event: &str) -> Result<Option<Nanos>, RtAppError> {
    Ok(Some(fields::micros(node, event)?).filter(|time| time.0 > 0))
}

fn bytes(node: &Node, event: &str) -> Result<Option<u64>, RtAppError> {
    let bytes = fields::integer(node, event, 0..=LARGEST_BUFFER)?.unsigned_abs();
    Ok((bytes > 0).then_some(bytes))
}

fn timer(entry: &Entry, notes: &mut Notes) -> Result<Option<Step>, RtAppError> {
    let node = &entry.node;
    let [name_of, period, mode] = fields::entries(node, "timer", ["ref", "period", "mode"])?;
    let name = name(fields::needed(name_of, node, "timer", "ref")?, "ref")?.to_owned();
    let period = fields::micros(fields::needed(period, node, "timer", "period")?, "period")?;
    let mode = match mode {
        None => TimerMode::Relative,
        Some(mode) => match fields::text(mode, "mode")? {
            "relative" => TimerMode::Relative,
            "absolute" => TimerMode::Absolute,
            other => {
                let reason = format!("`mode` is `{other}`: write relative or absolute");
                return Err(RtAppError::value(mode, reason));
            }
        },
    };
    if period.0 == 0 {
        notes.add(entry.at, format!("timer `{name}` has a period of 0 and never waits"));
        return Ok(None);
    }
    Ok(Some(Step::Timer { name, period, mode }))
}
