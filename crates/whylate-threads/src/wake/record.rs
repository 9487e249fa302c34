//! What a measuring thread hands to the collecting side, and its form in the ring.

use whylate_model::{Ticks, TicksDelta};

use crate::relation::Tie;
use crate::ring::WORDS;
use crate::timer::TimerNanos;
use crate::wake::probe::Activation;

const KIND_TIE: u64 = 0;
const KIND_ACTIVATION: u64 = 1;
/// The kind lies in the lowest bits of the first word; an index has 62 bits left, enough for a
/// hundred thousand activations a second over a million years.
const KIND_BITS: u32 = 2;

/// One record of a measuring thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record {
    /// Counter and timer's clock, read together.
    Tie(Tie),
    /// The thread woke.
    Activation(Activation),
}

impl Record {
    #[inline]
    pub(crate) fn pack(self) -> [u64; WORDS] {
        match self {
            Self::Tie(tie) => [KIND_TIE, tie.ticks.0, tie.at.0, tie.half_width.0],
            Self::Activation(a) => {
                [a.index << KIND_BITS | KIND_ACTIVATION, a.skipped, a.intended.0, a.wake.0]
            }
        }
    }

    pub(crate) fn unpack(words: [u64; WORDS]) -> Self {
        let [first, second, third, fourth] = words;
        if first & ((1 << KIND_BITS) - 1) == KIND_TIE {
            let (at, half_width) = (TimerNanos(third), TicksDelta(fourth));
            return Self::Tie(Tie { ticks: Ticks(second), at, half_width });
        }
        Self::Activation(Activation {
            index: first >> KIND_BITS,
            skipped: second,
            intended: TimerNanos(third),
            wake: Ticks(fourth),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_they_went_in() {
        let activation = Activation {
            index: u64::MAX >> KIND_BITS,
            skipped: 7,
            intended: TimerNanos(11),
            wake: Ticks(u64::MAX),
        };
        let tie = Tie { ticks: Ticks(3), at: TimerNanos(u64::MAX), half_width: TicksDelta(5) };
        for record in [Record::Activation(activation), Record::Tie(tie)] {
            assert_eq!(Record::unpack(record.pack()), record);
        }
    }
}
