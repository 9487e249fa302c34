//! The folder for temporary files that a suite has for itself, so that all in it is its own.
//!
//! Tests and what they run, a browser too, make their temporary files where `TMPDIR` says. What lies there
//! when no suite runs was left by a killed one.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::suite::is_ours;

/// Empties the folder; a line for what was in it.
pub(super) fn clear(folder: &Path) -> Vec<String> {
    let shown = folder.display();
    if !folder.exists() {
        return Vec::new();
    }
    if let Err(error) = is_ours(folder) {
        return vec![format!("{shown} is left alone: {error}")];
    }
    let mut told = Vec::new();
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    // Nothing that is mounted below is emptied, too.
    for place in mounted_below(&mounts, folder) {
        let done = Command::new("umount").arg("--lazy").arg(&place).status();
        if !done.is_ok_and(|status| status.success()) {
            return vec![format!("cannot unmount {}: {shown} is left as it is", place.display())];
        }
        told.push(format!("unmounted {}", place.display()));
    }
    let left = super::entries(folder);
    if !left.is_empty() {
        let what = format!("{} temporary files and folders in {shown}", left.len());
        let remove = |path: &PathBuf| {
            if path.symlink_metadata()?.is_dir() {
                std::fs::remove_dir_all(path)
            } else {
                std::fs::remove_file(path)
            }
        };
        told.push(super::outcome(&what, left.iter().try_for_each(remove)));
    }
    let _ = std::fs::remove_dir(folder);
    told
}

/// Places below the folder at which something is mounted, the last mounted first.
pub(super) fn mounted_below(mounts: &str, folder: &Path) -> Vec<PathBuf> {
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    let mut below: Vec<PathBuf> = places
        .map(PathBuf::from)
        .filter(|place| place != folder && place.starts_with(folder))
        .collect();
    below.reverse();
    below
}
