//! The way of truths from the thread that holds frames back to whoever writes them down.
//!
//! A ring with one writer and one reader, all of its memory touched before the first frame. The writer
//! never waits: what finds no room is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use whylate_model::Ticks;
use whylate_model::delay::{Fate, Truth};

/// Truths that find room where nothing else is said: 16 MiB, a fifth of a second at a million frames a
/// second.
pub const TRUTH_ROOM: usize = 1 << 18;
/// Truths that may be asked to find room.
pub const MOST_TRUTH_ROOM: usize = 1 << 26;
/// Words of a truth: a line of a processor's cache.
const WORDS: usize = 8;
/// Bits of the last word.
const HAS_DEPARTURE: u64 = 1 << 8;
const HAS_NUMBER: u64 = 1 << 9;
const HAS_FLOW: u64 = 1 << 10;
const DIRECTION: u32 = 16;
const BYTES: u32 = 32;

/// A count on a line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart(AtomicU64);

#[derive(Debug)]
struct Ring {
    words: Box<[AtomicU64]>,
    /// Written so far.
    head: Apart,
    /// Read so far.
    tail: Apart,
    missed: Apart,
}

impl Ring {
    fn room(&self) -> u64 {
        (self.words.len() / WORDS) as u64
    }

    fn place(&self, number: u64) -> usize {
        (number % self.room()) as usize * WORDS
    }
}

/// The writer's end.
#[derive(Debug)]
pub(super) struct TruthWriter {
    ring: Arc<Ring>,
    head: u64,
    /// Of these so many can be read.
    shown: u64,
    /// Read, as far as was looked.
    tail: u64,
    missed: u64,
}

/// The reader's end.
#[derive(Debug)]
pub struct TruthReader {
    ring: Arc<Ring>,
    tail: u64,
}

/// A ring with room for so many truths, which is brought into its bounds and to a power of two.
pub(super) fn truths(room: usize) -> (TruthWriter, TruthReader) {
    let room = room.clamp(64, MOST_TRUTH_ROOM).next_power_of_two();
    let words: Box<[AtomicU64]> = (0..room * WORDS).map(|_| AtomicU64::new(0)).collect();
    // A page that was never written to costs a fault at its first truth.
    words.iter().for_each(|word| word.store(1, Ordering::Relaxed));
    let ring =
        Ring { words, head: Apart::default(), tail: Apart::default(), missed: Apart::default() };
    let ring = Arc::new(ring);
    let writer = TruthWriter { ring: Arc::clone(&ring), head: 0, shown: 0, tail: 0, missed: 0 };
    (writer, TruthReader { ring, tail: 0 })
}

impl TruthWriter {
    /// Writes one down; it is read after [`TruthWriter::show`].
    #[inline]
    pub(super) fn push(&mut self, truth: &Truth) {
        if self.head - self.tail >= self.ring.room() && !self.has_room() {
            self.missed += 1;
            self.ring.missed.0.store(self.missed, Ordering::Relaxed);
            return;
        }
        let at = self.ring.place(self.head);
        for (cell, word) in self.ring.words[at..at + WORDS].iter().zip(words(truth)) {
            cell.store(word, Ordering::Relaxed);
        }
        self.head += 1;
    }

    /// Looks how far the reader is.
    #[cold]
    fn has_room(&mut self) -> bool {
        // What is not shown cannot be read.
        self.show();
        self.tail = self.ring.tail.0.load(Ordering::Acquire);
        self.head - self.tail < self.ring.room()
    }

    /// Lets the reader see what was written.
    #[inline]
    pub(super) fn show(&mut self) {
        if self.shown != self.head {
            self.shown = self.head;
            self.ring.head.0.store(self.head, Ordering::Release);
        }
    }

    /// Is there room for one more by now?
    pub(super) fn may_push(&mut self) -> bool {
        self.head - self.tail < self.ring.room() || self.has_room()
    }
}

impl TruthReader {
    /// Hands over everything that was written so far, in its order. Never waits.
    pub fn drain(&mut self, mut each: impl FnMut(Truth)) {
        let head = self.ring.head.0.load(Ordering::Acquire);
        while self.tail < head {
            let at = self.ring.place(self.tail);
            let words: [u64; WORDS] =
                std::array::from_fn(|word| self.ring.words[at + word].load(Ordering::Relaxed));
            each(truth(words));
            self.tail += 1;
            // The writer may go on while this reads.
            if self.tail.is_multiple_of(64) {
                self.ring.tail.0.store(self.tail, Ordering::Release);
            }
        }
        self.ring.tail.0.store(self.tail, Ordering::Release);
    }

    /// Truths that found no room until now.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.ring.missed.0.load(Ordering::Relaxed)
    }

    /// Has the line gone? What it wrote until then can still be drained.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let alone = Arc::strong_count(&self.ring) == 1;
        // What it wrote before it went is to be seen by the next drain.
        fence(Ordering::Acquire);
        alone
    }
}

#[inline]
fn words(of: &Truth) -> [u64; WORDS] {
    let flag = |is: bool, flag: u64| if is { flag } else { 0 };
    let facts = of.fate as u64
        | flag(of.departure.is_some(), HAS_DEPARTURE)
        | flag(of.number.is_some(), HAS_NUMBER)
        | flag(of.flow.is_some(), HAS_FLOW)
        | u64::from(of.direction) << DIRECTION
        | u64::from(of.bytes) << BYTES;
    let departure = of.departure.unwrap_or_default();
    let (number, flow) = (of.number.unwrap_or_default(), of.flow.unwrap_or_default());
    [of.ordinal, of.arrival.0, of.due.0, departure.0, number, flow, 0, facts]
}

fn truth([ordinal, arrival, due, departure, number, flow, _, facts]: [u64; WORDS]) -> Truth {
    let fate = Fate::ALL.get((facts & 0xff) as usize).copied();
    Truth {
        direction: (facts >> DIRECTION) as u8,
        ordinal,
        arrival: Ticks(arrival),
        due: Ticks(due),
        departure: (facts & HAS_DEPARTURE != 0).then_some(Ticks(departure)),
        bytes: (facts >> BYTES) as u32,
        number: (facts & HAS_NUMBER != 0).then_some(number),
        flow: (facts & HAS_FLOW != 0).then_some(flow),
        fate: fate.unwrap_or(Fate::Waiting),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(ordinal: u64) -> Truth {
        let fate = Fate::ALL[ordinal as usize % Fate::ALL.len()];
        Truth {
            direction: (ordinal % 2) as u8,
            ordinal,
            arrival: Ticks(ordinal + 1),
            due: Ticks(u64::MAX - ordinal),
            departure: fate.has_left().then_some(Ticks(ordinal * 3)),
            bytes: u32::MAX - ordinal as u32,
            number: ordinal.is_multiple_of(3).then_some(ordinal << 40),
            flow: ordinal.is_multiple_of(5).then_some(u64::MAX),
            fate,
        }
    }

    #[test]
    fn truths_are_read_as_they_were_written_and_what_finds_no_room_is_counted() {
        let (mut writer, mut reader) = truths(64);
        let mut read = Vec::new();
        let mut expected = Vec::new();
        for number in 0..1_000 {
            writer.push(&some(number));
            if number % 50 == 0 {
                writer.show();
                reader.drain(|truth| read.push(truth));
            }
            expected.push(some(number));
        }
        writer.show();
        reader.drain(|truth| read.push(truth));
        assert_eq!((read == expected, reader.missed()), (true, 0));
        for number in 0..70 {
            writer.push(&some(number));
        }
        assert!(!writer.may_push());
        let mut count = 0;
        reader.drain(|_| count += 1);
        assert_eq!((count, reader.missed()), (64, 6));
        assert!(writer.may_push() && !reader.is_over());
        drop(writer);
        assert!(reader.is_over());
    }

    #[test]
    fn a_reader_on_another_thread_gets_every_truth_in_its_order() {
        let (mut writer, mut reader) = truths(256);
        let count = 200_000;
        let writing = std::thread::spawn(move || {
            for number in 0..count {
                while !writer.may_push() {
                    std::thread::yield_now();
                }
                writer.push(&some(number));
            }
            writer.show();
        });
        let mut next = 0;
        let mut take = |truth: Truth| {
            assert_eq!(truth, some(next));
            next += 1;
        };
        while !reader.is_over() {
            reader.drain(&mut take);
        }
        reader.drain(&mut take);
        writing.join().unwrap();
        assert_eq!((next, reader.missed()), (count, 0));
    }
}
