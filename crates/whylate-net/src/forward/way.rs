//! One direction of a forwarder: a burst from one port to the other, and what is kept of it.

use std::cell::OnceCell;

use whylate_clock::Counter;
use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};
use whylate_port::PortError;
use whylate_port::frames::{BURST, Frames};
pub(crate) use whylate_port::passing::Failure;

use super::hot::{Counts, Room};
use super::stamps::{Seen, Stamped, Stamps, wall};

/// Looks in vain between two times that a sending ring is urged on.
pub(crate) const URGE_EVERY: u32 = 1 << 12;
/// Looks between two readings of the counter where nothing else reads it: the end of an interval is seen
/// some milliseconds late at worst, behind as many full bursts.
const READ_EVERY: u64 = 32;

/// One direction.
#[derive(Debug)]
pub struct Way {
    room: Room,
    /// What became of its frames.
    pub counts: Counts,
    /// What its stamps say.
    pub stamped: Stamped,
    /// Occasions on which the kernel refused to send.
    pub refusals: u64,
    /// Why the first time.
    pub first_refusal: Option<String>,
    /// Looks in vain in a row.
    silent: u32,
}

/// What the directions of one thread share.
#[derive(Debug)]
pub(super) struct Hand<C> {
    pub(super) counter: C,
    /// The last reading.
    pub(super) last: Ticks,
    /// Busy work for each frame.
    pub(super) work: TicksDelta,
    pub(super) looks: u64,
    pub(super) in_vain: u64,
}

impl Way {
    pub(super) fn new(room: Room, stamps: Stamps, rate: Hertz) -> Self {
        Self {
            room,
            counts: Counts::default(),
            stamped: Stamped::new(stamps, rate),
            refusals: 0,
            first_refusal: None,
            silent: 0,
        }
    }

    /// Looks once at what has come by `from`, and hands it over to `to`.
    #[inline]
    pub(super) fn turn<C, R, S>(
        &mut self,
        from: &mut R,
        to: &mut S,
        hand: &mut Hand<C>,
    ) -> Result<(), Failure>
    where
        C: Counter,
        R: Frames,
        S: Frames,
    {
        hand.looks += 1;
        if !self.stamped.is_on() && hand.work == TicksDelta(0) {
            return self.pass(from, to, hand);
        }
        let burst = from.receive(Nanos(0)).map_err(Failure::receiving)?;
        let before = std::mem::replace(&mut hand.last, burst.at);
        if burst.count == 0 {
            hand.in_vain += 1;
            return self.rest(to, &mut hand.counter);
        }
        self.silent = 0;
        let frames = burst.count;
        let due = self.stamped.is_due();
        // Asked now: a frame that is not copied is the other port's afterwards.
        let kernels = due && from.frame(0).kernel.is_some();
        if hand.work > TicksDelta(0) {
            (0..frames).for_each(|_| toil(&mut hand.counter, hand.work));
        }
        let leaving = from.carry(frames, to, self.room, &mut self.counts);
        if !self.stamped.is_on() {
            hand.last = to.flush().map_err(Failure::sending)?;
            return Ok(());
        }
        let wall = kernels.then(wall);
        let handed = to.flush().map_err(Failure::sending)?;
        let seen = Seen { frames, leaving, before, at: burst.at, handed, wall };
        let stamps = OnceCell::<[Option<Nanos>; BURST]>::new();
        let kernel = |at: usize| stamps.get_or_init(|| kernel_stamps(&*from, frames))[at];
        hand.last = self.stamped.take(&mut hand.counter, seen, due, kernel);
        Ok(())
    }

    /// The same where nothing is stamped: one call for the burst, and no reading of the counter beside
    /// the port's own but now and then.
    #[inline]
    fn pass<C, R, S>(&mut self, from: &mut R, to: &mut S, hand: &mut Hand<C>) -> Result<(), Failure>
    where
        C: Counter,
        R: Frames,
        S: Frames,
    {
        if hand.looks.is_multiple_of(READ_EVERY) {
            hand.last = hand.counter.read();
        }
        if from.pass(to, self.room, &mut self.counts)? > 0 {
            self.silent = 0;
            return Ok(());
        }
        hand.in_vain += 1;
        self.rest(to, &mut hand.counter)
    }

    /// Nothing has come: what could not leave at once may do so now.
    #[inline]
    fn rest<C: Counter, S: Frames + ?Sized>(
        &mut self,
        to: &mut S,
        counter: &mut C,
    ) -> Result<(), Failure> {
        self.silent = self.silent.wrapping_add(1);
        if self.silent % URGE_EVERY == 1 {
            self.stamped.watch(counter);
            to.urge().map_err(Failure::sending)?;
        }
        Ok(())
    }

    /// The kernel refused to send: what is taken back for that, its ring knows.
    #[cold]
    pub(super) fn refused(&mut self, why: &PortError) {
        self.refusals += 1;
        self.first_refusal.get_or_insert_with(|| why.to_string());
    }
}

/// When the kernel had each of the first `frames` frames of the last burst.
fn kernel_stamps<R: Frames>(from: &R, frames: usize) -> [Option<Nanos>; BURST] {
    let mut stamps = [None; BURST];
    from.kernel_stamps(&mut stamps[..frames.min(BURST)]);
    stamps
}

/// Keeps the CPU busy, as a network function that does something would.
#[inline]
fn toil<C: Counter>(counter: &mut C, work: TicksDelta) {
    let begin = counter.read();
    while counter.read().since(begin) < work {
        std::hint::spin_loop();
    }
}
