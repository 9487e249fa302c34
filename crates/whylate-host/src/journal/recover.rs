//! Undoing what dead processes left.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};
use whylate_model::{CpuId, Pid};

use super::directory::{self, FileName};
use super::{FORMAT, Outcome, Record, Surroundings, Undo, boot_id, pid_namespace, write_record};
use crate::tasks::Task;

/// A journal larger than this is no journal: a hundred thousand moved tasks take less.
const MAX_BYTES: u64 = 64 << 20;

/// Another start may be recovering: it is waited for this often, this long.
const LOCK_ATTEMPTS: u32 = 250;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(20);

/// Where whylate changes files; an undo that names another place is not followed.
const WRITABLE: [&str; 3] = ["/proc/sys", "/proc/irq", "/sys"];

/// What was done about one change that a dead process left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The process that made the change.
    pub pid: Pid,
    /// What was changed, or what else is reported.
    pub what: What,
    /// What came of it.
    pub outcome: Outcome,
}

/// The subject of a [`Recovered`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A change.
    Change(Undo),
    /// A journal as a whole: unreadable, or of another version or container.
    Journal(String),
}

impl fmt::Display for Recovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Change(undo) => {
                write!(f, "left by process {}: {undo} {}", self.pid, self.outcome)
            }
            What::Journal(path) => {
                write!(f, "journal {path} of process {}: {}", self.pid, self.outcome)
            }
        }
    }
}

/// Undoes what dead whylate processes of this user left, and tells each thing. Call it at the start
/// of a run, before the first change. Journals of processes that live are left alone.
#[must_use]
pub fn recover() -> Vec<Recovered> {
    directory::candidates().iter().flat_map(|dir| recover_in(dir, &WRITABLE)).collect()
}

/// [`recover`] in one directory, with the directories below which files may be written.
#[must_use]
pub fn recover_in(path: &Path, writable: &[&str]) -> Vec<Recovered> {
    let directory = match directory::open(path, false) {
        Ok(directory) => directory,
        // Nobody has ever kept a journal here.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => return vec![unreadable(path, Pid(0), &error.to_string())],
    };
    // Two starts at once: the second must not put back values after the first has begun to change
    // them again. The lock goes with the handle.
    if let Err(error) = lock(&directory) {
        return vec![unreadable(path, Pid(0), &error.to_string())];
    }
    let names = match directory::names(&directory) {
        Ok(names) => names,
        Err(error) => return vec![unreadable(path, Pid(0), &error.to_string())],
    };
    let mut recovered = Vec::new();
    for name in names {
        let whole = name.strip_suffix(".new");
        let Some(file) = FileName::parse(whole.unwrap_or(&name)) else { continue };
        if Task::alive(file.pid, file.start_time) {
            continue;
        }
        if whole.is_some() {
            // It died while it wrote; the list before stands.
            let _ = rustix::fs::unlinkat(&directory, &name, AtFlags::empty());
        } else {
            recovered.extend(of_dead(&directory, path, file, writable));
        }
    }
    recovered
}

/// One line per process and kind of change, for printing: a moved task more or less does not
/// matter, that all are back does. Failures are told one by one.
#[must_use]
pub fn summary(recovered: &[Recovered]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut tasks: BTreeMap<Pid, [usize; 3]> = BTreeMap::new();
    for one in recovered {
        match (&one.what, &one.outcome) {
            (What::Change(Undo::SetAffinity { .. }), outcome) if outcome.settled() => {
                let slot = match outcome {
                    Outcome::Gone => 1,
                    Outcome::ChangedSince { .. } => 2,
                    _ => 0,
                };
                tasks.entry(one.pid).or_default()[slot] += 1;
            }
            (What::Change(Undo::WidenInheritors { .. }), Outcome::AsBefore) => {}
            _ => lines.push(one.to_string()),
        }
    }
    lines.extend(tasks.into_iter().map(|(pid, [back, gone, since])| {
        format!(
            "left by process {pid}: affinity of {back} tasks as before again, {gone} have ended, \
             {since} were changed by somebody else since"
        )
    }));
    lines
}

fn lock(directory: &File) -> io::Result<()> {
    for _ in 0..LOCK_ATTEMPTS {
        match rustix::fs::flock(directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(BETWEEN_ATTEMPTS),
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "another whylate has been recovering for long"))
}

fn of_dead(directory: &File, path: &Path, file: FileName, writable: &[&str]) -> Vec<Recovered> {
    let name = file.to_string();
    let shown = path.join(&name);
    let mut record = match read(directory, file) {
        Ok(record) => record,
        Err(Unreadable::Newer(why)) => return vec![unreadable(&shown, file.pid, &why)],
        Err(Unreadable::Broken(why)) => {
            // Set aside, so that it is told once and can be looked at.
            let aside = format!("{name}.broken");
            let _ = rustix::fs::renameat(directory, &name, directory, &aside);
            let why = format!("{why}; set aside as {aside}, changes it listed may still stand");
            return vec![unreadable(&shown, file.pid, &why)];
        }
    };
    let remove = || {
        let _ = rustix::fs::unlinkat(directory, &name, AtFlags::empty());
    };
    if record.boot_id != boot_id() {
        // Settings, tasks and trace instances went with the boot they belonged to.
        remove();
        return Vec::new();
    }
    if record.pid_namespace != pid_namespace() {
        let why = "it belongs to another container, in which the process may live: left alone";
        return vec![unreadable(&shown, file.pid, why)];
    }
    let around = Surroundings::of(file.pid);
    let mut recovered = Vec::new();
    let mut left = Vec::new();
    for entry in record.entries.iter().rev() {
        let outcome = match entry.undo.plausible(writable) {
            Ok(()) => entry.undo.apply(&around),
            Err(why) => Outcome::Failed { why: format!("{why}: not followed") },
        };
        if !outcome.settled() {
            left.push(entry.clone());
        }
        recovered.push(Recovered {
            pid: file.pid,
            what: What::Change(entry.undo.clone()),
            outcome,
        });
    }
    if left.is_empty() {
        remove();
    } else {
        // What failed is tried again by the next start, with more privilege perhaps.
        left.reverse();
        record.entries = left;
        let _ = write_record(directory, &record);
    }
    recovered
}

/// The CPUs that the process of this journal measures; none where it cannot be read.
pub(crate) fn measured(directory: &File, name: FileName) -> Vec<CpuId> {
    read(directory, name).map_or_else(|_| Vec::new(), |record| record.measured)
}

enum Unreadable {
    /// Written by a version that knows more.
    Newer(String),
    /// Cut short, or no journal at all.
    Broken(String),
}

fn read(directory: &File, name: FileName) -> Result<Record, Unreadable> {
    let broken = |error: &dyn fmt::Display| Unreadable::Broken(error.to_string());
    // A pipe planted there must not block, a link must not lead away.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, name.to_string(), flags, Mode::empty())
        .map_err(|error| broken(&error))?;
    let stat = rustix::fs::fstat(&file).map_err(|error| broken(&error))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Unreadable::Broken("it is no regular file".to_owned()));
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(Unreadable::Broken(format!("it belongs to user {}", stat.st_uid)));
    }
    let mut text = Vec::new();
    let mut bounded = File::from(file).take(MAX_BYTES + 1);
    bounded.read_to_end(&mut text).map_err(|error| broken(&error))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(Unreadable::Broken(format!("it is larger than {MAX_BYTES} bytes")));
    }
    let value: serde_json::Value = serde_json::from_slice(&text).map_err(|error| broken(&error))?;
    match value.get("format").and_then(serde_json::Value::as_u64) {
        Some(format) if format > u64::from(FORMAT) => {
            let why = format!(
                "it has format {format}, this version reads {FORMAT}; start the newer version once"
            );
            return Err(Unreadable::Newer(why));
        }
        Some(format) if format == u64::from(FORMAT) => {}
        _ => return Err(Unreadable::Broken("it states no known format".to_owned())),
    }
    let record: Record = serde_json::from_value(value).map_err(|error| broken(&error))?;
    if FileName::of(&record) != name {
        return Err(Unreadable::Broken("its name and its content disagree".to_owned()));
    }
    Ok(record)
}

fn unreadable(path: &Path, pid: Pid, why: &str) -> Recovered {
    Recovered {
        pid,
        what: What::Journal(path.display().to_string()),
        outcome: Outcome::Failed { why: why.to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tempfile::TempDir;

    use super::super::{Entry, EntryId, Journal};
    use super::*;

    struct Bed {
        dir: TempDir,
        writable: String,
    }

    impl Bed {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            directory::open(&dir.path().join("journals"), true).unwrap();
            std::fs::create_dir(dir.path().join("knobs")).unwrap();
            let writable = dir.path().join("knobs").display().to_string();
            Self { dir, writable }
        }

        fn journals(&self) -> PathBuf {
            self.dir.path().join("journals")
        }

        fn knob(&self, name: &str, text: &str) -> Undo {
            let path = self.dir.path().join("knobs").join(name);
            std::fs::write(&path, text).unwrap();
            Undo::WriteFile {
                path: path.display().to_string(),
                value: "before".to_owned(),
                ours: "ours".to_owned(),
            }
        }

        fn knob_says(&self, name: &str) -> String {
            std::fs::read_to_string(self.dir.path().join("knobs").join(name)).unwrap()
        }

        /// A journal of a process that does not live: no process has this start time.
        fn dead(undos: Vec<Undo>) -> Record {
            let numbered = (0..).map(EntryId).zip(undos);
            Record {
                format: FORMAT,
                pid: Pid(1),
                start_time: u64::MAX,
                boot_id: boot_id(),
                pid_namespace: pid_namespace(),
                measured: Vec::new(),
                entries: numbered.map(|(id, undo)| Entry { id, undo }).collect(),
            }
        }

        fn put(&self, record: &Record) -> PathBuf {
            let directory = directory::open(&self.journals(), false).unwrap();
            write_record(&directory, record).unwrap();
            self.journals().join(FileName::of(record).to_string())
        }

        fn recover(&self) -> Vec<Recovered> {
            recover_in(&self.journals(), &[&self.writable])
        }
    }

    #[test]
    fn changes_of_a_dead_process_are_undone_last_first_and_told() {
        let bed = Bed::new();
        let undos = vec![bed.knob("a", "ours"), bed.knob("b", "somebody"), bed.knob("c", "ours")];
        let path = bed.put(&Bed::dead(undos.clone()));
        let recovered = bed.recover();
        let told: Vec<&What> = recovered.iter().map(|one| &one.what).collect();
        let expected: Vec<What> = undos.into_iter().rev().map(What::Change).collect();
        assert_eq!(told, expected.iter().collect::<Vec<_>>());
        assert_eq!(recovered[0].outcome, Outcome::Restored);
        assert!(matches!(recovered[1].outcome, Outcome::ChangedSince { .. }));
        assert_eq!((bed.knob_says("a"), bed.knob_says("b")), ("before".into(), "somebody".into()));
        assert!(!path.exists());
        assert_eq!(bed.recover(), []);
    }

    #[test]
    fn journal_of_a_living_process_is_left_alone() {
        let bed = Bed::new();
        let journal = Journal::open_in(&bed.journals()).unwrap();
        journal.record(bed.knob("a", "ours")).unwrap();
        assert_eq!(bed.recover(), []);
        assert_eq!(bed.knob_says("a"), "ours");
        assert!(journal.path().exists());
    }

    #[test]
    fn what_fails_stays_in_the_journal_for_the_next_start() {
        let bed = Bed::new();
        let elsewhere = Undo::WriteFile {
            path: bed.dir.path().join("secret").display().to_string(),
            value: "before".to_owned(),
            ours: "ours".to_owned(),
        };
        std::fs::write(bed.dir.path().join("secret"), "ours").unwrap();
        let path = bed.put(&Bed::dead(vec![bed.knob("a", "ours"), elsewhere.clone()]));
        let recovered = bed.recover();
        assert_eq!(recovered.len(), 2);
        assert!(recovered[0].to_string().contains("not followed"), "{}", recovered[0]);
        assert_eq!(std::fs::read_to_string(bed.dir.path().join("secret")).unwrap(), "ours");
        let left: Record = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        assert_eq!(left.entries.len(), 1);
        assert_eq!(left.entries[0].undo, elsewhere);
        assert_eq!(bed.recover().len(), 1);
    }

    #[test]
    fn cut_and_hostile_journals_are_set_aside_and_told_once() {
        let bed = Bed::new();
        let whole = serde_json::to_string(&Bed::dead(vec![bed.knob("a", "ours")])).unwrap();
        let name = "1-18446744073709551615.json";
        let deep = "[".repeat(100_000);
        for text in [
            "",
            "{}",
            "null",
            &whole[..whole.len() / 2],
            &whole[..whole.len() - 1],
            &whole.replace("\"pid\":1", "\"pid\":2"),
            &whole.replace("write_file", "format_disk"),
            &whole.replace("\"format\":1", "\"format\":-1"),
            &deep,
            "\u{0}\u{1}",
        ] {
            std::fs::write(bed.journals().join(name), text).unwrap();
            let recovered = bed.recover();
            assert_eq!(recovered.len(), 1, "{text:.40}");
            assert!(recovered[0].to_string().contains("set aside"), "{}", recovered[0]);
            assert_eq!(bed.recover(), []);
            assert_eq!(bed.knob_says("a"), "ours");
            std::fs::remove_file(bed.journals().join(format!("{name}.broken"))).unwrap();
        }
    }

    #[test]
    fn pipes_links_and_directories_in_place_of_a_journal_are_no_journal() {
        let bed = Bed::new();
        let path = bed.journals().join("1-18446744073709551615.json");
        let check = || {
            let recovered = bed.recover();
            assert_eq!(recovered.len(), 1);
            assert!(!recovered[0].outcome.settled());
        };
        rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
        check();
        let outside = bed.dir.path().join("outside.json");
        let record = Bed::dead(vec![bed.knob("a", "ours")]);
        std::fs::write(&outside, serde_json::to_vec(&record).unwrap()).unwrap();
        std::os::unix::fs::symlink(&outside, &path).unwrap();
        check();
        assert_eq!(bed.knob_says("a"), "ours");
        std::fs::create_dir(&path).unwrap();
        check();
    }

    #[test]
    fn journals_of_another_boot_version_or_container_undo_nothing() {
        let bed = Bed::new();
        let mut record = Bed::dead(vec![bed.knob("a", "ours")]);
        record.boot_id = "another".to_owned();
        let path = bed.put(&record);
        assert_eq!(bed.recover(), []);
        assert!(!path.exists());

        record.boot_id = boot_id();
        record.pid_namespace = "pid:[1]".to_owned();
        let path = bed.put(&record);
        assert!(bed.recover()[0].to_string().contains("container"));
        assert!(path.exists());

        record.format = FORMAT + 1;
        bed.put(&record);
        assert!(bed.recover()[0].to_string().contains("newer version"));
        assert!(path.exists());
        assert_eq!(bed.knob_says("a"), "ours");
    }

    #[test]
    fn unfinished_files_of_dead_processes_go_and_foreign_files_stay() {
        let bed = Bed::new();
        let unfinished = bed.journals().join("1-18446744073709551615.json.new");
        let foreign = bed.journals().join("notes.txt");
        std::fs::write(&unfinished, "{").unwrap();
        std::fs::write(&foreign, "x").unwrap();
        assert_eq!(bed.recover(), []);
        assert!(!unfinished.exists() && foreign.exists());
        assert_eq!(recover_in(&bed.dir.path().join("nowhere"), &[]), []);
    }

    #[test]
    fn many_tasks_are_told_in_one_line_and_failures_one_by_one() {
        let task = |outcome| Recovered {
            pid: Pid(7),
            what: What::Change(Undo::SetAffinity {
                pid: Pid(9),
                start_time: 1,
                cpus: Vec::new(),
                ours: Vec::new(),
            }),
            outcome,
        };
        let told = summary(&[
            task(Outcome::Restored),
            task(Outcome::Gone),
            task(Outcome::AsBefore),
            task(Outcome::Failed { why: "no".to_owned() }),
        ]);
        assert_eq!(told.len(), 2);
        assert!(told[0].contains("could not be restored: no"), "{told:?}");
        assert!(told[1].contains("of 2 tasks") && told[1].contains("1 have ended"), "{told:?}");
    }
}
