//! Requests and replies that wait for each other, and those that have met not long ago.

use std::collections::BTreeMap;

use whylate_model::Nanos;
use whylate_model::breakdown::Leg;
use whylate_model::tap::TapCounts;
use whylate_stats::Histogram;

/// Numbers that are remembered, so that what comes again is known as that; half a second of messages
/// of a hundred nanoseconds each would be more, and nobody captures those.
const MOST_REMEMBERED: usize = 1 << 17;

/// Messages with numbers.
#[derive(Debug, Default)]
pub(super) struct Numbered {
    known: BTreeMap<u64, [Option<Nanos>; 2]>,
    /// Numbers below this are forgotten.
    from: u64,
    /// The highest number of either way.
    highest: [Option<u64>; 2],
}

impl Numbered {
    /// A message came by; its number where it is the first time.
    pub(super) fn passed(
        &mut self,
        (number, leg, at): (u64, Leg, Nanos),
        counts: &mut TapCounts,
        distances: &mut Histogram,
    ) -> Option<u64> {
        if number < self.from {
            counts.late += 1;
            return None;
        }
        let way = usize::from(leg == Leg::Reply);
        let both = self.known.entry(number).or_default();
        if both[way].is_some() {
            match leg {
                Leg::Request => counts.requests_twice += 1,
                Leg::Reply => counts.replies_twice += 1,
            }
            return None;
        }
        both[way] = Some(at);
        match leg {
            Leg::Request => counts.requests += 1,
            Leg::Reply => counts.replies += 1,
        }
        if let [Some(request), Some(reply)] = *both {
            paired(request, reply, counts, distances);
        }
        counts.reordered += u64::from(self.highest[way].is_some_and(|highest| highest > number));
        self.highest[way] = self.highest[way].max(Some(number));
        if self.known.len() > MOST_REMEMBERED
            && let Some((oldest, both)) = self.known.pop_first()
        {
            self.from = oldest.saturating_add(1);
            alone(both, counts);
        }
        Some(number)
    }

    pub(super) fn finish(&mut self, counts: &mut TapCounts) {
        for both in std::mem::take(&mut self.known).into_values() {
            alone(both, counts);
        }
    }
}

fn alone(both: [Option<Nanos>; 2], counts: &mut TapCounts) {
    match both {
        [Some(_), None] => counts.unanswered += 1,
        [None, Some(_)] => counts.unasked += 1,
        _ => (),
    }
}

fn paired(request: Nanos, reply: Nanos, counts: &mut TapCounts, distances: &mut Histogram) {
    counts.paired += 1;
    match reply.0.checked_sub(request.0) {
        Some(distance) => distances.record(distance),
        None => counts.backwards += 1,
    }
}
