//! What all connected datagram sockets share: sending, waiting, stamping.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{RecvFlags, SendFlags, SocketType};
use whylate_clock::Counter;
use whylate_model::{Nanos, Ticks, TicksDelta};

use crate::error::PortError;
use crate::facts::{PortFacts, StampFacts};
use crate::port::{Received, Setup, Wait};

/// A message that the kernel does not take for this long is not taken at all: the other end's
/// queue is full and nobody reads it.
const SEND_LIMIT: Nanos = Nanos(1_000_000_000);
/// A blocking wait is never shorter: a timeout of 0 would mean none.
const SHORTEST_WAIT: Nanos = Nanos(1_000);

/// A connected datagram socket.
#[derive(Debug)]
pub(crate) struct Datagram<C> {
    socket: OwnedFd,
    counter: C,
    facts: PortFacts,
    ticks_per_ns: f64,
    /// The timeout that the socket has at present.
    timeout: Option<Nanos>,
}

impl<C: Counter> Datagram<C> {
    /// Takes over a connected datagram socket and measures how well it stamps.
    pub(crate) fn open(
        socket: OwnedFd,
        setup: Setup<C>,
        backend: &'static str,
        path: String,
        max_message: usize,
    ) -> Result<Self, PortError> {
        let Setup { mut counter, rate, wait } = setup;
        // The flag belongs to the open socket, not to the descriptor: whoever had it before may
        // have left it non-blocking.
        rustix::io::ioctl_fionbio(&socket, false).map_err(|errno| PortError::Option {
            backend,
            what: "blocking mode",
            errno,
        })?;
        let limit = Some(Duration::from_nanos(SEND_LIMIT.0));
        sockopt::set_socket_timeout(&socket, Timeout::Send, limit)
            .map_err(|errno| PortError::Option { backend, what: "send timeout", errno })?;
        let stamps = StampFacts::of_counter(&mut counter, rate);
        let facts = PortFacts { backend, path, wait, stamps, max_message };
        Ok(Self { socket, counter, facts, ticks_per_ns: rate.0 / 1e9, timeout: None })
    }

    pub(crate) fn into_fd(self) -> OwnedFd {
        self.socket
    }

    pub(crate) fn facts(&self) -> &PortFacts {
        &self.facts
    }

    #[inline]
    pub(crate) fn send(&mut self, message: &[u8]) -> Result<Ticks, PortError> {
        let (backend, bytes) = (self.facts.backend, message.len());
        if bytes > self.facts.max_message {
            return Err(PortError::TooLong { backend, bytes, max: self.facts.max_message });
        }
        loop {
            let (at, _) = self.counter.read_ordered();
            match rustix::net::send(&self.socket, message, SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(at),
                Err(Errno::INTR) => (),
                Err(Errno::AGAIN) => {
                    return Err(PortError::SendTimedOut { backend, limit: SEND_LIMIT });
                }
                Err(errno) if gone(errno) => return Err(PortError::PeerGone { backend }),
                Err(errno) => return Err(PortError::Send { backend, bytes, errno }),
            }
        }
    }

    #[inline]
    pub(crate) fn receive(
        &mut self,
        buffer: &mut [u8],
        limit: Nanos,
    ) -> Result<Received, PortError> {
        match self.facts.wait {
            Wait::Block if limit.0 > 0 => self.receive_blocking(buffer, limit),
            Wait::Block | Wait::Spin => self.receive_spinning(buffer, limit),
        }
    }

    fn receive_blocking(&mut self, buffer: &mut [u8], limit: Nanos) -> Result<Received, PortError> {
        let limit = limit.max(SHORTEST_WAIT);
        // One system call a message: the timeout is set only when it changes.
        if self.timeout != Some(limit) {
            let backend = self.facts.backend;
            let timeout = Some(Duration::from_nanos(limit.0));
            sockopt::set_socket_timeout(&self.socket, Timeout::Recv, timeout)
                .map_err(|errno| PortError::Option { backend, what: "receive timeout", errno })?;
            self.timeout = Some(limit);
        }
        match self.look(buffer, RecvFlags::TRUNC)? {
            Some(received) => Ok(received),
            // Timed out, or a signal came: the caller decides whether to go on.
            None => Ok(Received::Nothing { at: self.counter.read_ordered().0 }),
        }
    }

    fn receive_spinning(&mut self, buffer: &mut [u8], limit: Nanos) -> Result<Received, PortError> {
        let mut deadline = None;
        loop {
            if let Some(received) = self.look(buffer, RecvFlags::TRUNC | RecvFlags::DONTWAIT)? {
                return Ok(received);
            }
            let (at, _) = self.counter.read_ordered();
            let length = || TicksDelta((limit.0 as f64 * self.ticks_per_ns) as u64);
            // The limit counts from the first look that found nothing.
            if at >= *deadline.get_or_insert_with(|| at + length()) {
                return Ok(Received::Nothing { at });
            }
        }
    }

    /// One receiving system call.
    #[inline]
    fn look(&mut self, buffer: &mut [u8], how: RecvFlags) -> Result<Option<Received>, PortError> {
        let backend = self.facts.backend;
        match rustix::net::recv(&self.socket, buffer, how) {
            Ok((_, length)) => {
                let (at, _) = self.counter.read_ordered();
                Ok(Some(Received::Message { length, at }))
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(errno) if gone(errno) => Err(PortError::PeerGone { backend }),
            Err(errno) => Err(PortError::Receive { backend, errno }),
        }
    }
}

/// Is it a datagram socket? Says what it is when it is not.
pub(crate) fn check_datagram(socket: impl AsFd, wanted: &'static str) -> Result<(), PortError> {
    match sockopt::socket_type(socket) {
        Ok(SocketType::DGRAM) => Ok(()),
        Ok(_) => {
            Err(PortError::WrongDescriptor { wanted, found: "a socket of another type".into() })
        }
        Err(errno) => {
            Err(PortError::WrongDescriptor { wanted, found: format!("no socket ({errno})") })
        }
    }
}

/// Does this answer mean that nobody is at the other end?
fn gone(errno: Errno) -> bool {
    matches!(errno, Errno::CONNREFUSED | Errno::CONNRESET | Errno::PIPE | Errno::NOTCONN)
}
