//! Messages that ask for no reply: what came, and how far apart.

use whylate_model::{Ticks, TicksDelta};
use whylate_stats::histogram::Histogram;

use crate::message::CountedOneWay;
use crate::sequence::{Arrival, SequenceSet};

/// One client's measured messages that ask for no reply.
#[derive(Debug)]
pub struct Sink {
    set: SequenceSet,
    /// Distances of receptions, in ticks: of any two that follow each other, duplicates too.
    gaps: Histogram,
    span: Option<(Ticks, Ticks)>,
}

impl Default for Sink {
    fn default() -> Self {
        Self { set: SequenceSet::of_receiver(), gaps: Histogram::new(), span: None }
    }
}

impl Sink {
    /// The message with this number came: when the one before it did.
    #[inline]
    pub(super) fn take(&mut self, number: u64, at: Ticks) -> Option<Ticks> {
        if self.set.heard(number) == Arrival::Unplaced {
            return None;
        }
        let Some((_, last)) = &mut self.span else {
            self.span = Some((at, at));
            return None;
        };
        self.gaps.record(at.since(*last).0);
        Some(std::mem::replace(last, at))
    }

    /// Distances of receptions, in ticks.
    #[must_use]
    pub fn gaps(&self) -> &Histogram {
        &self.gaps
    }

    /// What came.
    #[must_use]
    pub fn counted(&self) -> CountedOneWay {
        let (counts, gaps) = (self.set.counts(), &self.gaps);
        let ticks = |value: Option<u64>| TicksDelta(value.unwrap_or(0));
        CountedOneWay {
            received: counts.received,
            duplicates: counts.duplicates,
            reordered: counts.reordered,
            span: self.span.map_or(TicksDelta(0), |(first, last)| last.since(first)),
            gap_min: ticks(gaps.min()),
            gap_median: ticks(gaps.value_at(50.0)),
            gap_p99: ticks(gaps.value_at(99.0)),
            gap_max: ticks(gaps.max()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_twice_or_late_is_counted_and_distances_are_of_receptions() {
        let mut sink = Sink::default();
        let mut before = None;
        for (number, at) in [(0, 100), (1, 110), (4, 140), (3, 150), (3, 155), (9, 200)] {
            assert_eq!(sink.take(number, Ticks(at)), before);
            before = Some(Ticks(at));
        }
        let counted = sink.counted();
        assert_eq!((counted.received, counted.duplicates, counted.reordered), (5, 1, 1));
        assert_eq!((counted.span.0, counted.gap_min.0, counted.gap_max.0), (100, 5, 45));
    }

    #[test]
    fn numbers_that_nobody_would_send_cost_no_time_and_are_not_taken_twice() {
        let mut sink = Sink::default();
        for number in [0, u64::MAX, u64::MAX - 1, 5, u64::MAX, 1 << 63] {
            sink.take(number, Ticks(1));
        }
        let counted = sink.counted();
        assert!(counted.received <= 4 && counted.duplicates <= 1, "{counted:?}");
    }
}
