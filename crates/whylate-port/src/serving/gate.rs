//! Waiting for several sockets at once.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use whylate_model::Nanos;
use whylate_sys::epoll::{Epoll, READY};
use whylate_sys::poll::PollSet;

use crate::error::PortError;
use crate::waiting::Wait;

/// Sockets, each with a mark, and the way to wait for them.
#[derive(Debug)]
pub(super) enum Gate {
    Poll(PollSet),
    Epoll(Epoll),
    /// Every socket is looked at, again and again.
    Look,
}

impl Gate {
    pub(super) fn new(wait: Wait, most: usize) -> Result<Self, PortError> {
        match wait {
            Wait::Poll => Ok(Self::Poll(PollSet::with_room(most))),
            Wait::Epoll => {
                Epoll::new().map(Self::Epoll).map_err(|source| PortError::Wait { wait, source })
            }
            Wait::Spin | Wait::BusyPoll => Ok(Self::Look),
            Wait::Block | Wait::IoUring => Err(PortError::WaitsForOne { wait }),
        }
    }

    pub(super) fn watch(&mut self, socket: &OwnedFd, mark: u64) -> Result<(), PortError> {
        match self {
            Self::Poll(set) => set.watch(socket, mark),
            Self::Epoll(epoll) => epoll
                .watch(socket, mark)
                .map_err(|source| PortError::Wait { wait: Wait::Epoll, source })?,
            Self::Look => {}
        }
        Ok(())
    }

    pub(super) fn forget(&mut self, socket: &OwnedFd, mark: u64) {
        match self {
            Self::Poll(set) => set.forget(mark),
            // The kernel forgets a socket that is closed by itself.
            Self::Epoll(epoll) => drop(epoll.forget(socket)),
            Self::Look => {}
        }
    }

    /// Waits for `limit` at most; adds the marks of what can be read, or, where it only looks, those
    /// of `all`.
    #[inline]
    pub(super) fn wait(
        &mut self,
        limit: Nanos,
        ready: &mut VecDeque<u64>,
        all: impl Iterator<Item = usize>,
    ) -> Result<(), PortError> {
        let mut marks = [0; READY];
        let failed = |wait| move |source| PortError::Wait { wait, source };
        let count = match self {
            Self::Poll(set) => set.wait_ready(limit.0, &mut marks).map_err(failed(Wait::Poll))?,
            Self::Epoll(epoll) => {
                epoll.wait_ready(limit.0, &mut marks).map_err(failed(Wait::Epoll))?
            }
            Self::Look => {
                ready.extend(all.map(|mark| mark as u64));
                0
            }
        };
        ready.extend(&marks[..count]);
        Ok(())
    }
}
