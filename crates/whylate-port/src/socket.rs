//! One socket, the way it is waited for, and the counter that stamps.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketAddrAny};
use whylate_clock::Counter;
use whylate_model::{Nanos, Ticks};
use whylate_sys::socket_options;

use crate::error::PortError;
use crate::facts::PortFacts;
use crate::port::Setup;
use crate::queues::IncomingFacts;
use crate::stamps::{SocketStamps, Stamp, StampCounts, StampWish};
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
    /// Of a socket that [`Reads::Stamped`].
    pub(crate) stamps: Option<Box<SocketStamps>>,
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
    /// Any of them, with the kernel's stamps.
    Stamped {
        /// Are they bytes?
        bytes: bool,
    },
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
        Ok(Self { fd, waiting, reads, setup, stamps: None })
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

    pub(crate) fn incoming(&self) -> IncomingFacts {
        IncomingFacts {
            napi: socket_options::incoming_napi(&self.fd).ok().flatten(),
            cpu: socket_options::incoming_cpu(&self.fd).ok().flatten(),
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
        let stamps = self.stamps.as_ref().map(|stamps| Box::new(stamps.half()));
        Ok(Self { stamps, ..Self::new(fd, self.reads, self.setup.clone(), backend)? })
    }

    /// Asks for the kernel's stamps.
    pub(crate) fn ask_for_stamps(
        &mut self,
        wish: &StampWish,
        facts: &PortFacts,
    ) -> Result<(), PortError> {
        if matches!(self.waiting, Waiting::Ring(_)) {
            return Err(PortError::WaitUnfit {
                backend: "a port with the kernel's stamps",
                wait: self.setup.wait,
                choose: "block, poll, epoll, busy-poll or spin",
            });
        }
        let bytes = matches!(self.reads, Reads::Bytes | Reads::Stamped { bytes: true });
        let (kernel, backend) = (facts.socket.as_ref(), facts.backend);
        let stamps = SocketStamps::ask(&self.fd, wish, bytes, kernel, backend)?;
        self.stamps = Some(Box::new(stamps));
        self.reads = Reads::Stamped { bytes };
        Ok(())
    }

    /// Hands over the stamps that have come.
    pub(crate) fn take_stamps(
        &mut self,
        facts: &PortFacts,
        each: &mut dyn FnMut(Stamp),
    ) -> Result<(), PortError> {
        let taken = self.stamps.as_mut().map_or(Ok(()), |stamps| stamps.take(&self.fd, each));
        taken.map_err(|errno| PortError::of_receiving(facts, errno))
    }

    /// Hands over the messages of which less was asked for than is wished.
    pub(crate) fn take_not_asked(&mut self, each: &mut dyn FnMut(u64, u8)) {
        if let Some(stamps) = &mut self.stamps {
            stamps.take_not_asked(each);
        }
    }

    pub(crate) fn stamp_counts(&self) -> Option<StampCounts> {
        self.stamps.as_ref().map(|stamps| stamps.counts())
    }

    /// Messages sent and received.
    pub(crate) fn numbers(&self) -> Option<(u64, u64)> {
        self.stamps.as_ref().map(|stamps| (stamps.numbers().sent(), stamps.received()))
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
        let read = match self.reads {
            Reads::NamedDatagrams => {
                rustix::net::recvfrom(&self.fd, buffer, how).map(|(_, length, from)| (length, from))
            }
            Reads::Datagrams | Reads::Bytes => {
                rustix::net::recv(&self.fd, buffer, how).map(|(_, length)| (length, None))
            }
            Reads::Stamped { bytes } => self.read_stamped(buffer, how, bytes),
        };
        match read {
            Ok((length, from)) => Ok(Some(Got::Bytes { length, at: self.stamp(), from })),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Sends a datagram with what it asks for.
    pub(crate) fn send_stamped(
        &mut self,
        message: &[u8],
        to: Option<&SocketAddrAny>,
        how: SendFlags,
    ) -> Result<usize, Errno> {
        let stamps = self.stamps.as_mut().ok_or(Errno::INVAL)?;
        let number = stamps.numbers().next();
        loop {
            match stamps.send(&self.fd, (message, number), to, how.bits()) {
                Err(Errno::INTR) => (),
                sent => return sent,
            }
        }
    }

    /// Writes a whole message to a stream with what it asks for; how much of it was written when not.
    pub(crate) fn write_stamped(&mut self, message: &[u8]) -> Result<(), (usize, Errno)> {
        let stamps = self.stamps.as_mut().ok_or((0, Errno::INVAL))?;
        let number = stamps.numbers().next();
        let writing = stamps.begin(number, message.len());
        let mut sent = 0;
        while sent < message.len() {
            let how = SendFlags::NOSIGNAL.bits();
            match SocketStamps::write(&self.fd, &writing, &message[sent..], how) {
                Ok(count) => sent += count,
                Err(Errno::INTR) => (),
                Err(errno) => {
                    if sent == 0 {
                        stamps.not_written(&writing);
                    }
                    return Err((sent, errno));
                }
            }
        }
        stamps.all_written(&writing);
        Ok(())
    }

    fn read_stamped(
        &mut self,
        buffer: &mut [u8],
        how: RecvFlags,
        bytes: bool,
    ) -> Result<(usize, Option<SocketAddrAny>), Errno> {
        let stamps = self.stamps.as_mut().ok_or(Errno::INVAL)?;
        let read = stamps.receive(&self.fd, buffer, how.bits())?;
        // Messages of a stream are counted where they are cut out of it.
        if !bytes {
            stamps.message_came(true);
        }
        Ok(read)
    }
}

/// The true length of a datagram is wanted; of a stream the kernel would throw the rest away.
fn flags_of(reads: Reads) -> RecvFlags {
    match reads {
        Reads::Bytes | Reads::Stamped { bytes: true } => RecvFlags::empty(),
        _ => RecvFlags::TRUNC,
    }
}
