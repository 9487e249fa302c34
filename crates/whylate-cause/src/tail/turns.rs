//! What the long turns of a thread's own loop were.
//!
//! A loop that spins knows that a turn took too long and not why: somebody took its CPU, or its own
//! system call took longer than the last ones. A turn is named where others took half of it and more,
//! after the kind of cause that took the most; what is left has no name here, and is no interruption.

use whylate_model::cause::Cause;
use whylate_model::flow::{NamedTurns, TookTurn, TurnsBy};
use whylate_model::{Hertz, TicksDelta};

use super::Taken;

/// The kinds, in the order in which they are told.
const KINDS: [TookTurn; 6] = [
    TookTurn::Interrupt,
    TookTurn::Softirq,
    TookTurn::Thread,
    TookTurn::Whylate,
    TookTurn::Host,
    TookTurn::Other,
];

/// Counts long turns by what took them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Turns {
    looked_at: u64,
    by: [Sum; KINDS.len()],
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    turns: u64,
    ticks: u64,
}

impl Turns {
    /// Takes a turn of this length, and what others took of it.
    pub fn turn(&mut self, length: TicksDelta, taken: &[Taken]) {
        self.looked_at += 1;
        let mut by = [0; KINDS.len()];
        for of in taken {
            if let Some(kind) = kind(&of.cause) {
                by[kind as usize] += of.to.since(of.from).0;
            }
        }
        let others: u64 = by.iter().sum();
        // Of equals, the one that is told first.
        let most = by.iter().enumerate().rev().max_by_key(|(_, ticks)| **ticks);
        if let Some((kind, _)) = most.filter(|_| others > 0 && 2 * others >= length.0) {
            self.by[kind].turns += 1;
            self.by[kind].ticks += others;
        }
    }

    /// What came of it, by a counter of this rate.
    #[must_use]
    pub fn told(&self, rate: Hertz) -> NamedTurns {
        let all = KINDS.into_iter().zip(self.by).filter(|(_, sum)| sum.turns > 0);
        let by = all.map(|(what, sum)| {
            let took = TicksDelta(sum.ticks).to_nanos(rate);
            TurnsBy { what, turns: sum.turns, took }
        });
        NamedTurns { looked_at: self.looked_at, by: by.collect() }
    }
}

/// The kind of a cause that has a name; none where nothing is claimed.
fn kind(cause: &Cause) -> Option<TookTurn> {
    Some(match cause {
        Cause::Interrupt { .. } | Cause::Tick | Cause::Nmi => TookTurn::Interrupt,
        Cause::Softirq { .. } => TookTurn::Softirq,
        Cause::Thread { .. } | Cause::Member { .. } => TookTurn::Thread,
        Cause::Whylate => TookTurn::Whylate,
        Cause::Host | Cause::Hypervisor | Cause::Firmware => TookTurn::Host,
        Cause::PageFault
        | Cause::Signal { .. }
        | Cause::Throttled
        | Cause::TimerLate
        | Cause::IdleExit
        | Cause::Blocked
        | Cause::Stopped => TookTurn::Other,
        Cause::EntryResidual
        | Cause::InnerResidual
        | Cause::ExitResidual
        | Cause::TraceLost
        | Cause::ContextSwitch
        | Cause::NotSwitched
        | Cause::Migration
        | Cause::OwnDemand
        | Cause::LeftOver
        | Cause::Unknown => return None,
    })
}

#[cfg(test)]
mod tests {
    use whylate_model::cause::PriorityClass;
    use whylate_model::event::Softirq;
    use whylate_model::{Nanos, Ticks};

    use super::*;

    fn of(parts: &[(u64, Cause)]) -> Vec<Taken> {
        let mut at = 1_000;
        let mut next = |(length, cause): &(u64, Cause)| {
            let from = Ticks(at);
            at += length;
            Taken { from, to: Ticks(at), cause: cause.clone() }
        };
        parts.iter().map(&mut next).collect()
    }

    #[test]
    fn a_long_turn_is_named_where_others_took_half_of_it_and_the_rest_are_its_own() {
        let timer = || Cause::Interrupt { name: "local_timer".to_owned() };
        let soft = || Cause::Softirq { vector: Softirq::Timer };
        let hog = || Cause::Thread { comm: "hog".to_owned(), class: PriorityClass::RealTime };
        let mut turns = Turns::default();
        for (length, parts) in [
            // A tick and the soft interrupts behind it.
            (10_000, vec![(6_000, timer()), (3_000, soft())]),
            (10_000, vec![(2_000, timer()), (4_000, soft())]),
            (4_000_100, vec![(4_000_000, hog())]),
            (80_000, vec![(80_000, Cause::Host)]),
            (9_000, vec![(9_000, Cause::Whylate)]),
            (9_000, vec![(8_000, Cause::Stopped)]),
            // Its own system call, in which a tick came.
            (20_000, vec![(9_000, timer())]),
            (20_000, vec![]),
            // Nothing is claimed where the trace lost something.
            (50_000, vec![(50_000, Cause::TraceLost)]),
        ] {
            turns.turn(TicksDelta(length), &of(&parts));
        }
        let told = turns.told(Hertz(1e9));
        let by: Vec<_> = told.by.iter().map(|of| (of.what, of.turns, of.took.0)).collect();
        let expected = [
            (TookTurn::Interrupt, 1, 9_000),
            (TookTurn::Softirq, 1, 6_000),
            (TookTurn::Thread, 1, 4_000_000),
            (TookTurn::Whylate, 1, 9_000),
            (TookTurn::Host, 1, 80_000),
            (TookTurn::Other, 1, 8_000),
        ];
        assert_eq!(by, expected);
        assert_eq!((told.looked_at, told.own_or_unnamed()), (9, 3));
        assert_eq!(told.sum(), (6, Nanos(4_112_000)));
    }

    #[test]
    fn named_turns_of_two_recordings_add_up_by_what_took_them() {
        let by = |what, turns, took| TurnsBy { what, turns, took: Nanos(took) };
        let one = [by(TookTurn::Interrupt, 2, 20), by(TookTurn::Host, 1, 90)];
        let other = [by(TookTurn::Thread, 3, 30), by(TookTurn::Host, 4, 10)];
        let mut sum = NamedTurns { looked_at: 5, by: one.to_vec() };
        sum.add(&NamedTurns { looked_at: 8, by: other.to_vec() });
        let expected = [
            by(TookTurn::Interrupt, 2, 20),
            by(TookTurn::Thread, 3, 30),
            by(TookTurn::Host, 5, 100),
        ];
        assert_eq!((sum.looked_at, &sum.by[..]), (13, &expected[..]));
        assert_eq!(sum.own_or_unnamed(), 3);
    }

    #[test]
    fn half_of_a_turn_is_enough_and_of_two_kinds_with_as_much_the_first_has_it() {
        let timer = || Cause::Interrupt { name: "local_timer".to_owned() };
        let mut turns = Turns::default();
        turns.turn(TicksDelta(20_000), &of(&[(5_000, Cause::Host), (5_000, timer())]));
        turns.turn(TicksDelta(20_001), &of(&[(10_000, timer())]));
        // A turn without length in which nothing was taken is nobody's.
        turns.turn(TicksDelta(0), &[]);
        let told = turns.told(Hertz(2e9));
        let expected = [TurnsBy { what: TookTurn::Interrupt, turns: 1, took: Nanos(5_000) }];
        assert_eq!((told.looked_at, &told.by[..]), (3, &expected[..]));
    }

    #[test]
    fn a_kind_is_told_of_what_took_time_and_of_nothing_that_is_not_known() {
        for (cause, expected) in [
            (Cause::Nmi, Some(TookTurn::Interrupt)),
            (Cause::Firmware, Some(TookTurn::Host)),
            (Cause::Hypervisor, Some(TookTurn::Host)),
            (Cause::PageFault, Some(TookTurn::Other)),
            (Cause::IdleExit, Some(TookTurn::Other)),
            (Cause::InnerResidual, None),
            (Cause::Unknown, None),
        ] {
            assert_eq!(kind(&cause), expected, "{cause}");
        }
    }
}
