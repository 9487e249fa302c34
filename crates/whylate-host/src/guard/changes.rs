//! Changes that were announced in the journal: the part all guards share.

use std::path::Path;

use whylate_model::warning::Warning;

use crate::error::HostError;
use crate::files;
use crate::journal::{EntryId, Journal, Outcome, Surroundings, Undo, choice, same_text};
use crate::kernel;

/// Announced changes; taken back on drop.
#[derive(Debug)]
pub(super) struct Changes {
    journal: Journal,
    made: Vec<(EntryId, Undo)>,
}

/// A setting that was written: what it said before and says now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) before: String,
    pub(super) now: String,
}

impl Changes {
    pub(super) fn new(journal: &Journal) -> Self {
        Self { journal: journal.clone(), made: Vec::new() }
    }

    /// Announces changes. Make them only when this returned `Ok`.
    pub(super) fn announce(&mut self, undos: Vec<Undo>) -> Result<(), HostError> {
        let ids = self.journal.record_all(undos.clone())?;
        self.made.extend(ids.into_iter().zip(undos));
        Ok(())
    }

    /// Strikes announced changes that were not made after all.
    pub(super) fn withdraw(&mut self, never_made: impl Fn(&Undo) -> bool) -> Result<(), HostError> {
        let ids: Vec<EntryId> =
            self.made.iter().filter(|(_, undo)| never_made(undo)).map(|(id, _)| *id).collect();
        if ids.is_empty() {
            return Ok(());
        }
        self.made.retain(|(id, _)| !ids.contains(id));
        self.journal.strike(&ids)
    }

    /// Writes a setting and reads it back; `None` when it said so already. Of a file that lists
    /// choices the one in force is meant. What the kernel made of a value that it did not keep is
    /// taken back with the rest.
    pub(super) fn write(
        &mut self,
        path: &Path,
        value: &str,
        remedy: &'static str,
    ) -> Result<Option<Written>, HostError> {
        let before = choice(files::required(path)?.trim()).to_owned();
        if same_text(&before, value) {
            return Ok(None);
        }
        let undo_of = |ours: &str| Undo::WriteFile {
            path: path.display().to_string(),
            value: before.clone(),
            ours: ours.to_owned(),
        };
        let undo = undo_of(value);
        self.announce(vec![undo.clone()])?;
        if let Err(source) = kernel::write_setting(path, value) {
            self.withdraw(|made| *made == undo)?;
            let (path, value) = (path.to_owned(), value.to_owned());
            return Err(HostError::Setting { path, value, source, remedy });
        }
        let now = choice(files::required(path)?.trim()).to_owned();
        if !same_text(&now, value) {
            // Not what was asked, nor what somebody else chose: it is put back where it says this.
            self.announce(vec![undo_of(&now)])?;
            self.withdraw(|made| *made == undo)?;
            let (path, wanted) = (path.to_owned(), value.to_owned());
            return Err(HostError::NotKept { path, wanted, found: now });
        }
        Ok(Some(Written { before, now }))
    }

    /// Takes all changes back, last first. What fails stays in the journal.
    pub(super) fn restore(&mut self) -> Vec<Warning> {
        if self.made.is_empty() {
            return Vec::new();
        }
        let around = Surroundings::of(self.journal.owner());
        let mut warnings = Vec::new();
        let mut settled = Vec::new();
        for (id, undo) in std::mem::take(&mut self.made).into_iter().rev() {
            let outcome = undo.apply(&around);
            if outcome.settled() {
                settled.push(id);
            }
            // Tasks place themselves as they like; a setting that moved under us is news.
            let of_task = matches!(undo, Undo::SetAffinity { .. } | Undo::WidenInheritors { .. });
            match outcome {
                Outcome::ChangedSince { .. } if !of_task => {}
                Outcome::Failed { .. } => {}
                _ => continue,
            }
            warnings.push(Warning::Guard { what: format!("{undo} {outcome}") });
        }
        if let Err(error) = self.journal.strike(&settled) {
            warnings.push(Warning::Guard { what: error.to_string() });
        }
        warnings
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        for warning in self.restore() {
            if let Warning::Guard { what } = warning {
                super::say(format_args!("whylate: {what}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::AssertUnwindSafe;

    use super::*;

    fn bed(text: &str) -> (tempfile::TempDir, Journal, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(&dir.path().join("journals")).unwrap();
        let knob = dir.path().join("knob");
        std::fs::write(&knob, text).unwrap();
        (dir, journal, knob)
    }

    fn says(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn setting_is_journaled_written_read_back_and_restored_on_drop() {
        let (_dir, journal, knob) = bed("950000\n");
        let mut changes = Changes::new(&journal);
        let written = changes.write(&knob, "-1", "").unwrap().unwrap();
        assert_eq!(written, Written { before: "950000".to_owned(), now: "-1".to_owned() });
        assert_eq!(says(&knob), "-1");
        assert_eq!(journal.entries().len(), 1);
        drop(changes);
        assert_eq!(says(&knob), "950000");
        assert_eq!(journal.entries(), []);
    }

    #[test]
    fn setting_is_restored_when_a_panic_unwinds() {
        let (_dir, journal, knob) = bed("1");
        let mut changes = Changes::new(&journal);
        let unwound = std::panic::catch_unwind(AssertUnwindSafe(move || {
            changes.write(&knob, "0", "").unwrap();
            assert_eq!(says(&knob), "0");
            std::panic::resume_unwind(Box::new(knob));
        }));
        let knob = unwound.unwrap_err().downcast::<std::path::PathBuf>().unwrap();
        assert_eq!(says(&knob), "1");
        assert_eq!(journal.entries(), []);
    }

    #[test]
    fn what_the_kernel_made_of_a_value_that_it_did_not_keep_is_taken_back() {
        let knob = crate::tree::SelfWilled::start();
        let (_dir, journal, _) = bed("");
        if let Err(refusal) = std::fs::write(knob.path(), "70000") {
            return crate::tree::skip(&refusal);
        }
        let mut changes = Changes::new(&journal);
        let error = changes.write(&knob.path(), "0", "").unwrap_err();
        assert!(matches!(&error, HostError::NotKept { found, .. } if found != "70000"), "{error}");
        assert_eq!(journal.entries().len(), 1);
        assert_eq!(changes.restore(), []);
        assert_eq!(says(&knob.path()), "70000\n");
        assert_eq!(journal.entries(), []);
    }

    #[test]
    fn setting_that_says_so_already_is_not_touched() {
        let (_dir, journal, knob) = bed("00000003\n");
        let mut changes = Changes::new(&journal);
        assert_eq!(changes.write(&knob, "3", "").unwrap(), None);
        assert_eq!(journal.entries(), []);
        drop(changes);
        assert_eq!(says(&knob), "00000003\n");
    }

    #[test]
    fn what_somebody_else_changed_is_left_alone_and_told() {
        let (_dir, journal, knob) = bed("a");
        let mut changes = Changes::new(&journal);
        changes.write(&knob, "b", "").unwrap();
        std::fs::write(&knob, "c").unwrap();
        let warnings = changes.restore();
        assert_eq!(warnings.len(), 1);
        assert!(format!("{warnings:?}").contains("changed to `c`"), "{warnings:?}");
        assert_eq!(says(&knob), "c");
        assert_eq!(changes.restore(), []);
    }

    #[test]
    fn setting_is_not_touched_when_the_journal_cannot_be_written() {
        let (dir, journal, knob) = bed("a");
        std::fs::remove_dir_all(dir.path().join("journals")).unwrap();
        let mut changes = Changes::new(&journal);
        let error = changes.write(&knob, "b", "").unwrap_err();
        assert!(matches!(error, HostError::JournalWrite { .. }), "{error}");
        assert_eq!(says(&knob), "a");
    }

    #[test]
    fn refused_write_leaves_nothing_in_the_journal() {
        let (dir, journal, _) = bed("a");
        let mut changes = Changes::new(&journal);
        let absent = dir.path().join("absent");
        assert!(matches!(changes.write(&absent, "x", ""), Err(HostError::Read { .. })));
        // Readable, and refused on writing whoever asks.
        let fixed = Path::new("/proc/self/comm/../stat");
        let error = changes.write(fixed, "x", "try something else").unwrap_err();
        assert!(matches!(error, HostError::Setting { .. } | HostError::Read { .. }), "{error}");
        assert_eq!(journal.entries(), []);
    }
}
