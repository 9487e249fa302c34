//! Which namespaces this process is in.
//!
//! [namespaces(7)](https://man7.org/linux/man-pages/man7/namespaces.7.html); needs no privilege.
//! [setns(2)](https://man7.org/linux/man-pages/man2/setns.2.html); needs `CAP_SYS_ADMIN`.

use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

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

/// Makes a network namespace and mounts it at `path`, an empty file that must exist: it lives as
/// long as the mount, or somebody inside it. No thread of this process is in it afterwards. Needs
/// `CAP_SYS_ADMIN`.
pub fn make_network(path: &Path) -> Result<(), SysError> {
    let what = || format!("make the network namespace {}", path.display());
    let make = || {
        own_network(&what)?;
        // Of the calling thread: the process as a whole stays where it is.
        rustix::mount::mount_bind("/proc/thread-self/ns/net", path)
            .map_err(|errno| SysError::call("mount", what(), errno))
    };
    // A thread of its own, which ends in the new namespace and takes nobody along.
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .spawn_scoped(scope, make)
            .map_err(|error| {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::AGAIN);
                SysError::call("clone", what(), errno)
            })?
            .join()
            .unwrap_or_else(|_| Err(SysError::invalid(what(), "the thread for it panicked")))
    })
}

/// Moves the calling thread into a new network namespace without a name, which goes with it and with what
/// it starts there. Needs `CAP_SYS_ADMIN`.
pub fn leave_network() -> Result<(), SysError> {
    own_network(&|| "make a network namespace".to_owned())
}

fn own_network(what: &dyn Fn() -> String) -> Result<(), SysError> {
    // SAFETY: of what a thread shares with others only its network namespace is replaced, to which no
    // memory and no open file belongs.
    let made = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) };
    made.map_err(|errno| {
        let advice = if errno == Errno::PERM { "it needs CAP_SYS_ADMIN: run as root" } else { "" };
        SysError::advised("unshare", what(), errno, advice)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_made_entered_by_one_thread_and_gone_with_its_mount() {
        let place = std::env::temp_dir().join(format!("whylate-net-{}", std::process::id()));
        std::fs::write(&place, "").unwrap();
        if let Err(refusal) = make_network(&place) {
            std::fs::remove_file(&place).unwrap();
            return whylate_suite::missing(&refusal);
        }
        let own = || std::fs::metadata("/proc/thread-self/ns/net").unwrap().ino();
        let (before, made) = (own(), std::fs::metadata(&place).unwrap().ino());
        let entered = std::thread::scope(|scope| {
            let enter = || enter_network(&place).map(|()| own());
            scope.spawn(enter).join().unwrap()
        });
        rustix::mount::unmount(&place, rustix::mount::UnmountFlags::DETACH).unwrap();
        std::fs::remove_file(&place).unwrap();
        assert_eq!(entered.unwrap(), made);
        assert_ne!(made, before);
        assert_eq!(own(), before, "the other threads stay where they are");
    }

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
