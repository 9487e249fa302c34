//! Waiting by `ppoll` before receiving.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use whylate_model::Nanos;
use whylate_sys::poll::PollSet;

/// One socket as `ppoll` sees it.
#[derive(Debug)]
pub(crate) struct Watched(PollSet);

impl Watched {
    pub(crate) fn new(socket: &OwnedFd) -> Self {
        let mut set = PollSet::with_room(1);
        set.watch(socket, 0);
        Self(set)
    }

    /// Can it be read within the limit?
    #[inline]
    pub(crate) fn is_ready(&mut self, limit: Nanos) -> Result<bool, Errno> {
        let told = self.0.wait_ready(limit.0, &mut [0]);
        told.map(|count| count > 0).map_err(|error| error.errno().unwrap_or(Errno::IO))
    }
}
