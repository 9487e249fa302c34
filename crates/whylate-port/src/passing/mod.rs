//! Bursts that go from one port to another: what is counted of them, what fits, and the path itself.
//!
//! A burst takes one call of each port, whatever their backends are: the one that it came by shows its
//! frames in a row of [`Carried`], the other one copies them into its sending ring ([`hot`]). A backend
//! that need not copy gives its buffers away instead ([`Frames::carry`], [`Frames::pass`]).
//!
//! Guarantee: every frame received is in one of the counts behind it. Does not know directions, stamps
//! or threads.
//!
//! [`Frames::carry`]: crate::frames::Frames::carry
//! [`Frames::pass`]: crate::frames::Frames::pass

pub mod hot;

use crate::error::PortError;
use crate::frame::{ETHERNET, TAG, Tag, TagKind};
use crate::frames::{Amount, FramesFacts};

/// Bytes of the two stations at the beginning of a frame; a tag follows them.
const STATIONS: usize = 12;

/// What became of the frames of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Received.
    pub received: u64,
    /// Bytes of them, without check sequence.
    pub received_bytes: u64,
    /// Handed over to the sending ring, without those that were taken back from it and those that waited in
    /// it at the end: as far as is known here they left.
    pub forwarded: u64,
    /// Bytes of those.
    pub forwarded_bytes: u64,
    /// Still in the sending ring when it was over: none before that is told.
    pub waiting: u64,
    /// Dropped: the sending ring was full.
    pub ring_full: u64,
    /// Dropped: longer than the other side sends.
    pub too_long: u64,
    /// Dropped: shorter than a header.
    pub runts: u64,
    /// Dropped: taken back from the sending ring, for the kernel refused them, or the link was down.
    pub refused: u64,
    /// Bytes of those.
    pub refused_bytes: u64,
    /// Bursts that had frames.
    pub bursts: u64,
}

impl Counts {
    /// Is every frame that was received accounted for?
    #[must_use]
    pub fn closes(&self) -> bool {
        let lost = self.ring_full + self.too_long + self.runts + self.refused;
        self.received == self.forwarded + self.waiting + lost
    }

    /// So many of those that were handed over were taken back until now, in all, and never leave.
    pub fn take_back(&mut self, all: Amount) {
        let known = Amount { frames: self.refused, bytes: self.refused_bytes };
        // None that is not of this account is taken off it.
        let more = self.take_off(all.since(known));
        self.refused += more.frames;
        self.refused_bytes += more.bytes;
    }

    /// It is over: so many of those that were handed over have not left the sending ring.
    pub fn end_with(&mut self, waiting: Amount) {
        // What a ring had in it before is no frame of this account.
        self.waiting += self.take_off(waiting).frames;
    }

    /// Takes these off what was forwarded, as far as there are so many; what was taken off.
    fn take_off(&mut self, amount: Amount) -> Amount {
        let frames = amount.frames.min(self.forwarded);
        self.forwarded -= frames;
        // Where nothing is left that was forwarded, it has no bytes either.
        let all = self.forwarded == 0;
        let bytes = if all { self.forwarded_bytes } else { amount.bytes.min(self.forwarded_bytes) };
        self.forwarded_bytes -= bytes;
        Amount { frames, bytes }
    }
}

/// The longest frames that one side receives whole and the other one sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    plain: usize,
    /// With a customer's tag, which may go beyond the MTU.
    tagged: usize,
}

impl Room {
    /// From one port to another. What is longer than the receiving side's own MTU was put together of
    /// several frames on its way, and the ring may have cut its end off.
    #[must_use]
    pub fn between(from: &FramesFacts, to: &FramesFacts) -> Self {
        let plain = from.mtu.min(to.mtu) as usize + ETHERNET;
        Self { plain: plain.min(to.room), tagged: (plain + TAG).min(to.room) }
    }

    /// Bytes of the longest frame that fits whatever is in it.
    #[must_use]
    #[inline]
    pub fn plain(self) -> usize {
        self.plain
    }

    /// Is there room for a frame with its outer tag, of `length` bytes in all?
    #[must_use]
    #[inline]
    pub fn holds(self, length: usize, bytes: &[u8], stripped: Option<Tag>) -> bool {
        length <= self.plain || (length <= self.tagged && is_customers(bytes, stripped))
    }
}

/// Is its outer tag a customer's?
#[cold]
fn is_customers(bytes: &[u8], stripped: Option<Tag>) -> bool {
    match stripped {
        Some(tag) => tag.kind == TagKind::Customer,
        None => {
            bytes.get(STATIONS..STATIONS + 2) == Some(&TagKind::Customer.number().to_be_bytes())
        }
    }
}

/// A frame on its way from one port to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carried<'a> {
    /// Its bytes, without check sequence.
    pub bytes: &'a [u8],
    /// Its outer tag where the kernel took it out.
    pub stripped: Option<Tag>,
}

impl Carried<'_> {
    /// Bytes of it as it was sent.
    #[must_use]
    #[inline]
    pub fn length(&self) -> usize {
        self.bytes.len() + if self.stripped.is_some() { TAG } else { 0 }
    }
}

/// A port that failed.
#[derive(Debug)]
pub struct Failure {
    /// Was it the one that frames come by?
    pub receiving: bool,
    /// How.
    pub error: PortError,
}

impl Failure {
    /// Of the port that frames come by.
    #[cold]
    #[must_use]
    pub fn receiving(error: PortError) -> Self {
        Self { receiving: true, error }
    }

    /// Of the port that they leave by.
    #[cold]
    #[must_use]
    pub fn sending(error: PortError) -> Self {
        Self { receiving: false, error }
    }
}
