//! The loop of an open-loop client: sends when it is due, and looks for replies in between. Its
//! only system calls are the port's: one for each message sent, one for each look, and where stamps of
//! the kernel are taken a few more between two looks.
//!
//! A turn of the loop is that of a [`Lane`], so that several flows can share a thread
//! ([`duo`](super::duo)) in the very turns that one flow has alone.

use std::sync::atomic::{AtomicBool, Ordering};

use whylate_clock::Counter;
use whylate_model::{Nanos, Ticks, TicksDelta};
use whylate_port::Port;

use super::Ended;
use super::receiver::{Looked, Receiver};
use super::sender::{Sender, Sending};
use crate::turns::Did;

/// A look that found nothing takes this long at most before the next send: when less is left, the
/// loop only reads the clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Guard(pub(super) TicksDelta);

/// Messages sent late in a row before one look: replies must not pile up while it catches up.
const LATE_BEFORE_A_LOOK: u32 = 4;
/// Stamps are taken when nothing came and so many looks find time before the next send: taking one batch
/// takes about as long as a few.
const LOOKS_FOR_STAMPS: u64 = 4;
/// However little time there is, they are taken once in so many turns that look, for they lie where
/// replies are to find room; of a client that is late anyway more often, for it sends the more.
const TURNS_WITHOUT_STAMPS: u32 = 64;
const LATE_TURNS_WITHOUT_STAMPS: u32 = 4;
/// Turns without a look while another flow of the thread is about to send: the clock alone is read some
/// dozens of times while a look would take.
const LOOKS_LEFT_OUT: u32 = 64;
/// Turns of the loop between two looks at the stop flag and at requests to give up.
const TURNS: u32 = 256;

/// Sends everything that is due until `until`, and takes in what comes. Ends when the schedule
/// has, when it may not catch up any longer, or when the run is to stop.
#[inline(never)]
pub(super) fn pump<P: Port + ?Sized, C: Counter>(
    port: &mut P,
    counter: &mut C,
    sender: &mut Sender<'_>,
    receiver: &mut Receiver<'_>,
    guard: Guard,
    until: Ticks,
    stop: &AtomicBool,
) -> Ended {
    let mut lane = Lane::new(sender, receiver, guard, until);
    let mut did = Did::Look;
    loop {
        let (now, _) = counter.read_ordered();
        if let Some(since) = lane.sender.pacing.turn(now, did) {
            lane.receiver.ledger.stall(since, now);
        }
        did = match lane.turn(port, now, None, stop) {
            Ok(did) => did,
            Err(ended) => return ended,
        };
    }
}

/// One flow of a loop that spins, and where the loop is with it.
pub(super) struct Lane<'l, 's, 'r> {
    pub(super) sender: &'l mut Sender<'s>,
    pub(super) receiver: &'l mut Receiver<'r>,
    guard: Guard,
    until: Ticks,
    stamped: bool,
    turns: u32,
    in_a_row: u32,
    /// Looks left out for another flow's sake since the last one; one that is late counts for several.
    left_out: u32,
}

impl<'l, 's, 'r> Lane<'l, 's, 'r> {
    pub(super) fn new(
        sender: &'l mut Sender<'s>,
        receiver: &'l mut Receiver<'r>,
        guard: Guard,
        until: Ticks,
    ) -> Self {
        let stamped = receiver.has_stamps();
        let (turns, in_a_row, left_out) = (0, 0, 0);
        Self { sender, receiver, guard, until, stamped, turns, in_a_row, left_out }
    }

    /// One turn, at `now`, which has just been read: sends what is due, or looks where there is time
    /// before the next send, be it this flow's or `others`. Says what it did.
    #[inline(always)]
    pub(super) fn turn<P: Port + ?Sized>(
        &mut self,
        port: &mut P,
        now: Ticks,
        others: Option<Ticks>,
        stop: &AtomicBool,
    ) -> Result<Did, Ended> {
        let mut did = Did::Look;
        let Some(due) = self.sender.due() else { return Err(Ended::Duration) };
        if now < due {
            self.sender.pacing.nothing_due();
        }
        if now >= due && self.in_a_row < LATE_BEFORE_A_LOOK && self.sender.may_send() {
            if now > self.until {
                return Err(Ended::Duration);
            }
            self.in_a_row += u32::from(now.since(due) > self.guard.0);
            return match self.sender.send(port, now) {
                Sending::Left | Sending::Refused => Ok(Did::Send),
                Sending::Failed(error) => Err(Ended::Failed(error)),
            };
        }
        if (now >= due || due.since(now) > self.guard.0) && self.may_look(now, others) {
            self.in_a_row = 0;
            did = self.look(port)?;
            if self.stamped && is_time_for_stamps(now, due, self.guard, self.turns, did) {
                match self.receiver.take_stamps(port) {
                    Ok(came) => did = if came { Did::Take } else { did },
                    Err(error) => return Err(Ended::Failed(error)),
                }
            }
        }
        self.rest(now, stop)?;
        if now > self.until && !self.sender.may_send() {
            return Err(Ended::Duration);
        }
        Ok(did)
    }

    /// A turn of a flow that sends no more, and whose last messages are still to come.
    #[inline]
    pub(super) fn listen<P: Port + ?Sized>(
        &mut self,
        port: &mut P,
        now: Ticks,
        others: Option<Ticks>,
        stop: &AtomicBool,
    ) -> Result<Did, Ended> {
        let did = if self.may_look(now, others) { self.look(port)? } else { Did::Look };
        self.rest(now, stop)?;
        Ok(did)
    }

    /// Is there time for a look before another flow's next send? One that is late itself sends first,
    /// as often in a row as a flow sends late before it looks.
    #[inline(always)]
    fn may_look(&mut self, now: Ticks, others: Option<Ticks>) -> bool {
        let Some(due) = others else { return true };
        let free = now < due && due.since(now) > self.guard.0;
        if free || self.left_out >= LOOKS_LEFT_OUT {
            self.left_out = 0;
            return true;
        }
        self.left_out += if now >= due { LOOKS_LEFT_OUT / LATE_BEFORE_A_LOOK } else { 1 };
        false
    }

    #[inline(always)]
    fn look<P: Port + ?Sized>(&mut self, port: &mut P) -> Result<Did, Ended> {
        match self.receiver.look(port, Nanos(0)) {
            Ok(Looked::Nothing) => Ok(Did::Look),
            Ok(Looked::WarmUp | Looked::Message) => Ok(Did::Take),
            Err(error) => Err(Ended::Failed(error)),
        }
    }

    /// What is done once in so many turns.
    #[inline(always)]
    fn rest(&mut self, now: Ticks, stop: &AtomicBool) -> Result<(), Ended> {
        self.turns += 1;
        if self.turns == TURNS {
            self.turns = 0;
            self.receiver.ledger.told_until(now, self.sender.pacing.limits());
            self.receiver.give_up(now);
            if stop.load(Ordering::Relaxed) {
                return Err(Ended::Stopped);
            }
        }
        Ok(())
    }
}

#[inline]
fn is_time_for_stamps(now: Ticks, due: Ticks, guard: Guard, turns: u32, did: Did) -> bool {
    if now >= due {
        return turns.is_multiple_of(LATE_TURNS_WITHOUT_STAMPS);
    }
    let free = due.since(now).0 > LOOKS_FOR_STAMPS * guard.0.0;
    did == Did::Look && free || turns.is_multiple_of(TURNS_WITHOUT_STAMPS)
}
