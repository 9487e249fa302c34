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
    fn a_file_system_without_blocks_has_no_room() {
        assert_eq!(free_bytes(Path::new("/proc")).unwrap(), 0);
    }
}
