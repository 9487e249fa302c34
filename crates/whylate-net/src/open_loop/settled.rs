//! What became of each request, one record each, on its way from the measuring thread to whoever
//! joins it with something else or writes it down.
//!
//! Guarantees: the measuring thread never waits and allocates nothing; a record that finds no room
//! is counted, and no record is changed. Requests under way when a port failed have none.

use whylate_model::Ticks;
use whylate_threads::ring::{self, Consumer, Producer, WORDS};

/// One request that nothing more can happen to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    /// Its number among the measured ones, from 0 in the order of sending; one that was never sent
    /// has none.
    pub number: Option<u64>,
    /// When it was to leave.
    pub intended: Ticks,
    /// The reading before the sending system call; none for one that was never sent.
    pub sent: Option<Ticks>,
    /// When it was answered, or given up as unanswered or never sent.
    pub at: Ticks,
    /// Did the reply come in time?
    pub answered: bool,
}

/// The measuring thread's end.
pub struct Settling {
    ring: Producer,
    /// Records that found no room.
    pub missed: u64,
}

/// The end of whoever takes the records in.
pub struct Settlements {
    ring: Consumer,
}

/// Records that find room: at 100 000 requests a second they may stay for over half a second.
pub const ROOM: usize = ring::CAPACITY;

/// Both ends, with [`ROOM`]. To be called on the thread that measures, so that the pages lie on its NUMA
/// node.
#[must_use]
pub fn between() -> (Settling, Settlements) {
    let (producer, consumer) = ring::ring();
    (Settling { ring: producer, missed: 0 }, Settlements { ring: consumer })
}

impl Settling {
    #[inline]
    pub(super) fn push(&mut self, settled: Settled) {
        if !self.offer(settled) {
            self.missed += 1;
        }
    }

    /// Puts it in where there is room; one that finds none is not counted.
    #[inline]
    pub(super) fn offer(&mut self, settled: Settled) -> bool {
        self.ring.push(settled.words())
    }
}

impl Settlements {
    /// Takes everything that has been settled so far, in the order of settling.
    pub fn drain(&mut self, mut each: impl FnMut(Settled)) {
        self.ring.drain(|words| each(Settled::of(words)));
    }
}

/// No request has this number, and nothing is sent at this tick.
const NONE: u64 = u64::MAX;
/// The top bit of the last word: the reply came in time. A counter that has run for 58 years at
/// 5 GHz would reach it.
const ANSWERED: u64 = 1 << 63;

impl Settled {
    fn words(self) -> [u64; WORDS] {
        let answered = if self.answered { ANSWERED } else { 0 };
        [
            self.number.unwrap_or(NONE),
            self.intended.0,
            self.sent.map_or(NONE, |at| at.0),
            self.at.0 & !ANSWERED | answered,
        ]
    }

    fn of([number, intended, sent, at]: [u64; WORDS]) -> Self {
        Self {
            number: (number != NONE).then_some(number),
            intended: Ticks(intended),
            sent: (sent != NONE).then_some(Ticks(sent)),
            at: Ticks(at & !ANSWERED),
            answered: at & ANSWERED != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_out_as_it_went_in_and_those_without_room_are_counted() {
        let (mut settling, mut settlements) = between();
        let answered = Settled {
            number: Some(7),
            intended: Ticks(1),
            sent: Some(Ticks(2)),
            at: Ticks(3),
            answered: true,
        };
        let never = Settled { number: None, sent: None, answered: false, ..answered };
        let given_up = Settled { answered: false, ..answered };
        let mut taken = Vec::new();
        for settled in [answered, never, given_up] {
            settling.push(settled);
        }
        settlements.drain(|settled| taken.push(settled));
        assert_eq!(taken, [answered, never, given_up]);
        for _ in 0..70_000 {
            settling.push(answered);
        }
        let mut count = 0;
        settlements.drain(|_| count += 1);
        assert_eq!((count, settling.missed), (65_536, 70_000 - 65_536));
    }
}
