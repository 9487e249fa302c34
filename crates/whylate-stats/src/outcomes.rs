//! The share of yes among outcomes that come one after the other and may hang together.
//!
//! Deadlines that are missed in a burst, or in step with a beat, are not as many witnesses as they
//! are. Outcomes are counted in blocks of neighbours; blocks double when there are many, so that the
//! memory is constant. What n outcomes are worth is n / F ([`crate::dependence`]), with the largest F
//! over blocks, pairs of blocks, fours, and so on, as long as enough are left. The interval is the
//! exact one for that many ([`crate::share`]).

use crate::dependence;
use crate::share;

/// Blocks that are kept.
const MOST_BLOCKS: usize = 256;
/// Groups of neighbours are looked at as long as so many are left.
const FEWEST_GROUPS: usize = 15;

/// Outcomes in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcomes {
    /// Of each block: yes, and all. The last may not be full.
    blocks: Vec<(u64, u64)>,
    /// Outcomes of a full block.
    length: u64,
}

impl Default for Outcomes {
    fn default() -> Self {
        Self { blocks: Vec::new(), length: 1 }
    }
}

impl Outcomes {
    /// One more.
    pub fn add(&mut self, yes: bool) {
        if self.blocks.last().is_none_or(|(_, all)| *all >= self.length) {
            if self.blocks.len() == MOST_BLOCKS {
                self.blocks = pairs(&self.blocks);
                self.length *= 2;
            }
            self.blocks.push((0, 0));
        }
        if let Some((of, all)) = self.blocks.last_mut() {
            *of += u64::from(yes);
            *all += 1;
        }
    }

    /// Yes, and all.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        self.blocks.iter().fold((0, 0), |(yes, all), of| (yes + of.0, all + of.1))
    }

    /// How many independent outcomes they are worth.
    #[must_use]
    pub fn effective_n(&self) -> f64 {
        let (_, n) = self.counts();
        let mut fewest = dependence::effective_n(n, &self.blocks);
        let mut groups = self.blocks.clone();
        while groups.len() / 2 >= FEWEST_GROUPS {
            groups = pairs(&groups);
            fewest = fewest.min(dependence::effective_n(n, &groups));
        }
        fewest
    }

    /// The 95 % interval of the share of yes; (0, 1) without outcomes.
    #[must_use]
    pub fn interval(&self) -> (f64, f64) {
        let (yes, n) = self.counts();
        let worth = self.effective_n();
        share::interval(yes as f64 / (n as f64).max(1.0) * worth, worth)
    }
}

/// Neighbours together; a last one alone stays alone.
fn pairs(blocks: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let sum = |pair: &[(u64, u64)]| pair.iter().fold((0, 0), |(a, b), of| (a + of.0, b + of.1));
    blocks.chunks(2).map(sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn of(outcomes: impl IntoIterator<Item = bool>) -> Outcomes {
        let mut all = Outcomes::default();
        for yes in outcomes {
            all.add(yes);
        }
        all
    }

    #[test]
    fn every_outcome_is_counted_however_many_there_are() {
        for n in [0, 1, 255, 256, 257, 1_000, 100_003_u64] {
            let all = of((0..n).map(|i| i % 7 == 0));
            assert_eq!(all.counts(), (n.div_ceil(7), n));
            assert!(all.blocks.len() <= MOST_BLOCKS);
        }
        assert_eq!(Outcomes::default().interval(), (0.0, 1.0));
    }

    #[test]
    fn intervals_hold_the_truth_for_outcomes_that_come_in_bursts_and_binomial_ones_do_not() {
        // Bursts of 20, an eighth of the time: truth 1/8.
        let (mut held, mut naive) = (0, 0);
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let bursts: Vec<bool> = (0..120).map(|_| rng.below(8) == 0).collect();
            let all = of(bursts.into_iter().flat_map(|burst| [burst; 20]));
            let (yes, n) = all.counts();
            let within = |(low, high): (f64, f64)| (low..=high).contains(&0.125);
            held += u32::from(within(all.interval()));
            naive += u32::from(within(share::interval(yes as f64, n as f64)));
        }
        assert!(held >= 184, "{held} of 200");
        assert!(naive < 120, "{naive} of 200 by binomial intervals");
    }

    #[test]
    fn independent_outcomes_keep_nearly_all_their_worth() {
        let mut rng = Rng::new(5);
        let all = of((0..4_000).map(|_| rng.below(4) == 0));
        let share = all.effective_n() / 4_000.0;
        assert!((0.4..=1.0).contains(&share), "{share}");
        let (low, high) = all.interval();
        assert!(low < 0.25 && 0.25 < high && high - low < 0.05, "{low} .. {high}");
        // None and all are as certain as the binomial says.
        assert!(of([false; 91]).interval().1 < 0.04);
    }
}
