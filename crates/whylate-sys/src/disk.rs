//! How much room a file system has.
//!
//! [`statvfs(3)`](https://man7.org/linux/man-pages/man3/statvfs.3.html). Capability: none.

use std::path::Path;

use crate::SysError;

/// Bytes that a process without privilege can still write at `path`.
pub fn free_bytes(path: &Path) -> Result<u64, SysError> {
    let volume = rustix::fs::statvfs(path).map_err(|errno| {
        SysError::call("statvfs", format!("ask for the free space at {}", path.display()), errno)
    })?;
    Ok(volume.f_bavail.saturating_mul(volume.f_frsize))
}

/// File systems that keep everything in memory, by the number that `statfs` tells
/// (`include/uapi/linux/magic.h`).
const OF_MEMORY: [(rustix::fs::FsWord, &str); 2] = [(0x0102_1994, "tmpfs"), (0x8584_58f6, "ramfs")];

/// The name of the file system at `path` where it keeps its files in memory alone; none for others,
/// and where it cannot be asked.
///
/// [`statfs(2)`](https://man7.org/linux/man-pages/man2/statfs.2.html).
#[must_use]
pub fn of_memory(path: &Path) -> Option<&'static str> {
    let volume = rustix::fs::statfs(path).ok()?;
    let known = OF_MEMORY.into_iter().find(|(number, _)| *number == volume.f_type);
    known.map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_exists_has_a_size_and_one_that_does_not_is_named() {
        assert!(free_bytes(&std::env::temp_dir()).unwrap() > 0);
        let refusal = free_bytes(Path::new("/nowhere/at/all")).unwrap_err();
        assert!(refusal.to_string().contains("/nowhere/at/all"), "{refusal}");
        assert_eq!(refusal.errno(), Some(crate::Errno::NOENT));
    }

    #[test]
    fn a_file_system_in_memory_is_told_from_others() {
        assert_eq!(of_memory(Path::new("/proc")), None);
        assert_eq!(of_memory(Path::new("/nowhere/at/all")), None);
        // Where it is mounted it is one of memory by its purpose.
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
        if mounts.lines().any(|line| line.contains(" /dev/shm tmpfs ")) {
            assert_eq!(of_memory(Path::new("/dev/shm")), Some("tmpfs"));
        }
    }

    #[test]
    fn a_file_system_without_blocks_has_no_room() {
        assert_eq!(free_bytes(Path::new("/proc")).unwrap(), 0);
    }
}
