//! Waiting inside the receiving system call, by its time-out (`SO_RCVTIMEO`).

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt;
use whylate_model::Nanos;

/// A blocking wait is never shorter: a time-out of 0 would mean none.
const SHORTEST: Nanos = Nanos(1_000);

/// The time-out that a socket has at present.
#[derive(Debug, Default)]
pub(crate) struct Timeout(Option<Nanos>);

impl Timeout {
    /// Gives the socket this time-out. One system call a message: it is set only when it changes.
    #[inline]
    pub(crate) fn set(&mut self, socket: &OwnedFd, limit: Nanos) -> Result<(), Errno> {
        let limit = limit.max(SHORTEST);
        if self.0 != Some(limit) {
            let timeout = Some(Duration::from_nanos(limit.0));
            sockopt::set_socket_timeout(socket, sockopt::Timeout::Recv, timeout)?;
            self.0 = Some(limit);
        }
        Ok(())
    }
}
