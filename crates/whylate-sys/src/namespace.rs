//! Which namespaces this process is in.
//!
//! [namespaces(7)](https://man7.org/linux/man-pages/man7/namespaces.7.html); needs no privilege.
//! [setns(2)](https://man7.org/linux/man-pages/man2/setns.2.html); needs `CAP_SYS_ADMIN`.

use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::SysError;

/// Inode of the first PID namespace, `PROC_PID_INIT_INO` of `linux/proc_ns.h`.
const FIRST_OF_PIDS: u64 = 0xEFFF_FFFC;

/// Does this process see thread ids as the kernel itself counts them? True where nothing tells.
#[must_use]
pub fn is_first_of_pids() -> bool {
    std::fs::metadata("/proc/self/ns/pid").map_or(true, |at| at.ino() == FIRST_OF_PIDS)
}

/// Moves the calling thread into the network namespace that is mounted at `path`, or is the one of
/// a process (`/proc/PID/ns/net`). Threads that it starts afterwards are born there.
pub fn enter_network(path: &Path) -> Result<(), SysError> {
    let what = || format!("enter the network namespace {}", path.display());
    let file = std::fs::File::open(path).map_err(|error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        SysError::call("open", what(), errno)
    })?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).map_err(|errno| {
        let advice = match errno {
            Errno::PERM => "it needs CAP_SYS_ADMIN: run as root",
            Errno::INVAL => "that is no network namespace",
            _ => "",
        };
        SysError::advised("setns", what(), errno, advice)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_network_namespace_is_refused_by_name() {
        let refusal = enter_network(Path::new("/nowhere/at/all")).unwrap_err();
        assert!(refusal.to_string().contains("/nowhere/at/all"), "{refusal}");
        let refusal = enter_network(Path::new("/proc/self/ns/pid")).unwrap_err();
        assert!(matches!(refusal.errno(), Some(Errno::INVAL | Errno::PERM)), "{refusal}");
    }

    #[test]
    fn the_first_namespace_is_the_one_that_has_the_kernels_own_threads() {
        // Kernel threads are seen only from the first namespace; 2 is kthreadd there.
        let kthreadd = std::fs::read_to_string("/proc/2/comm");
        assert_eq!(is_first_of_pids(), kthreadd.is_ok_and(|name| name == "kthreadd\n"));
    }
}
