//! sysfs as the calling thread's network namespace has it.
//!
//! [`fsopen(2)`](https://man7.org/linux/man-pages/man2/fsopen.2.html),
//! [`fsmount(2)`](https://man7.org/linux/man-pages/man2/fsmount.2.html). What `/sys` shows of network
//! interfaces is the namespace in which it was mounted. Capability: `CAP_SYS_ADMIN`.

use std::path::PathBuf;

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// A mount of sysfs that is attached to no path: it ends with this.
#[derive(Debug)]
pub struct Sysfs(OwnedFd);

impl Sysfs {
    /// Of the calling thread's network namespace.
    pub fn of_this_namespace() -> Result<Self, Errno> {
        let context = fsopen("sysfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes).map(Self)
    }

    /// Where this process finds it, for as long as this lives.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_mount_shows_the_interfaces_of_the_calling_threads_namespace() {
        let sysfs = match Sysfs::of_this_namespace() {
            Ok(sysfs) => sysfs,
            Err(errno) => return crate::tests::skip(&errno),
        };
        let shown = std::fs::read_dir(sysfs.path().join("class/net")).unwrap().flatten();
        let mut shown: Vec<String> =
            shown.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        let mut all: Vec<String> =
            crate::interface::all().unwrap().into_iter().map(|one| one.name).collect();
        // A file there is none: bonding_masters.
        shown.retain(|name| sysfs.path().join("class/net").join(name).is_dir());
        shown.sort_unstable();
        all.sort_unstable();
        assert_eq!(shown, all);
    }
}
