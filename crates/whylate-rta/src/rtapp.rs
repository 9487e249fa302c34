//! Workloads of rt-app: its JSON files, read as they stand and turned into a [`TaskSet`].
//!
//! A file says which threads there are, and what each does in loops of phases of events. Everything
//! that rt-app 1.0 documents is taken, with `fork`, `sem_post` and `sem_wait` of later versions.
//! What this program cannot do is refused by name and position; what has no effect on a measurement
//! is taken and listed in [`RtApp::notes`]. The file needs no preprocessor: see [`json`].
//!
//! Times of the file are microseconds, `duration` is in seconds. Execution time is not calibrated:
//! `run` asks for CPU time, and that is counted where it runs.

use std::collections::BTreeMap;
use std::path::Path;

use whylate_model::{CpuId, Nanos};

use crate::file::{self, Position};
use crate::task_set::TaskSet;

mod error;
mod events;
mod fields;
mod forks;
mod global;
pub mod json;
mod names;
mod tasks;

pub use error::RtAppError;

use global::Global;
use json::{Entry, Value};

/// What a file holds.
#[derive(Debug, Clone, PartialEq)]
pub struct RtApp {
    /// The threads and what they share; checked.
    pub set: TaskSet,
    /// How long to run; none where the file leaves that to the threads.
    pub duration: Option<Nanos>,
    /// What stands there and has no effect here, in the order of the file.
    pub notes: Vec<Note>,
    /// Every CPU that tasks and phases name, and where that is first.
    pub cpus: BTreeMap<CpuId, Position>,
}

/// Something that is taken and has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Where it stands.
    pub at: Position,
    /// What it is, and why it has no effect.
    pub text: String,
}

/// Notes gathered while a file is read.
#[derive(Debug, Default)]
struct Notes(Vec<Note>);

impl Notes {
    fn add(&mut self, at: Position, text: impl Into<String>) {
        self.0.push(Note { at, text: text.into() });
    }
}

/// Opens a file and reads it.
pub fn read(path: &Path) -> Result<RtApp, RtAppError> {
    let failed = |why| RtAppError::Read { path: path.to_owned(), why };
    let text = file::text(path, json::LONGEST).map_err(failed)?;
    parse(&text.ok_or(RtAppError::TooLarge)?)
}

/// Reads the text of a file.
pub fn parse(text: &str) -> Result<RtApp, RtAppError> {
    let root = json::read(text)?;
    let entries = fields::object(&root, "the file")?;
    let mut notes = Notes::default();
    let (mut global, mut tasks): (Option<&Entry>, Option<&Entry>) = (None, None);
    for entry in entries {
        let place = match entry.key.as_str() {
            "tasks" => &mut tasks,
            "global" => &mut global,
            "resources" => {
                resources(entry, &mut notes)?;
                continue;
            }
            _ => return Err(RtAppError::unknown(entry, "write tasks, resources or global")),
        };
        if place.replace(entry).is_some() {
            return Err(RtAppError::twice(entry));
        }
    }
    let global = match global {
        Some(entry) => Global::read(entry, &mut notes)?,
        None => Global::default(),
    };
    let Some(tasks) = tasks else {
        let reason = "there is no `tasks`: a workload begins with { \"tasks\" : { ... } }";
        return Err(RtAppError::Malformed { at: root.at, reason: reason.to_owned() });
    };
    let read = tasks::read(tasks, &global, &mut notes)?;
    let set = TaskSet { threads: read.threads, resources: read.resources };
    set.check().map_err(|error| {
        let named = error.thread().and_then(|name| set.threads.iter().position(|t| t.name == name));
        let at = named.and_then(|index| read.places.get(index)).copied().unwrap_or(tasks.at);
        RtAppError::Set { at, error }
    })?;
    notes.0.sort_by_key(|note| (note.at.line, note.at.column));
    let (duration, cpus) = (global.duration, tasks::cpus(tasks));
    Ok(RtApp { set, duration, notes: notes.0, cpus })
}

/// Resources are made where an event names them; what is declared must still be one.
fn resources(entry: &Entry, notes: &mut Notes) -> Result<(), RtAppError> {
    const TYPES: [&str; 11] = [
        "mutex",
        "wait",
        "signal",
        "broadcast",
        "sync",
        "run",
        "sleep",
        "timer",
        "suspend",
        "resume",
        "barrier",
    ];
    for resource in fields::object(&entry.node, "`resources`")? {
        for field in fields::object(&resource.node, "a resource")? {
            if field.key == "type" {
                let kind = fields::text(&field.node, "type")?;
                if !TYPES.contains(&kind) {
                    let reason = format!("there is no type of resource called `{kind}`");
                    return Err(RtAppError::Malformed { at: field.node.at, reason });
                }
            }
        }
    }
    notes.add(entry.at, "`resources` is not needed: each is made where an event names it");
    Ok(())
}

/// The key without the number behind it that makes it unique: `run12`, `lock_3`.
fn unnumbered(key: &str) -> &str {
    let name = key.trim_end_matches(|c: char| c.is_ascii_digit());
    if name.len() < key.len() { name.trim_end_matches(['_', '-']) } else { key }
}

/// Is there anything in it?
fn is_absent(value: &Value) -> bool {
    match value {
        Value::Absent | Value::Null => true,
        Value::Text(text) => text.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod damage;
#[cfg(test)]
mod sizes;
#[cfg(test)]
mod tests;
