//! Frames that wait: first in and first out, in memory that does not grow.
//!
//! Bytes lie one frame behind the other in a ring; a frame is never parted. Where nothing waits the ring
//! begins anew, so that a short delay goes on in the same few lines of a processor's cache.

use whylate_model::Ticks;

use super::capacity::{Capacity, LINE};

/// Bytes of a page: each has to be written to once before it is there.
const PAGE: usize = 4_096;

/// What is known of a frame that waits, or is about to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Held {
    pub(super) arrival: Ticks,
    pub(super) due: Ticks,
    pub(super) ordinal: u64,
    pub(super) number: Option<u64>,
    pub(super) flow: Option<u64>,
    pub(super) length: u32,
    /// It is to leave twice.
    pub(super) twice: bool,
    /// Where it lies.
    pub(super) at: usize,
}

/// The queue of one direction.
#[derive(Debug)]
pub(super) struct Fifo {
    frames: Box<[Held]>,
    bytes: Box<[u8]>,
    /// The oldest.
    first: usize,
    count: usize,
    /// Behind the newest.
    end: usize,
}

impl Fifo {
    /// An empty queue whose memory has been written to.
    pub(super) fn new(capacity: Capacity) -> Self {
        let mut bytes = vec![0; capacity.bytes as usize / LINE * LINE].into_boxed_slice();
        for page in bytes.chunks_mut(PAGE) {
            page[0] = std::hint::black_box(1);
        }
        // Other than zeros, which would be pages that are not there yet.
        let touched = Held { length: 1, ..Held::default() };
        let frames = vec![touched; capacity.frames as usize].into_boxed_slice();
        Self { frames, bytes, first: 0, count: 0, end: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The frame that came first.
    #[inline]
    pub(super) fn front(&self) -> Option<&Held> {
        if self.count == 0 { None } else { self.frames.get(self.first) }
    }

    /// Its bytes.
    #[inline]
    pub(super) fn bytes(&self, of: &Held) -> &[u8] {
        &self.bytes[of.at..of.at + of.length as usize]
    }

    /// Room for one more, which is known so; none where there is none.
    #[inline]
    pub(super) fn push(&mut self, held: Held) -> Option<&mut [u8]> {
        let length = held.length as usize;
        let room = length.next_multiple_of(LINE);
        let at = self.place(room)?;
        if self.count == self.frames.len() {
            return None;
        }
        let mut place = self.first + self.count;
        if place >= self.frames.len() {
            place -= self.frames.len();
        }
        self.frames[place] = Held { at, ..held };
        self.count += 1;
        self.end = at + room;
        Some(&mut self.bytes[at..at + length])
    }

    /// Where so many bytes find room.
    #[inline]
    fn place(&self, room: usize) -> Option<usize> {
        let Some(front) = self.front() else {
            return (room <= self.bytes.len()).then_some(0);
        };
        let (begin, end) = (front.at, self.end);
        if end > begin {
            // What waits lies in one piece: behind it, or else before it.
            if room <= self.bytes.len() - end {
                return Some(end);
            }
            // An end that met the beginning would be a queue that is empty.
            return (room < begin).then_some(0);
        }
        (room < begin - end).then_some(end)
    }

    /// Takes the oldest out.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Held> {
        let held = *self.front()?;
        self.first += 1;
        if self.first == self.frames.len() {
            self.first = 0;
        }
        self.count -= 1;
        if self.count == 0 {
            (self.first, self.end) = (0, 0);
        }
        Some(held)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    fn put(fifo: &mut Fifo, ordinal: u64, length: usize) -> bool {
        let held = Held { ordinal, length: length as u32, ..Held::default() };
        fifo.push(held).map(|place| place.fill(ordinal as u8)).is_some()
    }

    #[test]
    fn frames_leave_in_their_order_and_beyond_its_memory_there_is_no_room() {
        let mut fifo = Fifo::new(Capacity { frames: 4, bytes: 256 });
        for ordinal in 0..4 {
            assert!(put(&mut fifo, ordinal, 64));
        }
        assert!(!put(&mut fifo, 4, 1));
        let mut fifo = Fifo::new(Capacity { frames: 100, bytes: 256 });
        assert!(put(&mut fifo, 0, 256) && !put(&mut fifo, 1, 1) && !fifo.is_empty());
        assert_eq!(fifo.pop().map(|held| held.length), Some(256));
        assert!(fifo.is_empty() && !put(&mut fifo, 1, 257) && fifo.pop().is_none());
    }

    proptest! {
        #[test]
        fn whatever_comes_and_goes_no_byte_is_lost_or_changed(
            steps in proptest::collection::vec((any::<bool>(), 1_usize..400), 1..400),
            frames in 1_u64..20,
            lines in 1_u64..40,
        ) {
            let mut fifo = Fifo::new(Capacity { frames, bytes: lines * LINE as u64 });
            let mut expected: VecDeque<(u64, usize)> = VecDeque::new();
            for (ordinal, (comes, length)) in (0..).zip(steps) {
                if comes {
                    if put(&mut fifo, ordinal, length) {
                        expected.push_back((ordinal, length));
                    }
                    continue;
                }
                let front = fifo.front().copied();
                if let Some(front) = &front {
                    let right = fifo.bytes(front).iter().all(|byte| *byte == front.ordinal as u8);
                    prop_assert!(right, "{front:?}");
                }
                prop_assert_eq!(fifo.pop(), front);
                let found = front.map(|held| (held.ordinal, held.length as usize));
                prop_assert_eq!(found, expected.pop_front());
                prop_assert_eq!(fifo.len(), expected.len());
            }
        }
    }
}
