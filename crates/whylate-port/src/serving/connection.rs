//! One connection of a server.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::RecvFlags;
use whylate_clock::Counter;
use whylate_model::Ticks;

use crate::framing::Framing;
use crate::peer::Peer;
use crate::stamps::SocketStamps;
use crate::stream::{Incoming, Next};

/// A connection and what came by it.
#[derive(Debug)]
pub(super) struct Connection {
    fd: OwnedFd,
    peer: Peer,
    incoming: Incoming,
    /// Where the kernel's stamps are wanted.
    pub(super) stamps: Option<Box<SocketStamps>>,
}

/// What reading brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Brought {
    Bytes,
    Nothing,
    /// The client has closed, or is gone.
    End,
}

impl Connection {
    pub(super) fn new(fd: OwnedFd, peer: Peer) -> Self {
        Self { fd, peer, incoming: Incoming::new(), stamps: None }
    }

    pub(super) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    pub(super) fn parts(&mut self) -> (&OwnedFd, &mut Option<Box<SocketStamps>>) {
        (&self.fd, &mut self.stamps)
    }

    pub(super) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Is there anything that was not taken?
    pub(super) fn has_part(&self) -> bool {
        !self.incoming.is_empty()
    }

    /// Reads once what there is, without waiting.
    #[inline]
    pub(super) fn read<C: Counter>(&mut self, counter: &mut C) -> Brought {
        let (how, room) = (RecvFlags::DONTWAIT, self.incoming.room());
        let read = match &mut self.stamps {
            None => rustix::net::recv(&self.fd, room, how).map(|(_, length)| length),
            Some(stamps) => stamps.receive(&self.fd, room, how.bits()).map(|(length, _)| length),
        };
        match read {
            Ok(0) => Brought::End,
            Ok(length) => {
                let (at, _) = counter.read_ordered();
                self.incoming.came(length, at);
                Brought::Bytes
            }
            Err(Errno::AGAIN | Errno::INTR) => Brought::Nothing,
            Err(_) => Brought::End,
        }
    }

    /// Takes a whole message: its length and stamp; an error when none begins like what there is.
    #[inline]
    pub(super) fn take(
        &mut self,
        framing: Framing,
        buffer: &mut [u8],
    ) -> Result<Option<(usize, Ticks)>, ()> {
        match self.incoming.next(framing) {
            Next::Whole(length) => Ok(Some((length, self.incoming.take(length, buffer)))),
            Next::Part => Ok(None),
            Next::Broken => Err(()),
        }
    }
}
