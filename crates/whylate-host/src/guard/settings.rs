//! Values of files of `/proc` and `/sys`, whatever they are about.

use std::path::Path;

use whylate_model::warning::Warning;

use super::Guard;
use super::changes::{Changes, Written};
use crate::error::HostError;
use crate::files;
use crate::journal::{Journal, choice};

const REMEDY: &str = "run as root, outside a container that may only read it";

/// Settings that were written, and are written back when the guard goes, last first.
#[derive(Debug)]
pub struct Settings {
    changes: Changes,
    told: Vec<String>,
}

/// What a setting said before, and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadBack {
    /// Before it was written.
    pub before: String,
    /// Now; the same where it said so already.
    pub now: String,
}

impl Settings {
    /// None so far.
    #[must_use]
    pub fn new(journal: &Journal) -> Self {
        Self { changes: Changes::new(journal), told: Vec::new() }
    }

    /// Writes a setting and reads it back. A file that lists its choices takes one of their words.
    /// One that does not keep what was written is an error, and is taken back with the others.
    pub fn set(&mut self, path: &Path, value: &str) -> Result<ReadBack, HostError> {
        if let Some(Written { before, now }) = self.changes.write(path, value, REMEDY)? {
            self.told.push(format!("{} {before} -> {now}", path.display()));
            Ok(ReadBack { before, now })
        } else {
            let now = choice(files::required(path)?.trim()).to_owned();
            Ok(ReadBack { before: now.clone(), now })
        }
    }
}

impl Guard for Settings {
    fn describe(&self) -> Vec<String> {
        self.told.clone()
    }

    fn restore(&mut self) -> Vec<Warning> {
        self.changes.restore()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_written_back_last_first_and_choices_by_their_words() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(&dir.path().join("journals")).unwrap();
        let file = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let (thp, number) = (file("thp", "always [madvise] never\n"), file("number", "1\n"));
        let mut settings = Settings::new(&journal);
        let read = settings.set(&thp, "never").unwrap();
        assert_eq!(read, ReadBack { before: "madvise".to_owned(), now: "never".to_owned() });
        settings.set(&number, "2").unwrap();
        settings.set(&number, "3").unwrap();
        let already = settings.set(&number, "3").unwrap();
        assert_eq!(already.before, already.now);
        assert_eq!((journal.entries().len(), settings.describe().len()), (3, 3));
        assert_eq!(settings.restore(), []);
        assert_eq!(std::fs::read_to_string(&thp).unwrap(), "madvise");
        assert_eq!(std::fs::read_to_string(&number).unwrap(), "1");
        assert_eq!(journal.entries(), []);
    }
}
