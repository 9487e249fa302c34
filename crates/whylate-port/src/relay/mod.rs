//! Datagrams from clients to one server and back, by ordinary sockets, as a forwarder's two ends.
//!
//! One end is where clients reach it, the other leads to the server by a socket of its own for each client
//! ([`MOST_CLIENTS`]), so that each gets its own answers. Both are [`Frames`] whose frames are what the
//! datagrams carry: several of them take one call of the kernel, they are copied once from the receiving
//! to the sending memory, and what the kernel does not take at once waits and goes with the next ones.
//! Needs no capability.
//!
//! Guarantees: a datagram is sent on whole, as it came, to whom it is for, or it is counted. What the kernel
//! dropped for want of room in a socket it tells itself (`SO_MEMINFO`). An answer of the network that nobody
//! listens is of a datagram that has left: it is told, and costs none of those after it. Does not know what
//! is in a datagram; addresses, links and MTUs are the kernel's.

mod clients;
mod outbox;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::fmt;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use whylate_clock::Counter;
use whylate_model::{Nanos, Ticks};
use whylate_sys::datagrams::{self, Inbox, Letter, send_many};
use whylate_sys::epoll::{Epoll, READY};
use whylate_sys::poll::PollSet;

use self::clients::{Clients, Known, View};
use self::outbox::Outbox;
use crate::address;
use crate::end::{End, Heard, Threads};
use crate::error::PortError;
use crate::frame::Mac;
use crate::frames::{
    Amount, Arrival, BURST, Burst, Copies, Counted, Drops, Frames, FramesFacts, Ring, Rings,
};
use crate::passing::{Carried, Counts, Room};
use crate::port::Setup;
use crate::waiting::{BusyPolling, Wait, busy_poll};

pub use clients::MOST_CLIENTS;
pub use outbox::MOST_WAITING;

const BACKEND: &str = "udp";
/// Ways to wait that it has.
const CHOOSE: &str = "spin, busy-poll, poll or epoll";
/// The most that a datagram carries: what a length of 16 bits leaves beside the headers. Of IPv6 the header
/// of the protocol is not among it.
const MOST_BYTES: [usize; 2] = [65_507, 65_527];
/// Answers of the network that one call is tried again after.
const TRIES: u32 = 4;

/// Which end it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Where clients reach it.
    Clients,
    /// Towards the server.
    Server,
}

/// How it sleeps.
enum Sleep {
    /// It does not.
    Look,
    Poll(PollSet),
    Epoll(Epoll),
}

impl Sleep {
    /// Until one of these can be read.
    fn ready(wait: Wait, descriptors: &[BorrowedFd<'_>]) -> Result<Self, PortError> {
        match wait {
            Wait::Spin | Wait::BusyPoll => Ok(Self::Look),
            Wait::Poll => {
                let mut set = PollSet::with_room(descriptors.len());
                for descriptor in descriptors {
                    set.watch(descriptor, 0);
                }
                Ok(Self::Poll(set))
            }
            Wait::Epoll => {
                let failed = |source| PortError::Wait { wait, source };
                let epoll = Epoll::new().map_err(failed)?;
                for descriptor in descriptors {
                    epoll.watch(descriptor, 0).map_err(failed)?;
                }
                Ok(Self::Epoll(epoll))
            }
            Wait::Block | Wait::IoUring => {
                Err(PortError::WaitUnfit { backend: BACKEND, wait, choose: CHOOSE })
            }
        }
    }
}

/// One end, or the half of it that one thread has.
struct Relay<C> {
    side: Side,
    clients: Arc<Clients>,
    view: View,
    known: Known,
    /// None where it only sends.
    inbox: Option<Inbox>,
    /// The datagrams of the last look that are to go on: which in the inbox, and the client's place.
    came: Vec<(usize, usize)>,
    out: Outbox,
    marks: [u64; READY],
    /// Looks at the sockets towards the server: whose turn it is.
    turn: usize,
    sleep: Sleep,
    counter: C,
    facts: FramesFacts,
    taken_back: Amount,
    /// Answers of the network that nobody listens, or that nobody can be reached.
    answers: u64,
}

impl<C> fmt::Debug for Relay<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("facts", &self.facts).finish_non_exhaustive()
    }
}

/// Opens both ends: the one that clients reach at `listen`, and the one that leads to `to`. With one thread
/// each end sleeps until something comes by either, with two by its own.
///
/// # Errors
/// An address cannot be had, there is no way to the server, or it cannot wait so.
pub fn open<C: Counter + Clone + 'static>(
    listen: SocketAddr,
    to: SocketAddr,
    threads: Threads,
    setup: &Setup<C>,
) -> Result<[End; 2], PortError> {
    let clients = Arc::new(Clients::open(listen, to, setup.wait)?);
    let local = address::local(&clients.listener)?;
    let both = [clients.listener.as_fd(), clients.answers.as_fd()];
    let end = |side: Side, at: SocketAddr| -> Result<End, PortError> {
        let watched = match (threads, side) {
            (Threads::One, _) => &both[..],
            (Threads::Two, Side::Clients) => &both[..1],
            (Threads::Two, Side::Server) => &both[1..],
        };
        let sleep = Sleep::ready(setup.wait, watched)?;
        let inbox = Some(Inbox::new());
        let receiving = Relay::new((side, at), &clients, (inbox, sleep), setup);
        let sending = match threads {
            Threads::One => None,
            Threads::Two => {
                let half = Relay::new((side, at), &clients, (None, Sleep::Look), setup);
                Some(Box::new(half) as Box<dyn Frames>)
            }
        };
        Ok(End { receiving: Box::new(receiving), sending, heard: Heard::nothing() })
    };
    Ok([end(Side::Clients, local)?, end(Side::Server, to)?])
}

impl<C: Counter + Clone + 'static> Relay<C> {
    fn new(
        (side, at): (Side, SocketAddr),
        clients: &Arc<Clients>,
        (inbox, sleep): (Option<Inbox>, Sleep),
        setup: &Setup<C>,
    ) -> Self {
        Self {
            side,
            clients: Arc::clone(clients),
            view: View::default(),
            known: Known::new(setup.rate),
            inbox,
            came: Vec::with_capacity(BURST),
            out: Outbox::new(),
            marks: [0; READY],
            turn: 0,
            sleep,
            counter: setup.counter.clone(),
            facts: facts(at, setup.wait),
            taken_back: Amount::default(),
            answers: 0,
        }
    }

    /// Looks once at what has come. Gives the reading immediately afterwards.
    #[inline]
    fn look(&mut self) -> Result<Ticks, PortError> {
        self.came.clear();
        match self.side {
            Side::Clients => self.look_at_clients(),
            Side::Server => self.look_at_server(),
        }
    }

    fn look_at_clients(&mut self) -> Result<Ticks, PortError> {
        let Self { clients, known, inbox, came, counter, answers, .. } = self;
        let Some(inbox) = inbox else { return Ok(counter.read()) };
        let count = take(inbox, &clients.listener, answers)?;
        let at = counter.read();
        for slot in 0..count {
            let from = inbox.sender(slot);
            let place = from.and_then(|from| known.place(from, at, clients));
            came.extend(place.map(|place| (slot, place)));
        }
        Ok(at)
    }

    fn look_at_server(&mut self) -> Result<Ticks, PortError> {
        self.view.look(&self.clients);
        let place = self.ready()?;
        let Self { view, inbox, came, counter, answers, .. } = self;
        let client = place.and_then(|place| Some((place, view.of(place)?)));
        if let Some(((place, client), inbox)) = client.zip(inbox.as_mut()) {
            let count = take(inbox, &client.socket, answers)?;
            came.extend((0..count).map(|slot| (slot, place)));
        }
        Ok(counter.read())
    }

    /// The place of a client for whom something may have come. Of several that are ready each has its turn.
    #[inline]
    fn ready(&mut self) -> Result<Option<usize>, PortError> {
        if self.view.only.is_some() || self.view.is_empty() {
            return Ok(self.view.only);
        }
        let wait = self.facts.wait;
        let failed = |source| PortError::Wait { wait, source };
        let count = self.clients.answers.wait_ready(0, &mut self.marks).map_err(failed)?;
        self.turn = self.turn.wrapping_add(1);
        Ok((count > 0).then(|| self.marks[self.turn % count] as usize))
    }

    /// Copies a datagram to where it waits to be sent, and counts it. Is it to leave?
    #[inline]
    fn take_on(&mut self, bytes: &[u8], place: usize, counts: &mut Counts) -> bool {
        let length = bytes.len() as u64;
        counts.received += 1;
        counts.received_bytes += length;
        if bytes.len() > self.facts.room {
            counts.too_long += 1;
            return false;
        }
        let Some(free) = self.out.put(bytes.len(), place) else {
            counts.ring_full += 1;
            return false;
        };
        free.copy_from_slice(bytes);
        counts.forwarded += 1;
        counts.forwarded_bytes += length;
        true
    }

    /// Hands what waits to the kernel, as far as it takes it.
    #[inline]
    fn send_out(&mut self) -> Result<(), PortError> {
        if self.out.first().is_none() {
            return Ok(());
        }
        self.view.look(&self.clients);
        let (mut refused, mut tries) = (None, 0);
        while let Some(bytes) = self.out.first() {
            match self.send_first() {
                Ok(count) => {
                    self.out.take_off(count);
                    // What was refused before went now: that was said of earlier ones.
                    self.answers += u64::from(tries);
                    tries = 0;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(errno) if tries < TRIES && is_answer(errno) => tries += 1,
                Err(errno) => {
                    self.out.take_off(1);
                    self.taken_back.add(bytes);
                    tries = 0;
                    refused.get_or_insert(PortError::Send { backend: BACKEND, bytes, errno });
                }
            }
        }
        refused.map_or(Ok(()), Err)
    }

    /// Hands over the first of what waits, with those behind it that go by the same socket. How many the
    /// kernel took, one at least.
    fn send_first(&self) -> Result<usize, Errno> {
        let mut letters = [Letter { bytes: &[], to: None }; BURST];
        let (mut count, mut first, mut socket) = (0, None, None);
        for (place, bytes) in self.out.waiting().take(BURST) {
            // One that was given up for another meanwhile has nobody to send to.
            let Some(client) = self.view.of(place) else { break };
            let (by, to) = match self.side {
                Side::Clients => (&self.clients.listener, Some(&client.name)),
                Side::Server => (&client.socket, None),
            };
            if self.side == Side::Server && *first.get_or_insert(place) != place {
                break;
            }
            socket = Some(by);
            letters[count] = Letter { bytes, to };
            count += 1;
        }
        match send_many(socket.ok_or(Errno::NOTCONN)?, &letters[..count])? {
            0 => Err(Errno::AGAIN),
            sent => Ok(sent),
        }
    }
}

/// Takes what has come by a socket. What the network answered to those sent by it earlier is counted.
fn take(inbox: &mut Inbox, socket: &OwnedFd, answers: &mut u64) -> Result<usize, PortError> {
    for _ in 0..TRIES {
        match inbox.receive(socket) {
            Ok(count) => return Ok(count),
            Err(errno) if is_answer(errno) => *answers += 1,
            Err(errno) => return Err(PortError::Receive { backend: BACKEND, errno }),
        }
    }
    Ok(0)
}

/// Is it what the network answers to a datagram that has left (ICMP)?
fn is_answer(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::CONNREFUSED
            | Errno::HOSTUNREACH
            | Errno::NETUNREACH
            | Errno::NOPROTOOPT
            | Errno::PROTO
            | Errno::MSGSIZE
            | Errno::HOSTDOWN
    )
}

/// What an end is. It has no interface of its own: the kernel chooses one for each datagram.
fn facts(at: SocketAddr, wait: Wait) -> FramesFacts {
    FramesFacts {
        backend: BACKEND,
        interface: at.to_string(),
        index: 0,
        mac: Mac([0; 6]),
        mtu: 0,
        queues: Vec::new(),
        rings: Rings { send: MOST_WAITING as u32, ..Rings::default() },
        buffer: datagrams::ROOM as u32,
        room: MOST_BYTES[usize::from(at.is_ipv6())],
        copies: Copies::Sockets,
        attachment: None,
        tells_wakeups: false,
        bypasses_qdisc: false,
        instead: Vec::new(),
        wait,
    }
}

impl<C: Counter + Clone + 'static> Frames for Relay<C> {
    fn receive(&mut self, limit: Nanos) -> Result<Burst, PortError> {
        let mut at = self.look()?;
        if self.came.is_empty() && limit > Nanos(0) {
            self.sleep(limit)?;
            at = self.look()?;
        }
        Ok(Burst { count: self.came.len(), at })
    }

    fn frame(&self, at: usize) -> Arrival<'_> {
        let (slot, _) = self.came[at];
        let bytes = self.inbox.as_ref().map_or(&[][..], |inbox| inbox.bytes(slot));
        Arrival { bytes, stripped: None, kernel: None, queue: 0 }
    }

    fn put(&mut self, length: usize) -> Option<&mut [u8]> {
        if length > self.facts.room {
            return None;
        }
        self.out.put(length, 0)
    }

    fn flush(&mut self) -> Result<Ticks, PortError> {
        let at = self.counter.read();
        self.send_out()?;
        Ok(at)
    }

    fn urge(&mut self) -> Result<Ticks, PortError> {
        self.send_out()?;
        Ok(self.counter.read())
    }

    fn sleep(&mut self, limit: Nanos) -> Result<(), PortError> {
        let wait = self.facts.wait;
        let told = match &mut self.sleep {
            Sleep::Look => return Ok(()),
            Sleep::Poll(set) => set.wait_ready(limit.0, &mut self.marks),
            Sleep::Epoll(epoll) => epoll.wait_ready(limit.0, &mut self.marks),
        };
        told.map(|_| ()).map_err(|source| PortError::Wait { wait, source })
    }

    fn facts(&self) -> &FramesFacts {
        &self.facts
    }

    fn drops(&mut self) -> Result<Vec<Drops>, PortError> {
        let (queue, of) = (0, Counted::Frames);
        let mut told = Vec::new();
        if self.inbox.is_some() {
            let (backend, what) = (BACKEND, "count of what was dropped");
            let failed = |errno| PortError::Option { backend, what, errno };
            let count = match self.side {
                Side::Clients => {
                    u64::from(datagrams::dropped(&self.clients.listener).map_err(failed)?)
                }
                Side::Server => self.clients.dropped(),
            };
            told.push(Drops { queue, ring: Ring::Receive, counter: "sk_drops", count, of });
        }
        match self.side {
            Side::Clients => {
                let (counter, count) = ("no place for its client", self.known.turned_away);
                told.push(Drops { queue, ring: Ring::Receive, counter, count, of });
            }
            Side::Server => {
                let (counter, count) = ("answers that nobody is there (ICMP)", self.answers);
                let of = Counted::Occasions;
                told.push(Drops { queue, ring: Ring::Send, counter, count, of });
            }
        }
        Ok(told)
    }

    fn busy_polling(&self) -> BusyPolling {
        if self.facts.wait != Wait::BusyPoll || self.inbox.is_none() {
            return BusyPolling::NotAsked;
        }
        match self.side {
            Side::Clients => busy_poll::outcome(&self.clients.listener),
            Side::Server => {
                let first = self.view.first();
                first.map_or(BusyPolling::NoQueue, |client| busy_poll::outcome(&client.socket))
            }
        }
    }

    fn waiting(&mut self) -> Amount {
        self.out.amount()
    }

    fn taken_back(&self) -> Amount {
        self.taken_back
    }

    /// Each datagram goes with the place of its client, whatever its length; `room` is of links, and here
    /// what one datagram can carry.
    fn carry(
        &mut self,
        frames: usize,
        to: &mut dyn Frames,
        room: Room,
        counts: &mut Counts,
    ) -> u64 {
        let Some(inbox) = &self.inbox else { return 0 };
        let came = self.came.iter().take(frames).enumerate();
        let mut leaving = 0;
        let bursts = counts.bursts + 1;
        if let Some(other) = to.as_any().and_then(<dyn Any>::downcast_mut::<Self>) {
            for (at, (slot, place)) in came {
                let leaves = other.take_on(inbox.bytes(*slot), *place, counts);
                leaving |= u64::from(leaves).wrapping_shl(at as u32);
            }
        } else {
            for (at, (slot, _)) in came {
                let one = [Carried { bytes: inbox.bytes(*slot), stripped: None }];
                leaving |= to.take_in(&one, room, counts).wrapping_shl(at as u32);
            }
        }
        counts.bursts = bursts;
        leaving
    }

    fn take_in(&mut self, burst: &[Carried<'_>], _room: Room, counts: &mut Counts) -> u64 {
        let mut leaving = 0;
        counts.bursts += 1;
        for (at, datagram) in burst.iter().enumerate() {
            let leaves = self.take_on(datagram.bytes, 0, counts);
            leaving |= u64::from(leaves).wrapping_shl(at as u32);
        }
        leaving
    }

    fn as_any(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }
}
