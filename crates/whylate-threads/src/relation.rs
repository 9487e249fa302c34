//! The relation between the counter and the clock that a timer counts by.
//!
//! Intended instants live on the timer's clock (`CLOCK_MONOTONIC`, which NTP slews); wake-ups are
//! stamped with the counter. Sandwiches of counter, clock, counter tie the two together at the
//! start of a run, about once a second, and at its end; between two ties the relation is the
//! straight line through them. So the drift of the one against the other never adds up, and no
//! frequency has to be known.
//!
//! The stated bound of a converted instant is the half width of the widest tie used, plus the
//! largest *bend*: how far any tie lies off the straight line through its two neighbours, which is
//! what a change of slew in between does to the line.

use whylate_clock::Counter;
use whylate_model::{Ticks, TicksDelta};

use crate::timer::TimerNanos;

/// Sandwiches tried for one tie; the narrowest is kept. Each takes some 50 to 700 ns.
const TRIES: usize = 8;

/// One simultaneous reading of counter and clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tie {
    /// Counter in the middle of the sandwich.
    pub ticks: Ticks,
    /// The timer's clock.
    pub at: TimerNanos,
    /// Half the width of the sandwich.
    pub half_width: TicksDelta,
}

/// Reads counter and clock together, the narrowest of a few sandwiches.
pub fn tie<C: Counter>(counter: &mut C, mut clock: impl FnMut() -> TimerNanos) -> Tie {
    let mut sandwich = || {
        let (before, _) = counter.read_ordered();
        let at = clock();
        let (after, _) = counter.read_ordered();
        let width = after.since(before);
        let half_width = TicksDelta(width.0.div_ceil(2));
        Tie { ticks: before + TicksDelta(width.0 / 2), at, half_width }
    };
    let mut best = sandwich();
    for _ in 1..TRIES {
        let other = sandwich();
        if other.half_width < best.half_width {
            best = other;
        }
    }
    best
}

/// The straight line through two ties.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    from: Tie,
    nanos_per_tick: f64,
}

impl Segment {
    /// The line from one tie to a later one; none when they are not apart, on either clock.
    #[must_use]
    pub fn between(from: Tie, to: Tie) -> Option<Self> {
        let ticks = to.ticks.since(from.ticks).0;
        let nanos = to.at.0.saturating_sub(from.at.0);
        (ticks > 0 && nanos > 0).then(|| Self { from, nanos_per_tick: nanos as f64 / ticks as f64 })
    }

    /// What the timer's clock showed when the counter showed `ticks`.
    ///
    /// Meant for ticks between the two ties; outside, the line goes on straight.
    #[must_use]
    pub fn at(&self, ticks: Ticks) -> TimerNanos {
        let ahead = ticks.since(self.from.ticks).0 as f64;
        let behind = self.from.ticks.since(ticks).0 as f64;
        let offset = ((ahead - behind) * self.nanos_per_tick).round() as i64;
        TimerNanos(self.from.at.0.saturating_add_signed(offset))
    }

    /// What the counter showed when the timer's clock showed `at`: the reverse of [`Segment::at`].
    #[must_use]
    pub fn ticks_at(&self, at: TimerNanos) -> Ticks {
        let ahead = at.since(self.from.at).0 as f64;
        let behind = self.from.at.since(at).0 as f64;
        let offset = ((ahead - behind) / self.nanos_per_tick).round() as i64;
        Ticks(self.from.ticks.0.saturating_add_signed(offset))
    }

    /// A distance of the counter in nanoseconds of the timer's clock.
    #[must_use]
    pub fn nanos(&self, delta: TicksDelta) -> f64 {
        delta.0 as f64 * self.nanos_per_tick
    }
}

/// How well the relation of one run is known.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RelationFacts {
    /// Ties taken.
    pub ties: u64,
    /// Largest half width of a tie, in nanoseconds.
    pub half_width_ns: f64,
    /// Largest distance of a tie from the line through its neighbours, in nanoseconds; none with
    /// fewer than three ties.
    pub bend_ns: Option<f64>,
}

impl RelationFacts {
    /// Bound of the error of a converted instant, in nanoseconds.
    #[must_use]
    pub fn bound_ns(&self) -> f64 {
        self.half_width_ns + self.bend_ns.unwrap_or(0.0)
    }
}

/// Takes ties in order, gives the segments between them, and keeps the facts.
#[derive(Debug, Default)]
pub(crate) struct Relation {
    before: Option<Tie>,
    last: Option<Tie>,
    facts: RelationFacts,
}

impl Relation {
    /// Adds a tie; gives the segment that it closes. A tie that is no later than the last one,
    /// on either clock, adds nothing.
    pub(crate) fn add(&mut self, tie: Tie) -> Option<Segment> {
        let Some(last) = self.last else {
            self.last = Some(tie);
            self.facts.ties = 1;
            return None;
        };
        let segment = Segment::between(last, tie)?;
        self.facts.ties += 1;
        for of in [last, tie] {
            self.facts.half_width_ns = self.facts.half_width_ns.max(segment.nanos(of.half_width));
        }
        if let Some(chord) = self.before.and_then(|before| Segment::between(before, tie)) {
            let bend = chord.at(last.ticks).0.abs_diff(last.at.0) as f64;
            self.facts.bend_ns = Some(self.facts.bend_ns.unwrap_or(0.0).max(bend));
        }
        self.before = Some(last);
        self.last = Some(tie);
        Some(segment)
    }

    pub(crate) fn facts(&self) -> RelationFacts {
        self.facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::MockTime;

    fn at(ticks: u64, nanos: u64) -> Tie {
        Tie { ticks: Ticks(ticks), at: TimerNanos(nanos), half_width: TicksDelta(4) }
    }

    #[test]
    fn an_instant_between_two_ties_lies_on_their_line() {
        let segment = Segment::between(at(1_000, 50), at(5_000, 2_050)).unwrap();
        assert_eq!(segment.at(Ticks(1_000)), TimerNanos(50));
        assert_eq!(segment.at(Ticks(3_000)), TimerNanos(1_050));
        assert_eq!(segment.at(Ticks(5_000)), TimerNanos(2_050));
        assert_eq!(segment.at(Ticks(960)), TimerNanos(30));
        assert_eq!(segment.at(Ticks(0)), TimerNanos(0), "never below the clock's own zero");
        for ticks in [960, 1_000, 3_000, 5_000] {
            assert_eq!(segment.ticks_at(segment.at(Ticks(ticks))), Ticks(ticks));
        }
    }

    #[test]
    fn ties_that_are_not_apart_make_no_line() {
        assert!(Segment::between(at(10, 10), at(10, 20)).is_none());
        assert!(Segment::between(at(10, 10), at(20, 10)).is_none());
        assert!(Segment::between(at(20, 20), at(10, 10)).is_none());
        let mut relation = Relation::default();
        assert!(relation.add(at(20, 20)).is_none());
        assert!(relation.add(at(10, 10)).is_none());
        assert_eq!(relation.facts().ties, 1);
    }

    #[test]
    fn a_change_of_slew_shows_as_bend_and_the_bound_covers_it() {
        // 2 ticks a nanosecond, then the clock runs 100 ppm faster from the middle of a segment.
        let clock = |ticks: u64| match ticks {
            ..3_000_000_000 => ticks / 2,
            _ => 1_500_000_000 + (ticks - 3_000_000_000) * 10_001 / 20_000,
        };
        let mut relation = Relation::default();
        let mut worst = 0;
        let mut previous = 0;
        for ticks in (0..=8_000_000_000_u64).step_by(2_000_000_000) {
            if let Some(segment) = relation.add(at(ticks, clock(ticks))) {
                for inside in (previous..ticks).step_by(100_000_000) {
                    worst = worst.max(segment.at(Ticks(inside)).0.abs_diff(clock(inside)));
                }
            }
            previous = ticks;
        }
        let facts = relation.facts();
        assert_eq!(facts.ties, 5);
        assert!(worst > 10_000, "the slew must matter: {worst}");
        assert!(worst as f64 <= facts.bound_ns(), "{worst} {facts:?}");
    }

    #[test]
    fn a_tie_lies_in_the_middle_of_its_sandwich_and_holds_the_truth() {
        let time = MockTime::new();
        let mut counter = time.counter();
        let taken = tie(&mut counter, || time.now());
        let truth = MockTime::ticks_at(taken.at);
        // The mock's clock is read a third of the way through: half of the half width off.
        assert!(truth.0.abs_diff(taken.ticks.0) <= taken.half_width.0 / 2, "{taken:?} {truth:?}");
    }
}
