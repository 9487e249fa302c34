//! Reading small text files below a root directory.
//!
//! Everything of `/proc` and `/sys` is read through here, so that a test can put a tree of its own
//! in the place of the host's. Sizes are bounded, and nothing but a plain file is waited for. In
//! tables bytes that are not UTF-8 are replaced; a setting that holds any is none.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::error::HostError;

/// Largest file that is read: `/proc/interrupts` of a host with thousands of CPUs stays below.
const MAX_BYTES: u64 = 64 << 20;

/// `absolute` below `root`; with root `/` it is `absolute` itself.
pub(crate) fn under(root: &Path, absolute: &str) -> PathBuf {
    root.join(absolute.trim_start_matches('/'))
}

/// Opens a plain file: a collected tree may hold a pipe, at which an ordinary `open` would wait.
pub(crate) fn open_plain(path: &Path) -> io::Result<File> {
    let file = File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain file"))
    }
}

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_plain(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text of a file.
pub(crate) fn text(path: &Path) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&bytes(path)?).into_owned())
}

/// The text of a file, with the path in the error.
pub(crate) fn required(path: &Path) -> Result<String, HostError> {
    text(path).map_err(|source| HostError::Read { path: path.to_owned(), source })
}

/// The text of a file without the white space (and NULs, as device trees have them) around it;
/// `None` where it cannot be read or is no text.
pub(crate) fn trimmed(path: &Path) -> Option<String> {
    let text = String::from_utf8(bytes(path).ok()?).ok()?;
    Some(text.trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned())
}
