//! Finding tracefs where it is mounted, or mounting it for this process alone.
//!
//! [`fsopen(2)`](https://man7.org/linux/man-pages/man2/fsopen.2.html),
//! [`fsmount(2)`](https://man7.org/linux/man-pages/man2/fsmount.2.html).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, StatVfsMountFlags, fstatfs, fstatvfs, openat};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::{Place, TracefsRefusal};

/// `TRACEFS_MAGIC` of `linux/magic.h`.
const MAGIC: u64 = 0x7472_6163;
/// The usual places first. The second appears in the list of mounts only once it was entered.
const USUAL: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

pub(super) fn find() -> Result<(OwnedFd, Place), TracefsRefusal> {
    let mut denied = None;
    let mut read_only = None;
    for path in candidates(&mounts()) {
        match open_mounted(&path) {
            Ok(Some(Mounted { folder, writable: true })) => {
                return Ok((folder, Place::Mounted(path)));
            }
            Ok(Some(Mounted { folder, writable: false })) => {
                read_only.get_or_insert((folder, Place::Mounted(path)));
            }
            Ok(None) | Err(Errno::NOENT) => {}
            Err(errno) => {
                denied.get_or_insert(TracefsRefusal::Denied { path, errno });
            }
        }
    }
    mount_privately().or_else(|refusal| read_only.ok_or(denied.unwrap_or(refusal)))
}

/// A mount of tracefs that is attached to no path: no other process sees it, and it ends when its
/// last file is closed.
pub(super) fn mount_privately() -> Result<(OwnedFd, Place), TracefsRefusal> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC).map_err(|errno| match errno {
        Errno::PERM | Errno::ACCESS => TracefsRefusal::MayNotMount,
        Errno::NODEV => TracefsRefusal::NotBuilt,
        Errno::NOSYS => TracefsRefusal::CannotMountPrivately,
        errno => TracefsRefusal::MountFailed { call: "fsopen", errno },
    })?;
    fsconfig_create(&context).map_err(|errno| match errno {
        Errno::PERM | Errno::ACCESS => TracefsRefusal::MayNotMount,
        errno => TracefsRefusal::MountFailed { call: "fsconfig", errno },
    })?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let folder = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
        .map_err(|errno| TracefsRefusal::MountFailed { call: "fsmount", errno })?;
    Ok((folder, Place::Private))
}

struct Mounted {
    folder: OwnedFd,
    writable: bool,
}

/// `None` where something else lies at `path`, such as the empty folder that waits for a mount.
fn open_mounted(path: &Path) -> Result<Option<Mounted>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(CWD, path, flags, Mode::empty())?;
    if fstatfs(&folder)?.f_type as u64 != MAGIC {
        return Ok(None);
    }
    let writable = !fstatvfs(&folder)?.f_flag.contains(StatVfsMountFlags::RDONLY);
    Ok(Some(Mounted { folder, writable }))
}

/// Of the calling thread: threads may have mounts of their own.
fn mounts() -> Vec<u8> {
    std::fs::read("/proc/thread-self/mounts").unwrap_or_default()
}

/// The places to look at: the usual ones, then whatever the list of mounts names.
fn candidates(mounts: &[u8]) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = USUAL.map(PathBuf::from).into();
    for path in mounts.split(|byte| *byte == b'\n').filter_map(tracefs_mount) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// Where a line of [`proc_pid_mounts(5)`](https://man7.org/linux/man-pages/man5/proc_pid_mounts.5.html)
/// mounts tracefs, if it does.
fn tracefs_mount(line: &[u8]) -> Option<PathBuf> {
    let mut fields = line.split(|byte| *byte == b' ').skip(1);
    let (path, kind) = (fields.next()?, fields.next()?);
    (kind == b"tracefs").then(|| PathBuf::from(OsString::from_vec(unescape(path))))
}

/// Spaces, tabs, line ends and backslashes are written as `\ooo`.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let code = (byte == b'\\').then(|| after.get(..3).and_then(octal)).flatten();
        plain.push(code.unwrap_or(byte));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    plain
}

fn octal(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_places_come_before_those_that_are_mounted_elsewhere() {
        let mounts = b"proc /proc proc rw 0 0\n\
            none /mnt/a\\040b\\134c tracefs rw,relatime 0 0\n\
            tracefs /sys/kernel/tracing tracefs rw 0 0\n\
            tracefs\n\n";
        let paths = candidates(mounts);
        let expected = [USUAL[0], USUAL[1], "/mnt/a b\\c"].map(PathBuf::from);
        assert_eq!(paths, expected);
    }

    #[test]
    fn a_backslash_that_escapes_nothing_stays() {
        assert_eq!(unescape(b"a\\"), b"a\\");
        assert_eq!(unescape(b"\\9z9\\04"), b"\\9z9\\04");
        assert_eq!(unescape(b"\\011\\012"), b"\t\n");
    }

    #[test]
    fn a_folder_that_is_not_tracefs_is_passed_over() {
        assert!(open_mounted(Path::new("/proc")).unwrap().is_none());
        assert!(matches!(open_mounted(Path::new("/nowhere")), Err(Errno::NOENT)));
    }
}
