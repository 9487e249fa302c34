//! A ring of records between a measuring thread and the thread that collects.
//!
//! Records are four words; what they mean is their users' business. One producer, one consumer, fixed size, no unsafe: a slot is four relaxed atomics, which compile
//! to plain moves, and the head is published with release. The producer never waits: a record that
//! finds the ring full is refused, and its producer counts it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of a slot.
pub const WORDS: usize = 4;

/// Records a ring holds: 2 MiB. At the shortest period, 100 000 records a second, the collecting
/// side may sleep for over half a second before one is refused.
pub const CAPACITY: usize = 1 << 16;

/// The least: what one of many threads on a CPU records between two looks of the collecting side.
const LEAST: usize = 1 << 8;

type Slot = [AtomicU64; WORDS];

/// Keeps the two ends' indexes from sharing a cache line (and its prefetched neighbour).
#[repr(align(128))]
#[derive(Default)]
struct Index(AtomicU64);

struct Shared {
    slots: Box<[Slot]>,
    head: Index,
    tail: Index,
}

/// The measuring thread's end.
pub struct Producer {
    shared: Arc<Shared>,
    head: u64,
    tail_seen: u64,
}

/// The collecting side's end.
pub struct Consumer {
    shared: Arc<Shared>,
    tail: u64,
}

/// A ring whose memory is touched by the calling thread: call it on the thread that will fill it,
/// so that the pages lie on its NUMA node.
#[must_use]
pub fn ring() -> (Producer, Consumer) {
    ring_of(CAPACITY)
}

/// A ring of at least `capacity` records, for threads of which there are many.
pub(crate) fn ring_of(capacity: usize) -> (Producer, Consumer) {
    let capacity = capacity.clamp(LEAST, CAPACITY).next_power_of_two();
    let slots: Box<[Slot]> = (0..capacity).map(|_| touched()).collect();
    let shared = Arc::new(Shared { slots, head: Index::default(), tail: Index::default() });
    let producer = Producer { shared: Arc::clone(&shared), head: 0, tail_seen: 0 };
    (producer, Consumer { shared, tail: 0 })
}

impl Shared {
    /// The slot of a record's number. The length is a power of two.
    #[inline]
    fn slot(&self, number: u64) -> &Slot {
        &self.slots[number as usize & (self.slots.len() - 1)]
    }
}

impl Producer {
    /// Adds a record, or says no when the ring is full.
    #[inline]
    pub fn push(&mut self, words: [u64; WORDS]) -> bool {
        let capacity = self.shared.slots.len() as u64;
        if self.head - self.tail_seen == capacity {
            self.tail_seen = self.shared.tail.0.load(Ordering::Acquire);
            if self.head - self.tail_seen == capacity {
                return false;
            }
        }
        let slot = self.shared.slot(self.head);
        for (cell, word) in slot.iter().zip(words) {
            cell.store(word, Ordering::Relaxed);
        }
        self.head += 1;
        self.shared.head.0.store(self.head, Ordering::Release);
        true
    }
}

impl Consumer {
    /// Hands over everything published so far, in order.
    pub fn drain(&mut self, mut each: impl FnMut([u64; WORDS])) {
        let head = self.shared.head.0.load(Ordering::Acquire);
        while self.tail < head {
            let slot = self.shared.slot(self.tail);
            each(std::array::from_fn(|word| slot[word].load(Ordering::Relaxed)));
            self.tail += 1;
        }
        self.shared.tail.0.store(self.tail, Ordering::Release);
    }
}

/// A slot whose page is written, not only reserved: memory of zeros may be nobody's yet.
fn touched() -> Slot {
    std::array::from_fn(|_| AtomicU64::new(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_out_in_order_and_a_full_ring_refuses_without_losing_any() {
        let (mut producer, mut consumer) = ring();
        let mut next = 0;
        for round in 0..3_u64 {
            let accepted = (0..CAPACITY as u64 + 5)
                .filter(|&i| producer.push([round * CAPACITY as u64 + i, 1, 2, 3]))
                .count();
            assert_eq!(accepted, CAPACITY);
            consumer.drain(|words| {
                assert_eq!(words, [next, 1, 2, 3]);
                next += 1;
            });
        }
        assert_eq!(next, 3 * CAPACITY as u64);
    }

    #[test]
    fn a_record_is_never_seen_half_written_by_the_other_thread() {
        const COUNT: u64 = 400_000;
        let (mut producer, mut consumer) = ring();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for i in 0..COUNT {
                    while !producer.push([i, !i, i ^ 0x5555, i.rotate_left(7)]) {
                        std::thread::yield_now();
                    }
                }
            });
            let mut next = 0;
            while next < COUNT {
                consumer.drain(|words| {
                    assert_eq!(words, [next, !next, next ^ 0x5555, next.rotate_left(7)]);
                    next += 1;
                });
                std::thread::yield_now();
            }
        });
    }
}
