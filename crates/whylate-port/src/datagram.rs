//! What all datagram sockets share: sending, receiving, stamping.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{SendFlags, SocketAddrAny, SocketType};
use whylate_clock::Counter;
use whylate_model::{Nanos, Ticks};

use crate::error::PortError;
use crate::facts::{PortFacts, SocketFacts, StampFacts};
use crate::peer::Peer;
use crate::port::{Received, SEND_LIMIT, Setup};
use crate::queues::IncomingFacts;
use crate::socket::{Got, Reads, Socket};
use crate::stamps::{Stamp, StampCounts, StampWish};
use crate::waiting::BusyPolling;

/// Whom a datagram port sends to.
#[derive(Debug)]
pub(crate) enum Towards {
    /// The peer that the socket is connected to.
    Peer,
    /// A group; answers come from anybody.
    Group(SocketAddrAny),
    /// The sender of the last message received.
    Sender(Option<Peer>),
}

/// A datagram socket.
#[derive(Debug)]
pub(crate) struct Datagram<C> {
    socket: Socket<C>,
    towards: Towards,
    facts: PortFacts,
}

/// What is said of a datagram socket when it is opened.
pub(crate) struct Described {
    pub(crate) backend: &'static str,
    pub(crate) path: String,
    pub(crate) max_message: usize,
    pub(crate) facts: SocketFacts,
}

impl<C: Counter> Datagram<C> {
    /// Takes over a datagram socket and measures how well it stamps.
    pub(crate) fn open(
        fd: OwnedFd,
        mut setup: Setup<C>,
        towards: Towards,
        described: Described,
    ) -> Result<Self, PortError> {
        let Described { backend, path, max_message, facts } = described;
        // The flag belongs to the open socket, not to the descriptor: whoever had it before may
        // have left it non-blocking.
        rustix::io::ioctl_fionbio(&fd, false).map_err(|errno| PortError::Option {
            backend,
            what: "blocking mode",
            errno,
        })?;
        let limit = Some(Duration::from_nanos(SEND_LIMIT.0));
        sockopt::set_socket_timeout(&fd, Timeout::Send, limit)
            .map_err(|errno| PortError::Option { backend, what: "send timeout", errno })?;
        let stamps = StampFacts::of_counter(&mut setup.counter, setup.rate);
        let wait = setup.wait;
        let reads = match towards {
            Towards::Sender(_) => Reads::NamedDatagrams,
            _ => Reads::Datagrams,
        };
        let socket = Socket::new(fd, reads, setup, backend)?;
        let facts = facts.waited_for(socket.fd());
        let facts = PortFacts {
            backend,
            path,
            wait,
            stamps,
            max_message,
            socket: Some(facts),
            frames: None,
        };
        Ok(Self { socket, towards, facts })
    }

    /// The same socket once more; a server's is not divided, because only who receives knows whom
    /// to answer.
    pub(crate) fn duplicate(&self) -> Result<Self, PortError>
    where
        C: Clone,
    {
        let backend = self.facts.backend;
        let towards = match &self.towards {
            Towards::Peer => Towards::Peer,
            Towards::Group(group) => Towards::Group(group.clone()),
            Towards::Sender(_) => return Err(PortError::NotDivisible { backend }),
        };
        let facts = self.facts.clone();
        Ok(Self { socket: self.socket.duplicate(backend)?, towards, facts })
    }

    pub(crate) fn into_fd(self) -> OwnedFd {
        self.socket.into_fd()
    }

    pub(crate) fn facts(&self) -> &PortFacts {
        &self.facts
    }

    pub(crate) fn peer(&self) -> Option<&Peer> {
        match &self.towards {
            Towards::Sender(last) => last.as_ref(),
            _ => None,
        }
    }

    pub(crate) fn busy_polling(&self) -> BusyPolling {
        self.socket.busy_polling()
    }

    pub(crate) fn incoming(&self) -> IncomingFacts {
        self.socket.incoming()
    }

    #[inline]
    pub(crate) fn send(&mut self, message: &[u8]) -> Result<Ticks, PortError> {
        let (backend, bytes) = (self.facts.backend, message.len());
        if bytes > self.facts.max_message {
            return Err(PortError::TooLong { backend, bytes, max: self.facts.max_message });
        }
        if self.socket.stamps.is_some() {
            return self.send_stamped(message);
        }
        loop {
            let at = self.socket.stamp();
            let fd = self.socket.fd();
            let sent = match &self.towards {
                Towards::Peer => rustix::net::send(fd, message, SendFlags::NOSIGNAL),
                Towards::Group(to) => rustix::net::sendto(fd, message, SendFlags::NOSIGNAL, to),
                // One client that does not read must not hold up the others.
                Towards::Sender(Some(Peer(to))) => {
                    let how = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
                    rustix::net::sendto(fd, message, how, to)
                }
                Towards::Sender(None) => return Err(PortError::NobodyToAnswer { backend }),
            };
            match sent {
                Ok(_) => return Ok(at),
                Err(Errno::INTR) => (),
                Err(errno) => return Err(self.refused(errno, bytes)),
            }
        }
    }

    fn send_stamped(&mut self, message: &[u8]) -> Result<Ticks, PortError> {
        let (backend, bytes) = (self.facts.backend, message.len());
        let without = SendFlags::NOSIGNAL;
        let (to, how) = match &self.towards {
            Towards::Peer => (None, without),
            Towards::Group(to) => (Some(to), without),
            Towards::Sender(Some(Peer(to))) => (Some(to), without | SendFlags::DONTWAIT),
            Towards::Sender(None) => return Err(PortError::NobodyToAnswer { backend }),
        };
        let at = self.socket.stamp();
        match self.socket.send_stamped(message, to, how) {
            Ok(_) => Ok(at),
            Err(errno) => Err(self.refused(errno, bytes)),
        }
    }

    pub(crate) fn ask_for_stamps(&mut self, wish: &StampWish) -> Result<(), PortError> {
        self.socket.ask_for_stamps(wish, &self.facts)
    }

    pub(crate) fn take_stamps(&mut self, each: &mut dyn FnMut(Stamp)) -> Result<(), PortError> {
        self.socket.take_stamps(&self.facts, each)
    }

    pub(crate) fn take_not_asked(&mut self, each: &mut dyn FnMut(u64, u8)) {
        self.socket.take_not_asked(each);
    }

    pub(crate) fn stamp_counts(&self) -> Option<StampCounts> {
        self.socket.stamp_counts()
    }

    pub(crate) fn numbers(&self) -> Option<(u64, u64)> {
        self.socket.numbers()
    }

    #[inline]
    pub(crate) fn receive(
        &mut self,
        buffer: &mut [u8],
        limit: Nanos,
    ) -> Result<Received, PortError> {
        match self.socket.receive(buffer, limit) {
            Ok(Got::Bytes { length, at, from }) => {
                if let Towards::Sender(last) = &mut self.towards {
                    *last = from.map(Peer);
                }
                Ok(Received::Message { length, at })
            }
            Ok(Got::Nothing { at }) => Ok(Received::Nothing { at }),
            Err(errno) => Err(PortError::of_receiving(&self.facts, errno)),
        }
    }

    #[cold]
    fn refused(&self, errno: Errno, bytes: usize) -> PortError {
        let limit = match self.towards {
            Towards::Sender(_) => Nanos(0),
            _ => SEND_LIMIT,
        };
        let mtu = sockopt::ip_mtu(self.socket.fd()).ok();
        PortError::of_sending(&self.facts, errno, (bytes, limit, mtu))
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
