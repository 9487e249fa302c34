//! Requests under way: when each was intended and sent, until it is answered or given up.
//!
//! A ring by sequence number, written by the sending side and read by the receiving one, which may
//! be another thread. What stands in it is never read from the wire.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use whylate_model::{Nanos, Ticks};

/// Requests under way at most: 2^22 slots of 32 bytes are 128 MiB.
const MOST: u64 = 1 << 22;
/// Requests under way at least: a stall of the receiving side at a low rate.
const LEAST: u64 = 1 << 10;

/// One request under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) intended: Ticks,
    pub(super) sent: Ticks,
    pub(super) part: u8,
    /// It left late because the sender was interrupted.
    pub(super) interrupted: bool,
}

/// What became of a request that stands in the ring no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It was answered then.
    Answered(Ticks),
    /// It was given up.
    GivenUp,
}

#[derive(Debug, Default)]
struct Slot {
    intended: AtomicU64,
    sent: AtomicU64,
    /// [`UNDER_WAY`], [`GIVEN_UP`], [`REFUSED`], or the tick of its reply plus one.
    settled: AtomicU64,
    part: AtomicU8,
    interrupted: AtomicBool,
}

const UNDER_WAY: u64 = 0;
const GIVEN_UP: u64 = u64::MAX;
/// The kernel did not take it, and the receiving side has not heard of that yet.
const REFUSED: u64 = u64::MAX - 1;

/// The ring.
#[derive(Debug)]
pub(super) struct Flight {
    slots: Vec<Slot>,
    mask: u64,
    /// Requests sent: written by the sending side.
    sent: AtomicU64,
    /// Requests below this number are settled: written by the receiving side.
    settled: AtomicU64,
}

impl Flight {
    /// Room for twice what is under way at this rate until it is given up.
    pub(super) fn new(per_second: f64, timeout: Nanos) -> Self {
        let under_way = (per_second * timeout.0 as f64 / 1e9).ceil() as u64;
        let size = under_way.saturating_mul(2).clamp(LEAST, MOST).next_power_of_two();
        let slots = (0..size).map(|_| Slot::default()).collect();
        Self { slots, mask: size - 1, sent: AtomicU64::new(0), settled: AtomicU64::new(0) }
    }

    #[inline]
    fn slot(&self, number: u64) -> &Slot {
        &self.slots[(number & self.mask) as usize]
    }

    /// Requests sent so far.
    #[inline]
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Acquire)
    }

    /// Requests sent and not settled: at most this many.
    #[inline]
    pub(super) fn under_way(&self) -> u64 {
        self.sent.load(Ordering::Relaxed) - self.settled.load(Ordering::Acquire)
    }

    /// Is there room for one more?
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.under_way() <= self.mask
    }

    /// The next request is about to be sent. Announce it before it can be answered.
    #[inline]
    pub(super) fn take_off(&self, request: Request) {
        let number = self.sent.load(Ordering::Relaxed);
        let slot = self.slot(number);
        slot.intended.store(request.intended.0, Ordering::Relaxed);
        slot.part.store(request.part, Ordering::Relaxed);
        slot.interrupted.store(request.interrupted, Ordering::Relaxed);
        slot.sent.store(request.sent.0, Ordering::Relaxed);
        slot.settled.store(UNDER_WAY, Ordering::Relaxed);
        self.sent.store(number + 1, Ordering::Release);
    }

    /// The request that took off last was not taken by the kernel; false when it has been given up
    /// meanwhile, and is settled.
    pub(super) fn refused(&self) -> bool {
        let number = self.sent.load(Ordering::Relaxed).wrapping_sub(1);
        self.settle(number, REFUSED)
    }

    /// Settles request `number` by a reply, if it is under way.
    #[inline]
    pub(super) fn land(&self, number: u64, at: Ticks) -> Option<Request> {
        let settled = self.settled.load(Ordering::Relaxed);
        if number < settled || number >= self.sent() {
            return None;
        }
        let slot = self.slot(number);
        if slot.settled.load(Ordering::Relaxed) != UNDER_WAY {
            return None;
        }
        // A request that was answered was taken: the sending side says nothing any more.
        slot.settled.store(at.0.saturating_add(1).min(REFUSED - 1), Ordering::Relaxed);
        if number == settled {
            self.settled.store(number + 1, Ordering::Release);
        }
        Some(self.look(number))
    }

    /// Settles a request without a reply; false when the sending side was quicker and says that the
    /// kernel refused it.
    pub(super) fn give_up(&self, number: u64) -> bool {
        self.settle(number, GIVEN_UP)
    }

    /// One that was refused has been heard of.
    pub(super) fn dismiss(&self, number: u64) {
        self.slot(number).settled.store(GIVEN_UP, Ordering::Relaxed);
    }

    /// The oldest request that is not settled, with its number, and whether the kernel refused it.
    #[inline]
    pub(super) fn oldest(&self) -> Option<(u64, Request, bool)> {
        let sent = self.sent();
        let mut number = self.settled.load(Ordering::Relaxed);
        while number < sent {
            match self.slot(number).settled.load(Ordering::Acquire) {
                UNDER_WAY => return Some((number, self.look(number), false)),
                REFUSED => return Some((number, self.look(number), true)),
                _ => (),
            }
            number += 1;
            self.settled.store(number, Ordering::Release);
        }
        None
    }

    /// What became of a settled request, and when it was sent, while the ring still holds it.
    pub(super) fn fate(&self, number: u64) -> Option<(Ticks, Fate)> {
        // The place of the one before may be taken at this very moment.
        let kept_from = self.sent().saturating_sub(self.mask);
        if number < kept_from || number >= self.sent() {
            return None;
        }
        let fate = match self.slot(number).settled.load(Ordering::Relaxed) {
            UNDER_WAY => return None,
            GIVEN_UP | REFUSED => Fate::GivenUp,
            at => Fate::Answered(Ticks(at - 1)),
        };
        Some((self.look(number).sent, fate))
    }

    fn settle(&self, number: u64, how: u64) -> bool {
        let (old, new) = (UNDER_WAY, how);
        let settled = &self.slot(number).settled;
        settled.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn look(&self, number: u64) -> Request {
        let slot = self.slot(number);
        Request {
            intended: Ticks(slot.intended.load(Ordering::Relaxed)),
            sent: Ticks(slot.sent.load(Ordering::Relaxed)),
            part: slot.part.load(Ordering::Relaxed),
            interrupted: slot.interrupted.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Ticks = Ticks(1_000);

    fn request(at: u64) -> Request {
        Request {
            intended: Ticks(at),
            sent: Ticks(at + 5),
            part: (at % 3) as u8,
            interrupted: at % 2 == 1,
        }
    }

    #[test]
    fn a_request_lands_once_and_as_it_took_off() {
        let flight = Flight::new(10.0, Nanos(1));
        for at in 0..10 {
            flight.take_off(request(at));
        }
        assert_eq!(flight.land(10, AT), None, "it was not sent");
        for number in [3, 0, 1] {
            assert_eq!(flight.land(number, AT), Some(request(number)));
            assert_eq!(flight.land(number, AT), None, "a duplicate");
        }
        assert_eq!(flight.oldest(), Some((2, request(2), false)));
        assert_eq!(flight.land(2, AT), Some(request(2)));
        assert_eq!(flight.oldest(), Some((4, request(4), false)));
        assert_eq!(flight.under_way(), 6);
    }

    #[test]
    fn the_ring_has_room_for_what_is_under_way_and_no_more() {
        let flight = Flight::new(1e6, Nanos(1_000_000));
        let mut sent = 0;
        while flight.has_room() {
            flight.take_off(request(sent));
            sent += 1;
        }
        assert_eq!(sent, 2_048, "twice what is sent within a timeout");
        assert!(flight.land(0, AT).is_some() && flight.has_room());
        flight.take_off(request(sent));
        assert_eq!(flight.land(0, AT), None, "its place belongs to another one");
        assert_eq!(flight.fate(0), None);
        assert_eq!(flight.land(sent, AT), Some(request(sent)));
    }

    #[test]
    fn what_became_of_a_request_is_known_while_the_ring_holds_it() {
        let flight = Flight::new(10.0, Nanos(1));
        for at in 0..4 {
            flight.take_off(request(at));
        }
        assert!(flight.refused(), "the last one");
        flight.land(0, AT);
        assert!(flight.give_up(1) && !flight.give_up(1));
        assert_eq!(flight.fate(0), Some((Ticks(5), Fate::Answered(AT))));
        assert_eq!(flight.fate(1), Some((Ticks(6), Fate::GivenUp)));
        assert_eq!((flight.fate(2), flight.fate(4)), (None, None));
        assert_eq!(flight.oldest(), Some((2, request(2), false)));
        assert!(flight.give_up(2));
        assert_eq!(flight.oldest(), Some((3, request(3), true)));
        flight.dismiss(3);
        assert_eq!(flight.oldest(), None);
        assert!(!flight.refused(), "it has been given up");
    }
}
