//! Task sets in files: TOML, format version 1.
//!
//! ```toml
//! format_version = 1
//! duration = "10s"
//!
//! [[thread]]
//! name = "audio"
//! workload = "PERIODIC 3ms 8ms"
//! priority = "RTMED"
//! timer = "HR"
//! ```
//!
//! Every error names a line and a column; what is not known is refused, never passed over.
//! [`parse`] takes text and reads nothing; [`read`] opens the file, and the tables beside it.

use std::fmt;
use std::path::PathBuf;

use whylate_model::{Nanos, Printable};

use crate::demand::Tables;
use crate::task_set::{
    MOST_THREADS, Protocol, Reservation, Resource, Step, TaskSet, TaskSetError, Thread,
};

mod disk;
mod entries;

pub(crate) use disk::text;
pub use disk::{beside, read, table};
use entries::{Entries, ThreadEntry};
use toml::Spanned;

/// The version this crate writes, and the newest it reads.
pub const FORMAT_VERSION: u32 = 1;
/// A thousand threads of a thousand characters each.
pub const LONGEST_FILE: usize = 1 << 20;

/// What a file holds.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    /// The threads and what they share; checked.
    pub set: TaskSet,
    /// How long to run, where the file says so.
    pub duration: Option<Nanos>,
    /// The seed of everything random, where the file says so.
    pub seed: Option<u64>,
}

/// A place in a file, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Line.
    pub line: usize,
    /// Column, in characters.
    pub column: usize,
}

/// Why a file holds no task set.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error(
        "cannot read `{}`: {why}; name a task set, such as one of examples/*.toml", .path.display()
    )]
    Read {
        /// Which.
        path: PathBuf,
        /// Why not.
        why: std::io::Error,
    },
    /// Larger than any task set.
    #[error(
        "the file has more than {LONGEST_FILE} bytes: a task set of {MOST_THREADS} threads has \
         fewer; put execution times into a table beside it"
    )]
    TooLarge,
    /// Not of the format.
    #[error("{at}: {}", Printable(reason))]
    Malformed {
        /// Where.
        at: Position,
        /// What is wrong.
        reason: String,
    },
    /// From a newer version.
    #[error(
        "the file has format version {found}, and this whylate reads up to {FORMAT_VERSION}: \
         update whylate, or write format_version = {FORMAT_VERSION}"
    )]
    Version {
        /// Its version.
        found: u32,
    },
    /// A seed that cannot be written.
    #[error("the seed {0} does not fit into a file: choose one below 2^63")]
    Seed(u64),
    /// A thread with phases, which TOML does not have.
    #[error("thread {0} has phases, and task sets in TOML have none: keep the rt-app file")]
    Program(String),
    /// Of the format, and not possible.
    #[error("{at}: {error}")]
    Set {
        /// Where the thread or the resource begins.
        at: Position,
        /// What is wrong with it.
        error: TaskSetError,
    },
}

/// Reads a task set; the texts of tables come from `tables`.
pub fn parse(text: &str, tables: Tables<'_>) -> Result<File, FileError> {
    if text.len() > LONGEST_FILE {
        return Err(FileError::TooLarge);
    }
    let entries: Entries = toml::from_str(text).map_err(|error| malformed(text, &error))?;
    if entries.format_version != FORMAT_VERSION {
        return Err(version(text, entries.format_version));
    }
    let source = Source { text, tables };
    let mut threads = Vec::new();
    let mut places = Vec::new();
    for entry in &entries.thread {
        source.threads(entry, &mut threads)?;
        places.resize(threads.len(), entry.span().start);
    }
    let duration = entries.duration.as_ref().map(|time| time.get_ref().0.0);
    if let (Some(Nanos(0)), Some(place)) = (duration, &entries.duration) {
        return Err(source.wrong(place, "the duration is zero: write a time such as 10s"));
    }
    let late = threads.iter().position(|thread| duration.is_some_and(|end| thread.start >= end));
    if let Some(index) = late {
        let reason = "the thread starts at the end of the run or after it: let it start earlier";
        return Err(FileError::Malformed {
            at: position(text, places[index]),
            reason: reason.into(),
        });
    }
    let resources = entries.resources();
    let (resource_places, resources): (Vec<usize>, Vec<Resource>) = resources.into_iter().unzip();
    let set = TaskSet { threads, resources };
    set.check().map_err(|error| {
        let thread =
            error.thread().and_then(|name| set.threads.iter().rposition(|t| t.name == name));
        let resource =
            error.resource().and_then(|name| set.resources.iter().rposition(|r| r.name() == name));
        let at = thread.map(|index| places[index]).or(resource.map(|index| resource_places[index]));
        FileError::Set { at: position(text, at.unwrap_or(0)), error }
    })?;
    Ok(File { set, duration, seed: entries.seed })
}

/// The text, to find places in it, and where tables come from.
struct Source<'a> {
    text: &'a str,
    tables: Tables<'a>,
}

impl Source<'_> {
    /// The threads of one entry: one, or as many as its count.
    fn threads(
        &self,
        entry: &Spanned<ThreadEntry>,
        threads: &mut Vec<Thread>,
    ) -> Result<(), FileError> {
        let written = entry.get_ref();
        let count = written.count.as_ref().map(|count| *count.get_ref());
        if let (Some(0), Some(place)) = (count, &written.count) {
            return Err(self.wrong(place, "no thread at all: write 1 or more, or remove it"));
        }
        let all = threads.len().saturating_add(count.unwrap_or(1) as usize);
        if all > MOST_THREADS {
            let at = position(self.text, entry.span().start);
            return Err(FileError::Set { at, error: TaskSetError::TooManyThreads(all) });
        }
        let mut steps = Vec::new();
        for step in &written.steps {
            let parsed = Step::parse(step.get_ref(), self.tables);
            steps.push(parsed.map_err(|error| self.wrong(step, &error.to_string()))?);
        }
        let one = written.thread(steps);
        match count {
            None => threads.push(one),
            Some(count) => threads.extend(
                (0..count)
                    .map(|number| Thread { name: format!("{}-{number}", one.name), ..one.clone() }),
            ),
        }
        Ok(())
    }

    fn wrong<T>(&self, place: &Spanned<T>, reason: &str) -> FileError {
        let at = position(self.text, place.span().start);
        FileError::Malformed { at, reason: reason.to_owned() }
    }
}

fn malformed(text: &str, error: &toml::de::Error) -> FileError {
    /// The version alone, whatever else there is.
    #[derive(serde::Deserialize)]
    struct Version {
        format_version: u32,
    }
    // A newer format may have fields that this one does not know: say that, not which.
    if let Ok(Version { format_version: found }) = toml::from_str(text)
        && found > FORMAT_VERSION
    {
        return FileError::Version { found };
    }
    let at = position(text, error.span().map_or(0, |span| span.start));
    let reason = match error.message() {
        "missing field `format_version`" => {
            format!("the version is missing: begin with format_version = {FORMAT_VERSION}")
        }
        other => other.to_owned(),
    };
    FileError::Malformed { at, reason }
}

fn version(text: &str, found: u32) -> FileError {
    if found > FORMAT_VERSION {
        return FileError::Version { found };
    }
    let at = position(text, text.find("format_version").unwrap_or(0));
    let reason = format!("there is no format version {found}: write {FORMAT_VERSION}");
    FileError::Malformed { at, reason }
}

fn position(text: &str, byte: usize) -> Position {
    let before = text.get(..byte).unwrap_or(text);
    let line = before.rsplit('\n').next().unwrap_or_default();
    Position { line: before.matches('\n').count() + 1, column: line.chars().count() + 1 }
}

impl File {
    /// The file as TOML: [`parse`] reads the same from it. Refused for a seed of 64 bits, which
    /// TOML's integers do not hold, and for threads with a program.
    ///
    /// # Panics
    ///
    /// Never: tables of strings and numbers are what TOML is made of.
    pub fn to_toml(&self) -> Result<String, FileError> {
        if let Some(thread) = self.set.threads.iter().find(|thread| thread.program.is_some()) {
            return Err(FileError::Program(thread.name.clone()));
        }
        match self.seed {
            Some(seed) if i64::try_from(seed).is_err() => Err(FileError::Seed(seed)),
            _ => Ok(toml::to_string(&Entries::of(self))
                .expect("invariant: strings and numbers in tables are TOML")),
        }
    }
}

/// The schema of a task set's file, as JSON text; committed as `schema/task-set.schema.json`.
///
/// # Panics
///
/// Never: a schema is made of strings, numbers and lists, and JSON has them all.
#[cfg(feature = "schema")]
#[must_use]
pub fn schema() -> String {
    let mut text = serde_json::to_string_pretty(&schemars::schema_for!(Entries))
        .expect("invariant: a schema is made of strings, numbers and lists");
    text.push('\n');
    text
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

#[cfg(test)]
mod tests;
