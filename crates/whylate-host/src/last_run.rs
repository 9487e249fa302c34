//! The host of the last recording, kept so that a change overnight is noticed.
//!
//! One small file of this user, `whylate/last-run.json` below `$XDG_STATE_HOME` (by default
//! `~/.local/state`), replaced as a whole. A file that cannot be read, that is damaged, or that
//! another version wrote, is told and otherwise ignored: it decides nothing.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use whylate_model::host::Fingerprint;

use crate::error::HostError;
use crate::files::open_plain;

/// Its name.
const FILE: &str = "last-run.json";
/// That of the last run that measured what context switches cost.
const SWITCH_COST_FILE: &str = "last-switch-cost.json";

/// Version of the file's format.
const VERSION: u32 = 1;

/// Largest file that is read: a fingerprint takes some ten KiB, and grows by the per-CPU knobs.
const MAX_BYTES: u64 = 4 << 20;

/// The last recording of this user on this host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LastRun {
    format_version: u32,
    /// Version of whylate that recorded.
    pub tool_version: String,
    /// The run directory.
    pub run: String,
    /// The host as it was read back then.
    pub host: Fingerprint,
}

impl LastRun {
    /// A recording in directory `run` on this host.
    #[must_use]
    pub fn of(host: &Fingerprint, run: &Path) -> Self {
        Self {
            format_version: VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            run: std::path::absolute(run).unwrap_or_else(|_| run.to_owned()).display().to_string(),
            host: host.clone(),
        }
    }
}

/// What is remembered.
#[derive(Debug, Clone, PartialEq)]
pub enum Recall {
    /// No recording.
    Nothing {
        /// Where it would be.
        path: String,
    },
    /// Something that may be a recording: it was not read.
    Unreadable {
        /// The file.
        path: String,
        /// Why not.
        why: String,
    },
    /// Something that was read and is no recording.
    Rubbish {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// The last recording.
    Last(Box<LastRun>),
}

/// Remembers the host of the recording in directory `run`.
pub fn remember(host: &Fingerprint, run: &Path) -> Result<(), HostError> {
    remember_as(FILE, host, run)
}

/// Remembers the recording in directory `run` as the last one of what context switches cost.
pub fn remember_switch_cost(host: &Fingerprint, run: &Path) -> Result<(), HostError> {
    remember_as(SWITCH_COST_FILE, host, run)
}

/// What is remembered of the last recording.
#[must_use]
pub fn recall() -> Recall {
    recall_as(FILE)
}

/// What is remembered of the last recording of what context switches cost.
#[must_use]
pub fn recall_switch_cost() -> Recall {
    recall_as(SWITCH_COST_FILE)
}

fn remember_as(file: &str, host: &Fingerprint, run: &Path) -> Result<(), HostError> {
    let path = place(file).ok_or_else(|| HostError::NotRemembered {
        path: PathBuf::from("whylate").join(file),
        source: io::Error::new(io::ErrorKind::NotFound, "neither XDG_STATE_HOME nor HOME is set"),
    })?;
    remember_at(&path, host, run)
}

fn recall_as(file: &str) -> Recall {
    match place(file) {
        Some(path) => recall_from(&path),
        None => Recall::Nothing { path: format!("$XDG_STATE_HOME/whylate/{file}") },
    }
}

/// The file, by the XDG Base Directory Specification: a path that is not absolute is ignored.
pub(crate) fn place(file: &str) -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state =
        absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("whylate").join(file))
}

fn remember_at(path: &Path, host: &Fingerprint, run: &Path) -> Result<(), HostError> {
    let written = serde_json::to_vec_pretty(&LastRun::of(host, run))
        .map_err(io::Error::other)
        .and_then(|json| replace(path, &json));
    written.map_err(|source| HostError::NotRemembered { path: path.to_owned(), source })
}

/// Under another name first: two recordings that end together leave one of them, whole.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let unfinished = path.with_extension(format!("json.{}", std::process::id()));
    let open = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished);
    let file = match open() {
        // Left by a process of the same number that was killed here.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            std::fs::remove_file(&unfinished)?;
            open()
        }
        opened => opened,
    };
    let written = file.and_then(|mut file: File| file.write_all(bytes));
    let done = written.and_then(|()| std::fs::rename(&unfinished, path));
    if done.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    done
}

fn recall_from(path: &Path) -> Recall {
    let shown = path.display().to_string();
    let rubbish = |why: String| Recall::Rubbish { path: shown.clone(), why };
    let mut bytes = Vec::new();
    let read = open_plain(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    match read {
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            return Recall::Nothing { path: shown };
        }
        Err(why) => return Recall::Unreadable { path: shown, why: why.to_string() },
        Ok(_) if bytes.len() as u64 > MAX_BYTES => {
            return rubbish(format!("it has more than {MAX_BYTES} bytes"));
        }
        Ok(_) => {}
    }
    match serde_json::from_slice::<LastRun>(&bytes) {
        Ok(last) if last.format_version == VERSION => Recall::Last(Box::new(last)),
        Ok(last) => rubbish(format!("it has format version {}", last.format_version)),
        Err(why) => rubbish(why.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn host() -> Fingerprint {
        Fingerprint {
            hostname: "box".to_owned(),
            kernel: "6.12.1".to_owned(),
            ..Default::default()
        }
    }

    #[test]
    fn the_last_switch_cost_is_remembered_beside_the_last_run() {
        let (any, of_switches) = (place(FILE), place(SWITCH_COST_FILE));
        let Some((any, of_switches)) = any.zip(of_switches) else { return };
        assert_eq!(any.parent(), of_switches.parent());
        assert_ne!(any, of_switches);
    }

    #[test]
    fn what_was_remembered_is_recalled_and_replaced_by_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/whylate/last-run.json");
        assert!(matches!(recall_from(&path), Recall::Nothing { .. }));
        remember_at(&path, &Fingerprint::default(), Path::new("/runs/one")).unwrap();
        remember_at(&path, &host(), Path::new("/runs/two")).unwrap();
        let Recall::Last(last) = recall_from(&path) else { panic!("it was remembered") };
        assert_eq!((last.host, last.run.as_str()), (host(), "/runs/two"));
        let left = std::fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(left, 1, "nothing else is left there");
    }

    #[test]
    fn a_file_of_rubbish_is_told_and_taken_for_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("last-run.json");
        let other = "{\"format_version\":9,\"tool_version\":\"\",\"run\":\"\",\"host\":";
        let other = format!("{other}{}}}", serde_json::to_string(&host()).unwrap());
        for text in ["", "{}", "\u{0}", "[[[[", other.as_str()] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(recall_from(&path), Recall::Rubbish { .. }), "{text}");
        }
        std::fs::write(&path, vec![b' '; MAX_BYTES as usize + 1]).unwrap();
        assert!(matches!(recall_from(&path), Recall::Rubbish { .. }));
    }

    #[test]
    fn what_cannot_be_read_is_not_called_damaged() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let dir = tempfile::tempdir().unwrap();
        let [folder, ring, private] = ["folder", "ring", "private"].map(|n| dir.path().join(n));
        std::fs::create_dir(&folder).unwrap();
        symlink(&ring, &ring).unwrap();
        for path in [folder, ring] {
            assert!(matches!(recall_from(&path), Recall::Unreadable { .. }), "{}", path.display());
        }
        remember_at(&private, &host(), Path::new("/runs/one")).unwrap();
        std::fs::set_permissions(&private, std::fs::Permissions::from_mode(0o0)).unwrap();
        match recall_from(&private) {
            Recall::Unreadable { why, .. } => assert!(why.contains("denied"), "{why}"),
            other if File::open(&private).is_ok() => {
                assert!(matches!(other, Recall::Last(_)));
                crate::tree::skip(&"this user may read everything");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let path = Path::new("/proc/whylate/last-run.json");
        let error = remember_at(path, &host(), Path::new("/runs/one")).unwrap_err().to_string();
        assert!(error.contains("/proc/whylate") && error.contains("XDG_STATE_HOME"), "{error}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_rubbish(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("last-run.json");
            std::fs::write(&path, &bytes).unwrap();
            let rubbish = matches!(recall_from(&path), Recall::Rubbish { .. });
            prop_assert!(rubbish);
        }
    }
}
