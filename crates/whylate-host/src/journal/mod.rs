//! What this process has changed on the host, in a file before it changes.
//!
//! One JSON file per process, named by process id and start time, in a directory that only its
//! owner may enter. Each entry says how to take one change back ([`Undo`]); it is written
//! before the change is made and struck after it was taken back. So whenever the process
//! dies, the file lists at least what is left to undo, and [`recover`] of the next start undoes it.
//!
//! No disk is waited for: what the kernel was given outlives the process, and where the kernel goes the
//! changes go with it.
//!
//! The file exists from the first moment of a run, also without entries: [`crate::another`] finds
//! other runs by it.

mod card_stamps;
mod coalescing;
mod directory;
mod placed;
mod recover;
mod tags_beside;
mod undo;

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, Mode, OFlags};
use serde::{Deserialize, Serialize};
use whylate_model::{CpuId, Pid};

pub(crate) use self::directory::{FileName, candidates, names, open as open_directory};
pub(crate) use self::placed::PROCESSES;
pub(crate) use self::recover::measured;
pub use self::recover::{Recovered, What, recover, recover_in, summary};
pub use self::undo::{Bound, Home, Outcome, Undo};
pub(crate) use self::undo::{Surroundings, choice, irq_file, is_own_instance, same_text};
use crate::error::HostError;
use crate::files::trimmed;
use crate::tasks::Task;

/// Version of the file; a newer one is left to the version that wrote it.
const FORMAT: u32 = 1;

/// The journal of this process. Clones write to one file.
#[derive(Debug, Clone)]
pub struct Journal(Arc<Mutex<Inner>>);

/// One entry of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number in this journal.
    pub id: EntryId,
    /// How to take the change back.
    pub undo: Undo,
}

/// The number of an entry in its journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntryId(u64);

/// The file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    format: u32,
    pid: Pid,
    start_time: u64,
    /// After a reboot there is nothing to undo.
    boot_id: String,
    /// Process ids mean something only inside their namespace.
    pid_namespace: String,
    /// CPUs that it measures: no change, but what another run must know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    measured: Vec<CpuId>,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Inner {
    directory: File,
    path: PathBuf,
    record: Record,
    next: u64,
}

impl Journal {
    /// Opens the journal of this process in the first directory that can keep it:
    /// `/run/whylate` (root), `$XDG_RUNTIME_DIR/whylate`, `/tmp/whylate-UID`.
    pub fn open() -> Result<Self, HostError> {
        let mut failures = Vec::new();
        for directory in candidates() {
            match Self::open_in(&directory) {
                Ok(journal) => return Ok(journal),
                Err(HostError::NoJournal { why }) => failures.push(why),
                Err(error) => failures.push(error.to_string()),
            }
        }
        Err(HostError::NoJournal { why: failures.join("; ") })
    }

    /// Opens the journal of this process in `directory`, which is made where it is missing and
    /// must belong to this user alone.
    pub fn open_in(directory: &Path) -> Result<Self, HostError> {
        let no_journal = |why: String| HostError::NoJournal { why };
        let handle = open_directory(directory, true)
            .map_err(|error| no_journal(format!("{}: {error}", directory.display())))?;
        let me = Task::this_process()
            .ok_or_else(|| no_journal("/proc/self/stat cannot be read".to_owned()))?;
        let name = FileName { pid: me.tid, start_time: me.start_time };
        let path = directory.join(name.to_string());
        if rustix::fs::statat(&handle, name.to_string(), AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            let why = format!("{} is open already: a process has one", path.display());
            return Err(no_journal(why));
        }
        let record = Record {
            format: FORMAT,
            pid: me.tid,
            start_time: me.start_time,
            boot_id: boot_id(),
            pid_namespace: pid_namespace(),
            measured: Vec::new(),
            entries: Vec::new(),
        };
        let inner = Inner { directory: handle, path, record, next: 0 };
        inner.write()?;
        Ok(Self(Arc::new(Mutex::new(inner))))
    }

    /// Tells other runs that this one measures these CPUs ([`crate::another`]).
    pub fn measures(&self, cpus: &[CpuId]) -> Result<(), HostError> {
        let mut inner = self.inner();
        inner.record.measured = cpus.to_vec();
        inner.write()
    }

    /// Announces a change. Make it only when this returned `Ok`: then the entry is in the file.
    pub fn record(&self, undo: Undo) -> Result<EntryId, HostError> {
        self.append(vec![undo]).map(|ids| EntryId(ids.start))
    }

    /// Announces several changes with one write. They are undone last first.
    pub fn record_all(&self, undos: Vec<Undo>) -> Result<Vec<EntryId>, HostError> {
        self.append(undos).map(|ids| ids.map(EntryId).collect())
    }

    fn append(&self, undos: Vec<Undo>) -> Result<Range<u64>, HostError> {
        let mut inner = self.inner();
        let kept = inner.record.entries.len();
        let ids = inner.next..inner.next + undos.len() as u64;
        let entries = ids.clone().zip(undos).map(|(id, undo)| Entry { id: EntryId(id), undo });
        inner.record.entries.extend(entries);
        inner.next = ids.end;
        match inner.write() {
            Ok(()) => Ok(ids),
            Err(error) => {
                inner.record.entries.truncate(kept);
                Err(error)
            }
        }
    }

    /// Strikes entries whose changes were taken back, or were never made.
    pub fn strike(&self, ids: &[EntryId]) -> Result<(), HostError> {
        let mut inner = self.inner();
        let ids: std::collections::BTreeSet<EntryId> = ids.iter().copied().collect();
        inner.record.entries.retain(|entry| !ids.contains(&entry.id));
        inner.write()
    }

    /// What is changed at this moment.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        self.inner().record.entries.clone()
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.inner().path.clone()
    }

    /// The process this journal belongs to.
    pub(crate) fn owner(&self) -> Pid {
        self.inner().record.pid
    }

    /// A panic elsewhere leaves the list whole: it is changed by single calls only.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn write(&self) -> Result<(), HostError> {
        write_record(&self.directory, &self.record)
            .map_err(|source| HostError::JournalWrite { path: self.path.clone(), source })
    }
}

impl Drop for Inner {
    /// With nothing left to undo the file goes; otherwise it stays for [`recover`].
    fn drop(&mut self) {
        if self.record.entries.is_empty() {
            let name = FileName::of(&self.record).to_string();
            // Without it the next start finds an empty journal and removes that.
            let _ = rustix::fs::unlinkat(&self.directory, name, AtFlags::empty());
        }
    }
}

/// Replaces the file of `record` as one step: a reader sees the old list or the new one.
fn write_record(directory: &File, record: &Record) -> io::Result<()> {
    let name = FileName::of(record);
    let (name, fresh) = (name.to_string(), name.unfinished());
    let text = serde_json::to_vec(record)?;
    let _ = rustix::fs::unlinkat(directory, &fresh, AtFlags::empty());
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let mut file = File::from(rustix::fs::openat(directory, &fresh, flags, mode)?);
    file.write_all(&text)?;
    rustix::fs::renameat(directory, &fresh, directory, &name)?;
    Ok(())
}

fn boot_id() -> String {
    trimmed(Path::new("/proc/sys/kernel/random/boot_id")).unwrap_or_default()
}

fn pid_namespace() -> String {
    let link = std::fs::read_link("/proc/self/ns/pid");
    link.map(|link| link.display().to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knob(path: &Path) -> Undo {
        Undo::WriteFile {
            path: path.display().to_string(),
            value: "before".to_owned(),
            ours: "ours".to_owned(),
        }
    }

    fn on_disk(journal: &Journal) -> Record {
        serde_json::from_slice(&std::fs::read(journal.path()).unwrap()).unwrap()
    }

    #[test]
    fn entries_are_on_disk_before_record_returns_and_go_when_struck() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(&dir.path().join("whylate")).unwrap();
        assert_eq!(on_disk(&journal).entries, []);
        let first = journal.record(knob(Path::new("/a"))).unwrap();
        let more =
            journal.clone().record_all(vec![knob(Path::new("/b")), knob(Path::new("/c"))]).unwrap();
        assert_eq!(on_disk(&journal).entries, journal.entries());
        journal.strike(&[first, more[1]]).unwrap();
        let left = on_disk(&journal).entries;
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].undo, knob(Path::new("/b")));
        // Numbers are not used again.
        let next = journal.record(knob(Path::new("/d"))).unwrap();
        assert!(!more.contains(&next) && next != first);
    }

    #[test]
    fn file_goes_with_the_last_clone_when_nothing_is_left_and_stays_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(dir.path()).unwrap();
        let path = journal.path();
        let clone = journal.clone();
        drop(journal);
        assert!(path.exists());
        let id = clone.record(knob(Path::new("/a"))).unwrap();
        drop(clone);
        assert!(path.exists());
        std::fs::remove_file(&path).unwrap();
        let journal = Journal::open_in(dir.path()).unwrap();
        let again = journal.record(knob(Path::new("/a"))).unwrap();
        assert_eq!(id, again);
        journal.strike(&[again]).unwrap();
        drop(journal);
        assert!(!path.exists());
    }

    #[test]
    fn change_is_not_announced_when_the_disk_refuses() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("whylate");
        let journal = Journal::open_in(&home).unwrap();
        std::fs::remove_dir_all(&home).unwrap();
        let error = journal.record(knob(Path::new("/a"))).unwrap_err();
        assert!(matches!(error, HostError::JournalWrite { .. }), "{error}");
        assert!(error.to_string().contains("nothing was changed"), "{error}");
        assert_eq!(journal.entries(), []);
    }

    #[test]
    fn process_has_one_journal() {
        let dir = tempfile::tempdir().unwrap();
        let _journal = Journal::open_in(dir.path()).unwrap();
        let error = Journal::open_in(dir.path()).unwrap_err().to_string();
        assert!(error.contains("open already"), "{error}");
    }
}
