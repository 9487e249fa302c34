//! What a child has done so far, in a file of memory that its parent reads whenever it likes.
//!
//! A pipe would fill up while nobody reads it, and lose what a killed child had to say.

use std::fs::File;
use std::os::fd::AsFd;

use rustix::fs::MemfdFlags;
use serde::{Deserialize, Serialize};
use whylate_model::Nanos;

/// Where the record lies in the file: what else a program prints on its standard output lies before
/// it.
const OFFSET: u64 = 1 << 20;
/// Its size: what stands in it is cut to fit.
const BYTES: usize = 2048;
/// Longest text in it.
const MOST_WORDS: usize = 500;

/// How far a child is, and what it has done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) state: State,
    /// What it counts.
    pub(crate) amount: u64,
    /// The time in which it did so.
    pub(crate) time: Nanos,
    /// How much came its way, lost or not, where it can tell.
    #[serde(default)]
    pub(crate) offered: u64,
}

/// How far a child is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum State {
    /// It has not begun.
    #[default]
    Starting,
    /// It waits for its sender on this port.
    Listening(u16),
    /// It has done something.
    Running,
    /// It has ended, and why.
    Ended(String),
    /// It cannot go on, and why.
    Failed(String),
}

impl Record {
    /// Replaces what the file says.
    pub(crate) fn write(&self, to: impl AsFd) {
        let mut record = self.clone();
        if let State::Ended(words) | State::Failed(words) = &mut record.state {
            *words = words.chars().take(MOST_WORDS).collect();
        }
        let Ok(mut text) = serde_json::to_vec(&record) else { return };
        text.resize(BYTES, b' ');
        // Memory: it fails only where there is none, and then the parent sees no progress.
        let _ = rustix::io::pwrite(to, &text, OFFSET);
    }

    /// What was done since an earlier record.
    pub(crate) fn less(&self, earlier: &Self) -> Self {
        Self {
            state: self.state.clone(),
            amount: self.amount.saturating_sub(earlier.amount),
            time: Nanos(self.time.0.saturating_sub(earlier.time.0)),
            offered: self.offered.saturating_sub(earlier.offered),
        }
    }

    /// What the file says; what cannot be read, such as a record that is just being replaced, is
    /// as good as none.
    pub(crate) fn read(from: &File) -> Option<Self> {
        let mut text = vec![0; BYTES];
        let length = rustix::io::pread(from, &mut text[..], OFFSET).ok()?;
        serde_json::from_slice(text.get(..length)?).ok()
    }
}

/// A file of memory for one record.
pub(crate) fn file() -> std::io::Result<File> {
    Ok(File::from(rustix::fs::memfd_create("whylate-load", MemfdFlags::CLOEXEC)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_record_is_read_whatever_was_printed_beside_it() {
        let file = file().unwrap();
        assert_eq!(Record::read(&file), None);
        std::io::Write::write_all(&mut &file, b"running 1 test\n").unwrap();
        let long =
            Record { state: State::Failed("\u{1F4A5}\"".repeat(9_000)), ..Record::default() };
        long.write(&file);
        assert!(Record::read(&file).is_some_and(|read| matches!(read.state, State::Failed(_))));
        let record = Record { state: State::Running, amount: 7, time: Nanos(9), offered: 8 };
        record.write(&file);
        assert_eq!(Record::read(&file), Some(record));
    }
}
