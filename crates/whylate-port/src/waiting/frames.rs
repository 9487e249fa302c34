//! Waiting for frames in rings: the ring is read in memory, so a wait only has to end in time.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use whylate_model::Nanos;
use whylate_sys::epoll::{Epoll, READY};
use whylate_sys::poll::PollSet;

use crate::error::PortError;
use crate::waiting::Wait;

/// What a way to wait keeps between two waits for rings.
#[derive(Debug)]
pub(crate) enum RingWait {
    /// `ppoll`; blocking is the same here, because nothing is received by a system call.
    Poll(PollSet),
    Epoll(Epoll),
    /// Looks at the rings again and again.
    Look,
}

impl RingWait {
    /// Makes a way ready for these sockets; `choose` are those that the backend has.
    pub(crate) fn ready<'a>(
        wait: Wait,
        sockets: impl ExactSizeIterator<Item = &'a OwnedFd>,
        (backend, choose): (&'static str, &'static str),
    ) -> Result<Self, PortError> {
        Ok(match wait {
            Wait::Block | Wait::Poll => {
                let mut set = PollSet::with_room(sockets.len());
                for (mark, socket) in sockets.enumerate() {
                    set.watch(socket, mark as u64);
                }
                Self::Poll(set)
            }
            Wait::Epoll => {
                let failed = |source| PortError::Wait { wait, source };
                let epoll = Epoll::new().map_err(failed)?;
                for (mark, socket) in sockets.enumerate() {
                    epoll.watch(socket, mark as u64).map_err(failed)?;
                }
                Self::Epoll(epoll)
            }
            Wait::Spin | Wait::BusyPoll => Self::Look,
            Wait::IoUring => return Err(PortError::WaitUnfit { backend, wait, choose }),
        })
    }

    /// Sleeps until a ring has something, for `limit` at most. At once where it does not sleep.
    pub(crate) fn sleep(&mut self, limit: Nanos) -> Result<(), Errno> {
        let mut marks = [0; READY];
        let told = match self {
            Self::Poll(set) => set.wait_ready(limit.0, &mut marks),
            Self::Epoll(epoll) => epoll.wait_ready(limit.0, &mut marks),
            Self::Look => return Ok(()),
        };
        told.map(|_| ()).map_err(|error| error.errno().unwrap_or(Errno::IO))
    }

    pub(crate) fn looks(&self) -> bool {
        matches!(self, Self::Look)
    }
}
