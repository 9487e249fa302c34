//! Private beds of network namespaces: their names, where they lie, and how one goes.
//!
//! A bed `NAME` has three network namespaces, mounted in [`MOUNTS`] as other tools expect them:
//! `whylate-NAME-client`, `-device`, `-server`. Its notes lie in a directory of their own
//! ([`notes`]). Taking a bed down removes exactly these: it ends the processes that were started
//! for the bed, which live in one of its namespaces and work in that directory; whoever else is
//! inside is left alone.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::Signal;
use whylate_model::Pid;

use crate::journal::Outcome;
use crate::tasks::Task;

/// Where network namespaces with names are mounted.
pub const MOUNTS: &str = "/run/netns";
/// Where the notes of beds lie; only root makes beds.
const NOTES: &str = "/run/whylate/lab";
/// Directory below the notes for processes of the bed.
const RUN: &str = "run";
/// Longest name: with what stands around it, it stays readable in a table.
const LONGEST_NAME: usize = 24;
/// A process that was told to end is asked this often whether it has.
const ASKED: u32 = 100;
const BETWEEN: Duration = Duration::from_millis(20);

/// A part of a bed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Sends requests and load.
    Client,
    /// What lies between: nothing, a bridge, a switch.
    Device,
    /// Answers.
    Server,
}

impl Role {
    /// All, in the order in which packets meet them.
    pub const ALL: [Self; 3] = [Self::Client, Self::Device, Self::Server];

    /// Its word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Device => "device",
            Self::Server => "server",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|role| role.name() == text);
        known.ok_or_else(|| format!("`{text}` is no part of a bed: client, device or server"))
    }
}

/// Is this a name that a bed can have: small letters, digits and dashes?
#[must_use]
pub fn is_name(name: &str) -> bool {
    let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name.bytes().all(|b| letter(b) || b == b'-')
        && name.bytes().next().is_some_and(letter)
}

/// The name of the namespace, as `ip netns` shows it.
#[must_use]
pub fn namespace(name: &str, role: Role) -> String {
    format!("whylate-{name}-{}", role.name())
}

/// Where the namespace is mounted.
#[must_use]
pub fn mount_point(name: &str, role: Role) -> PathBuf {
    Path::new(MOUNTS).join(namespace(name, role))
}

/// The directory of its notes.
#[must_use]
pub fn notes(name: &str) -> PathBuf {
    Path::new(NOTES).join(name)
}

/// The directory in which processes of the bed work. Their command lines name it: by that they are
/// known when the bed is taken down.
#[must_use]
pub fn run_directory(name: &str) -> PathBuf {
    notes(name).join(RUN)
}

/// Names of all beds of which anything exists.
#[must_use]
pub fn all() -> Vec<String> {
    let listed = |directory: &str| -> Vec<String> {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    };
    let mut found: Vec<String> = listed(NOTES).into_iter().filter(|name| is_name(name)).collect();
    for namespace in listed(MOUNTS) {
        let Some((name, role)) =
            namespace.strip_prefix("whylate-").and_then(|rest| rest.rsplit_once('-'))
        else {
            continue;
        };
        if Role::ALL.iter().any(|known| known.name() == role) && is_name(name) {
            found.push(name.to_owned());
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Waits until no other process sets a bed up or takes one down, and keeps others from it as long as
/// the result lives: of two that want one name at the same instant the second finds the bed there.
/// The kernel lets go of it with a process that dies.
pub fn one_at_a_time() -> io::Result<File> {
    std::fs::create_dir_all(NOTES)?;
    let directory = File::open(NOTES)?;
    loop {
        match rustix::fs::flock(&directory, FlockOperation::LockExclusive) {
            Err(rustix::io::Errno::INTR) => {}
            locked => return locked.map(|()| directory).map_err(io::Error::from),
        }
    }
}

/// Does anything of this bed exist?
#[must_use]
pub fn exists(name: &str) -> bool {
    let mounted = Role::ALL.iter().any(|role| mount_point(name, *role).exists());
    mounted || notes(name).exists()
}

/// Processes in a namespace of the bed, with their names.
#[must_use]
pub fn processes(name: &str, role: Role) -> Vec<(Pid, String)> {
    let Some(ours) = identity(&mount_point(name, role)) else { return Vec::new() };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut found: Vec<(Pid, String)> = pids
        .filter(|pid| identity(Path::new(&format!("/proc/{pid}/ns/net"))) == Some(ours))
        .filter_map(|pid| Task::read(Pid(pid)).filter(|task| !task.dead))
        .map(|task| (task.tid, task.comm))
        .collect();
    found.sort_unstable_by_key(|(pid, _)| pid.0);
    found
}

/// Device and inode tell a namespace from all others.
fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|at| (at.dev(), at.ino()))
}

/// Ends what was started for the bed, and removes its namespaces and its notes.
#[must_use]
pub fn remove(name: &str) -> Outcome {
    if !is_name(name) {
        return Outcome::Failed { why: format!("`{name}` is no name of a bed") };
    }
    if !exists(name) {
        return Outcome::Gone;
    }
    end_processes(name);
    for role in Role::ALL {
        if let Err(error) = remove_namespace(&mount_point(name, role)) {
            let why = format!("{}: {error}", namespace(name, role));
            return Outcome::Failed { why };
        }
    }
    match std::fs::remove_dir_all(notes(name)) {
        Ok(()) => Outcome::Restored,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Outcome::Restored,
        Err(error) => Outcome::Failed { why: error.to_string() },
    }
}

/// A namespace whose name is gone lives on only as long as processes are in it.
fn remove_namespace(path: &Path) -> io::Result<()> {
    match unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
        // A plain file: it died between making the file and mounting on it.
        Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Ends the processes that live in a namespace of the bed and name its directory.
fn end_processes(name: &str) {
    let directory = format!("{}/", run_directory(name).display());
    let is_ours = |pid: &Pid| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(&directory)
    };
    let inside = || -> Vec<Pid> {
        let all = Role::ALL.iter().flat_map(|role| processes(name, *role));
        all.map(|(pid, _)| pid).filter(is_ours).collect()
    };
    for signal in [Signal::TERM, Signal::KILL] {
        for pid in inside() {
            if let Some(pid) = rustix::process::Pid::from_raw(pid.0) {
                // It may have ended meanwhile.
                let _ = rustix::process::kill_process(pid, signal);
            }
        }
        for _ in 0..ASKED {
            if inside().is_empty() {
                return;
            }
            std::thread::sleep(BETWEEN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_plain_words() {
        for good in ["a", "lab", "two-words", "9", "x-1"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "-a", "A", "a/b", "..", "a b", "a.b", "\u{e4}", &"a".repeat(25)] {
            assert!(!is_name(bad), "{bad}");
            assert!(!remove(bad).settled(), "{bad}");
        }
    }

    #[test]
    fn a_bed_that_never_was_is_gone_and_has_nobody_inside() {
        assert!(!exists("never-was"));
        assert_eq!(remove("never-was"), Outcome::Gone);
        assert_eq!(processes("never-was", Role::Client), []);
    }

    #[test]
    fn this_process_is_found_by_its_namespace() {
        let own = identity(Path::new("/proc/self/ns/net"));
        assert!(own.is_some());
        assert_eq!(own, identity(Path::new(&format!("/proc/{}/ns/net", std::process::id()))));
    }
}
