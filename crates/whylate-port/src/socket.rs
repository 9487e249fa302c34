//! One socket, the way it is waited for, and the counter that stamps.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketAddrAny};
use whylate_clock::Counter;
use whylate_model::{Nanos, Ticks};

use crate::error::PortError;
use crate::port::Setup;
use crate::waiting::spin::Patience;
use crate::waiting::{BusyPolling, Wait, Waiting, busy_poll};

/// A socket that can be waited for.
#[derive(Debug)]
pub(crate) struct Socket<C> {
    fd: OwnedFd,
    waiting: Waiting,
    /// How it is read.
    reads: Reads,
    pub(crate) setup: Setup<C>,
}

/// What reading from a socket gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    /// Datagrams of one peer.
    Datagrams,
    /// Datagrams with the address of each one's sender.
    NamedDatagrams,
    /// Bytes.
    Bytes,
}

/// How a wait ended.
#[derive(Debug)]
pub(crate) enum Got {
    /// So many bytes: of a datagram possibly more than the buffer holds, of a stream 0 at its end.
    Bytes { length: usize, at: Ticks, from: Option<SocketAddrAny> },
    /// Nothing came, or a signal.
    Nothing { at: Ticks },
}

impl<C: Counter> Socket<C> {
    pub(crate) fn new(
        fd: OwnedFd,
        reads: Reads,
        setup: Setup<C>,
        backend: &'static str,
    ) -> Result<Self, PortError> {
        let waiting = Waiting::ready(setup.wait, &fd, backend)?;
        Ok(Self { fd, waiting, reads, setup })
    }

    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    pub(crate) fn into_fd(self) -> OwnedFd {
        self.fd
    }

    pub(crate) fn stamp(&mut self) -> Ticks {
        self.setup.counter.read_ordered().0
    }

    pub(crate) fn busy_polling(&self) -> BusyPolling {
        match self.setup.wait {
            Wait::BusyPoll => busy_poll::outcome(&self.fd),
            _ => BusyPolling::NotAsked,
        }
    }

    /// The same socket once more, with a way of its own to wait for it.
    pub(crate) fn duplicate(&self, backend: &'static str) -> Result<Self, PortError>
    where
        C: Clone,
    {
        let fd = self.fd.try_clone().map_err(|error| PortError::Option {
            backend,
            what: "second descriptor",
            errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
        })?;
        Self::new(fd, self.reads, self.setup.clone(), backend)
    }

    /// Waits for something to read, for `limit` at most; a limit of 0 looks once.
    #[inline]
    pub(crate) fn receive(&mut self, buffer: &mut [u8], limit: Nanos) -> Result<Got, Errno> {
        if limit.0 == 0 {
            return self.look_or_nothing(buffer, RecvFlags::DONTWAIT);
        }
        match &mut self.waiting {
            Waiting::Block(timeout) => {
                timeout.set(&self.fd, limit)?;
                // Timed out, or a signal came: the caller decides whether to go on.
                self.look_or_nothing(buffer, RecvFlags::empty())
            }
            Waiting::Poll(watched) => {
                let ready = watched.is_ready(limit)?;
                self.look_when(ready, buffer)
            }
            Waiting::Epoll(watched) => {
                let ready = watched.is_ready(limit)?;
                self.look_when(ready, buffer)
            }
            Waiting::Look => self.spin(buffer, limit),
            Waiting::Ring(ring) => {
                let flags = flags_of(self.reads).bits();
                let received = ring.receive(self.fd.as_fd(), buffer, flags, limit.0)?;
                let at = self.stamp();
                Ok(received.map_or(Got::Nothing { at }, |received| Got::Bytes {
                    length: received.length,
                    at,
                    from: received.from,
                }))
            }
        }
    }

    fn spin(&mut self, buffer: &mut [u8], limit: Nanos) -> Result<Got, Errno> {
        let mut patience = Patience::new(limit, self.setup.rate);
        loop {
            if let Some(got) = self.look(buffer, RecvFlags::DONTWAIT)? {
                return Ok(got);
            }
            let at = self.stamp();
            if patience.is_over(at) {
                return Ok(Got::Nothing { at });
            }
        }
    }

    fn look_when(&mut self, ready: bool, buffer: &mut [u8]) -> Result<Got, Errno> {
        if ready {
            return self.look_or_nothing(buffer, RecvFlags::DONTWAIT);
        }
        Ok(Got::Nothing { at: self.stamp() })
    }

    #[inline]
    fn look_or_nothing(&mut self, buffer: &mut [u8], how: RecvFlags) -> Result<Got, Errno> {
        match self.look(buffer, how)? {
            Some(got) => Ok(got),
            None => Ok(Got::Nothing { at: self.stamp() }),
        }
    }

    /// One receiving system call.
    #[inline]
    fn look(&mut self, buffer: &mut [u8], how: RecvFlags) -> Result<Option<Got>, Errno> {
        let how = how | flags_of(self.reads);
        let read = if self.reads == Reads::NamedDatagrams {
            rustix::net::recvfrom(&self.fd, buffer, how).map(|(_, length, from)| (length, from))
        } else {
            rustix::net::recv(&self.fd, buffer, how).map(|(_, length)| (length, None))
        };
        match read {
            Ok((length, from)) => Ok(Some(Got::Bytes { length, at: self.stamp(), from })),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

/// The true length of a datagram is wanted; of a stream the kernel would throw the rest away.
fn flags_of(reads: Reads) -> RecvFlags {
    if reads == Reads::Bytes { RecvFlags::empty() } else { RecvFlags::TRUNC }
}
