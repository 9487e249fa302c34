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
