//! The loop of a runner: reads the counter and writes each stretch without a gap.
//!
//! It is the gap loop with two ways out: a gap, which ends a stretch and begins the next, and the end
//! of the runner's turn, after which it gives the CPU up. A stretch is stored with its first and its
//! last reading before the CPU is given up, so that the time from one runner's last reading to the
//! next one's first is what the switch took, and two stores. Never allocates, locks, logs or formats;
//! the only system call is that of giving up.
//!
//! The inner loop on x86-64 is that of the gap loop with the end of the turn in the place of a count.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use whylate_clock::Counter;
use whylate_model::{Ticks, TicksDelta};

/// What a runner does between two readings.
pub(super) trait Load {
    /// Does it once.
    fn once(&mut self);
}

/// Fixed limits of a trial, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Terms {
    /// CPU time of a turn.
    pub(super) quantum: TicksDelta,
    /// A delta above this is a gap.
    pub(super) threshold: TicksDelta,
    /// The word that stops a trial is looked at this often.
    pub(super) look: TicksDelta,
    /// What runs before is warm-up.
    pub(super) begin: Ticks,
    /// The trial ends at the first reading from here on.
    pub(super) end: Ticks,
}

/// Where a runner writes.
pub(super) struct Book<'a> {
    log: &'a [AtomicU64],
    count: &'a AtomicU64,
    at: usize,
}

impl<'a> Book<'a> {
    pub(super) fn new(log: &'a [AtomicU64], count: &'a AtomicU64) -> Self {
        Self { log, count, at: 0 }
    }

    /// Stores a stretch; false when there is no room for another one.
    #[inline]
    fn store(&mut self, first: Ticks, last: Ticks) -> bool {
        if let [begin, end, rest @ ..] = self.log {
            begin.store(first.0, Ordering::Relaxed);
            end.store(last.0, Ordering::Relaxed);
            self.at += 1;
            self.count.store(self.at as u64, Ordering::Release);
            self.log = rest;
        }
        self.log.len() >= 2
    }
}

/// How a trial ended for a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ran {
    /// Times that the work was done.
    pub(super) work: u64,
    /// The log has no room.
    pub(super) full: bool,
}

/// Does the work until the trial begins.
#[inline(never)]
pub(super) fn warm_up<C: Counter, L: Load>(
    counter: &mut C,
    load: &mut L,
    stop: &AtomicU32,
    terms: &Terms,
) {
    while counter.read() < terms.begin && stop.load(Ordering::Relaxed) == 0 {
        load.once();
    }
}

/// Runs turns until the trial is over, calling `give` after each.
#[inline(never)]
pub(super) fn run<C: Counter, L: Load, G: FnMut()>(
    counter: &mut C,
    load: &mut L,
    book: &mut Book<'_>,
    stop: &AtomicU32,
    terms: &Terms,
    give: &mut G,
) -> Ran {
    let mut work = 0;
    let mut now = counter.read();
    while now < terms.end && stop.load(Ordering::Relaxed) == 0 {
        let mut first = now;
        let mut goal = now + terms.quantum;
        while now < goal && now < terms.end && stop.load(Ordering::Relaxed) == 0 {
            let edge = goal.min(terms.end).min(now + terms.look);
            let mut previous = now;
            while previous < edge {
                load.once();
                now = counter.read();
                work += 1;
                if now.since(previous) > terms.threshold {
                    if !book.store(first, previous) {
                        return Ran { work, full: true };
                    }
                    // What a gap took, the runner did not have.
                    goal = goal + now.since(previous);
                    first = now;
                    break;
                }
                previous = now;
            }
        }
        if !book.store(first, now) {
            return Ran { work, full: true };
        }
        if now >= goal {
            give();
            now = counter.read();
        }
    }
    Ran { work, full: false }
}
