//! The walk over all events in the order of time: buffers on their way, what each CPU is at.
//!
//! What a step is taken for:
//! - a frame that a thread queues, outside of a soft interrupt, is that thread's, and of the call that
//!   it is in; in a soft interrupt the current thread has nothing to do with it;
//! - a buffer that is queued again before it arrived, by the same call, or after it arrived, in a soft
//!   interrupt, goes through another interface; any other queueing begins a new message;
//! - a buffer that arrives is the message that was given to a driver under that address, unless it is
//!   shorter by more than headers of a link; then, and where nothing is known of it, it is from outside;
//! - what makes a socket ready is what the same CPU took last, in the same soft interrupt, and of TCP
//!   the segment with data that it processed last.

use std::collections::{BTreeMap, HashMap};

use whylate_model::event::Protocol;
use whylate_model::{Pid, Ticks};

use super::counts::FollowCounts;
use super::note::{Note, What};
use super::sockets::{Early, Sockets, Waiting};
use super::threads::Threads;
use super::{Limits, Passage};

/// What the header of a link takes off a frame on its way: Ethernet's and a tag's.
const LINK_HEADER: u32 = 18;
/// `-EAGAIN`: there was nothing.
const NOTHING_THERE: i32 = -11;

/// A buffer on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    pub(super) id: u64,
    pub(super) passage: Passage,
    /// Bytes of the frame where it was seen last.
    pub(super) length: u32,
    /// Given to a driver and not seen since.
    out: bool,
    /// The lane on which it arrived last.
    lane: usize,
}

/// What a CPU is at.
#[derive(Debug, Clone, Copy, Default)]
struct At {
    softirq: bool,
    /// The buffer that the stack took last.
    receiving: Option<u64>,
    /// The segment with data that was processed last: buffer, socket, bytes.
    segment: Option<(Option<u64>, Option<u64>, u32)>,
}

impl At {
    /// Is the stack there at this buffer, which no socket has yet?
    fn is_at(&self, skb: u64) -> bool {
        self.receiving == Some(skb) || self.segment.is_some_and(|(of, ..)| of == Some(skb))
    }
}

/// The state of the walk.
#[derive(Debug)]
pub(super) struct Walk {
    limits: Limits,
    at: Vec<At>,
    ways: HashMap<u64, Way>,
    sockets: Sockets,
    threads: Threads,
    /// Messages that are not given out yet, by their beginning: buffer and sender.
    births: BTreeMap<(Ticks, u64), (u64, Option<Pid>)>,
    /// When each of them began.
    began: HashMap<u64, Ticks>,
    next: u64,
    /// CPUs whose events are being lost.
    blind: u32,
    ended: Vec<(u64, Passage)>,
    read: Vec<Waiting>,
    lost: Vec<u64>,
    pub(super) done: Vec<Passage>,
    pub(super) counts: FollowCounts,
}

impl Walk {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            at: vec![At::default(); limits.cpus.len()],
            ways: HashMap::new(),
            sockets: Sockets::new(limits.sockets, limits.waiting),
            threads: Threads::new(limits.threads),
            births: BTreeMap::new(),
            began: HashMap::new(),
            next: 0,
            blind: 0,
            ended: Vec::new(),
            read: Vec::new(),
            lost: Vec::new(),
            done: Vec::new(),
            counts: FollowCounts::default(),
            limits,
        }
    }

    /// Takes the next event.
    pub(super) fn step(&mut self, note: &Note) {
        let (at, pid, lane) = (note.at, note.pid, note.lane);
        match &note.what {
            What::Blind => return self.go_blind(),
            What::Sees => return self.see_again(),
            _ if self.blind > 0 => {
                self.counts.blind += 1;
                return;
            }
            What::SendCall => self.threads.calls(pid, at),
            What::TcpSend if !self.at[lane].softirq => self.threads.takes(pid, at),
            What::TcpSend => {}
            What::Queue { skb, length } => self.queue(note, *skb, *length),
            What::Xmit { skb, length } => self.xmit(at, *skb, *length),
            What::Receive { skb, length } => self.receive(note, *skb, *length),
            What::Segment { skb, socket, length } => {
                self.segment(lane, (*skb, *socket), *length);
            }
            What::Ready { socket, protocol } => self.ready(note, *socket, *protocol),
            What::Sent { socket, protocol } => {
                self.threads.sent(pid, (*socket, *protocol), &mut self.ended);
            }
            What::Read { socket, protocol, length } => {
                self.read(note, *socket, *protocol, *length);
            }
            What::Peeked => {
                // What it copied is still in the queue, and was not read.
                self.threads.take_copied(pid);
            }
            What::Copied { skb, length } => self.threads.copied(pid, *skb, *length),
            What::Freed { skb, reason } => self.freed(*skb, reason),
            What::Consumed { skb } => self.consumed(*skb),
            What::SoftirqIn => self.at[lane] = At { softirq: true, ..At::default() },
            What::SoftirqOut => self.at[lane] = At::default(),
            What::Switch { from, blocked, to } => {
                self.at[lane] = At { softirq: self.at[lane].softirq, ..At::default() };
                self.threads.leaves(*from, at, *blocked);
                self.threads.runs(*to, at);
            }
            What::Woken { pid } => self.threads.woken(*pid, at),
        }
        self.give_out();
    }

    /// Lets go of what has been under way for longer than the patience.
    pub(super) fn let_go(&mut self, now: Ticks) {
        while let Some((&(began, id), &(skb, sender))) = self.births.first_key_value()
            && now.since(began) > self.limits.patience
        {
            if let Some(way) = self.take_way(skb, id) {
                if way.out && way.passage.arrived.is_none() {
                    self.leave(way);
                } else {
                    self.counts.expired += 1;
                }
            }
            if let Some(sender) = sender {
                self.threads.release(sender, &mut self.ended);
            }
            self.give_out();
            // What waits in a socket goes on waiting, and holds up nobody.
            self.forget(id);
        }
    }

    pub(super) fn oldest(&self) -> Option<Ticks> {
        self.births.first_key_value().map(|(&(began, _), _)| began)
    }

    /// Messages may wait in sockets that were not seen to come.
    pub(super) fn doubt(&mut self) {
        self.sockets.doubt();
    }

    /// Messages under way.
    pub(super) fn open(&self) -> u64 {
        self.ways.len() as u64 + self.sockets.messages()
    }

    fn queue(&mut self, note: &Note, skb: u64, length: u32) {
        let softirq = self.at[note.lane].softirq;
        let sender = (!softirq).then_some(note.pid);
        let call = sender.and_then(|pid| self.threads.call(pid));
        if let Some(way) = self.ways.get_mut(&skb) {
            let same_call = sender.is_some()
                && way.passage.sender == sender
                && call.is_some_and(|(number, _)| number == way.passage.call);
            let goes_on = match way.passage.arrived {
                None => same_call,
                Some(_) => softirq && way.lane == note.lane,
            };
            if goes_on {
                way.length = length;
                self.counts.hops += 1;
                return;
            }
            self.supersede(skb);
        }
        let (call, sent) = call.unwrap_or_default();
        let passage = Passage {
            sender,
            call,
            sent,
            queued: Some(note.at),
            sender_cpu: sender.map(|_| self.limits.cpus[note.lane]),
            ..Passage::default()
        };
        self.begin(note.lane, skb, passage, length);
    }

    fn begin(&mut self, lane: usize, skb: u64, passage: Passage, length: u32) -> bool {
        let Some(began) = passage.begins() else { return false };
        if self.ways.len() >= self.limits.messages || self.began.len() >= 2 * self.limits.messages {
            self.counts.crowded += 1;
            return false;
        }
        self.counts.messages += 1;
        let id = self.next;
        self.next += 1;
        self.births.insert((began, id), (skb, passage.sender));
        self.began.insert(id, began);
        self.ways.insert(skb, Way { id, passage, length, out: false, lane });
        true
    }

    fn xmit(&mut self, at: Ticks, skb: u64, length: u32) {
        let Some(way) = self.ways.get_mut(&skb) else {
            self.counts.cut += 1;
            return;
        };
        if way.passage.arrived.is_none() {
            way.passage.driver = Some(at);
        }
        (way.length, way.out) = (length, true);
    }

    fn receive(&mut self, note: &Note, skb: u64, length: u32) {
        self.at[note.lane].receiving = Some(skb);
        self.at[note.lane].segment = None;
        if let Some(way) = self.ways.get_mut(&skb) {
            let the_same = if way.out {
                length + LINK_HEADER >= way.length
            } else {
                way.passage.arrived.is_some() && way.lane == note.lane
            };
            if the_same {
                way.passage.arrived = Some(note.at);
                way.passage.devices += 1;
                (way.length, way.out, way.lane) = (length, false, note.lane);
                return;
            }
            self.supersede(skb);
        }
        let passage = Passage { arrived: Some(note.at), devices: 1, ..Passage::default() };
        if self.begin(note.lane, skb, passage, length) {
            self.counts.from_outside += 1;
        }
    }

    fn segment(&mut self, lane: usize, (skb, socket): (Option<u64>, Option<u64>), length: u32) {
        let skb = skb.or(self.at[lane].receiving);
        self.at[lane].receiving = None;
        if length > 0 {
            self.at[lane].segment = Some((skb, socket, length));
            return;
        }
        self.at[lane].segment = None;
        if let Some(way) = skb.and_then(|skb| self.ways.remove(&skb)) {
            self.counts.acknowledgements += 1;
            self.forget(way.id);
        }
    }

    fn ready(&mut self, note: &Note, socket: u64, protocol: Protocol) {
        let here = &mut self.at[note.lane];
        let stream = protocol == Protocol::Tcp;
        let (skb, bytes) = if stream {
            // A connection that came or went makes a socket ready, too.
            let Some((skb, of, bytes)) = here.segment.take() else { return };
            if of.is_some_and(|of| of != socket) {
                return;
            }
            (skb, Some(bytes))
        } else {
            (here.receiving.take(), None)
        };
        let way = skb.and_then(|skb| self.ways.remove(&skb));
        let way = way.filter(|way| way.passage.arrived.is_some());
        self.counts.delivered_unseen += u64::from(way.is_none());
        if !stream
            && let Some(early) =
                self.sockets.read_early(socket, (skb, way.as_ref()), &mut self.counts)
        {
            let waiting = Waiting::new(way, skb, note.at, early.bytes);
            return self.was_read(&waiting, early, (socket, protocol));
        }
        if stream {
            self.sockets.piece_comes(socket, way.as_ref(), &mut self.counts, &mut self.lost);
            self.give_up_lost();
        }
        // Where nothing is known of a datagram, it may have any length.
        let bytes = bytes.or(way.map(|way| way.length)).unwrap_or(u32::MAX);
        let waiting = Waiting::new(way, skb, note.at, bytes);
        if let Err(back) = self.sockets.deliver(socket, waiting, stream, &mut self.lost)
            && let Some(way) = back.way
        {
            self.counts.given_up += 1;
            self.forget(way.id);
        }
        self.give_up_lost();
        let mut read = std::mem::take(&mut self.read);
        while let Some(by) = self.sockets.next_ahead(socket, &mut self.counts, &mut read) {
            for waiting in read.drain(..) {
                self.was_read(&waiting, by, (socket, protocol));
            }
        }
        self.read = read;
    }

    /// Something in a socket's queue was read. Where that was before the kernel told of its delivery, when
    /// it was delivered is not known, and nobody slept.
    fn was_read(&mut self, waiting: &Waiting, by: Early, (socket, protocol): (u64, Protocol)) {
        let Some(way) = waiting.way else { return };
        let delivered = Some(waiting.delivered).filter(|delivered| *delivered <= by.at);
        let waking = delivered.map(|delivered| self.threads.waking(by.pid, delivered));
        let (woken, running) = waking.unwrap_or_default();
        let passage = Passage {
            socket: Some(socket),
            protocol: Some(protocol),
            reader: Some(by.pid),
            delivered,
            woken,
            running,
            read: Some(by.at),
            bytes: waiting.bytes,
            reader_cpu: Some(self.limits.cpus[by.lane]),
            ..way.passage
        };
        self.counts.read += 1;
        self.threads.end(way.id, passage, &mut self.ended);
    }

    fn read(&mut self, note: &Note, socket: u64, protocol: Protocol, length: i32) {
        let copied = self.threads.take_copied(note.pid);
        let Ok(bytes) = u32::try_from(length) else {
            if length == NOTHING_THERE {
                self.sockets.found_empty(socket, &mut self.counts);
            }
            return;
        };
        let mut read = std::mem::take(&mut self.read);
        // What was copied of another length was no datagram: a stamp, perhaps, of the socket's error queue.
        let skb = copied.filter(|(_, length)| *length == bytes).map(|(skb, _)| skb);
        let by = Early { at: note.at, skb, pid: note.pid, lane: note.lane, bytes };
        if protocol == Protocol::Udp {
            let one = self.sockets.read_datagram(socket, by, &mut self.counts, &mut self.lost);
            read.extend(one.map(|mut one| {
                one.bytes = bytes;
                one
            }));
        } else if bytes > 0 {
            let out = (&mut read, &mut self.lost);
            self.sockets.read_stream(socket, (by, copied), &mut self.counts, out);
        }
        for waiting in read.drain(..) {
            self.was_read(&waiting, by, (socket, protocol));
        }
        self.read = read;
        self.give_up_lost();
    }

    /// Those of sockets that were out of step.
    fn give_up_lost(&mut self) {
        for id in std::mem::take(&mut self.lost) {
            self.counts.given_up += 1;
            self.forget(id);
        }
    }

    fn freed(&mut self, skb: u64, reason: &str) {
        let way = self.ways.remove(&skb).or_else(|| self.sockets.drop_buffer(skb));
        if let Some(way) = way {
            self.counts.drop_for(reason);
            self.forget(way.id);
        }
    }

    fn consumed(&mut self, skb: u64) {
        match self.ways.remove(&skb) {
            Some(way) if way.out && way.passage.arrived.is_none() => self.leave(way),
            // Its reader was quicker than the event of its delivery, which is still to come.
            Some(way) if self.at.iter().any(|at| at.is_at(skb)) => {
                self.ways.insert(skb, way);
            }
            Some(way) => {
                self.counts.consumed += 1;
                self.forget(way.id);
            }
            None => {}
        }
    }

    /// Another message has its buffer.
    fn supersede(&mut self, skb: u64) {
        match self.ways.remove(&skb) {
            Some(way) if way.out && way.passage.arrived.is_none() => self.leave(way),
            Some(way) => {
                self.counts.reused += 1;
                self.forget(way.id);
            }
            None => {}
        }
    }

    /// It went out by a driver and nobody here had it.
    fn leave(&mut self, way: Way) {
        self.counts.left += 1;
        self.threads.end(way.id, way.passage, &mut self.ended);
    }

    fn take_way(&mut self, skb: u64, id: u64) -> Option<Way> {
        if self.ways.get(&skb).is_none_or(|way| way.id != id) {
            return None;
        }
        self.ways.remove(&skb)
    }

    fn give_out(&mut self) {
        while let Some((id, passage)) = self.ended.pop() {
            self.forget(id);
            self.done.push(passage);
        }
    }

    fn forget(&mut self, id: u64) {
        if let Some(began) = self.began.remove(&id) {
            self.births.remove(&(began, id));
        }
    }

    fn go_blind(&mut self) {
        self.blind += 1;
        self.give_up();
    }

    fn see_again(&mut self) {
        self.blind = self.blind.saturating_sub(1);
        self.give_up();
    }

    /// Nothing that is open can be followed further.
    fn give_up(&mut self) {
        let waiting = self.sockets.clear().len() as u64;
        self.counts.given_up += self.ways.len() as u64 + waiting;
        // Those that were held for their sender's call had ended: they were counted as what they are.
        self.counts.untold += self.threads.clear();
        self.ways.clear();
        self.births.clear();
        self.began.clear();
        self.at.fill(At::default());
    }
}
