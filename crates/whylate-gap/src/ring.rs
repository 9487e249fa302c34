//! A ring of gap records between the measuring thread and its drain.
//!
//! One producer, one consumer, a size fixed when it is made, no unsafe: a slot is a handful of relaxed atomics, which
//! compile to plain moves, and the head is published with release. The producer never waits; when
//! the ring is full it is told so and counts instead.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use whylate_model::gap::{Evidence, Gap, GapKind, RseqWord};
use whylate_model::{CpuId, Ticks};

/// Records a ring holds. At 40 bytes each a ring takes 2.5 MiB per measuring thread; drained every
/// 20 ms it takes 3.2 million gaps per second before it overflows.
pub const CAPACITY: usize = 1 << 16;

/// The least: what a thread that shares its CPU records between two drains.
const LEAST: usize = 1 << 8;

const WORD_SET: u64 = 1;
const WORD_CLEARED: u64 = 2;
const IN_RECORDING: u64 = 4;
const SWITCHES_READ: u64 = 8;
const KIND_SHIFT: u32 = 4;
const KIND_MASK: u64 = 7;
const SWITCHES_SHIFT: u32 = 32;
const CPU_SHIFT: u32 = 32;

#[derive(Default)]
struct Slot {
    start: AtomicU64,
    end: AtomicU64,
    resumed: AtomicU64,
    cpus: AtomicU64,
    evidence: AtomicU64,
}

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

/// The drain's end.
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

/// A ring of at least `capacity` records: where hundreds of threads share a machine, each ring
/// cannot be as large as that of one.
#[must_use]
pub fn ring_of(capacity: usize) -> (Producer, Consumer) {
    let capacity = capacity.clamp(LEAST, CAPACITY).next_power_of_two();
    let slots: Box<[Slot]> = (0..capacity).map(|_| Slot::default()).collect();
    let shared = Arc::new(Shared { slots, head: Index::default(), tail: Index::default() });
    let producer = Producer { shared: Arc::clone(&shared), head: 0, tail_seen: 0 };
    (producer, Consumer { shared, tail: 0 })
}

impl Producer {
    /// Is there room for one more record? Reads the consumer's index only when the last one seen
    /// says full.
    #[inline]
    pub fn has_room(&mut self) -> bool {
        let capacity = self.shared.slots.len() as u64;
        if self.head - self.tail_seen < capacity {
            return true;
        }
        self.tail_seen = self.shared.tail.0.load(Ordering::Acquire);
        self.head - self.tail_seen < capacity
    }

    /// Stores everything but the resumption; nothing is visible to the consumer yet.
    ///
    /// Call only after [`Producer::has_room`] said yes.
    #[inline]
    pub fn store(&mut self, gap: &Gap) {
        let slot = self.shared.slot(self.head);
        slot.start.store(gap.start.0, Ordering::Relaxed);
        slot.end.store(gap.end.0, Ordering::Relaxed);
        let cpus = u64::from(gap.cpu_before.0) << CPU_SHIFT | u64::from(gap.cpu_after.0);
        slot.cpus.store(cpus, Ordering::Relaxed);
        slot.evidence.store(pack(gap.kind, gap.evidence), Ordering::Relaxed);
    }

    /// Completes the stored record and shows it to the consumer.
    #[inline]
    pub fn publish(&mut self, resumed: Ticks) {
        let slot = self.shared.slot(self.head);
        slot.resumed.store(resumed.0, Ordering::Relaxed);
        self.head += 1;
        self.shared.head.0.store(self.head, Ordering::Release);
    }
}

impl Consumer {
    /// Moves everything published so far to the end of `into`; returns how many.
    pub fn drain(&mut self, into: &mut Vec<Gap>) -> usize {
        let head = self.shared.head.0.load(Ordering::Acquire);
        let count = (head - self.tail) as usize;
        into.reserve(count);
        while self.tail < head {
            let slot = self.shared.slot(self.tail);
            let cpus = slot.cpus.load(Ordering::Relaxed);
            let (kind, evidence) = unpack(slot.evidence.load(Ordering::Relaxed));
            into.push(Gap {
                start: Ticks(slot.start.load(Ordering::Relaxed)),
                end: Ticks(slot.end.load(Ordering::Relaxed)),
                resumed: Ticks(slot.resumed.load(Ordering::Relaxed)),
                cpu_before: CpuId((cpus >> CPU_SHIFT) as u32),
                cpu_after: CpuId(cpus as u32),
                kind,
                evidence,
            });
            self.tail += 1;
        }
        self.shared.tail.0.store(self.tail, Ordering::Release);
        count
    }
}

impl Shared {
    /// The slot of a record's number. The length is a power of two.
    #[inline]
    fn slot(&self, number: u64) -> &Slot {
        &self.slots[number as usize & (self.slots.len() - 1)]
    }
}

/// The kinds in the order of their numbers in a slot.
const KINDS: [GapKind; 8] = [
    GapKind::Interruption,
    GapKind::Dispatch,
    GapKind::Sleep,
    GapKind::Yield,
    GapKind::HandOff,
    GapKind::Blocked,
    GapKind::Spin,
    GapKind::LateTimer,
];

fn pack(kind: GapKind, evidence: Evidence) -> u64 {
    let word = match evidence.rseq {
        RseqWord::Unarmed => 0,
        RseqWord::Set => WORD_SET,
        RseqWord::Cleared => WORD_CLEARED,
    };
    let recording = if evidence.in_recording { IN_RECORDING } else { 0 };
    let switches = match evidence.involuntary_switches {
        Some(count) => SWITCHES_READ | u64::from(count) << SWITCHES_SHIFT,
        None => 0,
    };
    word | recording | switches | (kind as u64) << KIND_SHIFT
}

fn unpack(bits: u64) -> (GapKind, Evidence) {
    let rseq = match bits & (WORD_SET | WORD_CLEARED) {
        WORD_SET => RseqWord::Set,
        WORD_CLEARED => RseqWord::Cleared,
        _ => RseqWord::Unarmed,
    };
    let read = bits & SWITCHES_READ != 0;
    let evidence = Evidence {
        rseq,
        involuntary_switches: read.then_some((bits >> SWITCHES_SHIFT) as u32),
        in_recording: bits & IN_RECORDING != 0,
    };
    let number = (bits >> KIND_SHIFT & KIND_MASK) as usize;
    (KINDS.get(number).copied().unwrap_or_default(), evidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(n: u64) -> Gap {
        Gap {
            start: Ticks(n * 10),
            end: Ticks(n * 10 + 5),
            resumed: Ticks(n * 10 + 6),
            cpu_before: CpuId(n as u32 % 7),
            cpu_after: CpuId(n as u32 % 5),
            kind: KINDS[n as usize % KINDS.len()],
            evidence: Evidence {
                rseq: [RseqWord::Unarmed, RseqWord::Set, RseqWord::Cleared][n as usize % 3],
                involuntary_switches: n.is_multiple_of(2).then_some(n as u32),
                in_recording: n.is_multiple_of(11),
            },
        }
    }

    fn push(producer: &mut Producer, gap: &Gap) {
        producer.store(gap);
        producer.publish(gap.resumed);
    }

    #[test]
    fn records_come_out_as_they_went_in_and_in_order() {
        let (mut producer, mut consumer) = ring();
        let mut out = Vec::new();
        for round in 0..5 {
            let sent: Vec<Gap> = (round * 1000..round * 1000 + 777).map(gap).collect();
            for gap in &sent {
                push(&mut producer, gap);
            }
            out.clear();
            assert_eq!(consumer.drain(&mut out), sent.len());
            assert_eq!(out, sent);
        }
    }

    #[test]
    fn a_full_ring_says_so_and_has_room_again_after_a_drain() {
        let (mut producer, mut consumer) = ring();
        for n in 0..CAPACITY as u64 {
            assert!(producer.has_room());
            push(&mut producer, &gap(n));
        }
        assert!(!producer.has_room());
        let mut out = Vec::new();
        consumer.drain(&mut out);
        assert_eq!(out.len(), CAPACITY);
        assert!(producer.has_room());
    }

    #[test]
    fn nothing_is_torn_or_lost_between_two_threads() {
        const RECORDS: u64 = 500_000;
        let (mut producer, mut consumer) = ring();
        let writer = std::thread::spawn(move || {
            for n in 0..RECORDS {
                while !producer.has_room() {
                    std::thread::yield_now();
                }
                push(&mut producer, &gap(n));
            }
        });
        let mut out = Vec::new();
        let mut next = 0;
        while next < RECORDS {
            out.clear();
            consumer.drain(&mut out);
            for found in &out {
                assert_eq!(*found, gap(next));
                next += 1;
            }
        }
        writer.join().expect("writer ends");
    }
}
