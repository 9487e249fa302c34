//! What became of the stamps that a client's sockets asked for, in the words of the run.

use whylate_model::breakdown::{CountedStamps, LeftOut, Reasoned};
use whylate_net::open_loop::stamps::Untold;
use whylate_port::{StampCounts, StampKind};

/// Of each kind that was asked for, in the order of [`StampKind::ALL`].
pub(in crate::rtt) fn counted(counts: &StampCounts) -> Vec<CountedStamps> {
    let wished = StampKind::ALL.into_iter().filter(|kind| counts.wished[kind.index()]);
    let counted = wished.map(|kind| {
        let of = counts.of(kind);
        CountedStamps {
            stamp: kind.word().to_owned(),
            asked: of.expected,
            came: of.delivered,
            missing: of.missing(),
            not_asked: of.not_asked,
            skipped: of.skipped,
            twice: of.twice,
            unknown: of.unknown,
            zero: of.zero,
            merged: of.merged,
            split: of.split,
        }
    });
    counted.collect()
}

/// What was dropped of them before it could be told by kind, and what else lay among them; of the `untold`
/// the measuring thread has told nobody.
pub(in crate::rtt) fn dropped(counts: &StampCounts, untold: Untold) -> Vec<Reasoned> {
    let is_wished = |kind: &StampKind| kind.is_received() && counts.wished[kind.index()];
    let of_replies = StampKind::ALL.iter().any(is_wished);
    let late = if of_replies { untold.late_replies } else { 0 };
    reasoned([
        ("stamps of replies that nobody took in time", counts.crowded_out),
        ("entries of the sockets' error queues that could not be read", counts.unreadable),
        ("errors of the network that lay in these queues", counts.errors),
        ("messages that found no room in the client's sockets", counts.dropped),
        ("stamps that found no room on their way from the measuring thread", untold.no_room),
        (
            "stamps of replies that came too late to tell which request they answered",
            untold.forgotten,
        ),
        ("late replies that came after stamps had been read for the last time", late),
    ])
}

/// Adds requests that nobody heard the end of: their records found no room, or they were in flight when
/// the port failed.
pub(in crate::rtt) fn unheard(left_out: &mut Vec<LeftOut>, unlogged: u64, abandoned: u64) {
    let of = reasoned([
        ("its record found no room on the way from the measuring thread", unlogged),
        ("it was in flight when the port failed", abandoned),
    ]);
    let of = of.into_iter().map(|of| LeftOut { reason: of.reason, requests: of.count });
    left_out.extend(of);
}

/// Those of which there are any.
pub(super) fn reasoned<const N: usize>(all: [(&str, u64); N]) -> Vec<Reasoned> {
    let some = all.into_iter().filter(|(_, count)| *count > 0);
    some.map(|(reason, count)| Reasoned { reason: reason.to_owned(), count }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_was_dropped_is_told_and_only_what_was() {
        let untold = Untold { no_room: 16, forgotten: 32, late_replies: 64 };
        assert!(dropped(&StampCounts::default(), Untold::default()).is_empty());
        let mut counts = StampCounts {
            unreadable: 1,
            errors: 2,
            crowded_out: 4,
            dropped: 8,
            ..StampCounts::default()
        };
        let told = |counts: &StampCounts, untold| {
            let told = dropped(counts, untold);
            told.iter().map(|of| of.count).collect::<Vec<u64>>()
        };
        // Where no stamps of replies are asked for, late ones lack none.
        assert_eq!(told(&counts, untold), [4, 1, 2, 8, 16, 32]);
        counts.wished[StampKind::ReceivedSoftware.index()] = true;
        assert_eq!(told(&counts, untold), [4, 1, 2, 8, 16, 32, 64]);
        let some = StampCounts { errors: 0, unreadable: 0, ..counts };
        assert_eq!(told(&some, Untold::default()), [4, 8]);
    }

    #[test]
    fn requests_that_nobody_heard_the_end_of_are_left_out_with_their_reasons() {
        let mut left_out = Vec::new();
        unheard(&mut left_out, 0, 0);
        assert!(left_out.is_empty());
        unheard(&mut left_out, 3, 4);
        let requests: Vec<u64> = left_out.iter().map(|of| of.requests).collect();
        assert_eq!(requests, [3, 4], "{left_out:?}");
    }

    #[test]
    fn a_kind_that_was_asked_for_and_never_came_is_there_with_as_many_missing() {
        let mut counts = StampCounts::default();
        for (kind, expected, delivered) in [
            (StampKind::Software, 10, 7),
            (StampKind::Hardware, 10, 0),
            // Nobody asked for it.
            (StampKind::Ack, 0, 0),
            (StampKind::ReceivedSoftware, 4, 4),
        ] {
            counts.wished[kind.index()] = kind != StampKind::Ack;
            counts.kinds[kind.index()].expected = expected;
            counts.kinds[kind.index()].delivered = delivered;
        }
        let counted = counted(&counts);
        let told: Vec<_> =
            counted.iter().map(|of| (&*of.stamp, of.asked, of.came, of.missing)).collect();
        assert_eq!(
            told,
            [("tx software", 10, 7, 3), ("tx hardware", 10, 0, 10), ("rx software", 4, 4, 0)]
        );
        assert!(counted.iter().all(CountedStamps::adds_up));
    }
}
