//! Tables of execution times: the one place where a set reads a file.

use std::io::Read;
use std::path::{Path, PathBuf};

/// A million rows.
const LARGEST: u64 = 16 << 20;

/// The text of a table; a relative name counts from `base`.
pub fn read(base: Option<&Path>, name: &str) -> Result<String, String> {
    let path = base.map_or_else(|| PathBuf::from(name), |base| base.join(name));
    let said = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let file = std::fs::File::open(&path).map_err(said)?;
    let mut text = String::new();
    let read = file.take(LARGEST + 1).read_to_string(&mut text).map_err(said)?;
    if read as u64 > LARGEST {
        return Err(format!("{} is larger than {} MiB", path.display(), LARGEST >> 20));
    }
    Ok(text)
}
