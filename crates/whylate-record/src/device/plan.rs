//! What is measured in which order: everything once in each round, in an order that the seed draws.

use whylate_stats::rng::Rng;

/// What stands between the two ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Slot {
    /// The box, under the configuration with this number.
    Boxed(usize),
    /// A bare link, under the configuration with this number.
    Link(usize),
    /// The delay line, under the configuration with this number.
    Line(usize),
}

impl Slot {
    /// The number of the configuration that is in force meanwhile.
    pub(super) fn configuration(self) -> usize {
        let (Self::Boxed(number) | Self::Link(number) | Self::Line(number)) = self;
        number
    }
}

/// One measurement of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    pub(super) slot: Slot,
    /// Bytes of the frame, check sequence included.
    pub(super) frame_bytes: u32,
}

/// The turns of one round.
pub(super) fn turns(slots: &[Slot], sizes: &[u32], seed: u64, round: u32) -> Vec<Turn> {
    let each = |slot: &Slot| {
        let slot = *slot;
        sizes.iter().map(move |frame_bytes| Turn { slot, frame_bytes: *frame_bytes })
    };
    let mut all: Vec<Turn> = slots.iter().flat_map(each).collect();
    Rng::stream(seed, u64::from(round)).shuffle(&mut all);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_has_everything_once_in_an_order_of_its_own() {
        let slots = [Slot::Boxed(0), Slot::Boxed(1), Slot::Link(0), Slot::Line(1)];
        let first = turns(&slots, &[64, 128, 1518], 7, 0);
        assert_eq!(first, turns(&slots, &[64, 128, 1518], 7, 0), "the seed decides");
        let second = turns(&slots, &[64, 128, 1518], 7, 1);
        assert_ne!(first, second);
        for mut round in [first, second] {
            round.sort_unstable();
            round.dedup();
            assert_eq!(round.len(), 12);
        }
    }
}
