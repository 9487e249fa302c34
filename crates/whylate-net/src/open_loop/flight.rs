//! Requests under way: when each was intended and sent, until it is answered or given up.
//!
//! A ring by sequence number, written by the sending side and read by the receiving one, which may
//! be another thread. What stands in it is never read from the wire.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use whylate_model::{Nanos, Ticks};

/// Requests under way at most: 2^22 slots of 24 bytes are 96 MiB.
const MOST: u64 = 1 << 22;
/// Requests under way at least: a stall of the receiving side at a low rate.
const LEAST: u64 = 1 << 10;

/// One request under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) intended: Ticks,
    pub(super) sent: Ticks,
    pub(super) part: u8,
}

#[derive(Debug, Default)]
struct Slot {
    intended: AtomicU64,
    /// The tick of sending plus one; 0 once the request is settled.
    sent: AtomicU64,
    part: AtomicU8,
}

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
        slot.sent.store(request.sent.0.wrapping_add(1), Ordering::Relaxed);
        self.sent.store(number + 1, Ordering::Release);
    }

    /// Settles request `number`, if it is under way.
    #[inline]
    pub(super) fn land(&self, number: u64) -> Option<Request> {
        let settled = self.settled.load(Ordering::Relaxed);
        if number < settled || number >= self.sent() {
            return None;
        }
        let request = self.look(number)?;
        self.slot(number).sent.store(0, Ordering::Relaxed);
        if number == settled {
            self.settled.store(number + 1, Ordering::Release);
        }
        Some(request)
    }

    /// The oldest request that is not settled, with its number.
    #[inline]
    pub(super) fn oldest(&self) -> Option<(u64, Request)> {
        let sent = self.sent();
        let mut number = self.settled.load(Ordering::Relaxed);
        while number < sent {
            if let Some(request) = self.look(number) {
                return Some((number, request));
            }
            number += 1;
            self.settled.store(number, Ordering::Release);
        }
        None
    }

    #[inline]
    fn look(&self, number: u64) -> Option<Request> {
        let slot = self.slot(number);
        let sent = slot.sent.load(Ordering::Relaxed).checked_sub(1)?;
        let (intended, part) = (&slot.intended, &slot.part);
        Some(Request {
            intended: Ticks(intended.load(Ordering::Relaxed)),
            sent: Ticks(sent),
            part: part.load(Ordering::Relaxed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(at: u64) -> Request {
        Request { intended: Ticks(at), sent: Ticks(at + 5), part: (at % 3) as u8 }
    }

    #[test]
    fn a_request_lands_once_and_as_it_took_off() {
        let flight = Flight::new(10.0, Nanos(1));
        for at in 0..10 {
            flight.take_off(request(at));
        }
        assert_eq!(flight.land(10), None, "it was not sent");
        for number in [3, 0, 1] {
            assert_eq!(flight.land(number), Some(request(number)));
            assert_eq!(flight.land(number), None, "a duplicate");
        }
        assert_eq!(flight.oldest(), Some((2, request(2))));
        assert_eq!(flight.land(2), Some(request(2)));
        assert_eq!(flight.oldest(), Some((4, request(4))));
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
        assert!(flight.land(0).is_some() && flight.has_room());
        flight.take_off(request(sent));
        assert_eq!(flight.land(0), None, "its place belongs to another one");
        assert_eq!(flight.land(sent), Some(request(sent)));
    }
}
