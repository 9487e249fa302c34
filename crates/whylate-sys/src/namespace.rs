//! Which namespaces this process is in.
//!
//! [namespaces(7)](https://man7.org/linux/man-pages/man7/namespaces.7.html); needs no privilege.

use std::os::unix::fs::MetadataExt;

/// Inode of the first PID namespace, `PROC_PID_INIT_INO` of `linux/proc_ns.h`.
const FIRST_OF_PIDS: u64 = 0xEFFF_FFFC;

/// Does this process see thread ids as the kernel itself counts them? True where nothing tells.
#[must_use]
pub fn is_first_of_pids() -> bool {
    std::fs::metadata("/proc/self/ns/pid").map_or(true, |at| at.ino() == FIRST_OF_PIDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_namespace_is_the_one_that_has_the_kernels_own_threads() {
        // Kernel threads are seen only from the first namespace; 2 is kthreadd there.
        let kthreadd = std::fs::read_to_string("/proc/2/comm");
        assert_eq!(is_first_of_pids(), kthreadd.is_ok_and(|name| name == "kthreadd\n"));
    }
}
