//! How messages were followed and put together to requests, in the words of a run.
//!
//! Two accounts, each of which closes: every message whose way was begun was read, left this host,
//! acknowledged only or was lost to a reason; every request has a reply that was found by its socket or
//! by order, or none to a reason.

use whylate_model::breakdown::{Pairs, Reasoned};

use crate::follow::FollowCounts;
use crate::meet::MeetCounts;
use crate::turns::TurnCounts;

/// Of requests whose client is known.
#[must_use]
pub fn of_meeting(met: &MeetCounts, followed: &FollowCounts) -> Pairs {
    let unpaired = reasons([
        ("no message was seen to be read for it", met.reply_not_seen),
        ("several messages were read, and which one was its reply is not known", met.ambiguous),
        (
            "its reply is another message than the one that the client read for it, or older than it",
            met.contradicted,
        ),
    ]);
    Pairs {
        requests: met.requests,
        by_socket: met.by_socket,
        by_order: met.by_order,
        unpaired,
        unsent: met.not_seen,
        unasked: met.turns.unasked,
        by_another_thread: met.turns.by_another_thread,
        ..of_messages(followed)
    }
}

/// Of requests that were seen at whoever answers them.
#[must_use]
pub fn of_watching(turns: &TurnCounts, followed: &FollowCounts) -> Pairs {
    let ended = turns.answered + turns.unanswered + turns.ambiguous;
    let unpaired = reasons([
        ("never answered by the thread that read it", turns.unanswered),
        ("several were open, and which one was answered is not known", turns.ambiguous),
        ("not answered yet", turns.read.saturating_sub(ended)),
    ]);
    Pairs {
        requests: turns.read,
        by_socket: turns.answered.saturating_sub(turns.by_order),
        by_order: turns.by_order,
        unpaired,
        unsent: 0,
        unasked: turns.unasked,
        by_another_thread: turns.by_another_thread,
        ..of_messages(followed)
    }
}

/// What became of the messages; nothing of requests.
fn of_messages(of: &FollowCounts) -> Pairs {
    let mut lost: Vec<Reasoned> =
        of.dropped.iter().filter(|(_, count)| **count > 0).map(dropped).collect();
    lost.extend(reasons([
        ("ended on the way without a word: nobody of this machine was to read them", of.consumed),
        ("their buffer began another way before they were delivered", of.reused),
        ("on the way for longer than the patience", of.expired),
        ("events were lost, or their socket's queue was not what had been seen of it", of.given_up),
        ("still in flight", of.open),
    ]));
    Pairs {
        messages: of.messages,
        read: of.read,
        left: of.left,
        acknowledgements: of.acknowledgements,
        lost,
        merged: of.merged,
        split: of.split,
        untrusted: of.untrusted,
        ..Pairs::default()
    }
}

fn dropped((reason, count): (&String, &u64)) -> Reasoned {
    Reasoned { reason: format!("dropped by the kernel: {reason}"), count: *count }
}

/// Those that there are any of.
fn reasons<const N: usize>(all: [(&str, u64); N]) -> Vec<Reasoned> {
    let some = all.into_iter().filter(|(_, count)| *count > 0);
    some.map(|(reason, count)| Reasoned { reason: reason.to_owned(), count }).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn both_accounts_close_and_only_reasons_that_there_were_are_told() {
        let followed = FollowCounts {
            messages: 100,
            read: 60,
            left: 5,
            acknowledgements: 20,
            dropped: BTreeMap::from([("NO_SOCKET".to_owned(), 3), ("none".to_owned(), 0)]),
            reused: 1,
            given_up: 7,
            open: 4,
            merged: 2,
            ..FollowCounts::default()
        };
        let met = MeetCounts {
            requests: 30,
            by_socket: 20,
            by_order: 4,
            with_reply: 24,
            reply_not_seen: 3,
            ambiguous: 2,
            contradicted: 1,
            not_seen: 6,
            ..MeetCounts::default()
        };
        let pairs = of_meeting(&met, &followed);
        assert!(pairs.adds_up(), "{pairs:?}");
        assert_eq!((pairs.requests, pairs.by_socket, pairs.by_order), (30, 20, 4));
        assert_eq!((pairs.unpaired.len(), pairs.unsent), (3, 6));
        let lost: Vec<_> = pairs.lost.iter().map(|of| (&*of.reason, of.count)).collect();
        assert_eq!(lost[0], ("dropped by the kernel: NO_SOCKET", 3));
        assert_eq!(lost.iter().map(|(_, count)| count).sum::<u64>(), 15);
        let turns = TurnCounts {
            read: 12,
            answered: 8,
            by_order: 2,
            unanswered: 1,
            ambiguous: 2,
            ..TurnCounts::default()
        };
        let pairs = of_watching(&turns, &followed);
        assert!(pairs.adds_up(), "{pairs:?}");
        assert_eq!((pairs.by_socket, pairs.by_order), (6, 2));
        // One is still open.
        let open = pairs.unpaired.last().map(|of| (&*of.reason, of.count));
        assert_eq!(open, Some(("not answered yet", 1)));
    }
}
