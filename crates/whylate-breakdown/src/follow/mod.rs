//! What the kernel's tracepoints say of messages on their way, put together: from the call that sends
//! a message, through buffers that are known by their address alone, to the call that reads it.
//!
//! Guarantees: events of several CPUs are taken in the order of their stamps, whatever the order in
//! which they come; every instant of a [`Passage`] is the stamp of one event; what falls out, for want
//! of room, of events or of an unambiguous next step, is in [`FollowCounts`] under its reason; memory
//! is bounded by [`Limits`]. When a CPU lost events, everything that is open is given up, and a socket
//! is trusted again only after its queue has shown where its bottom is.
//!
//! A datagram that waits in a socket when following begins is read by whoever copied its buffer, and is
//! none of those that were seen. Where the kernel does not tell of copies, and it does not of a short
//! datagram, and of bytes of a stream, whoever follows says whether something waits ([`Follower::doubt`]).
//! Assumes that who reads goes on until its queue is empty now and then. Does not know whose request a
//! message belongs to: that is `meet` and `watch`.

mod counts;
mod lanes;
mod note;
mod sockets;
mod threads;
mod walk;

#[cfg(test)]
mod tests;

use whylate_model::event::{Event, Protocol};
use whylate_model::{CpuId, Pid, Ticks, TicksDelta};

pub use counts::FollowCounts;
use lanes::Lanes;
use walk::Walk;

/// How much is kept at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The CPUs whose events come, all of them: nothing is followed beyond the moment up to which
    /// each of them is complete.
    pub cpus: Vec<CpuId>,
    /// Events of one CPU that wait for those of the others.
    pub events: usize,
    /// Messages on their way, up to a socket.
    pub messages: usize,
    /// Sockets, and messages that wait in one of them.
    pub sockets: usize,
    /// Messages that wait in one socket.
    pub waiting: usize,
    /// Threads.
    pub threads: usize,
    /// A message that is under way for longer than this is let go: about a second of ticks.
    pub patience: TicksDelta,
}

impl Limits {
    /// Enough for some 100 000 messages a second on these CPUs.
    #[must_use]
    pub fn usual(cpus: Vec<CpuId>, patience: TicksDelta) -> Self {
        Self {
            cpus,
            events: 1 << 20,
            messages: 1 << 16,
            sockets: 1 << 14,
            waiting: 1 << 14,
            threads: 1 << 14,
            patience,
        }
    }
}

/// A message from the call that sent it to the call that read it. One that came from outside of this
/// host begins at `arrived`; one that left it ends at `driver`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Passage {
    /// Address of the receiver's socket; none of a message that left this host.
    pub socket: Option<u64>,
    /// Address of the sender's socket, where its call said so.
    pub sending_socket: Option<u64>,
    /// What its sockets speak, where one of them said so.
    pub protocol: Option<Protocol>,
    /// The thread that sent it; none from outside, and where the kernel sent it on its own.
    pub sender: Option<Pid>,
    /// Which of the sender's calls it was, by number: pieces of one message have it in common.
    pub call: u64,
    /// The thread that read it.
    pub reader: Option<Pid>,
    /// The sender's call began.
    pub sent: Option<Ticks>,
    /// Given to the first interface's queueing discipline.
    pub queued: Option<Ticks>,
    /// Given to the driver, the last one before it arrived for the first time.
    pub driver: Option<Ticks>,
    /// Taken by the receiving stack, the last time before the socket.
    pub arrived: Option<Ticks>,
    /// In the socket's queue.
    pub delivered: Option<Ticks>,
    /// Its reader, asleep when it was delivered, was woken.
    pub woken: Option<Ticks>,
    /// That reader had a CPU.
    pub running: Option<Ticks>,
    /// Read; of a piece of a stream, its last byte.
    pub read: Option<Ticks>,
    /// Bytes that were read of it.
    pub bytes: u32,
    /// Interfaces that it came by.
    pub devices: u32,
    /// Where the sender ran.
    pub sender_cpu: Option<CpuId>,
    /// Where the reader ran.
    pub reader_cpu: Option<CpuId>,
}

impl Passage {
    /// The first instant that is known.
    #[must_use]
    pub fn begins(&self) -> Option<Ticks> {
        self.sent.or(self.queued).or(self.driver).or(self.arrived)
    }

    /// With another piece of the same message. A message has passed a point when its last byte has, with
    /// the last of its pieces: as stamps and a tap tell it. Where that of one piece is not known, that of
    /// the message is not. Its reader was woken by the piece that was delivered last, if it slept then.
    pub(crate) fn with_piece(&self, piece: &Self) -> Self {
        let later = |one: Option<Ticks>, other: Option<Ticks>| Some(one?.max(other?));
        let came = |of: &Self| of.delivered.or(of.arrived);
        let last = if came(piece) >= came(self) { piece } else { self };
        Self {
            queued: later(self.queued, piece.queued),
            driver: later(self.driver, piece.driver),
            arrived: later(self.arrived, piece.arrived),
            delivered: later(self.delivered, piece.delivered),
            woken: last.woken,
            running: last.running,
            read: later(self.read, piece.read),
            bytes: self.bytes.saturating_add(piece.bytes),
            ..*self
        }
    }
}

/// Follows messages by the kernel's events.
#[derive(Debug)]
pub struct Follower {
    lanes: Lanes,
    walk: Walk,
}

impl Follower {
    /// One that has seen nothing.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { lanes: Lanes::new(&limits.cpus, limits.events), walk: Walk::new(limits) }
    }

    /// Messages wait in sockets that nobody saw come: a socket is trusted once its queue has shown where its
    /// bottom is, as after a loss. To be called before there are events.
    pub fn doubt(&mut self) {
        self.walk.doubt();
    }

    /// Takes events of a CPU, in their order. Those of CPUs that were not named are counted.
    pub fn push(&mut self, cpu: CpuId, events: impl AsRef<[Event]>) {
        self.lanes.push(cpu, events.as_ref(), &mut self.walk.counts);
    }

    /// The kernel lost events of a CPU: after all that were pushed of it, before the next.
    pub fn lost(&mut self, cpu: CpuId) {
        self.lanes.lost(cpu, &mut self.walk.counts);
    }

    /// All events of a CPU up to `to` have come.
    pub fn complete(&mut self, cpu: CpuId, to: Ticks) {
        self.lanes.complete(cpu, to);
        while let Some(note) = self.lanes.next() {
            self.walk.step(&note);
        }
        self.walk.let_go(self.lanes.horizon());
    }

    /// Passages that ended since the last call, in no order.
    pub fn take(&mut self) -> Vec<Passage> {
        std::mem::take(&mut self.walk.done)
    }

    /// Every passage that begins before this has been given out or counted, but for those that have
    /// waited in a socket for longer than the patience.
    #[must_use]
    pub fn settled(&self) -> Ticks {
        self.walk.oldest().map_or(self.lanes.horizon(), |oldest| oldest.min(self.lanes.horizon()))
    }

    /// What came, and what became of it.
    #[must_use]
    pub fn counts(&self) -> FollowCounts {
        let mut counts = self.walk.counts.clone();
        counts.open = self.walk.open();
        counts
    }
}
