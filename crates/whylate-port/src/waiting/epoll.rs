//! Waiting by `epoll_pwait2` before receiving.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use whylate_model::Nanos;
use whylate_sys::epoll::{Epoll, READY};

use crate::error::PortError;
use crate::waiting::Wait;

/// One socket as an epoll instance sees it.
#[derive(Debug)]
pub(crate) struct Watched(Epoll);

impl Watched {
    pub(crate) fn new(socket: &OwnedFd) -> Result<Self, PortError> {
        let made = Epoll::new().and_then(|epoll| epoll.watch(socket, 0).map(|()| epoll));
        made.map(Self).map_err(|source| PortError::Wait { wait: Wait::Epoll, source })
    }

    /// Can it be read within the limit?
    #[inline]
    pub(crate) fn is_ready(&mut self, limit: Nanos) -> Result<bool, Errno> {
        let told = self.0.wait_ready(limit.0, &mut [0; READY]);
        told.map(|count| count > 0).map_err(|error| error.errno().unwrap_or(Errno::IO))
    }
}
