//! A server of several sockets: those that listen, and the connections that were taken.
//!
//! Every socket is looked at without waiting; the waiting is done for all of them at once
//! ([`gate`]). A message's answer goes out by the socket that it came by. Nothing that one client
//! does holds up another: an answer that a client does not take at once is not sent, and a
//! connection that took a part of one is closed. What came whole before a client closed is served.

mod connection;
mod gate;
mod stamping;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, getpeername};
use whylate_clock::Counter;
use whylate_model::{Nanos, Ticks};

use crate::error::PortError;
use crate::facts::{PortFacts, SocketFacts, StampFacts};
use crate::framing::Framing;
use crate::open::{Server, Target, Transport, wrong};
use crate::peer::Peer;
use crate::port::{Connections, Port, Received, Setup};
use crate::stamps::{SocketStamps, Stamp, StampCounts, StampWish};
use crate::stream::MAX_MESSAGE;
use crate::unix_path::Bound;
use crate::waiting::spin::Patience;
use crate::waiting::{BusyPolling, Wait, busy_poll};
use crate::{tcp, udp, unix};

use connection::{Brought, Connection};
use gate::Gate;
use stamping::Stamping;

const BACKEND: &str = "several sockets";
/// Sockets that listen, at most.
pub const MOST_LISTENING: usize = 256;
/// Connections open at a time: a flood of them is turned away, and memory has an end.
pub const MOST_CONNECTIONS: usize = 512;

/// A socket that listens.
#[derive(Debug)]
struct Listening {
    fd: OwnedFd,
    transport: Transport,
    backend: &'static str,
    /// The path of a Unix socket goes with it.
    _bound: Option<Bound>,
    /// Where the kernel's stamps are wanted.
    stamps: Option<Box<SocketStamps>>,
}

/// Where the last message came from.
#[derive(Debug)]
enum Last {
    Nobody,
    Datagram(usize, Option<Peer>),
    Connection(usize),
}

/// A server's port on several sockets.
#[derive(Debug)]
pub(crate) struct Serving<C> {
    listening: Vec<Listening>,
    connections: Vec<Option<Connection>>,
    gate: Gate,
    /// Sockets that were told as readable and were not looked at yet.
    ready: VecDeque<u64>,
    /// Connections that may hold another whole message.
    unfinished: VecDeque<usize>,
    last: Last,
    counts: Connections,
    framing: Framing,
    setup: Setup<C>,
    facts: PortFacts,
    /// Where the kernel's stamps are wanted.
    stamping: Option<Box<Stamping>>,
}

impl<C: Counter> Serving<C> {
    /// Opens all of them, or none.
    pub(crate) fn open(
        servers: &[Server],
        mut setup: Setup<C>,
        framing: Framing,
    ) -> Result<Self, PortError> {
        if !setup.wait.takes_many_sockets() {
            return Err(PortError::WaitsForOne { wait: setup.wait });
        }
        let opened: Vec<(Listening, String)> =
            servers.iter().take(MOST_LISTENING).map(listen).collect::<Result<_, _>>()?;
        let (listening, locals): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
        let mut gate = Gate::new(setup.wait, MOST_LISTENING + MOST_CONNECTIONS)?;
        for (at, one) in listening.iter().enumerate() {
            if setup.wait == Wait::BusyPoll {
                busy_poll::ask(&one.fd, one.backend)?;
            }
            gate.watch(&one.fd, at as u64)?;
        }
        let stamps = StampFacts::of_counter(&mut setup.counter, setup.rate);
        let local = locals.join(", ");
        let facts = PortFacts {
            backend: match &listening[..] {
                [one] => one.backend,
                _ => BACKEND,
            },
            path: format!("any -> {local}"),
            wait: setup.wait,
            stamps,
            max_message: MAX_MESSAGE,
            socket: listening.first().map(|one| SocketFacts::of(&one.fd, local, None)),
            frames: None,
        };
        Ok(Self {
            listening,
            connections: (0..MOST_CONNECTIONS).map(|_| None).collect(),
            gate,
            ready: VecDeque::with_capacity(MOST_LISTENING + MOST_CONNECTIONS),
            unfinished: VecDeque::with_capacity(MOST_CONNECTIONS),
            last: Last::Nobody,
            counts: Connections::default(),
            framing,
            setup,
            facts,
            stamping: None,
        })
    }

    fn stamp(&mut self) -> Ticks {
        self.setup.counter.read_ordered().0
    }

    /// The next message there is without waiting.
    fn next(&mut self, buffer: &mut [u8]) -> Result<Option<Received>, PortError> {
        while let Some(at) = self.unfinished.pop_front() {
            if let Some(received) = self.take_whole(at, buffer) {
                return Ok(Some(received));
            }
        }
        while let Some(mark) = self.ready.pop_front() {
            let at = mark as usize;
            let received = if at >= self.listening.len() {
                self.read_connection(at - self.listening.len(), buffer)
            } else if self.listening[at].transport == Transport::Tcp {
                self.accept(at);
                None
            } else {
                self.read_datagram(at, buffer)?
            };
            if received.is_some() {
                return Ok(received);
            }
        }
        Ok(None)
    }

    fn read_datagram(
        &mut self,
        at: usize,
        buffer: &mut [u8],
    ) -> Result<Option<Received>, PortError> {
        let how = RecvFlags::DONTWAIT | RecvFlags::TRUNC;
        let Listening { fd, stamps, .. } = &mut self.listening[at];
        let read = match stamps {
            None => {
                rustix::net::recvfrom(&*fd, buffer, how).map(|(_, length, from)| (length, from))
            }
            Some(stamps) => stamps.receive(fd, buffer, how.bits()),
        };
        match read {
            Ok((length, from)) => {
                let stamp = self.stamp();
                self.datagram_came(at);
                self.last = Last::Datagram(at, from.map(Peer));
                Ok(Some(Received::Message { length, at: stamp }))
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(errno) => Err(PortError::Receive { backend: self.listening[at].backend, errno }),
        }
    }

    /// Numbers a datagram that has stamps.
    fn datagram_came(&mut self, at: usize) {
        if let (Some(stamping), Some(stamps)) = (&mut self.stamping, &mut self.listening[at].stamps)
        {
            stamps.numbered_message_came(stamping.received, true);
            stamping.received += 1;
        }
    }

    fn read_connection(&mut self, at: usize, buffer: &mut [u8]) -> Option<Received> {
        let connection = self.connections.get_mut(at)?.as_mut()?;
        match connection.read(&mut self.setup.counter) {
            Brought::Bytes => self.take_whole(at, buffer),
            Brought::Nothing => None,
            Brought::End => {
                self.counts.cut += u64::from(connection.has_part());
                self.close(at);
                None
            }
        }
    }

    /// A whole message that was read before.
    fn take_whole(&mut self, at: usize, buffer: &mut [u8]) -> Option<Received> {
        let connection = self.connections.get_mut(at)?.as_mut()?;
        match connection.take(self.framing, buffer) {
            Ok(Some((length, stamp))) => {
                if let Some(stamping) = &mut self.stamping {
                    let ends_read = !connection.has_part();
                    if let Some(stamps) = &mut connection.stamps {
                        stamps.numbered_message_came(stamping.received, ends_read);
                    }
                    stamping.received += 1;
                }
                if connection.has_part() {
                    self.unfinished.push_back(at);
                }
                self.last = Last::Connection(at);
                Some(Received::Message { length, at: stamp })
            }
            Ok(None) => None,
            Err(()) => {
                self.counts.broken += 1;
                self.close(at);
                None
            }
        }
    }

    fn accept(&mut self, at: usize) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // What fails here failed for the one who wanted in: the server goes on.
        let Ok(fd) = accept_with(&self.listening[at].fd, flags) else { return };
        let peer = getpeername(&fd).ok().flatten().map(Peer);
        let backend = self.listening[at].backend;
        let free = self.connections.iter().position(Option::is_none);
        let (Some(free), Some(peer), Ok(())) = (free, peer, tcp::taken(&fd, backend)) else {
            self.counts.turned_away += 1;
            return;
        };
        if self.setup.wait == Wait::BusyPoll && busy_poll::ask(&fd, backend).is_err() {
            self.counts.turned_away += 1;
            return;
        }
        let mark = (self.listening.len() + free) as u64;
        if self.gate.watch(&fd, mark).is_err() {
            self.counts.turned_away += 1;
            return;
        }
        let mut connection = Connection::new(fd, peer);
        self.stamp_connection(&mut connection, backend);
        self.connections[free] = Some(connection);
        self.counts.accepted += 1;
        self.counts.open += 1;
    }

    fn close(&mut self, at: usize) {
        if let Some(connection) = self.connections.get_mut(at).and_then(Option::take) {
            self.gate.forget(connection.fd(), (self.listening.len() + at) as u64);
            self.end_stamps(&connection);
            self.counts.open -= 1;
        }
    }

    fn send_back(&mut self, message: &[u8]) -> Result<Ticks, PortError> {
        let bytes = message.len();
        let number = self.next_answer();
        let stamp = self.stamp();
        match &self.last {
            Last::Datagram(at, Some(Peer(to))) => {
                let how = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
                let Listening { fd, stamps, .. } = &mut self.listening[*at];
                let sent = match stamps {
                    None => rustix::net::sendto(&*fd, message, how, to),
                    Some(stamps) => stamps.send(fd, (message, number), Some(to), how.bits()),
                };
                match sent {
                    Ok(_) => Ok(stamp),
                    Err(errno) => {
                        Err(PortError::of_sending(&self.facts, errno, (bytes, Nanos(0), None)))
                    }
                }
            }
            Last::Connection(at) => self.send_by(*at, (message, number), stamp),
            _ => Err(PortError::NobodyToAnswer { backend: self.facts.backend }),
        }
    }

    fn send_by(
        &mut self,
        at: usize,
        (message, number): (&[u8], u64),
        stamp: Ticks,
    ) -> Result<Ticks, PortError> {
        let backend = self.facts.backend;
        let gone = PortError::PeerGone { backend };
        let Some(connection) = self.connections.get_mut(at).and_then(Option::as_mut) else {
            return Err(gone);
        };
        let how = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let sent = match connection.parts() {
            (fd, None) => rustix::net::send(fd, message, how),
            (fd, Some(stamps)) => stamps.send_in_stream(fd, (message, number), how.bits()),
        };
        match sent {
            Ok(sent) if sent == message.len() => Ok(stamp),
            Ok(_) => {
                self.counts.stuck += 1;
                self.close(at);
                Err(PortError::SendTimedOut { backend, limit: Nanos(0) })
            }
            Err(Errno::AGAIN | Errno::INTR) => {
                Err(PortError::SendTimedOut { backend, limit: Nanos(0) })
            }
            Err(_) => {
                self.close(at);
                Err(gone)
            }
        }
    }
}

impl<C: Counter + 'static> Port for Serving<C> {
    fn send(&mut self, message: &[u8]) -> Result<Ticks, PortError> {
        let (backend, bytes) = (self.facts.backend, message.len());
        if bytes > MAX_MESSAGE {
            return Err(PortError::TooLong { backend, bytes, max: MAX_MESSAGE });
        }
        self.send_back(message)
    }

    fn receive(&mut self, buffer: &mut [u8], limit: Nanos) -> Result<Received, PortError> {
        let mut patience = Patience::new(limit, self.setup.rate);
        let mut waited = false;
        loop {
            if let Some(received) = self.next(buffer)? {
                return Ok(received);
            }
            let at = self.stamp();
            // New connections and parts of messages wake a sleeper, too.
            // So do stamps, which whoever waits is to take.
            if waited && (patience.is_over(at) || self.stamping.is_some()) {
                return Ok(Received::Nothing { at });
            }
            let left = Nanos(if waited { patience.left(at, self.setup.rate).0 } else { limit.0 });
            waited = true;
            let sockets = self.listening.len();
            let open = self.connections.iter().enumerate().filter(|(_, one)| one.is_some());
            let all = (0..sockets).chain(open.map(|(at, _)| sockets + at));
            self.gate.wait(left, &mut self.ready, all)?;
        }
    }

    fn facts(&self) -> &PortFacts {
        &self.facts
    }

    fn peer(&self) -> Option<&Peer> {
        match &self.last {
            Last::Nobody => None,
            Last::Datagram(_, peer) => peer.as_ref(),
            Last::Connection(at) => self.connections.get(*at)?.as_ref().map(Connection::peer),
        }
    }

    fn busy_polling(&self) -> BusyPolling {
        if self.setup.wait != Wait::BusyPoll {
            return BusyPolling::NotAsked;
        }
        let fds = self.listening.iter().map(|one| &one.fd);
        let open = self.connections.iter().flatten().map(Connection::fd);
        let queues = fds.chain(open).map(busy_poll::outcome);
        queues
            .max_by_key(|queue| matches!(queue, BusyPolling::Queue(_)))
            .unwrap_or(BusyPolling::NoQueue)
    }

    fn connections(&self) -> Connections {
        self.counts
    }

    fn stamp(&mut self, wish: &StampWish) -> Result<(), PortError> {
        self.ask_for_stamps(wish)
    }

    fn take_stamps(&mut self, each: &mut dyn FnMut(Stamp)) -> Result<(), PortError> {
        self.hand_over_stamps(each)
    }

    fn stamp_counts(&self) -> Option<StampCounts> {
        self.counts_of_stamps()
    }

    fn numbers(&self) -> Option<(u64, u64)> {
        self.stamping.as_ref().map(|stamping| (stamping.sent, stamping.received))
    }
}

fn listen(server: &Server) -> Result<(Listening, String), PortError> {
    let Server { transport, target, options } = server;
    let internet = |fd: OwnedFd, backend: fn(SocketAddr) -> &'static str| {
        let local = crate::address::local(&fd)?;
        let (transport, backend) = (*transport, backend(local));
        Ok((Listening { fd, transport, backend, _bound: None, stamps: None }, local.to_string()))
    };
    match (transport, target) {
        (Transport::Udp, Target::Address(at)) => {
            internet(udp::listening(*at, options)?, udp::backend)
        }
        (Transport::Tcp, Target::Address(at)) => {
            internet(tcp::listening(*at, options)?, tcp::backend)
        }
        (Transport::Unix, Target::Path(at)) => {
            let (fd, bound) = unix::listening(at, options)?;
            let local = at.display().to_string();
            let (transport, backend) = (*transport, unix::BACKEND);
            Ok((Listening { fd, transport, backend, _bound: Some(bound), stamps: None }, local))
        }
        (transport, target) => Err(wrong(*transport, target)),
    }
}
