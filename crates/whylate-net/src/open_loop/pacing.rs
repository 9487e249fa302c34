//! Which departures were late because the sender did not come to them, by what its own loop tells.
//!
//! A sender that spins knows when a turn of its loop took too long ([`turns`](crate::turns)): it was
//! interrupted, or its own system call took longer than the last ones, which the kernel's trace alone
//! can tell apart. Requests that were due meanwhile leave late, and so do those behind them
//! until all that are due have left. A late departure is excluded where interruptions since the last
//! moment at which nothing was due explain the larger part of its lateness. What the sender is late by
//! itself stays, however many interruptions there were: a rate that it cannot hold is its own matter.
//!
//! No trace is needed, and every rate can be looked at. An interruption that is shorter than the
//! limits of a turn is not seen, and what it does stays in.

use whylate_model::{Hertz, Ticks, TicksDelta};

use crate::turns::{Did, Turns};

/// Long turns of one phase's sender.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pacing {
    turns: Turns,
    /// Ticks that interruptions took since nothing was due.
    taken: u64,
    interruptions: u64,
    took: u64,
}

/// What a sender's long turns were, as far as it can tell itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted {
    /// Long turns, and sleeps that ended too late: interruptions, unless its own system call took so long.
    pub interruptions: u64,
    /// What they took in all.
    pub took: TicksDelta,
    /// What a turn that looks, and one that sends, may take before it is a long one, at the end.
    pub limits: [TicksDelta; 2],
    /// Requests that are not among the uninterrupted ones.
    pub excluded: u64,
    /// What a turn that looked in vain, took something in, and sent usually took; none where it never
    /// did all three.
    pub usual: Option<[TicksDelta; 3]>,
}

impl Pacing {
    /// Of a sender that reads a counter of this rate, and knows nothing of itself yet.
    pub(super) fn new(rate: Hertz) -> Self {
        Self { turns: Turns::new(rate), taken: 0, interruptions: 0, took: 0 }
    }

    /// The same sender in its next phase: it knows how long its turns take.
    pub(super) fn next_phase(&self) -> Self {
        let mut turns = self.turns;
        turns.pause();
        Self { turns, taken: 0, interruptions: 0, took: 0 }
    }

    /// A turn of the sender's loop ended at `now`: since when, where it was interrupted in it.
    #[inline]
    pub(super) fn turn(&mut self, now: Ticks, did: Did) -> Option<Ticks> {
        let from = self.turns.ended(now, did)?;
        self.interrupted(now.since(from).0.saturating_sub(self.turns.usual(did).0));
        Some(from)
    }

    /// A turn of a loop that the sender shares, and that `other` follows, was interrupted.
    #[cold]
    pub(super) fn turn_of(&mut self, other: &Self, (from, now): (Ticks, Ticks), did: Did) {
        self.interrupted(now.since(from).0.saturating_sub(other.turns.usual(did).0));
    }

    /// How long turns take is what `other` knows, which follows those of the loop that both share.
    pub(super) fn learn_of(&mut self, other: &Self) {
        self.turns = other.turns;
    }

    /// What the sender does until its next turn is no turn: it sleeps.
    pub(super) fn pause(&mut self) {
        self.turns.pause();
    }

    /// The sender was to run from `from` on, and did not until `to`.
    pub(super) fn overslept(&mut self, from: Ticks, to: Ticks) {
        self.interrupted(to.since(from).0);
    }

    #[cold]
    fn interrupted(&mut self, took: u64) {
        self.interruptions += 1;
        self.took += took;
        self.taken += took;
    }

    /// Nothing is due.
    #[inline]
    pub(super) fn nothing_due(&mut self) {
        self.taken = 0;
    }

    /// Do interruptions explain the larger part of the lateness of what leaves at `now`?
    #[inline]
    pub(super) fn explains(&self, intended: Ticks, now: Ticks) -> bool {
        self.taken > 0 && now.since(intended).0 <= self.taken.saturating_mul(2)
    }

    /// What a turn that looks, and one that sends, may take.
    #[inline]
    pub(super) fn limits(&self) -> [TicksDelta; 2] {
        self.turns.limits()
    }

    /// What came of it, where so many requests were excluded.
    pub(super) fn told(&self, excluded: u64) -> Interrupted {
        let Self { interruptions, took, .. } = *self;
        let usual = [Did::Look, Did::Take, Did::Send].map(|did| self.turns.usual(did));
        let known = usual.iter().all(|turn| turn.0 > 0);
        Interrupted {
            interruptions,
            took: TicksDelta(took),
            limits: self.limits(),
            excluded,
            usual: known.then_some(usual),
        }
    }
}
