//! The longest gaps of a run, each with everything known about it.
//!
//! Of gaps of one length the earlier is kept, so that a replay gives the same list.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use whylate_model::cause::WorstGap;
use whylate_model::{Hertz, Ticks, TicksDelta};

use crate::attribute::Attributed;

/// The longest gaps, at most as many as asked for.
#[derive(Debug, Clone)]
pub struct Worst {
    max: usize,
    /// Shortest first; of one length, the latest first.
    kept: BTreeMap<(TicksDelta, Reverse<(Ticks, u16)>), Attributed>,
}

impl Worst {
    /// Keeps up to `max` gaps.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self { max, kept: BTreeMap::new() }
    }

    /// Offers a gap; it is copied only when it is kept.
    pub fn offer(&mut self, gap: &Attributed) {
        let key = (gap.gap.length(), Reverse((gap.gap.start, gap.thread)));
        if self.kept.len() >= self.max {
            match self.kept.first_key_value() {
                Some((least, _)) if *least < key => {
                    self.kept.pop_first();
                }
                _ => return,
            }
        }
        self.kept.insert(key, gap.clone());
    }

    /// The gaps, longest first.
    #[must_use]
    pub fn list(&self, hz: Hertz) -> Vec<WorstGap> {
        self.kept.values().rev().map(|gap| worst_gap(gap, hz)).collect()
    }
}

fn worst_gap(of: &Attributed, hz: Hertz) -> WorstGap {
    let gap = &of.gap;
    let mut events = of.events.clone();
    events.extend(of.sends.iter().cloned());
    events.sort_by_key(|event| event.ticks);
    WorstGap {
        start: gap.start,
        length: gap.length().to_nanos(hz),
        cpu_before: gap.cpu_before,
        cpu_after: gap.cpu_after,
        cause: of.cause.clone(),
        rule: of.rule,
        parts: of.parts.clone(),
        events,
        rseq: gap.evidence.rseq,
        involuntary_switches: gap.evidence.involuntary_switches,
    }
}

#[cfg(test)]
mod tests {
    use whylate_model::cause::Cause;

    use super::*;
    use crate::attribute::Basis;
    use crate::planted;

    fn offered(worst: &mut Worst, gaps: &[(u64, u64)]) -> Vec<u64> {
        for (start, length) in gaps {
            worst.offer(&Attributed {
                thread: 0,
                gap: planted::gap(*start, start + length),
                parts: Vec::new(),
                cause: Cause::Host,
                rule: None,
                basis: Basis::Trace,
                switched: None,
                switched_out: 0,
                own: TicksDelta(0),
                events: Vec::new(),
                sends: Vec::new(),
                arrivals: Vec::new(),
            });
        }
        worst.list(Hertz(1e9)).iter().map(|gap| gap.start.0).collect()
    }

    #[test]
    fn the_longest_gaps_are_kept_and_of_one_length_the_earliest() {
        let mut worst = Worst::new(2);
        assert_eq!(offered(&mut worst, &[(100, 10), (200, 30)]), [200, 100]);
        assert_eq!(offered(&mut worst, &[(300, 10), (400, 30), (500, 30)]), [200, 400]);
        assert_eq!(offered(&mut worst, &[(50, 30)]), [50, 200]);
        assert_eq!(offered(&mut Worst::new(0), &[(100, 10)]), Vec::<u64>::new());
    }
}
