//! What the client's threads tell of themselves: who they are, and when they were kept from running.
//!
//! Guarantees: the measuring thread never waits and allocates nothing; what finds no room is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use whylate_model::{Pid, Ticks, TicksDelta};
use whylate_sys::process;
use whylate_threads::ring::{self, Consumer, Producer, WORDS};

/// Kinds of records.
const THREAD: u64 = 0;
const STALL: u64 = 1;

/// What is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// A thread of the client, which begins now.
    Thread {
        /// Its id.
        tid: Pid,
        /// When.
        at: Ticks,
    },
    /// The spinning client did not run, or did something else than look and send.
    Stall {
        /// The last reading before.
        from: Ticks,
        /// The first one after.
        to: Ticks,
    },
}

/// The measuring threads' end.
pub struct Stalling {
    ring: Producer,
    seen: Arc<Seen>,
}

/// The end of whoever takes in what is told.
pub struct Stalls {
    ring: Consumer,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    /// Everything before has been told.
    until: AtomicU64,
    missed: AtomicU64,
    look: AtomicU64,
    work: AtomicU64,
}

/// Both ends. To be called on the thread that measures, so that the pages lie on its NUMA node.
#[must_use]
pub fn between() -> (Stalling, Stalls) {
    let (producer, consumer) = ring::ring();
    let seen = Arc::<Seen>::default();
    (Stalling { ring: producer, seen: Arc::clone(&seen) }, Stalls { ring: consumer, seen })
}

impl Stalling {
    /// The calling thread is one of the client's.
    pub(super) fn thread(&mut self, at: Ticks) {
        let tid = process::tid();
        self.push([THREAD, tid.0 as u64, at.0, 0]);
    }

    /// The calling thread did not run, or did something else than look and send.
    #[inline]
    pub(super) fn stall(&mut self, from: Ticks, to: Ticks) {
        self.push([STALL, from.0, to.0, 0]);
    }

    /// Everything before `now` has been told; `limits` are what turns that look, and that send, may
    /// take by then.
    #[inline]
    pub(super) fn told_until(&mut self, now: Ticks, [look, work]: [TicksDelta; 2]) {
        self.seen.look.store(look.0, Ordering::Relaxed);
        self.seen.work.store(work.0, Ordering::Relaxed);
        self.seen.until.store(now.0, Ordering::Release);
    }

    fn push(&mut self, words: [u64; WORDS]) {
        if !self.ring.push(words) {
            self.seen.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Stalls {
    /// Takes everything told so far; up to where everything has been.
    pub fn drain(&mut self, mut each: impl FnMut(Told)) -> Ticks {
        // Read first: what was told before it is then in the ring.
        let until = self.seen.until.load(Ordering::Acquire);
        self.ring.drain(|[kind, first, second, _]| {
            each(match kind {
                THREAD => Told::Thread { tid: Pid(first as i32), at: Ticks(second) },
                _ => Told::Stall { from: Ticks(first), to: Ticks(second) },
            });
        });
        Ticks(until)
    }

    /// What found no room.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.seen.missed.load(Ordering::Relaxed)
    }

    /// What a turn that looks, and one that sends, may take.
    #[must_use]
    pub fn limits(&self) -> [TicksDelta; 2] {
        [&self.seen.look, &self.seen.work].map(|of| TicksDelta(of.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_and_stalls_come_out_in_order_and_what_finds_no_room_is_counted() {
        let (mut stalling, mut stalls) = between();
        stalling.thread(Ticks(5));
        let now = Ticks(50_010);
        stalling.stall(Ticks(10), now);
        let limits = [TicksDelta(4_000), TicksDelta(9_000)];
        stalling.told_until(now, limits);
        let mut told = Vec::new();
        assert_eq!(stalls.drain(|of| told.push(of)), now);
        let thread = Told::Thread { tid: process::tid(), at: Ticks(5) };
        assert_eq!(told, [thread, Told::Stall { from: Ticks(10), to: now }]);
        assert_eq!(stalls.limits(), limits);
        for _ in 0..70_000 {
            stalling.stall(Ticks(60_000), Ticks(70_000));
        }
        assert_eq!(stalls.missed(), 70_000 - 65_536);
    }
}
