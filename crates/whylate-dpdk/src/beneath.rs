//! The interface of the kernel that a device of DPDK takes its frames from: what became of it in the run. The
//! drivers do not tell, their link stays up and nothing comes.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::netdevice::{index_to_name, name_to_index};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use whylate_port::PortError;
use whylate_port::link::DELETED;
use whylate_sys::interface::is_up;

/// The kernel takes an interface down before it deletes it: how often and how far apart it is asked which of
/// the two it is.
const LOOKS: u32 = 100;
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// An interface, asked after in the namespace in which its device was opened.
#[derive(Debug)]
pub(crate) struct Beneath {
    name: String,
    index: u32,
    socket: OwnedFd,
    /// The last time that it was asked after.
    was_up: AtomicBool,
}

impl Beneath {
    /// The interface of this name in the calling thread's namespace; none where it is not there.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None).ok()?;
        let index = name_to_index(&socket, name).ok()?;
        let was_up = AtomicBool::new(true);
        Some(Self { name: name.to_owned(), index, socket, was_up })
    }

    /// What became of it where it is not there or not switched on, whatever it is called now. One that was up
    /// the last time is waited for, so that a deletion is told from a link that only went down.
    #[cold]
    pub(crate) fn lost(&self) -> Option<PortError> {
        let up = |now: String| is_up(self.socket.as_fd(), &now).unwrap_or(false);
        if self.name_now().is_some_and(up) {
            self.was_up.store(true, Ordering::Relaxed);
            return None;
        }
        let looks = if self.was_up.swap(false, Ordering::Relaxed) { LOOKS } else { 0 };
        for _ in 0..looks {
            if self.name_now().is_none() {
                break;
            }
            thread::sleep(LOOK_AGAIN);
        }
        let what = if self.name_now().is_none() { DELETED } else { "went down" };
        Some(PortError::LinkLost { name: self.name.clone(), what, errno: Errno::NETDOWN })
    }

    fn name_now(&self) -> Option<String> {
        index_to_name(&self.socket, self.index).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_there_is_up_and_one_that_is_gone_was_deleted() {
        let lo = Beneath::named("lo").unwrap();
        let up = is_up(lo.socket.as_fd(), "lo").unwrap();
        assert_eq!(lo.lost().is_none(), up);
        assert!(Beneath::named("nosuchport").is_none());
        // No interface has such a number.
        let gone = Beneath { index: i32::MAX as u32, ..lo };
        assert!(gone.lost().is_some_and(|error| error.is_link_deleted()));
    }
}
