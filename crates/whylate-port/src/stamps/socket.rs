//! The stamps of one socket: what it asks for with each message, and what it takes in.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::SocketAddrAny;
use whylate_model::Nanos;
use whylate_sys::ethtool;
use whylate_sys::timestamping::{self, AT_ONCE, Asked, ErrorQueue, Flags, Report, Sending, Times};

use super::card::{Card, Share};
use super::matching::{GIVEN_UP_AFTER, Matching, Placed};
use super::sent::{Less, Numbers, Sent};
use super::{KindCounts, Stamp, StampCounts, StampKind, StampWish, registers, takes_own_ids};
use crate::error::PortError;
use crate::facts::SocketFacts;

/// Stamps of receptions that wait to be taken.
const WAITING: usize = 1 << 10;
/// System calls that taking makes at most: what is left is taken the next time.
const LOOKS: usize = 4;
/// Looks after which an acknowledgement that has not come is looked for again.
pub(super) const LOOKS_FOR_ACKS: u32 = 16;

/// How the stamps of a sending say whose they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ids {
    /// By a number that went along with the message.
    Own,
    /// By the kernel's count of datagrams.
    Counted,
    /// By the number of a byte.
    Bytes,
}

/// Stamps of one socket.
#[derive(Debug)]
pub(crate) struct SocketStamps {
    wish: StampWish,
    ids: Ids,
    /// Of the registers of a card that has few.
    card: Option<Arc<Share>>,
    /// The numbers of messages, where the port has this socket alone.
    numbers: Arc<Numbers>,
    sent: Arc<Sent>,
    /// Of this half: messages since the last one that was sampled.
    since_sampled: u32,
    matching: Matching,
    queue: ErrorQueue,
    /// Of the read before.
    pub(super) last: Times,
    received: u64,
    arrivals: VecDeque<Stamp>,
    counts: StampCounts,
    dropped: u32,
    /// Looks since an acknowledgement was looked for, and what had been received by then.
    ack_looks: u32,
    received_then: u64,
    /// Looks since a kind was looked for of which none has ever come.
    barren_looks: u32,
    /// The next note of what was not asked for.
    note: u64,
}

impl SocketStamps {
    /// Asks the kernel for stamps. `facts` tell the interface, whose driver may have a limit.
    pub(crate) fn ask(
        fd: &OwnedFd,
        wish: &StampWish,
        stream: bool,
        facts: Option<&SocketFacts>,
        backend: &'static str,
    ) -> Result<Self, PortError> {
        let ids = match (stream, takes_own_ids()) {
            (true, _) => Ids::Bytes,
            (false, true) => Ids::Own,
            (false, false) => Ids::Counted,
        };
        let interface = facts.and_then(|facts| facts.interface.as_ref());
        let card = interface.filter(|_| wish.hardware).and_then(|name| {
            let driver = ethtool::driver(name).ok()?;
            Some(Card::of(name, registers(&driver)?))
        });
        Self::asking(fd, wish, (ids, card), Sent::new(), backend)
    }

    pub(super) fn asking(
        fd: &OwnedFd,
        wish: &StampWish,
        (ids, card): (Ids, Option<Arc<Card>>),
        sent: Sent,
        backend: &'static str,
    ) -> Result<Self, PortError> {
        // Only TCP is told what the other end has.
        let wish =
            StampWish { ack: wish.ack && ids == Ids::Bytes, every: wish.every.max(1), ..*wish };
        let matching = Matching::new(sent.asked());
        let stamps = Self {
            wish,
            ids,
            card: card.map(|card| Arc::new(Share::of(card))),
            numbers: Arc::default(),
            sent: Arc::new(sent),
            since_sampled: 0,
            matching,
            queue: ErrorQueue::default(),
            last: Times::default(),
            received: 0,
            arrivals: VecDeque::with_capacity(WAITING),
            counts: StampCounts::default(),
            dropped: 0,
            ack_looks: 0,
            received_then: 0,
            barren_looks: 0,
            note: 0,
        };
        // Whoever had the socket before may have counted: ids begin when the flag is set.
        timestamping::set(fd, Flags::default())
            .and_then(|()| timestamping::set(fd, stamps.flags()))
            .map_err(|errno| PortError::StampsRefused { backend, errno })?;
        // Where the kernel counts what finds no room, it is said; elsewhere nothing is known.
        let _ = timestamping::count_dropped(fd);
        Ok(stamps)
    }

    /// The same for another half of the port, which shares what was sent.
    pub(crate) fn half(&self) -> Self {
        Self {
            wish: self.wish,
            ids: self.ids,
            card: self.card.clone(),
            numbers: Arc::clone(&self.numbers),
            sent: Arc::clone(&self.sent),
            since_sampled: self.since_sampled,
            matching: Matching::new(self.sent.asked()),
            queue: ErrorQueue::default(),
            last: Times::default(),
            received: self.received,
            arrivals: VecDeque::with_capacity(WAITING),
            counts: StampCounts::default(),
            dropped: 0,
            ack_looks: 0,
            received_then: 0,
            barren_looks: 0,
            note: 0,
        }
    }

    /// What the socket asks for, whatever its messages ask.
    fn flags(&self) -> Flags {
        let ways = self.wish.ways(self.ids == Ids::Bytes);
        if self.asks_by_message() { ways } else { ways.with(self.wish.records()) }
    }

    /// Do some messages ask for other stamps than others?
    fn asks_by_message(&self) -> bool {
        self.wish.every > 1 || self.card.is_some()
    }

    pub(crate) fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// Messages received so far.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// What the next message asks for.
    #[inline]
    fn records(&mut self) -> Flags {
        let mut records = self.wish.records();
        if self.wish.every > 1 {
            let sampled = self.since_sampled == 0;
            self.since_sampled = (self.since_sampled + 1) % self.wish.every;
            if !sampled {
                return Flags::default();
            }
        }
        if let Some(card) = &self.card
            && !card.take()
        {
            records = records.without(Flags::TX_HARDWARE);
        }
        records
    }

    /// How much less than is wished a message with these records asks for; none where it is all.
    fn less(&self, records: Flags) -> Option<Less> {
        if !self.asks_by_message() || self.wish.records() == Flags::default() {
            return None;
        }
        if records == Flags::default() {
            return Some(Less::Everything);
        }
        let busy = self.wish.hardware && !records.has(Flags::TX_HARDWARE);
        busy.then_some(Less::Hardware)
    }

    /// The message of this number was sent, and asked for so much less than is wished.
    fn note(&self, number: u64, less: Option<Less>) {
        let Some(less) = less else { return };
        let kinds = match less {
            Less::Everything => self.wish.sendings(),
            Less::Hardware => StampKind::Hardware.bit(),
        };
        self.sent.note(number, less, kinds);
    }

    /// Hands over the messages of which less than is wished was asked for, with the kinds that were not,
    /// a bit each, since the last time.
    pub(crate) fn take_not_asked(&mut self, each: &mut dyn FnMut(u64, u8)) {
        self.note = self.sent.notes(self.note, each);
    }

    /// Sends a datagram, which is the message of this number.
    pub(crate) fn send(
        &mut self,
        fd: &OwnedFd,
        (message, number): (&[u8], u64),
        to: Option<&SocketAddrAny>,
        how: u32,
    ) -> Result<usize, Errno> {
        let records = self.records();
        let by_message = self.asks_by_message().then_some(records);
        let less = self.less(records);
        if records == Flags::default() {
            let asked = Asked { records: by_message, id: None };
            let sent = timestamping::send(fd, message, to, how, asked);
            if sent.is_ok() {
                self.note(number, less);
            }
            return sent;
        }
        let place = self.sent.ask(number, 0, records.has(Flags::TX_HARDWARE));
        let id = (self.ids == Ids::Own).then_some(place as u32);
        let sent = timestamping::send(fd, message, to, how, Asked { records: by_message, id });
        // Interrupted ones are sent once more by the caller, as another place of the same number.
        if sent.is_err() {
            self.refuse(place, records.has(Flags::TX_HARDWARE));
            if self.ids == Ids::Counted {
                self.count_anew(fd);
            }
        } else {
            self.note(number, less);
        }
        sent
    }

    /// The message of this place was not sent: the card, where it was asked, stamps nothing.
    #[cold]
    fn refuse(&self, place: u64, by_card: bool) {
        self.sent.refuse(place);
        if let Some(card) = self.card.as_ref().filter(|_| by_card) {
            card.free();
        }
    }

    /// Nobody knows whether the kernel counted a message that it refused: it is to begin again.
    #[cold]
    fn count_anew(&mut self, fd: &OwnedFd) {
        let flags = self.flags();
        let again = timestamping::set(fd, flags.without(Flags::OPT_ID))
            .and_then(|()| timestamping::set(fd, flags));
        if again.is_ok() {
            self.sent.count_anew();
        }
    }

    /// The message of this number and length is about to be written to a stream.
    pub(crate) fn begin(&mut self, number: u64, length: usize) -> Writing {
        let records = self.records();
        let end = self.sent.written(length as u64);
        let asks = records != Flags::default();
        let by_card = records.has(Flags::TX_HARDWARE);
        let place = asks.then(|| self.sent.ask(number, end, by_card));
        let less = self.less(records);
        let records = self.asks_by_message().then_some(records);
        Writing { place, by_card, records, length, number, less }
    }

    /// All of it was written.
    #[inline]
    pub(crate) fn all_written(&self, writing: &Writing) {
        self.note(writing.number, writing.less);
    }

    /// Writes a piece of it.
    pub(crate) fn write(
        fd: &OwnedFd,
        writing: &Writing,
        piece: &[u8],
        how: u32,
    ) -> Result<usize, Errno> {
        let asked = Asked { records: writing.records, id: None };
        timestamping::send(fd, piece, None, how, asked)
    }

    /// Writes a message to a stream by one system call; what was not taken is the caller's matter.
    pub(crate) fn send_in_stream(
        &mut self,
        fd: &OwnedFd,
        (message, number): (&[u8], u64),
        how: u32,
    ) -> Result<usize, Errno> {
        let writing = self.begin(number, message.len());
        let sent = Self::write(fd, &writing, message, how);
        if sent.is_err() {
            self.not_written(&writing);
        } else {
            self.all_written(&writing);
        }
        sent
    }

    /// Nothing of it was written.
    #[cold]
    pub(crate) fn not_written(&mut self, writing: &Writing) {
        match writing.place {
            Some(place) => {
                self.sent.not_written(place, writing.length as u64);
                self.refuse(place, writing.by_card);
            }
            None => self.sent.take_back(writing.length as u64),
        }
    }

    /// Receives by one system call.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        fd: &OwnedFd,
        buffer: &mut [u8],
        how: u32,
    ) -> Result<(usize, Option<SocketAddrAny>), Errno> {
        let came = timestamping::receive(fd, buffer, how)?;
        self.last = came.times;
        if let Some(dropped) = came.dropped {
            self.counts.dropped += u64::from(dropped.wrapping_sub(self.dropped));
            self.dropped = dropped;
        }
        Ok((came.length, came.from))
    }

    /// What was read last completed a message of the port: of the one socket that it has. The stamps of
    /// a read are those of its last byte: they are this message's where it `ends_read`, and none of those
    /// that came before it in the same read.
    #[inline]
    pub(crate) fn message_came(&mut self, ends_read: bool) {
        let number = self.received;
        self.received += 1;
        self.numbered_message_came(number, ends_read);
    }

    /// The same, where the port has several sockets and numbers what comes by all of them.
    #[inline]
    pub(crate) fn numbered_message_came(&mut self, message: u64, ends_read: bool) {
        let times = self.last;
        let of = [
            (StampKind::ReceivedSoftware, times.software),
            (StampKind::ReceivedHardware, times.hardware),
        ];
        for (kind, at) in of {
            if !self.wish.has(kind) {
                continue;
            }
            let counts = self.counts.kind(kind);
            counts.expected += 1;
            let Some(at) = at else { continue };
            if !ends_read {
                counts.merged += 1;
                continue;
            }
            counts.delivered += 1;
            if self.arrivals.len() < WAITING {
                self.arrivals.push_back(Stamp { message, kind, at: Nanos(at) });
            } else {
                self.counts.crowded_out += 1;
            }
        }
    }

    /// Hands over the stamps that have come: of receptions all, of sendings at most as many as a few
    /// system calls bring. Never waits. An error is one of the network, which nobody has been told yet.
    pub(crate) fn take(&mut self, fd: &OwnedFd, each: &mut dyn FnMut(Stamp)) -> Result<(), Errno> {
        while let Some(stamp) = self.arrivals.pop_front() {
            each(stamp);
        }
        if !self.waits() {
            return Ok(());
        }
        let mut failed = None;
        for _ in 0..LOOKS {
            let Self { wish, queue, matching, sent, counts, ids, card, .. } = self;
            let came = queue.read(fd, |report| match report {
                Report::Stamp { sending, id, times } => {
                    let of = (&mut *matching, &**sent, &mut *counts, (*ids, wish.software));
                    place(of, card.as_deref(), (sending, id, times), &mut *each);
                }
                Report::Error(errno) => {
                    counts.errors += 1;
                    failed = Some(errno);
                }
                Report::Unreadable => counts.unreadable += 1,
            })?;
            if came < AT_ONCE {
                break;
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Is any stamp of a sending to come yet, and worth a system call?
    ///
    /// An acknowledgement is under way for as long as a reply may be. It is looked for where something was
    /// received, which brought it, and else now and then: a call each time would make every turn of who
    /// spins for the reply longer. A kind of which many were asked for and none has come is looked for as
    /// rarely: it would cost a call each time for ever.
    #[inline]
    pub(super) fn waits(&mut self) -> bool {
        let Self { wish, sent, matching, counts, .. } = self;
        let many = sent.taken() > GIVEN_UP_AFTER;
        let mut barren = false;
        let mut lacks = |kind| wish.has(kind) && matching.waits(sent, kind);
        for kind in
            [StampKind::Hardware, StampKind::Sched, StampKind::Software, StampKind::Completion]
        {
            if !lacks(kind) {
                continue;
            }
            if !many || counts.of(kind).delivered > 0 {
                return true;
            }
            barren = true;
        }
        let acknowledged = lacks(StampKind::Ack);
        if barren {
            self.barren_looks += 1;
            if self.barren_looks >= LOOKS_FOR_ACKS {
                self.barren_looks = 0;
                return true;
            }
        }
        if !acknowledged {
            return false;
        }
        self.ack_looks += 1;
        if self.received == self.received_then && self.ack_looks < LOOKS_FOR_ACKS {
            return false;
        }
        (self.ack_looks, self.received_then) = (0, self.received);
        true
    }

    /// What became of all so far.
    pub(crate) fn counts(&self) -> StampCounts {
        let mut counts = self.counts;
        let asked = self.sent.taken();
        for kind in StampKind::ALL {
            counts.wished[kind.index()] = self.wish.has(kind);
            if self.wish.has(kind) && !kind.is_received() {
                let hardware = kind == StampKind::Hardware;
                let (sampled_out, busy) = self.sent.not_asked();
                let of = counts.kind(kind);
                of.expected = if hardware { self.sent.hardware().0 } else { asked };
                of.not_asked = sampled_out + if hardware { busy } else { 0 };
            }
        }
        counts
    }
}

/// A message on its way into a stream.
#[derive(Debug)]
pub(crate) struct Writing {
    place: Option<u64>,
    by_card: bool,
    records: Option<Flags>,
    length: usize,
    number: u64,
    less: Option<Less>,
}

/// With what ids say, and whether stamps of the driver are wished for.
type Places<'a> = (&'a mut Matching, &'a Sent, &'a mut StampCounts, (Ids, bool));

/// A stamp of a sending came.
#[inline]
pub(super) fn place(
    (matching, sent, counts, (ids, by_driver)): Places<'_>,
    card: Option<&Share>,
    (sending, id, times): (Sending, u32, Times),
    each: &mut dyn FnMut(Stamp),
) {
    let (kind, at) = match (sending, times) {
        (Sending::Scheduled, _) => (StampKind::Sched, times.software),
        (Sending::Acknowledged, _) => (StampKind::Ack, times.software),
        (Sending::Completed, _) => (StampKind::Completion, times.software),
        (Sending::Sent, Times { hardware: Some(at), .. }) => (StampKind::Hardware, Some(at)),
        (Sending::Sent, Times { software: Some(at), .. }) => (StampKind::Software, Some(at)),
        (Sending::Sent, _) => (matching.untimed(sent, id, (ids == Ids::Bytes, by_driver)), None),
        (Sending::Other(_), _) => {
            counts.unreadable += 1;
            return;
        }
    };
    let of: &mut KindCounts = counts.kind(kind);
    // Its register is free again, whatever it told.
    if kind == StampKind::Hardware {
        sent.hardware_came();
        if let Some(card) = card {
            card.free();
        }
    }
    let Some(at) = at else {
        of.zero += 1;
        return;
    };
    let placed = match ids {
        Ids::Bytes => matching.byte(sent, id, kind, of),
        Ids::Own | Ids::Counted => matching.datagram(sent, id, kind, of),
    };
    let Placed::Places(from, to) = placed else { return };
    for message in (from..to).filter_map(|place| sent.message(place)) {
        each(Stamp { message, kind, at: Nanos(at) });
    }
}
