//! What a test needs and may not have: such a test says so instead of passing unseen.

use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};
use whylate_suite::missing;

/// A small file system in memory, unmounted when dropped.
pub(crate) struct SmallDisk {
    place: tempfile::TempDir,
}

impl SmallDisk {
    /// Mounts one, or reports the calling test as skipped.
    pub(crate) fn mount(test: &str, bytes: u64) -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        let options = std::ffi::CString::new(format!("size={bytes}")).unwrap();
        match mount("whylate-test", place.path(), "tmpfs", MountFlags::empty(), &*options) {
            Ok(()) => Some(Self { place }),
            Err(errno) => {
                missing(&format!("{test}: cannot mount a small disk ({errno}); run as root"));
                None
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.place.path()
    }

    pub(crate) fn make_read_only(&self) {
        mount_remount(self.path(), MountFlags::RDONLY, "").unwrap();
    }

    /// Uses up what room is left; removing the file gives it back.
    pub(crate) fn fill(&self) -> PathBuf {
        use std::io::Write;
        let path = self.path().join("filler");
        let mut file = std::fs::File::create(&path).unwrap();
        while file.write_all(&[0x5a; 4096]).is_ok() {}
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if let Err(errno) = unmount(self.path(), UnmountFlags::DETACH) {
            eprintln!("cannot unmount {}: {errno}", self.path().display());
        }
    }
}
