//! A run is a directory: creating it, and reading and writing its `run.json`.
//!
//! What stands in the directory under its final name is whole at any time: files are written under
//! another name, brought down to the disk, and renamed. A directory made by somebody else is read
//! without trust: sizes are limited, links are not followed, and nothing outside is opened.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use crate::digest;
use crate::error::{ModelError, quote};
use crate::files;
use crate::hlog;
use crate::output;
use crate::run::{Capture, FORMAT_VERSION, Run, Segment};
use crate::segments;
use crate::tap::TAP_FILE;
use crate::text::Bytes;

pub(crate) mod checked;
mod departures;
pub mod in_words;
mod ordered;
mod reasons;
mod sense;
mod sentences;
pub mod version_one;

/// The file that describes the run.
pub const RUN_FILE: &str = "run.json";

/// Room that a new run must find on its disk: the first checkpoint of a large run, several times.
pub const ROOM_BYTES: u64 = 4 << 20;

/// Most bytes of `run.json` that are read or written: 72 hours of 8 CPUs take about 50 MiB, and a
/// hostile file of this size can make its reader use a gigabyte, one of version 1 two.
pub const RUN_FILE_LIMIT: u64 = 64 << 20;

/// Name of the file that finds out whether there is room.
const PROBE_FILE: &str = "room.tmp";

/// The directory of one run.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    /// Made by this process: its caller found no directory there.
    made: bool,
    /// Locked while this process records into the directory.
    _lock: Option<File>,
}

/// Room on a disk, held by a file without a name; see [`RunDir::reserve`].
#[derive(Debug)]
#[expect(dead_code, reason = "held for what closing it gives back")]
pub struct Reserve(File);

/// Takes a new run's directory away again as long as it holds no run.
#[derive(Debug)]
pub struct Undo {
    path: PathBuf,
    made: bool,
}

impl Undo {
    /// Removes what [`RunDir::create`] and [`RunDir::histogram_log`] made, the tables, and the file of a tap. A
    /// directory with a `run.json`, or with anything else in it, stays.
    pub fn remove(self) {
        if self.path.join(RUN_FILE).exists() {
            return;
        }
        // What cannot be removed stays: the error of the measurement is what the user is told.
        for entry in std::fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_ours = |name: &str| {
                [hlog::HISTOGRAM_FILE, TAP_FILE].contains(&name) || segments::is_segment_name(name)
            };
            if name.to_str().is_some_and(is_ours) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
        if self.made {
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}

impl RunDir {
    /// Makes the directory of a new run, and finds out now whether it can be written to.
    ///
    /// The directory may exist when it is empty. [`ROOM_BYTES`] are written down to the disk and
    /// removed again, so that a full or read-only disk is found before anything is measured.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, ModelError> {
        Self::create_with_room(path, ROOM_BYTES)
    }

    /// As [`RunDir::create`], with the room that the caller expects to need.
    pub fn create_with_room(path: impl Into<PathBuf>, bytes: u64) -> Result<Self, ModelError> {
        let path = path.into();
        let made = make_empty(&path)?;
        let lock = lock(&path)?;
        if let Err(error) = find_room(&path, bytes) {
            if made {
                // Nothing was measured: leave nothing behind. It is empty, or it stays.
                let _ = std::fs::remove_dir(&path);
            }
            return Err(error);
        }
        Ok(Self { path, made, _lock: lock })
    }

    /// Opens the directory of a recorded run for reading.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, ModelError> {
        let path = path.into();
        let metadata = std::fs::metadata(&path).map_err(|why| ModelError::read(&path, why))?;
        if metadata.is_dir() {
            Ok(Self { path, made: false, _lock: None })
        } else {
            Err(ModelError::NotADirectory { path })
        }
    }

    /// What takes the directory away again when nothing comes to be measured.
    #[must_use]
    pub fn undo(&self) -> Undo {
        Undo { path: self.path.clone(), made: self.made }
    }

    /// Room for the last `run.json` of a recording, kept until the value goes: a disk that fills up
    /// meanwhile does not take it. None where the file system cannot promise room.
    #[must_use]
    pub fn reserve(&self) -> Option<Reserve> {
        files::nameless(&self.path, ROOM_BYTES).map(Reserve)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces `run.json` as a whole.
    ///
    /// The new content is read back before it takes the old one's place, so that a run that could
    /// not be read again is refused here: a number that is not finite has no form in JSON.
    pub fn write_run(&self, run: &Run) -> Result<(), ModelError> {
        let path = self.path.join(RUN_FILE);
        let unreadable = |what: String| ModelError::Unreadable { path: path.clone(), what };
        let json = serde_json::to_vec_pretty(run).map_err(|why| unreadable(why.to_string()))?;
        let json = digest::seal(&json);
        if json.len() as u64 > RUN_FILE_LIMIT {
            let (bytes, most) = (Bytes(json.len() as u64), Bytes(RUN_FILE_LIMIT));
            return Err(unreadable(format!("{bytes}, and the most is {most}")));
        }
        let back: Result<Run, _> = serde_json::from_slice(&json);
        let back = back.map_err(|why| unreadable(at_line(&json, &why)))?;
        check_names(&path, &back.segments)?;
        files::replace(&path, &json)
    }

    /// Reads `run.json`.
    pub fn read_run(&self) -> Result<Run, ModelError> {
        parse_run(&self.path.join(RUN_FILE), &self.read_json()?)
    }

    fn read_json(&self) -> Result<Vec<u8>, ModelError> {
        match files::read_plain(&self.path.join(RUN_FILE), RUN_FILE_LIMIT) {
            Err(ModelError::Read { why, .. }) if why.kind() == io::ErrorKind::NotFound => {
                Err(ModelError::NoRun { path: self.path.clone() })
            }
            read => read,
        }
    }
}

/// Reads the content of a `run.json`, which `path` names in errors.
///
/// Nothing in it is trusted: a content of any kind gives a run or an error.
pub fn parse_run(path: &Path, json: &[u8]) -> Result<Run, ModelError> {
    #[derive(Deserialize)]
    struct Header {
        format_version: u32,
    }
    let header: Header = serde_json::from_slice(json).map_err(|why| wrong(path, json, &why))?;
    match header.format_version {
        0 => return Err(ModelError::malformed(path, "there is no format version 0")),
        found if found > FORMAT_VERSION => {
            return Err(ModelError::NewerFormat {
                path: path.to_owned(),
                found,
                newest: FORMAT_VERSION,
            });
        }
        _ => {}
    }
    let mut run: Run = if header.format_version == 1 {
        let run = serde_json::from_slice(json).map_err(|why| wrong(path, json, &why))?;
        let run = serde_json::from_value(version_one::upgraded(run));
        run.map_err(|why| ModelError::malformed(path, why.to_string()))?
    } else {
        let mut run = serde_json::from_slice(json).map_err(|why| wrong(path, json, &why))?;
        in_words::settle(&mut run);
        run
    };
    check_names(path, &run.segments)?;
    if let Some(Capture { file, .. }) = run.captures.iter().find(|of| !is_plain_name(&of.file)) {
        let what = format!("captures: `{file}` is not the name of a file in its directory");
        return Err(ModelError::malformed(path, what));
    }
    sense::check(&run).map_err(|what| ModelError::malformed(path, what))?;
    departures::settle(&mut run);
    ordered::settle(&mut run);
    reasons::settle(&mut run);
    sentences::settle(&mut run);
    Ok(run)
}

fn make_empty(path: &Path) -> Result<bool, ModelError> {
    let not_written = |why| ModelError::write(path, why);
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_dir() => {
            Err(ModelError::NotADirectory { path: path.to_owned() })
        }
        Ok(_) => {
            let mut entries = std::fs::read_dir(path).map_err(not_written)?;
            match entries.next() {
                Some(_) => Err(ModelError::NotEmpty { path: path.to_owned() }),
                None => Ok(false),
            }
        }
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            output::make_directory(path).map_err(not_written)?;
            Ok(true)
        }
        Err(why) => Err(not_written(why)),
    }
}

/// Two recordings that were started at the same time may both have found the directory empty.
fn lock(path: &Path) -> Result<Option<File>, ModelError> {
    let directory = File::open(path).map_err(|why| ModelError::write(path, why))?;
    match directory.try_lock() {
        Ok(()) => Ok(Some(directory)),
        Err(TryLockError::WouldBlock) => Err(ModelError::InUse { path: path.to_owned() }),
        // Not every file system can lock a directory; then the check for emptiness must do.
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

fn find_room(path: &Path, bytes: u64) -> Result<(), ModelError> {
    let probe = path.join(PROBE_FILE);
    let result = files::write_new(&probe, &incompressible(bytes))
        .and_then(|()| files::sync_directory(path))
        .map_err(|why| ModelError::Write { path: path.to_owned(), bytes: Some(bytes), why });
    let _ = std::fs::remove_file(&probe);
    result
}

/// Bytes that a file system which compresses or looks for zeros must really store.
fn incompressible(bytes: u64) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut all = vec![0; bytes as usize];
    for word in all.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
    }
    all
}

fn check_names(path: &Path, segments: &[Segment]) -> Result<(), ModelError> {
    match segments.iter().find(|segment| !segments::is_segment_name(&segment.file)) {
        None => Ok(()),
        Some(segment) => {
            Err(ModelError::UnsafeFileName { path: path.to_owned(), file: quote(&segment.file) })
        }
    }
}

fn is_plain_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(of)), None) if of == name)
}

fn wrong(path: &Path, json: &[u8], why: &serde_json::Error) -> ModelError {
    if why.is_eof() || is_at_end(json, why) {
        let place = match json.len() {
            0 => "before its first byte".to_owned(),
            length => format!("after {length} bytes, in line {}", why.line()),
        };
        ModelError::Truncated { path: path.to_owned(), place }
    } else {
        ModelError::malformed(path, why.to_string())
    }
}

/// Is the error at the very end? What is left of a number or word there is an error of its own.
fn is_at_end(json: &[u8], why: &serde_json::Error) -> bool {
    let last_line = json.split(|byte| *byte == b'\n').enumerate().last();
    last_line.is_some_and(|(index, line)| {
        why.is_syntax() && why.line() == index + 1 && why.column() >= line.len()
    })
}

fn at_line(json: &[u8], why: &serde_json::Error) -> String {
    let line = json.split(|byte| *byte == b'\n').nth(why.line().saturating_sub(1));
    let line = String::from_utf8_lossy(line.unwrap_or_default());
    quote(&format!("{}: {why}", line.trim()))
}
