//! What a thread of a set hands to the collecting side beside its gaps, and its form in the ring.

use whylate_model::{Nanos, Ticks, TicksDelta};

use crate::ring::WORDS;
use crate::timer::TimerNanos;

/// Something that happened to a thread at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The thread began activation `index`, due at `intended`, and had the CPU at `at`.
    Woke {
        /// Number in the schedule, from 0.
        index: u64,
        /// When it was due.
        intended: TimerNanos,
        /// First reading of the running thread.
        at: Ticks,
    },
    /// Job `index` received its execution time.
    Done {
        /// Number in the schedule, from 0.
        index: u64,
        /// Execution time that it asked for and received.
        received: TicksDelta,
        /// Reading at which it had been received.
        at: Ticks,
    },
    /// Activations were passed over: `count` of them from `index` on.
    Skipped {
        /// The first of them.
        index: u64,
        /// How many.
        count: u64,
        /// When the thread knew.
        at: Ticks,
    },
    /// A program begins, or begins anew.
    Began {
        /// When.
        at: Ticks,
    },
    /// Job `index` of a program is one that ends with a timer.
    Due {
        /// Number among such jobs, from 0.
        index: u64,
        /// The timer's instant before.
        release: TimerNanos,
        /// When it is to be done.
        due: TimerNanos,
        /// When the thread knew.
        at: Ticks,
    },
    /// A timer of a program has fired, or its instant was over before it was waited for.
    Fired {
        /// Number of the timer in its program.
        timer: u64,
        /// The instant that its next period counts from.
        intended: TimerNanos,
        /// By how much that lies behind the instant that was due; zero for a timer that was in time,
        /// or keeps its instants.
        put_off: Nanos,
        /// First reading of the running thread.
        at: Ticks,
    },
    /// What steps that keep busy by the clock came to, in the pass whose end is told next.
    Busy {
        /// How far one of them went beyond its end, at most.
        over: TicksDelta,
        /// From their begin to their end.
        elapsed: TicksDelta,
        /// Of that, what the thread received.
        received: TicksDelta,
        /// When it was known.
        at: Ticks,
    },
    /// A pass through a phase of a program is over.
    Passed {
        /// Number of the phase in its program.
        phase: u64,
        /// What its run steps received.
        run: TicksDelta,
        /// What the thread wanted and did not have in it.
        lost: TicksDelta,
        /// When it was over, and the next began.
        at: Ticks,
    },
}

const WOKE: u64 = 0;
const DONE: u64 = 1;
const SKIPPED: u64 = 2;
const BEGAN: u64 = 3;
const DUE: u64 = 4;
const PASSED: u64 = 5;
const FIRED: u64 = 6;
const BUSY: u64 = 7;
/// The kind lies in the lowest bits of the first word.
const KIND_BITS: u32 = 4;

impl Mark {
    /// The reading at which it was made.
    #[must_use]
    pub fn at(&self) -> Ticks {
        match self {
            Self::Woke { at, .. }
            | Self::Done { at, .. }
            | Self::Skipped { at, .. }
            | Self::Began { at }
            | Self::Due { at, .. }
            | Self::Fired { at, .. }
            | Self::Busy { at, .. }
            | Self::Passed { at, .. } => *at,
        }
    }

    #[inline]
    pub(crate) fn pack(self) -> [u64; WORDS] {
        let (kind, index, detail, at, more) = match self {
            Self::Woke { index, intended, at } => (WOKE, index, intended.0, at, 0),
            Self::Done { index, received, at } => (DONE, index, received.0, at, 0),
            Self::Skipped { index, count, at } => (SKIPPED, index, count, at, 0),
            Self::Began { at } => (BEGAN, 0, 0, at, 0),
            Self::Due { index, release, due, at } => (DUE, index, release.0, at, due.0),
            Self::Fired { timer, intended, put_off, at } => {
                (FIRED, timer, intended.0, at, put_off.0)
            }
            Self::Busy { over, elapsed, received, at } => (BUSY, over.0, elapsed.0, at, received.0),
            Self::Passed { phase, run, lost, at } => (PASSED, phase, run.0, at, lost.0),
        };
        [kind | index << KIND_BITS, detail, at.0, more]
    }

    /// The mark of a slot; none for words that no mark packs to.
    pub(crate) fn unpack(words: [u64; WORDS]) -> Option<Self> {
        let [first, detail, at, more] = words;
        let (index, at) = (first >> KIND_BITS, Ticks(at));
        match first & ((1 << KIND_BITS) - 1) {
            WOKE => Some(Self::Woke { index, intended: TimerNanos(detail), at }),
            DONE => Some(Self::Done { index, received: TicksDelta(detail), at }),
            SKIPPED => Some(Self::Skipped { index, count: detail, at }),
            BEGAN => Some(Self::Began { at }),
            DUE => {
                let (release, due) = (TimerNanos(detail), TimerNanos(more));
                Some(Self::Due { index, release, due, at })
            }
            FIRED => {
                let (intended, put_off) = (TimerNanos(detail), Nanos(more));
                Some(Self::Fired { timer: index, intended, put_off, at })
            }
            BUSY => {
                let (over, elapsed, received) =
                    (TicksDelta(index), TicksDelta(detail), TicksDelta(more));
                Some(Self::Busy { over, elapsed, received, at })
            }
            PASSED => {
                let (run, lost) = (TicksDelta(detail), TicksDelta(more));
                Some(Self::Passed { phase: index, run, lost, at })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_back_as_they_went_in() {
        let at = Ticks(u64::MAX);
        for mark in [
            Mark::Woke { index: u64::MAX >> KIND_BITS, intended: TimerNanos(7), at },
            Mark::Done { index: 3, received: TicksDelta(u64::MAX), at },
            Mark::Skipped { index: 0, count: 9, at: Ticks(0) },
            Mark::Began { at },
            Mark::Due { index: 5, release: TimerNanos(6), due: TimerNanos(u64::MAX), at },
            Mark::Fired { timer: 65_535, intended: TimerNanos(4), put_off: Nanos(2), at },
            Mark::Busy { over: TicksDelta(1), elapsed: TicksDelta(9), received: TicksDelta(5), at },
            Mark::Passed { phase: 2, run: TicksDelta(8), lost: TicksDelta(3), at },
        ] {
            assert_eq!(Mark::unpack(mark.pack()), Some(mark));
        }
        assert_eq!(Mark::unpack([8, 0, 0, 0]), None);
    }
}
