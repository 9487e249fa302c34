//! What can go wrong with a run directory: what failed, on what, why, and what to try.

use std::io;
use std::path::{Path, PathBuf};

use crate::text::{Bytes, Printable};

/// The longest piece of a file's content that a message repeats.
const LONGEST_QUOTE: usize = 200;

/// An error of reading or writing a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The directory for a new run holds something already.
    #[error(
        "cannot record into `{path}`: it is not empty; name a new directory with -o, or remove it"
    )]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// The path of a run is something other than a directory.
    #[error("`{path}` is a file, and a run is a directory: name {}", directory_of(path))]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// Another process records into the directory.
    #[error(
        "cannot record into `{path}`: another whylate is recording there; name another directory \
         with -o"
    )]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// There is no run at that path.
    #[error("there is no run in `{path}`: no run.json; name the directory that a recording wrote")]
    NoRun {
        /// The directory.
        path: PathBuf,
    },
    /// A file or directory could not be created or written.
    #[error("cannot write `{path}`: {}", written(why, *bytes))]
    Write {
        /// The file.
        path: PathBuf,
        /// How much was to be written, where that says something.
        bytes: Option<u64>,
        /// Why not.
        why: io::Error,
    },
    /// A file or directory could not be read.
    #[error("cannot read `{path}`: {why}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: io::Error,
    },
    /// A file is a link, a device or a pipe: a run holds plain files only.
    #[error(
        "cannot read `{path}`: it is not a plain file (a link, device or pipe), and a run holds \
         plain files only"
    )]
    NotAPlainFile {
        /// The file.
        path: PathBuf,
    },
    /// A file is larger than this version takes.
    #[error(
        "cannot read `{path}`: it has {} and the most is {}; it was not written \
         by whylate, or is damaged",
        Bytes(*bytes), Bytes(*limit)
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// A newer version wrote the run.
    #[error(
        "`{path}` has format version {found}, and this whylate reads up to {newest}: update \
         whylate to the version that wrote it, or a newer one"
    )]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest this version reads.
        newest: u32,
    },
    /// A file ends in the middle.
    #[error(
        "`{path}` is truncated: it ends {place}; copy it again from where it was recorded, or \
         read the other files of the run"
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Where.
        place: String,
    },
    /// A file holds something else than it should.
    #[error("`{path}` is damaged or was not written by whylate: {what}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, from the file itself and safe to print.
        what: String,
    },
    /// `run.json` names a file that cannot be one of its directory.
    #[error(
        "`{path}` names the segment `{file}`, which is not the name of a segment; the file was \
         changed by somebody"
    )]
    UnsafeFileName {
        /// The run file.
        path: PathBuf,
        /// The name, safe to print.
        file: String,
    },
    /// A run would be written that could not be read again.
    #[error(
        "cannot write `{path}`: it would not read back ({what}); this is a defect of whylate, \
         please report it"
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Which value, and why.
        what: String,
    },
    /// The interval of a histogram cannot be stored.
    #[error("cannot store a histogram of `{tag}` from {start} s, {length} s long: no such time")]
    BadInterval {
        /// The tag, safe to print.
        tag: String,
        /// Start.
        start: f64,
        /// Length.
        length: f64,
    },
    /// The tag of a histogram cannot be stored.
    #[error(
        "cannot store a histogram under `{tag}`: a tag is 1 to 128 characters without comma, \
         space or line break"
    )]
    BadTag {
        /// The tag, safe to print.
        tag: String,
    },
}

impl ModelError {
    pub(crate) fn write(path: &Path, why: io::Error) -> Self {
        Self::Write { path: path.to_owned(), bytes: None, why }
    }

    pub(crate) fn read(path: &Path, why: io::Error) -> Self {
        Self::Read { path: path.to_owned(), why }
    }

    pub(crate) fn malformed(path: &Path, what: impl AsRef<str>) -> Self {
        Self::Malformed { path: path.to_owned(), what: quote(what.as_ref()) }
    }
}

/// A piece of a file's content that is safe to print and not endless.
pub(crate) fn quote(text: &str) -> String {
    let head: String = text.chars().take(LONGEST_QUOTE).collect();
    let escaped = Printable(&head).to_string();
    let mut quoted: String = escaped.chars().take(LONGEST_QUOTE).collect();
    if quoted.len() < escaped.len() || head.len() < text.len() {
        quoted.push_str("...");
    }
    quoted
}

/// Why a write failed and what to do about it.
/// The directory that a file of a run lies in.
fn directory_of(path: &Path) -> String {
    match path.parent() {
        Some(parent) if parent != Path::new("") => format!("`{}`", parent.display()),
        _ => "the one that it lies in, `.`".to_owned(),
    }
}

fn written(why: &io::Error, bytes: Option<u64>) -> String {
    let size = bytes.map_or(String::new(), |bytes| format!("{} did not fit; ", Bytes(bytes)));
    match why.kind() {
        io::ErrorKind::StorageFull => {
            format!(
                "the disk is full; {size}free some space, or name a directory on another disk with -o"
            )
        }
        io::ErrorKind::QuotaExceeded => {
            format!(
                "the disk quota is used up; {size}free some space, or name a directory on another disk with -o"
            )
        }
        io::ErrorKind::FileTooLarge => {
            "the limit of the size of a file is reached; raise it with `ulimit -f unlimited`"
                .to_owned()
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "the file system is read-only; name a directory on a writable one with -o".to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            format!("{why}; name a directory that you may write to with -o")
        }
        io::ErrorKind::NotFound => {
            format!(
                "{why}; the directory was removed, or its file system takes no new files: name another with -o"
            )
        }
        _ => why.to_string(),
    }
}
