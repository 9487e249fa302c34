//! The folder for temporary files that a suite has for itself, so that all in it is its own.
//!
//! Tests and what they run, a browser too, make their temporary files where `TMPDIR` says. What lies there
//! when no suite runs was left by a killed one.

use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::room;

/// Memory that a machine has as a file system: what tests sync there waits for no disk, which a build before
/// them may keep busy for minutes.
const MEMORY: &str = "/dev/shm";
/// The least it is to hold.
const LEAST_KIB: u64 = 2 << 20;

/// This user's folder.
pub(crate) fn folder() -> PathBuf {
    let chosen = std::env::var_os("TMPDIR").is_some();
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let in_memory = !chosen && holds_programs(&mounts, MEMORY) && is_large(MEMORY);
    of_user(if in_memory { PathBuf::from(MEMORY) } else { std::env::temp_dir() })
}

/// All places where an earlier suite of this user may have had it.
pub(super) fn folders() -> Vec<PathBuf> {
    let mut all = vec![of_user(std::env::temp_dir()), of_user(PathBuf::from(MEMORY))];
    all.dedup();
    all
}

fn of_user(place: PathBuf) -> PathBuf {
    let user = std::fs::metadata("/proc/self").map_or(0, |of| of.uid());
    place.join(format!("whylate-tests-{user}"))
}

/// Is a file system in memory mounted there, from which programs may be run?
pub(super) fn holds_programs(mounts: &str, place: &str) -> bool {
    let found = mounts.lines().rev().find_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        (words.get(1) == Some(&place)).then_some(words)
    });
    found.is_some_and(|words| {
        let mut options = words.get(3).unwrap_or(&"ro").split(',');
        words.get(2) == Some(&"tmpfs") && options.all(|option| !["noexec", "ro"].contains(&option))
    })
}

/// By its whole size and that of the memory, which do not change while a suite runs.
fn is_large(place: &str) -> bool {
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = memory.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let total = total.and_then(|text| text.trim().trim_end_matches("kB").trim().parse().ok());
    total.is_some_and(|kib: u64| kib >= 2 * LEAST_KIB)
        && room::size_kib(Path::new(place)).is_some_and(|kib| kib >= LEAST_KIB)
}

/// Makes the folder, into which programs without rights write, too.
pub(crate) fn make(folder: &Path) -> io::Result<()> {
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => is_ours(folder)?,
    }
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o1777))
}

/// No link, and not somebody else's, who could lead us away.
fn is_ours(folder: &Path) -> io::Result<()> {
    let (found, own) = (std::fs::symlink_metadata(folder)?, std::fs::metadata("/proc/self")?);
    if found.is_dir() && found.uid() == own.uid() {
        return Ok(());
    }
    Err(io::Error::other("it is no folder of this user"))
}

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
