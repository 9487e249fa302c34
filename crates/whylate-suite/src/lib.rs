//! One suite at a time on a machine, and the settings that it found there.
//!
//! Tests that measure would measure those of another suite, too. Who runs them holds a lock of the whole
//! machine; a second waits and says so, and the kernel lets go of it with a process that dies. As long as
//! root holds it, the settings that tests may change lie beside it as they were found. Who ends well takes
//! that away; where it lies, a suite was killed, and what still is as a test leaves it is put back. What
//! somebody else has changed since is left alone.
//!
//! Does not know what else was left behind: `cargo xtask mend` does.
//!
//! What tests of every crate share is here as well: how they say what they leave out, and whether the
//! system's clock was set meanwhile.

mod mounts;
mod skips;
mod wall_clock;

use std::fs::{File, Permissions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

pub use mounts::{mounted, tracefs};
pub use skips::{LEFT_OUT, NO_CLAIM, SKIPPED, absent, missing, spoilt};
pub use wall_clock::WallClock;

/// Tells those that a suite starts which process holds the lock: its id and when it began.
pub const HOLDER: &str = "WHYLATE_TESTS_HOLDER";
/// The same path for every user; reading it is all that a lock needs.
const LOCK: &str = "tmp/whylate-tests.lock";
const FOUND: &str = "run/whylate-tests.found";
/// Memory that a machine has as a file system, and the least that it is to hold.
const MEMORY: &str = "/dev/shm";
const LEAST_KIB: u64 = 2 << 20;

/// What tests change of a machine, and what they leave it at when they are killed. Those of the kernel's tracing
/// are called by its usual place, wherever it is mounted.
const SETTINGS: [(&str, Left); 4] = [
    ("proc/sys/kernel/sched_rt_runtime_us", Left::At("-1")),
    ("sys/kernel/tracing/tracing_on", Left::At("0")),
    ("sys/fs/cgroup/cpuset/cpuset.sched_load_balance", Left::At("0")),
    ("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", Left::AtMore),
];

#[derive(Clone, Copy)]
enum Left {
    At(&'static str),
    AtMore,
}

impl Left {
    /// May a test have made this of what was before?
    fn is(self, before: &str, now: &str) -> bool {
        let number = |text: &str| text.parse::<u64>().ok();
        match self {
            Self::At(left) => now == left && before != left,
            Self::AtMore => number(now).zip(number(before)).is_some_and(|(now, was)| now > was),
        }
    }
}

/// The lock. Dropping it lets go of it, and puts back what a test left.
pub struct Held {
    root: PathBuf,
    lock: Option<File>,
}

/// Is this process part of a suite that has the lock?
#[must_use]
pub fn is_held() -> bool {
    std::env::var_os(HOLDER).is_some()
}

/// This process, as [`HOLDER`] says it: its number and when it began, because numbers are used again.
#[must_use]
pub fn this_process() -> String {
    let told = read(Path::new("/proc/self/stat")).unwrap_or_default();
    // Behind the name, which may hold anything.
    let began = told.rsplit(") ").next().and_then(|rest| rest.split_whitespace().nth(19));
    format!("{}-{}", std::process::id(), began.unwrap_or("0"))
}

/// Waits for the lock.
#[must_use]
pub fn hold() -> Held {
    hold_in(Path::new("/"), &say)
}

/// Tells it whoever waits. Not by a macro, whose words a test keeps until it fails.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Puts back, within a suite, what a killed part of it left.
#[allow(dead_code, reason = "rounds of figures are killed, and parts of no other suite")]
pub fn mend(root: &Path) {
    for line in put_back(root) {
        say(&format!("left by what was killed: {line}"));
    }
    remember(root);
}

/// The same of the machine whose files lie below `root`.
pub fn hold_in(root: &Path, say: &dyn Fn(&str)) -> Held {
    let root = root.to_owned();
    let path = root.join(LOCK);
    let lock = match open(&path).and_then(|file| wait_for(file, say)) {
        Ok(lock) => lock,
        Err(error) => {
            say(&format!("two suites at once are not kept apart: {}: {error}", path.display()));
            return Held { root, lock: None };
        }
    };
    for line in put_back(&root) {
        say(&format!("left by a suite that was killed: {line}"));
    }
    remember(&root);
    Held { root, lock: Some(lock) }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.lock.is_some() {
            for line in put_back(&self.root) {
                say(&format!("left by a test: {line}"));
            }
        }
    }
}

/// The folder for temporary files that a suite of this user has for itself: in memory, where what is synced
/// waits for no disk, which the build before may keep busy for minutes; else, or where `TMPDIR` says.
#[must_use]
pub fn folder() -> PathBuf {
    let chosen = std::env::var_os("TMPDIR").is_some();
    let read = |file| std::fs::read_to_string(file).unwrap_or_default();
    let there = in_memory(&read("/proc/self/mounts"), MEMORY, total_kib(&read("/proc/meminfo")));
    if !chosen && there { of_user(&Path::new(MEMORY).join("whylate-t")) } else { folder_on_disk() }
}

/// The same where temporary files lie on this machine, as for whoever measures with it.
#[must_use]
pub fn folder_on_disk() -> PathBuf {
    of_user(&std::env::temp_dir().join("whylate-tests"))
}

/// All places where an earlier suite of this user may have left it.
#[must_use]
pub fn folders() -> Vec<PathBuf> {
    let mut all = vec![folder_on_disk(), of_user(&Path::new(MEMORY).join("whylate-t"))];
    all.dedup();
    all
}

/// The path with this user behind it. Below memory it is as long as below `/tmp`, so that text wraps alike.
fn of_user(path: &Path) -> PathBuf {
    let user = std::fs::metadata("/proc/self").map_or(0, |of| of.uid());
    PathBuf::from(format!("{}-{user}", path.display()))
}

/// Is a file system in memory mounted there that is large enough, on a machine that has twice as much, and may
/// programs be run from it? One without a size of its own has half of the memory.
#[must_use]
pub fn in_memory(mounts: &str, place: &str, memory_kib: u64) -> bool {
    let found = mounts.lines().rev().find_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        (words.get(1) == Some(&place)).then_some(words)
    });
    let Some(words) = found.filter(|words| words.get(2) == Some(&"tmpfs")) else { return false };
    let options: Vec<&str> = words.get(3).unwrap_or(&"ro").split(',').collect();
    let size = options.iter().find_map(|option| option.strip_prefix("size="));
    let kib = size.map_or(Some(memory_kib / 2), |size| size.strip_suffix('k')?.parse().ok());
    !options.iter().any(|option| ["noexec", "ro"].contains(option))
        && memory_kib / 2 >= LEAST_KIB
        && kib.is_some_and(|kib| kib >= LEAST_KIB)
}

fn total_kib(meminfo: &str) -> u64 {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    total.and_then(|text| text.trim().strip_suffix("kB")?.trim().parse().ok()).unwrap_or(0)
}

/// Makes the folder, into which programs without rights write, too.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => is_ours(folder)?,
    }
    std::fs::set_permissions(folder, Permissions::from_mode(0o1777))
}

/// No link, and not somebody else's, who could lead us away.
pub fn is_ours(folder: &Path) -> io::Result<()> {
    let (found, own) = (std::fs::symlink_metadata(folder)?, std::fs::metadata("/proc/self")?);
    if found.is_dir() && found.uid() == own.uid() {
        return Ok(());
    }
    Err(io::Error::other("it is no folder of this user"))
}

/// Opens the file, which may be another user's, or makes it for all.
fn open(path: &Path) -> io::Result<File> {
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        opened => return opened,
    }
    match File::options().read(true).write(true).create_new(true).open(path) {
        Ok(made) => made.set_permissions(Permissions::from_mode(0o644)).map(|()| made),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => File::open(path),
        Err(error) => Err(error),
    }
}

fn wait_for(file: File, say: &dyn Fn(&str)) -> io::Result<File> {
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    let by = holder(&locks, file.metadata()?.ino()).map(|pid| format!(" (process {pid})"));
    say(&format!(
        "another suite runs on this machine{}: waiting for its end",
        by.unwrap_or_default()
    ));
    loop {
        match file.lock() {
            Ok(()) => return Ok(file),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Who locked the file of this number, by `/proc/locks`: `1: FLOCK ADVISORY WRITE 71 fe:00:9 0 EOF`.
#[must_use]
pub fn holder(locks: &str, inode: u64) -> Option<u32> {
    let of_file = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = words.get(5).and_then(|file| file.rsplit(':').next()?.parse::<u64>().ok());
        words.get(1) == Some(&"FLOCK") && number == Some(inode)
    };
    locks.lines().find(of_file)?.split_whitespace().nth(4)?.parse().ok()
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// After a reboot nothing is as it was.
fn boot(root: &Path) -> String {
    let id = read(&root.join("proc/sys/kernel/random/boot_id"));
    format!("boot {}", id.unwrap_or_default())
}

/// Writes down what there is; what an earlier suite found stands. Only root can, and only root's tests can
/// change anything.
fn remember(root: &Path) {
    let values = SETTINGS.iter().filter_map(|(path, _)| {
        read(&mounts::place(root, path)?).map(|value| format!("{path} {value}\n"))
    });
    let text = format!("{}\n{}", boot(root), values.collect::<String>());
    let file = File::options().write(true).create_new(true).open(root.join(FOUND));
    let _ = file.and_then(|mut file| file.write_all(text.as_bytes()));
}

/// Puts back what was found; a line for each setting that a test had left.
fn put_back(root: &Path) -> Vec<String> {
    let found = root.join(FOUND);
    let Some(text) = read(&found) else { return Vec::new() };
    let mut told = Vec::new();
    let mut stands = false;
    if text.lines().next() == Some(&boot(root)) {
        for (path, left) in SETTINGS {
            let value = text.lines().find_map(|line| line.strip_prefix(path)?.strip_prefix(' '));
            let Some(file) = mounts::place(root, path) else { continue };
            let Some((before, now)) = value.zip(read(&file)) else { continue };
            if left.is(before, &now) {
                let written = std::fs::write(&file, before);
                let reads = read(&file).unwrap_or_default();
                let outcome = match written {
                    Ok(()) if reads == before => format!("is {before} again"),
                    Ok(()) => format!("cannot be put back to {before}: it reads {reads}"),
                    Err(error) => format!("cannot be put back to {before}: {error}"),
                };
                stands |= reads != before;
                let shown = file.strip_prefix(root).unwrap_or(&file).display();
                told.push(format!("/{shown} was {now}, {outcome}"));
            }
        }
    }
    // What could not be put back is tried again by the next.
    if !stands {
        let _ = std::fs::remove_file(&found);
    }
    told
}
