//! Reading small text files below a root directory.
//!
//! Everything of `/proc` and `/sys` is read through here, so that a test can put a tree of its own
//! in the place of the host's. Sizes are bounded; bytes that are not UTF-8 are replaced.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::HostError;

/// Largest file that is read: `/proc/interrupts` of a host with thousands of CPUs stays below.
const MAX_BYTES: u64 = 64 << 20;

/// `absolute` below `root`; with root `/` it is `absolute` itself.
pub(crate) fn under(root: &Path, absolute: &str) -> PathBuf {
    root.join(absolute.trim_start_matches('/'))
}

/// The text of a file.
pub(crate) fn text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The text of a file, with the path in the error.
pub(crate) fn required(path: &Path) -> Result<String, HostError> {
    text(path).map_err(|source| HostError::Read { path: path.to_owned(), source })
}

/// The text of a file without the white space (and NULs, as device trees have them) around it.
pub(crate) fn trimmed(path: &Path) -> Option<String> {
    let text = text(path).ok()?;
    Some(text.trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned())
}
