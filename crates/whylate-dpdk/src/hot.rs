//! Passing frames between two devices without a look at them, and what stamps cost while doing so.
//!
//! The loop takes a burst at one device and gives it to the other, both ways in turn, on one thread. It
//! never allocates, locks or makes a system call; drivers of sockets make theirs. A look at the end and
//! at the stop flag is one in 256 rounds: with stamps off nothing else reads the counter, and these rounds
//! are one call.

use std::sync::atomic::{AtomicBool, Ordering};

use whylate_clock::Counter;
use whylate_model::Ticks;
use whylate_port::frames::BURST;
use whylate_stats::histogram::Histogram;

use crate::raw::{Outgoing, Received, rounds};

/// Rounds between two looks at the end.
const ROUNDS: u32 = 256;

/// What is stamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stamps {
    /// Nothing.
    Off,
    /// Each burst once when it was received and once before it is sent.
    Burst,
    /// Each packet so.
    Packet,
}

/// What became of the frames of one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Passed {
    /// Frames received.
    pub received: u64,
    /// Frames that the other device took.
    pub sent: u64,
    /// Bursts that had a frame.
    pub bursts: u64,
    /// Looks that found none.
    pub empty: u64,
}

/// How long, and in what bursts.
#[derive(Debug, Clone, Copy)]
pub struct Course<'a> {
    /// Frames of a burst at most.
    pub burst: usize,
    /// The counter's reading at which it ends.
    pub end: Ticks,
    /// Ends it before.
    pub stop: &'a AtomicBool,
}

/// One way, from a device to another.
pub(crate) struct Way<'a> {
    pub(crate) from: &'a mut Received,
    pub(crate) to: &'a mut Outgoing,
}

/// Passes frames both ways until the end; gives the first and the last reading of the counter.
/// Residence is in ticks, of each packet.
#[inline(never)]
pub(crate) fn pass<C: Counter, const BY_BURST: bool, const BY_PACKET: bool>(
    ways: &mut [Way<'_>; 2],
    passed: &mut [Passed; 2],
    course: &Course<'_>,
    counter: &mut C,
    residence: &mut Histogram,
) -> (Ticks, Ticks) {
    let start = counter.read_ordered().0;
    loop {
        if BY_BURST || BY_PACKET {
            stamped::<C, BY_PACKET>(ways, passed, course.burst, counter, residence);
        } else {
            rounds(ways, course.burst, ROUNDS, passed);
        }
        let now = counter.read_ordered().0;
        if now >= course.end || course.stop.load(Ordering::Relaxed) {
            return (start, now);
        }
    }
}

/// Rounds with a stamp at reception and one before sending.
#[inline]
fn stamped<C: Counter, const BY_PACKET: bool>(
    ways: &mut [Way<'_>; 2],
    passed: &mut [Passed; 2],
    most: usize,
    counter: &mut C,
    residence: &mut Histogram,
) {
    let mut seen = [Ticks(0); BURST];
    for _ in 0..ROUNDS {
        for (way, passed) in ways.iter_mut().zip(passed.iter_mut()) {
            let count = way.from.take(most);
            if count == 0 {
                passed.empty += 1;
                continue;
            }
            passed.received += count as u64;
            passed.bursts += 1;
            if BY_PACKET {
                for at in seen.iter_mut().take(count) {
                    *at = counter.read_ordered().0;
                }
                for at in seen.iter().take(count) {
                    let now = counter.read_ordered().0;
                    residence.record(now.since(*at).0);
                }
            } else {
                let at = counter.read_ordered().0;
                let now = counter.read_ordered().0;
                residence.record_n(now.since(at).0, count as u64);
            }
            passed.sent += way.from.pass(way.to) as u64;
        }
    }
}
