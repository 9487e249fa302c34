//! Datagrams that are to be sent: where those wait that the kernel does not take at once.

use crate::frames::Amount;

/// Datagrams that wait at most.
pub const MOST_WAITING: usize = 512;

/// Bytes that each has room for, touched before: longer ones make room once.
const USUAL: usize = 2_048;

/// One that waits, or room for one.
#[derive(Debug)]
struct Slot {
    /// Never shorter than what was in it before: only what is new of it is cleared.
    bytes: Vec<u8>,
    length: usize,
    place: usize,
}

/// Datagrams in the order in which they were put, each with the place of its client.
#[derive(Debug)]
pub(super) struct Outbox {
    slots: Box<[Slot]>,
    first: usize,
    count: usize,
}

impl Outbox {
    pub(super) fn new() -> Self {
        let mut slots = Vec::new();
        slots.resize_with(MOST_WAITING, || Slot { bytes: vec![0x5a; USUAL], length: 0, place: 0 });
        Self { slots: slots.into(), first: 0, count: 0 }
    }

    /// Room for a datagram; none where all of it is taken.
    #[inline]
    pub(super) fn put(&mut self, length: usize, place: usize) -> Option<&mut [u8]> {
        if self.count == MOST_WAITING {
            return None;
        }
        let slot = &mut self.slots[(self.first + self.count) % MOST_WAITING];
        if slot.bytes.len() < length {
            slot.bytes.resize(length, 0);
        }
        (slot.length, slot.place) = (length, place);
        self.count += 1;
        Some(&mut slot.bytes[..length])
    }

    /// Those that wait, the first one first: the place of the client, and what is in it.
    #[inline]
    pub(super) fn waiting(&self) -> impl Iterator<Item = (usize, &[u8])> {
        (0..self.count).map(|at| {
            let slot = &self.slots[(self.first + at) % MOST_WAITING];
            (slot.place, &slot.bytes[..slot.length])
        })
    }

    /// Length of the first one.
    #[inline]
    pub(super) fn first(&self) -> Option<usize> {
        (self.count > 0).then(|| self.slots[self.first].length)
    }

    /// The first ones have left, or never will.
    #[inline]
    pub(super) fn take_off(&mut self, count: usize) {
        let count = count.min(self.count);
        self.first = (self.first + count) % MOST_WAITING;
        self.count -= count;
    }

    pub(super) fn amount(&self) -> Amount {
        self.waiting().map(|(_, bytes)| bytes.len()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_waits_in_its_order_and_no_more_than_there_is_room_for() {
        let mut out = Outbox::new();
        let (mut put, mut left) = (0, 0);
        // Round the end of the memory several times, with longer and shorter ones in the same places.
        for turn in 0..40 {
            for _ in 0..100 - turn {
                let length = (put * 7) % 90;
                out.put(length, put % 5).unwrap().fill(put as u8);
                put += 1;
            }
            let expected = (left..put).map(|at| (at % 5, vec![at as u8; (at * 7) % 90]));
            assert!(out.waiting().map(|(place, bytes)| (place, bytes.to_vec())).eq(expected));
            assert_eq!(out.first(), (left < put).then(|| (left * 7) % 90));
            out.take_off(100 - turn);
            left += 100 - turn;
        }
        for _ in 0..MOST_WAITING {
            assert!(out.put(1, 0).is_some());
        }
        assert!(out.put(1, 0).is_none());
        assert_eq!(out.amount(), Amount { frames: 512, bytes: 512 });
        out.take_off(usize::MAX);
        assert_eq!((out.amount(), out.first()), (Amount::default(), None));
    }
}
