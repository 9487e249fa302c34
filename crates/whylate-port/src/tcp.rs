//! TCP over IPv4 and IPv6: a client's connection.
//!
//! <https://man7.org/linux/man-pages/man7/tcp.7.html>. Needs no capability.
//!
//! Messages are cut out of the stream by a [`Framing`]. Nagle's algorithm is off: a message goes
//! when it is sent. A message is sent and received whole or not at all; a connection on which half
//! of one was taken is never used again.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, connect, socket_with};
use whylate_clock::Counter;
use whylate_model::{Hertz, Nanos, Ticks};

use crate::address;
use crate::error::PortError;
use crate::facts::{PortFacts, SocketFacts, StampFacts};
use crate::framing::Framing;
use crate::holder::List;
use crate::options::Options;
use crate::port::{Port, Received, SEND_LIMIT, Setup};
use crate::queues::IncomingFacts;
use crate::socket::{Got, Reads, Socket};
use crate::stamps::{Stamp, StampCounts, StampWish};
use crate::stream::{Incoming, MAX_MESSAGE, Next};
use crate::waiting::BusyPolling;

const BACKEND_V4: &str = "tcp over ipv4";
const BACKEND_V6: &str = "tcp over ipv6";
/// A host that has not answered a connection after this time will not.
const CONNECT_LIMIT: Nanos = Nanos(5_000_000_000);
/// Connections that the kernel keeps until the server takes them.
const BACKLOG: i32 = 128;
/// Of a client that vanished without a word the kernel finds out after so long.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// One connection of a client.
#[derive(Debug)]
pub struct Tcp<C> {
    socket: Socket<C>,
    incoming: Incoming,
    framing: Framing,
    facts: PortFacts,
    /// Half of a message was sent: what follows would be taken for its other half.
    torn: bool,
}

impl<C: Counter> Tcp<C> {
    /// Connects to a server; `from` is the client's own address.
    pub fn client(
        to: SocketAddr,
        from: Option<SocketAddr>,
        options: &Options,
        mut setup: Setup<C>,
        framing: Framing,
    ) -> Result<Self, PortError> {
        let backend = backend(to);
        let fd = made(to, options)?;
        if let Some(from) = from {
            address::bind(&fd, from, List::Tcp)?;
        }
        send_limit(&fd, CONNECT_LIMIT, backend)?;
        connect(&fd, &to).map_err(|errno| refused(to, errno))?;
        send_limit(&fd, SEND_LIMIT, backend)?;
        without_delay(&fd, backend)?;
        let local = address::local(&fd)?;
        let stamps = StampFacts::of_counter(&mut setup.counter, setup.rate);
        let wait = setup.wait;
        let socket = Socket::new(fd, Reads::Bytes, setup, backend)?;
        let kernel = SocketFacts::of(socket.fd(), local.to_string(), Some(to.to_string()));
        let facts = PortFacts {
            backend,
            path: format!("{local} -> {to}"),
            wait,
            stamps,
            max_message: MAX_MESSAGE,
            socket: Some(kernel),
            frames: None,
        };
        Ok(Self { socket, incoming: Incoming::new(), framing, facts, torn: false })
    }

    fn send_whole(&mut self, message: &[u8]) -> Result<Ticks, PortError> {
        let (backend, bytes) = (self.facts.backend, message.len());
        if bytes > MAX_MESSAGE {
            return Err(PortError::TooLong { backend, bytes, max: MAX_MESSAGE });
        }
        if self.torn {
            return Err(PortError::PeerGone { backend });
        }
        if self.socket.stamps.is_some() {
            return self.send_stamped(message);
        }
        let at = self.socket.stamp();
        let mut sent = 0;
        while sent < bytes {
            match rustix::net::send(self.socket.fd(), &message[sent..], SendFlags::NOSIGNAL) {
                Ok(count) => sent += count,
                Err(Errno::INTR) => (),
                Err(errno) => {
                    self.torn = sent > 0;
                    return Err(PortError::of_sending(
                        &self.facts,
                        errno,
                        (bytes, SEND_LIMIT, None),
                    ));
                }
            }
        }
        Ok(at)
    }

    fn send_stamped(&mut self, message: &[u8]) -> Result<Ticks, PortError> {
        let at = self.socket.stamp();
        self.socket.write_stamped(message).map_err(|(sent, errno)| {
            self.torn = sent > 0;
            PortError::of_sending(&self.facts, errno, (message.len(), SEND_LIMIT, None))
        })?;
        Ok(at)
    }

    #[inline]
    fn receive_whole(&mut self, buffer: &mut [u8], limit: Nanos) -> Result<Received, PortError> {
        let (backend, rate) = (self.facts.backend, self.socket.setup.rate);
        let mut began = None;
        let mut left = limit;
        loop {
            match self.incoming.next(self.framing) {
                Next::Whole(length) => {
                    let at = self.incoming.take(length, buffer);
                    if let Some(stamps) = &mut self.socket.stamps {
                        stamps.message_came(self.incoming.is_empty());
                    }
                    return Ok(Received::Message { length, at });
                }
                Next::Part => {}
                Next::Broken => {
                    let from = self.facts.path.clone();
                    return Err(PortError::BrokenStream { backend, from });
                }
            }
            match self.socket.receive(self.incoming.room(), left) {
                Ok(Got::Bytes { length: 0, .. }) => return Err(PortError::PeerGone { backend }),
                Ok(Got::Bytes { length, at, .. }) => {
                    self.incoming.came(length, at);
                    // The limit counts from the first piece of a message: it cannot be drawn out.
                    let passed = nanos(*began.get_or_insert(at), at, rate);
                    left = Nanos(limit.0.saturating_sub(passed.0));
                }
                Ok(Got::Nothing { at }) => return Ok(Received::Nothing { at }),
                Err(errno) => return Err(PortError::of_receiving(&self.facts, errno)),
            }
        }
    }
}

impl<C: Counter + Clone + 'static> Port for Tcp<C> {
    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<Ticks, PortError> {
        self.send_whole(message)
    }

    #[inline]
    fn receive(&mut self, buffer: &mut [u8], limit: Nanos) -> Result<Received, PortError> {
        self.receive_whole(buffer, limit)
    }

    fn facts(&self) -> &PortFacts {
        &self.facts
    }

    fn duplicate(&self) -> Result<Box<dyn Port>, PortError> {
        Ok(Box::new(Self {
            socket: self.socket.duplicate(self.facts.backend)?,
            incoming: Incoming::new(),
            framing: self.framing,
            facts: self.facts.clone(),
            torn: self.torn,
        }))
    }

    fn busy_polling(&self) -> BusyPolling {
        self.socket.busy_polling()
    }

    fn incoming(&self) -> IncomingFacts {
        self.socket.incoming()
    }

    fn stamp(&mut self, wish: &StampWish) -> Result<(), PortError> {
        self.socket.ask_for_stamps(wish, &self.facts)
    }

    fn take_stamps(&mut self, each: &mut dyn FnMut(Stamp)) -> Result<(), PortError> {
        self.socket.take_stamps(&self.facts, each)
    }

    fn take_not_asked(&mut self, each: &mut dyn FnMut(u64, u8)) {
        self.socket.take_not_asked(each);
    }

    fn stamp_counts(&self) -> Option<StampCounts> {
        self.socket.stamp_counts()
    }

    fn numbers(&self) -> Option<(u64, u64)> {
        self.socket.numbers()
    }
}

pub(crate) fn backend(address: SocketAddr) -> &'static str {
    if address.is_ipv4() { BACKEND_V4 } else { BACKEND_V6 }
}

/// A socket that takes connections at `address`.
pub(crate) fn listening(address: SocketAddr, options: &Options) -> Result<OwnedFd, PortError> {
    let socket = made(address, options)?;
    let backend = backend(address);
    let failed = |what| move |errno| PortError::Option { backend, what, errno };
    // Connections of a server before may linger for a minute.
    sockopt::set_socket_reuseaddr(&socket, true).map_err(failed("shared address"))?;
    address::bind(&socket, address, List::Tcp)?;
    rustix::net::listen(&socket, BACKLOG).map_err(|errno| match errno {
        Errno::ADDRINUSE => PortError::PortInUse { address, holder: None },
        errno => PortError::Bind { address, errno },
    })?;
    rustix::io::ioctl_fionbio(&socket, true).map_err(failed("blocking mode"))?;
    Ok(socket)
}

/// Makes a connection that was taken ready to be read and written.
pub(crate) fn taken(socket: &OwnedFd, backend: &'static str) -> Result<(), PortError> {
    without_delay(socket, backend)?;
    sockopt::set_socket_keepalive(socket, true)
        .and_then(|()| sockopt::set_tcp_keepidle(socket, KEEP_ALIVE))
        .map_err(|errno| PortError::Option { backend, what: "keep-alive", errno })
}

fn made(address: SocketAddr, options: &Options) -> Result<OwnedFd, PortError> {
    let what = backend(address);
    if address.ip().is_multicast() {
        let (transport, target) = ("tcp", address.to_string());
        return Err(PortError::WrongTarget { transport, target, why: "that is a group" });
    }
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(|errno| PortError::Create { what, errno })?;
    options.apply(&socket, address, what)?;
    Ok(socket)
}

fn send_limit(socket: &OwnedFd, limit: Nanos, backend: &'static str) -> Result<(), PortError> {
    let timeout = Some(Duration::from_nanos(limit.0));
    sockopt::set_socket_timeout(socket, Timeout::Send, timeout).map_err(|errno| PortError::Option {
        backend,
        what: "send timeout",
        errno,
    })
}

fn without_delay(socket: &OwnedFd, backend: &'static str) -> Result<(), PortError> {
    sockopt::set_tcp_nodelay(socket, true).map_err(|errno| PortError::Option {
        backend,
        what: "delay",
        errno,
    })
}

fn refused(to: SocketAddr, errno: Errno) -> PortError {
    match errno {
        Errno::CONNREFUSED => PortError::Refused { to: to.to_string() },
        Errno::INPROGRESS | Errno::AGAIN | Errno::TIMEDOUT => {
            PortError::ConnectTimedOut { address: to, limit: CONNECT_LIMIT }
        }
        Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN => {
            PortError::NoRoute { to: to.to_string(), errno }
        }
        errno => PortError::Connect { address: to, errno },
    }
}

fn nanos(from: Ticks, to: Ticks, rate: Hertz) -> Nanos {
    Nanos((to.since(from).0 as f64 * 1e9 / rate.0) as u64)
}
