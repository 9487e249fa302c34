//! Whole frames in and out: the trait that every backend past the socket implements.
//!
//! Frames stay where the kernel put them: a burst is looked at in the ring itself, and what is to be
//! sent is written into the ring itself. [`Host`](crate::host::Host) makes a port for messages of it.

use std::any::Any;
use std::fmt;

use whylate_model::{Nanos, Ticks};

use crate::bpf::Mode;
use crate::error::PortError;
use crate::frame::{Mac, Tag};
use crate::passing::{Carried, Counts, Failure, Room, hot};
use crate::waiting::{BusyPolling, Wait};

/// Frames that one look takes at most: what NAPI hands over at once.
pub const BURST: usize = 64;

/// So many frames, and what they have in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amount {
    /// Frames.
    pub frames: u64,
    /// Bytes of all of them, without check sequences.
    pub bytes: u64,
}

impl Amount {
    /// One frame more, of this length.
    pub fn add(&mut self, length: usize) {
        self.frames += 1;
        self.bytes += length as u64;
    }

    /// What is more than there was at some time before: nothing where it was more then.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        let frames = self.frames.saturating_sub(before.frames);
        Self { frames, bytes: self.bytes.saturating_sub(before.bytes) }
    }
}

impl FromIterator<usize> for Amount {
    /// Of frames by their lengths in bytes.
    fn from_iter<I: IntoIterator<Item = usize>>(lengths: I) -> Self {
        let mut all = Self::default();
        for length in lengths {
            all.add(length);
        }
        all
    }
}

/// Receives and sends whole frames of one interface.
pub trait Frames: Send {
    /// Gives the frames of the last burst back to the kernel, then waits for more, for `limit` at
    /// most; a limit of 0 looks once. A signal may cut the wait short.
    fn receive(&mut self, limit: Nanos) -> Result<Burst, PortError>;

    /// A frame of the last burst, which has to have that many.
    fn frame(&self, at: usize) -> Arrival<'_>;

    /// Room for a frame of `length` bytes in the sending ring, its content undefined. None where all
    /// of the ring is on its way, or the frame is longer than [`FramesFacts::room`].
    fn put(&mut self, length: usize) -> Option<&mut [u8]>;

    /// Hands over to the kernel what was put since the last time. Gives the counter's reading
    /// immediately before.
    ///
    /// A frame that the kernel does not take at once stays in the ring, and goes with the next ones.
    fn flush(&mut self) -> Result<Ticks, PortError>;

    /// Takes back from the kernel what has left, and urges it to send what has not. Gives the
    /// counter's reading afterwards.
    fn urge(&mut self) -> Result<Ticks, PortError>;

    /// Sleeps until something may have come, here or by another port that it was opened together with, for
    /// `limit` at most. At once where the port looks and does not sleep.
    fn sleep(&mut self, _limit: Nanos) -> Result<(), PortError> {
        Ok(())
    }

    /// What a reader of its numbers must know.
    fn facts(&self) -> &FramesFacts;

    /// What was dropped since it was opened, by ring, as the kernel counts it.
    fn drops(&mut self) -> Result<Vec<Drops>, PortError>;

    /// Whether busy-polling does anything.
    fn busy_polling(&self) -> BusyPolling {
        BusyPolling::NotAsked
    }

    /// Frames that were put and are still in the sending ring: whoever is to take them out, the kernel or
    /// the device, has not. What was taken out is on its way, and not known here.
    fn waiting(&mut self) -> Amount {
        Amount::default()
    }

    /// Frames that were put and taken out of the sending ring again since it was opened: they never leave.
    /// What is still in it or on its way is none of them.
    fn taken_back(&self) -> Amount {
        Amount::default()
    }

    /// Another end at the same interface that only sends, so that one thread can receive while
    /// another sends.
    fn divide(&self) -> Result<Box<dyn Frames>, PortError> {
        Err(PortError::NotDivisible { backend: self.facts().backend })
    }

    /// Who stamps frames, where that was asked.
    fn stamps(&self) -> FrameStamps {
        FrameStamps::default()
    }

    /// When a frame of the last burst came, by the card's own clock, where the card stamped it.
    fn card_stamp(&self, _at: usize) -> Option<Nanos> {
        None
    }

    /// Frames put so far, where it is told when they have left: the number of the next one.
    fn put_so_far(&self) -> u64 {
        0
    }

    /// Tells when frames have left that were put: those of which that has become known since the last
    /// time, in the order in which it did. Never waits.
    fn take_sent(&mut self, _each: &mut dyn FnMut(SentStamp)) {}

    /// Puts the first `frames` frames of the last burst into the sending ring of `to`, with the tags that
    /// the kernel took out, and counts what became of them. Nothing is handed over yet. Says which of
    /// them are to leave: bit 0 is the first.
    ///
    /// Nobody may ask for a frame of that burst afterwards, but for its stamp where it came with one: a
    /// backend that need not copy has given the others away.
    fn carry(
        &mut self,
        frames: usize,
        to: &mut dyn Frames,
        room: Room,
        counts: &mut Counts,
    ) -> u64 {
        hot::gather(self, frames, to, room, counts)
    }

    /// The other end of [`Frames::carry`]: puts these frames into the sending ring.
    fn take_in(&mut self, burst: &[Carried<'_>], room: Room, counts: &mut Counts) -> u64 {
        hot::take_in(self, burst, room, counts)
    }

    /// Looks once, carries what came to `to` and hands it over: all of a turn of which nobody wants a
    /// reading of the counter. Gives the number of frames that came.
    fn pass(
        &mut self,
        to: &mut dyn Frames,
        room: Room,
        counts: &mut Counts,
    ) -> Result<usize, Failure> {
        hot::pass(self, to, room, counts)
    }

    /// When the kernel had the first frames of the last burst, which has to have as many as there are
    /// places: [`Arrival::kernel`] of each.
    fn kernel_stamps(&self, into: &mut [Option<Nanos>]) {
        for (at, place) in into.iter_mut().enumerate() {
            *place = self.frame(at).kernel;
        }
    }

    /// Itself, where another port of the same backend may give it buffers in place of bytes.
    fn as_any(&mut self) -> Option<&mut dyn Any> {
        None
    }
}

impl<F: Frames + ?Sized> Frames for Box<F> {
    #[inline]
    fn receive(&mut self, limit: Nanos) -> Result<Burst, PortError> {
        (**self).receive(limit)
    }

    #[inline]
    fn frame(&self, at: usize) -> Arrival<'_> {
        (**self).frame(at)
    }

    #[inline]
    fn put(&mut self, length: usize) -> Option<&mut [u8]> {
        (**self).put(length)
    }

    #[inline]
    fn flush(&mut self) -> Result<Ticks, PortError> {
        (**self).flush()
    }

    fn urge(&mut self) -> Result<Ticks, PortError> {
        (**self).urge()
    }

    fn sleep(&mut self, limit: Nanos) -> Result<(), PortError> {
        (**self).sleep(limit)
    }

    fn facts(&self) -> &FramesFacts {
        (**self).facts()
    }

    fn drops(&mut self) -> Result<Vec<Drops>, PortError> {
        (**self).drops()
    }

    fn busy_polling(&self) -> BusyPolling {
        (**self).busy_polling()
    }

    fn waiting(&mut self) -> Amount {
        (**self).waiting()
    }

    fn taken_back(&self) -> Amount {
        (**self).taken_back()
    }

    fn divide(&self) -> Result<Box<dyn Frames>, PortError> {
        (**self).divide()
    }

    fn stamps(&self) -> FrameStamps {
        (**self).stamps()
    }

    fn card_stamp(&self, at: usize) -> Option<Nanos> {
        (**self).card_stamp(at)
    }

    #[inline]
    fn put_so_far(&self) -> u64 {
        (**self).put_so_far()
    }

    fn take_sent(&mut self, each: &mut dyn FnMut(SentStamp)) {
        (**self).take_sent(each);
    }

    #[inline]
    fn carry(
        &mut self,
        frames: usize,
        to: &mut dyn Frames,
        room: Room,
        counts: &mut Counts,
    ) -> u64 {
        (**self).carry(frames, to, room, counts)
    }

    #[inline]
    fn take_in(&mut self, burst: &[Carried<'_>], room: Room, counts: &mut Counts) -> u64 {
        (**self).take_in(burst, room, counts)
    }

    #[inline]
    fn pass(
        &mut self,
        to: &mut dyn Frames,
        room: Room,
        counts: &mut Counts,
    ) -> Result<usize, Failure> {
        (**self).pass(to, room, counts)
    }

    fn kernel_stamps(&self, into: &mut [Option<Nanos>]) {
        (**self).kernel_stamps(into);
    }

    fn as_any(&mut self) -> Option<&mut dyn Any> {
        (**self).as_any()
    }
}

/// Whose a stamp is, and by which clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StampedBy {
    /// The kernel's, by the wall clock (`CLOCK_REALTIME`).
    Kernel,
    /// The card's, by its own clock.
    Card,
}

/// Who stamps frames.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrameStamps {
    /// The program that takes them does, into [`Arrival::kernel`].
    pub received: bool,
    /// The driver is asked for the card's stamp of each, which it may have or not.
    pub received_by_card: bool,
    /// Who tells when they have left.
    pub sent: Option<StampedBy>,
    /// Those sent of which nobody told when they left, by now.
    pub untold: u64,
    /// Stamps that found no room, for nobody took them.
    pub lost: u64,
    /// What was not to be had, and why.
    pub instead: Vec<String>,
}

/// When a frame left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentStamp {
    /// Its number among those put, from 0.
    pub number: u64,
    /// Whose stamp it is.
    pub by: StampedBy,
    /// The kernel's is of when it let go of the frame, having copied it for the driver: late, and no
    /// station of its way but its end.
    pub at: Nanos,
}

/// How a wait for frames ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burst {
    /// Frames there are now; 0 when nothing came within the limit, or a signal did.
    pub count: usize,
    /// The counter's reading immediately after the frames were seen in the ring, one for all; or
    /// when the wait was given up.
    pub at: Ticks,
}

/// A frame that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival<'a> {
    /// Its bytes, without check sequence.
    pub bytes: &'a [u8],
    /// Its outer tag where the kernel took it out.
    pub stripped: Option<Tag>,
    /// When the kernel had it, in nanoseconds of its wall clock (`CLOCK_REALTIME`).
    pub kernel: Option<Nanos>,
    /// The queue that it came by.
    pub queue: u32,
}

/// A ring between kernel and port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ring {
    /// What was received.
    Receive,
    /// What is to be sent.
    Send,
    /// Empty buffers for receiving (AF_XDP).
    Fill,
    /// Buffers of what has left (AF_XDP).
    Completion,
}

impl fmt::Display for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Receive => "receive",
            Self::Send => "send",
            Self::Fill => "fill",
            Self::Completion => "completion",
        })
    }
}

/// What was dropped at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drops {
    /// The queue.
    pub queue: u32,
    /// The ring that was full, empty or misused.
    pub ring: Ring,
    /// The kernel's name of the counter: `tp_drops`, `rx_ring_full`.
    pub counter: &'static str,
    /// How many since the port was opened.
    pub count: u64,
    /// Of what.
    pub of: Counted,
}

/// What a counter of drops counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Counted {
    /// Frames: these add up to all that were lost.
    Frames,
    /// Occasions, which say why frames were lost that another counter has, or how often those that were
    /// kept had to wait for room.
    Occasions,
}

/// How many frames each ring of a queue holds; 0 where the backend has no such ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rings {
    /// Received ones.
    pub receive: u32,
    /// Ones to be sent.
    pub send: u32,
    /// Empty buffers.
    pub fill: u32,
    /// Buffers of what has left.
    pub completion: u32,
}

/// Who copies a frame between the network card and the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Copies {
    /// The kernel, once.
    Kernel,
    /// Nobody: the card reads and writes the ring's memory.
    Nobody,
    /// A driver in this process (DPDK), which shares memory with the other end.
    Driver,
    /// The kernel, out of the queue of one socket and into that of another one: no card and no ring.
    Sockets,
}

impl fmt::Display for Copies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Kernel => "copy",
            Self::Nobody => "zero-copy",
            Self::Driver => "copy by the driver",
            Self::Sockets => "sockets",
        })
    }
}

/// A backend's own description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FramesFacts {
    /// `af_packet`, `af_xdp`, `dpdk`; `udp` of sockets.
    pub backend: &'static str,
    /// The interface's name when it was opened.
    pub interface: String,
    /// Its number, by which the kernel, or DPDK, knows it whatever its name.
    pub index: u32,
    /// Its hardware address.
    pub mac: Mac,
    /// The longest packet of IP that it sends, in bytes; 0 of sockets, which have none of their own.
    pub mtu: u32,
    /// Its queues that are used.
    pub queues: Vec<u32>,
    /// Frames in each ring of a queue.
    pub rings: Rings,
    /// Bytes of a buffer.
    pub buffer: u32,
    /// The longest frame in bytes.
    pub room: usize,
    /// Who copies.
    pub copies: Copies,
    /// Where frames are taken out of the kernel's way; none where they are not, and the kernel sees
    /// them as well.
    pub attachment: Option<Mode>,
    /// Does the kernel say when it has to be woken (AF_XDP's need-wakeup)?
    pub tells_wakeups: bool,
    /// Does what is sent pass by the queueing discipline?
    pub bypasses_qdisc: bool,
    /// What was asked for and not to be had, in words; nothing was changed in silence.
    pub instead: Vec<String>,
    /// How it waits.
    pub wait: Wait,
}
