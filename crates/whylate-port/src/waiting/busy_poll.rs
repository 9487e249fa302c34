//! Asking the kernel to look at the receiving queue of the network port at each look.
//!
//! The kernel takes the wish from any socket; whether it does anything shows only in messages that
//! came through a queue that can be polled ([`BusyPolling`]).

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use whylate_sys::socket_options;

use crate::error::PortError;

/// How long one look may take, in microseconds: the value that the kernel's documentation advises.
const LOOK_US: u32 = 50;

/// Whether busy-polling does anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BusyPolling {
    /// It was not asked for.
    NotAsked,
    /// It was asked for, and no message has come through a queue that can be polled: it is spinning.
    NoQueue,
    /// The last message came through this queue (its NAPI id), which the kernel polls.
    Queue(u32),
}

/// Asks for it.
pub(crate) fn ask(socket: &OwnedFd, backend: &'static str) -> Result<(), PortError> {
    socket_options::set_busy_poll(socket, LOOK_US).map_err(|errno| match errno {
        Errno::PERM => PortError::BusyPollDenied { backend },
        errno => PortError::Option { backend, what: "busy polling", errno },
    })?;
    // Kernels before 5.11 have no such wish, and poll without it.
    match socket_options::prefer_busy_poll(socket) {
        Ok(()) | Err(Errno::NOPROTOOPT | Errno::PERM) => Ok(()),
        Err(errno) => Err(PortError::Option { backend, what: "preferred busy polling", errno }),
    }
}

/// What became of it.
pub(crate) fn outcome(socket: &OwnedFd) -> BusyPolling {
    match socket_options::incoming_napi(socket) {
        Ok(Some(id)) => BusyPolling::Queue(id),
        _ => BusyPolling::NoQueue,
    }
}
