//! The queues of sockets: what was delivered waits here until it is read.
//!
//! A datagram is read by one call; of a stream, a call reads bytes. Where the kernel tells which buffer a
//! call copied, the datagram is that one: what was in the queue before anything was seen of it, and what
//! several threads read at once, is mistaken for nothing else. Elsewhere it is the first. A queue that turns out to be other
//! than what was seen of it is emptied and not trusted until it is found again: when a call finds it
//! empty, when a call copies the newest piece whole, or when the queue has been at its lowest so often
//! without going lower that this must be its bottom.
//!
//! Who spins may read what the kernel has not told of yet. Such a read waits for the delivery: of a
//! datagram for the next one, of a stream, by the sequence of bytes, until all that it read are there,
//! and the reads behind it with it. What arrives only after a read was not read by it.

use std::collections::{HashMap, VecDeque};

use whylate_model::{Pid, Ticks};

use super::counts::FollowCounts;
use super::walk::Way;

/// So often at its lowest, a queue is taken to be empty there.
const LOWS_ENOUGH: u32 = 8;
/// Reads of a socket that wait for the events of their deliveries.
const EARLY_KEPT: usize = 64;

/// Something in a socket's queue.
#[derive(Debug)]
pub(super) struct Waiting {
    /// How it came; none of what was not seen to arrive.
    pub(super) way: Option<Way>,
    pub(super) skb: Option<u64>,
    pub(super) delivered: Ticks,
    /// Of a stream: its bytes. Of a datagram: no more than this.
    pub(super) bytes: u32,
    /// Not read yet.
    left: u32,
}

impl Waiting {
    pub(super) fn new(way: Option<Way>, skb: Option<u64>, delivered: Ticks, bytes: u32) -> Self {
        Self { way, skb, delivered, bytes, left: bytes }
    }
}

/// A call that read: a datagram, or bytes of a stream. It may have been before the event of their
/// delivery: a reader that spins on another CPU finds them in the queue while the kernel is about to tell.
#[derive(Debug, Clone, Copy)]
pub(super) struct Early {
    pub(super) at: Ticks,
    /// The buffer that it copied; none where the kernel did not tell.
    pub(super) skb: Option<u64>,
    pub(super) pid: Pid,
    pub(super) lane: usize,
    pub(super) bytes: u32,
}

/// A read of a stream that waits for the delivery of what it read.
#[derive(Debug, Clone, Copy)]
struct Ahead {
    read: Early,
    /// Nothing was there that it could have read.
    unseen: bool,
}

#[derive(Debug, Default)]
struct Socket {
    waiting: VecDeque<Waiting>,
    /// Reads of datagrams whose deliveries are to come; the queue is empty meanwhile.
    early: VecDeque<Early>,
    /// Reads of a stream of which some bytes are to come, and all those behind them, in their order.
    ahead: VecDeque<Ahead>,
    /// A call found nothing there since the last of them.
    emptied: bool,
    /// What is known of a queue that is not trusted.
    doubt: Option<Doubt>,
}

/// Deliveries less reads since the queue was lost, and how low that went.
#[derive(Debug, Default)]
struct Doubt {
    balance: i64,
    lowest: i64,
    times: u32,
    newest: Option<(u64, u32)>,
}

/// All sockets that something was delivered to.
#[derive(Debug)]
pub(super) struct Sockets {
    known: HashMap<u64, Socket>,
    /// The socket in whose queue a buffer is.
    places: HashMap<u64, u64>,
    most: usize,
    most_waiting: usize,
    /// Sockets that are heard of for the first time may hold messages that were not seen.
    doubted: bool,
}

impl Sockets {
    pub(super) fn new(most: usize, most_waiting: usize) -> Self {
        Self {
            known: HashMap::new(),
            places: HashMap::new(),
            most: most.max(1),
            most_waiting: most_waiting.max(1),
            doubted: false,
        }
    }

    /// Forgets every queue and trusts none; the numbers of the messages that were in them.
    pub(super) fn clear(&mut self) -> Vec<u64> {
        self.doubted = true;
        self.places.clear();
        let all = self.known.drain().flat_map(|(_, socket)| socket.waiting);
        all.filter_map(|waiting| waiting.way).map(|way| way.id).collect()
    }

    /// Sockets that are heard of from now on may hold messages that were not seen.
    pub(super) fn doubt(&mut self) {
        self.doubted = true;
    }

    /// Messages that wait in any queue.
    pub(super) fn messages(&self) -> u64 {
        let all = self.known.values().flat_map(|socket| &socket.waiting);
        all.filter(|waiting| waiting.way.is_some()).count() as u64
    }

    /// Puts something into a queue; gives it back where there is no room or no trust. A datagram that was in
    /// its buffer before is no more, and goes to `lost`.
    #[expect(clippy::result_large_err, reason = "what is given back is what was given")]
    pub(super) fn deliver(
        &mut self,
        at: u64,
        waiting: Waiting,
        stream: bool,
        lost: &mut Vec<u64>,
    ) -> Result<(), Waiting> {
        if let Some(skb) = waiting.skb.filter(|_| !stream) {
            lost.extend(self.drop_buffer(skb).map(|way| way.id));
        }
        if self.known.len() >= self.most && !self.known.contains_key(&at) {
            self.known.retain(|_, socket| !socket.waiting.is_empty());
            if self.known.len() >= self.most {
                return Err(waiting);
            }
        }
        let doubted = self.doubted;
        let socket = self
            .known
            .entry(at)
            .or_insert_with(|| Socket { doubt: doubted.then(Doubt::default), ..Socket::default() });
        if let Some(doubt) = &mut socket.doubt {
            doubt.balance += if stream { i64::from(waiting.bytes) } else { 1 };
            doubt.newest = waiting.skb.map(|skb| (skb, waiting.bytes));
            return Err(waiting);
        }
        if socket.waiting.len() >= self.most_waiting {
            return Err(waiting);
        }
        if let Some(skb) = waiting.skb {
            self.places.insert(skb, at);
        }
        socket.waiting.push_back(waiting);
        Ok(())
    }

    /// The read of the datagram that is delivered now, which came by `way`, where that was before.
    /// Reads of what was not seen to arrive are forgotten.
    pub(super) fn read_early(
        &mut self,
        at: u64,
        (skb, way): (Option<u64>, Option<&Way>),
        counts: &mut FollowCounts,
    ) -> Option<Early> {
        let socket = self.known.get_mut(&at)?;
        let way = way?;
        let arrived = way.passage.arrived?;
        let fits = |early: &Early| {
            let another = matches!((early.skb, skb), (Some(read), Some(came)) if read != came);
            early.at > arrived && early.bytes <= way.length && !another
        };
        let found = socket.early.iter().position(fits);
        let early = found.and_then(|place| socket.early.remove(place));
        // Of those before it, who copied another buffer may be told of it yet.
        let mut place = 0;
        socket.early.retain(|of| {
            place += 1;
            found.is_some_and(|found| place > found) || (of.skb.is_some() && of.at > arrived)
        });
        counts.read_unseen = counts.read_unseen.saturating_sub(u64::from(early.is_some()));
        early
    }

    /// A call read a datagram.
    pub(super) fn read_datagram(
        &mut self,
        at: u64,
        read: Early,
        counts: &mut FollowCounts,
        lost: &mut Vec<u64>,
    ) -> Option<Waiting> {
        let length = read.bytes;
        if !self.known.contains_key(&at) && self.known.len() < self.most {
            let doubt = self.doubted.then(Doubt::default);
            self.known.insert(at, Socket { doubt, ..Socket::default() });
        }
        let Some(socket) = self.known.get_mut(&at) else {
            counts.read_unseen += 1;
            return None;
        };
        if let Some(doubt) = &mut socket.doubt {
            counts.untrusted += 1;
            if doubt.read(1) {
                socket.doubt = None;
                counts.found_again += 1;
            }
            return None;
        }
        let Some(first) = socket.take_datagram(read.skb) else {
            counts.read_unseen += 1;
            if socket.early.len() == EARLY_KEPT {
                socket.early.pop_front();
            }
            socket.early.push_back(read);
            return None;
        };
        self.forget_place(&first, at);
        // More than the whole frame: this is another one.
        if length > first.bytes {
            lost.extend(first.way.map(|way| way.id));
            self.out_of_step(at, counts, lost);
            return None;
        }
        Some(first)
    }

    /// A call read bytes of a stream; what it read the last byte of goes to `read`, now or with
    /// [`Self::next_ahead`].
    pub(super) fn read_stream(
        &mut self,
        at: u64,
        (by, copied): (Early, Option<(u64, u32)>),
        counts: &mut FollowCounts,
        (read, lost): (&mut Vec<Waiting>, &mut Vec<u64>),
    ) {
        let length = by.bytes;
        if !self.doubted && !self.known.contains_key(&at) && self.known.len() < self.most {
            self.known.insert(at, Socket::default());
        }
        let Some(socket) = self.known.get_mut(&at) else {
            counts.read_unseen += 1;
            return;
        };
        if let Some(doubt) = &mut socket.doubt {
            counts.untrusted += 1;
            let newest = copied.is_some() && copied == doubt.newest;
            if doubt.read(length.into()) || newest {
                socket.doubt = None;
                counts.found_again += 1;
            }
            return;
        }
        if socket.ahead.is_empty() && u64::from(length) <= socket.bytes() {
            self.take_bytes(at, length, counts, read);
        } else {
            self.wait(at, by, counts, lost);
        }
    }

    /// A read that waits until all its bytes are there.
    fn wait(&mut self, at: u64, read: Early, counts: &mut FollowCounts, lost: &mut Vec<u64>) {
        let Some(socket) = self.known.get_mut(&at) else { return };
        let there = socket.bytes();
        if socket.ahead.len() == EARLY_KEPT {
            if there > 0 {
                return self.out_of_step(at, counts, lost);
            }
            socket.ahead.pop_front();
        }
        let ahead: u64 = socket.ahead.iter().map(|of| u64::from(of.read.bytes)).sum();
        let unseen = there <= ahead;
        counts.read_unseen += u64::from(unseen);
        socket.ahead.push_back(Ahead { read, unseen });
        socket.emptied = false;
    }

    /// A piece of a stream that came by `way` is about to be delivered: what was read before it arrived
    /// was not read of it. Where nothing else was in the queue, that was not seen to come and is
    /// forgotten; otherwise the queue is not what was seen of it.
    pub(super) fn piece_comes(
        &mut self,
        at: u64,
        way: Option<&Way>,
        counts: &mut FollowCounts,
        lost: &mut Vec<u64>,
    ) {
        let Some(arrived) = way.and_then(|way| way.passage.arrived) else { return };
        let Some(socket) = self.known.get_mut(&at) else { return };
        if socket.ahead.iter().all(|of| of.read.at > arrived) {
            return;
        }
        if socket.waiting.is_empty() {
            socket.ahead.retain(|of| of.read.at > arrived);
        } else {
            let emptied = socket.emptied;
            self.out_of_step(at, counts, lost);
            if emptied {
                self.found_empty(at, counts);
            }
        }
    }

    /// The next read of a stream that had to wait and whose bytes are all there by now; what it read the
    /// last byte of goes to `read`.
    pub(super) fn next_ahead(
        &mut self,
        at: u64,
        counts: &mut FollowCounts,
        read: &mut Vec<Waiting>,
    ) -> Option<Early> {
        let socket = self.known.get_mut(&at)?;
        if u64::from(socket.ahead.front()?.read.bytes) > socket.bytes() {
            return None;
        }
        let Ahead { read: by, unseen } = socket.ahead.pop_front()?;
        counts.read_unseen = counts.read_unseen.saturating_sub(u64::from(unseen));
        self.take_bytes(at, by.bytes, counts, read);
        Some(by)
    }

    /// Takes bytes that are there; what they are the last of goes to `read`.
    fn take_bytes(
        &mut self,
        at: u64,
        mut length: u32,
        counts: &mut FollowCounts,
        read: &mut Vec<Waiting>,
    ) {
        let Some(socket) = self.known.get_mut(&at) else { return };
        let before = read.len();
        while length > 0
            && let Some(first) = socket.waiting.front_mut()
        {
            let taken = first.left.min(length);
            length -= taken;
            first.left -= taken;
            if first.left > 0 {
                counts.split += u64::from(first.left + taken == first.bytes);
            } else {
                read.extend(socket.waiting.pop_front());
            }
        }
        counts.merged += u64::from(read.len() > before + 1);
        for waiting in &read[before..] {
            if let Some(skb) = waiting.skb {
                self.places.remove(&skb);
            }
        }
    }

    /// A call found the queue empty.
    pub(super) fn found_empty(&mut self, at: u64, counts: &mut FollowCounts) {
        let Some(socket) = self.known.get_mut(&at) else { return };
        socket.emptied = true;
        counts.found_again += u64::from(socket.doubt.take().is_some());
    }

    /// Takes a buffer that is dropped out of the queue that it is in.
    pub(super) fn drop_buffer(&mut self, skb: u64) -> Option<Way> {
        let socket = self.known.get_mut(&self.places.remove(&skb)?)?;
        let at = socket.waiting.iter().position(|waiting| waiting.skb == Some(skb))?;
        socket.waiting.remove(at)?.way
    }

    /// The queue is not what was seen of it.
    fn out_of_step(&mut self, at: u64, counts: &mut FollowCounts, lost: &mut Vec<u64>) {
        let Some(socket) = self.known.get_mut(&at) else { return };
        counts.out_of_step += 1;
        socket.doubt = Some(Doubt::default());
        socket.early.clear();
        socket.ahead.clear();
        for waiting in socket.waiting.drain(..) {
            if let Some(skb) = waiting.skb {
                self.places.remove(&skb);
            }
            lost.extend(waiting.way.map(|way| way.id));
        }
    }

    fn forget_place(&mut self, waiting: &Waiting, at: u64) {
        if let Some(skb) = waiting.skb
            && self.places.get(&skb) == Some(&at)
        {
            self.places.remove(&skb);
        }
    }
}

impl Socket {
    /// The datagram that was in this buffer; the first where the buffer is not known of either.
    fn take_datagram(&mut self, skb: Option<u64>) -> Option<Waiting> {
        let first = self.waiting.front()?;
        let place = match skb {
            Some(_) if first.skb.is_some() => {
                self.waiting.iter().position(|waiting| waiting.skb == skb)?
            }
            _ => 0,
        };
        self.waiting.remove(place)
    }

    /// Bytes of a stream that are there and were not read.
    fn bytes(&self) -> u64 {
        self.waiting.iter().map(|waiting| u64::from(waiting.left)).sum()
    }
}

impl Doubt {
    /// Whether the queue is at its bottom.
    fn read(&mut self, length: i64) -> bool {
        self.balance -= length;
        if self.balance < self.lowest {
            (self.lowest, self.times) = (self.balance, 0);
        }
        self.times += u32::from(self.balance == self.lowest);
        self.times >= LOWS_ENOUGH
    }
}
