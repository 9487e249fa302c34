//! Whose stamp it is: ids of the kernel to messages.
//!
//! An id has 32 bits and begins anew after 2^32: it is taken for the latest one that it can be. A stamp
//! of TCP names a byte, and is one of every message up to it that had none of its kind and can have left
//! in one buffer of the kernel with it: these have one stamp together.

use super::sent::{ROOM, Sent};
use super::{KindCounts, StampKind};

/// Kinds of stamps of sendings.
const KINDS: usize = 5;
/// Bytes of a stream that one buffer of the kernel, and so one stamp, covers at most.
const COVERED: u64 = 1 << 16;
/// A stamp that has not come when so many more messages asked for theirs will not.
pub(super) const GIVEN_UP_AFTER: u64 = 256;

/// Where a stamp belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placed {
    /// To the messages at these places: first and one behind the last.
    Places(u64, u64),
    /// To none, and that has been counted.
    Nobody,
}

/// What has come for the messages that are remembered.
#[derive(Debug)]
pub(super) struct Matching {
    /// Place and a bit for each kind that came.
    got: Box<[(u64, u8)]>,
    /// All before have come, or been skipped.
    next: [u64; KINDS],
    /// All before have come, were never to come, or are waited for no longer.
    settled: [u64; KINDS],
}

impl Matching {
    /// Of a socket whose first place is this one.
    pub(super) fn new(first: u64) -> Self {
        let got = (0..ROOM).map(|_| (u64::MAX, 0)).collect();
        Self { got, next: [first; KINDS], settled: [first; KINDS] }
    }

    /// A stamp of a datagram came with this id.
    pub(super) fn datagram(
        &mut self,
        sent: &Sent,
        id: u32,
        kind: StampKind,
        counts: &mut KindCounts,
    ) -> Placed {
        let first = sent.first();
        let place = widened(id, sent.asked().saturating_sub(first)).map(|place| first + place);
        let Some(place) = place.filter(|place| sent.message(*place).is_some()) else {
            counts.unknown += 1;
            return Placed::Nobody;
        };
        if !self.first_of(place, kind) {
            counts.twice += 1;
            return Placed::Nobody;
        }
        let next = &mut self.next[kind.index()];
        if place >= *next {
            counts.skipped += skipped(sent, (*next, place), kind);
            *next = place + 1;
        } else {
            // It came late, and not never.
            counts.skipped = counts.skipped.saturating_sub(1);
        }
        counts.delivered += 1;
        Placed::Places(place, place + 1)
    }

    /// A stamp of a stream came for this byte.
    pub(super) fn byte(
        &mut self,
        sent: &Sent,
        id: u32,
        kind: StampKind,
        counts: &mut KindCounts,
    ) -> Placed {
        let end = widened(id, sent.bytes()).map(|byte| byte + 1);
        let found = end.and_then(|end| sent.ending_at(end).filter(|(_, at)| *at >= end));
        let (Some(end), Some((place, at))) = (end, found) else {
            counts.unknown += 1;
            return Placed::Nobody;
        };
        let next = &mut self.next[kind.index()];
        if place < *next {
            counts.twice += 1;
            return Placed::Nobody;
        }
        if at > end {
            // A part of this message; those before it are covered by it all the same.
            counts.split += 1;
            if place == *next {
                return Placed::Nobody;
            }
        }
        let to = if at > end { place } else { place + 1 };
        // What ended further back left in a buffer of its own, whose stamp was lost.
        let covered =
            sent.ending_at(end.saturating_sub(COVERED - 1)).map_or(to, |(first, _)| first);
        let mut from = (*next).max(sent.oldest()).max(covered).min(to);
        if kind == StampKind::Hardware {
            // Those that the card was not asked for left before it, in segments of their own.
            let unasked = |place: &u64| !sent.is_asked(*place, kind);
            from = (from..to).rev().find(unasked).map_or(from, |place| place + 1);
        }
        counts.skipped += skipped(sent, (*next, from), kind);
        counts.merged += (to - from).saturating_sub(u64::from(at == end));
        counts.delivered += to - from;
        *next = to;
        let settled = &mut self.settled[kind.index()];
        *settled = (*settled).max(to);
        Placed::Places(from, to)
    }

    /// Whose a stamp of what was sent is that came without a time, and so does not say it: the card's where
    /// it was asked and the driver's has come, or was not wished for; the driver gives its own first.
    #[cold]
    pub(super) fn untimed(
        &self,
        sent: &Sent,
        id: u32,
        (stream, by_driver): (bool, bool),
    ) -> StampKind {
        let (driver, card) = (StampKind::Software, StampKind::Hardware);
        let place = if stream {
            let end = widened(id, sent.bytes()).map(|byte| byte + 1);
            end.and_then(|end| sent.ending_at(end)).map(|(place, _)| place)
        } else {
            let first = sent.first();
            widened(id, sent.asked().saturating_sub(first)).map(|place| first + place)
        };
        let Some(place) = place.filter(|place| sent.is_asked(*place, card)) else { return driver };
        let came =
            if stream { place < self.next[driver.index()] } else { self.has_come(place, driver) };
        if came || !by_driver { card } else { driver }
    }

    /// Is a stamp of this kind still to come? One that is lost is given up, so that it is not waited for
    /// as long as the socket is there.
    #[inline]
    pub(super) fn waits(&mut self, sent: &Sent, kind: StampKind) -> bool {
        let asked = sent.asked();
        let mut at = self.settled[kind.index()].max(asked.saturating_sub(GIVEN_UP_AFTER));
        while at < asked && (self.has_come(at, kind) || !sent.is_asked(at, kind)) {
            at += 1;
        }
        self.settled[kind.index()] = at;
        at < asked
    }

    /// Did a datagram's stamp of this kind come for this place?
    fn has_come(&self, place: u64, kind: StampKind) -> bool {
        let (of, came) = self.got[(place & (ROOM - 1)) as usize];
        of == place && came & kind.bit() != 0
    }

    /// Is it the first of its kind for this place? Marks it.
    fn first_of(&mut self, place: u64, kind: StampKind) -> bool {
        let got = &mut self.got[(place & (ROOM - 1)) as usize];
        if got.0 != place {
            *got = (place, 0);
        }
        let bit = 1 << kind.index();
        let first = got.1 & bit == 0;
        got.1 |= bit;
        first
    }
}

/// Messages of these places, first and one behind the last, that have no stamp of this kind and were to
/// have one. What the kernel had refused was never to; of those that are forgotten nobody knows whether the
/// card was asked.
fn skipped(sent: &Sent, (first, end): (u64, u64), kind: StampKind) -> u64 {
    let from = first.max(sent.oldest()).min(end);
    let known = (from..end).filter(|place| sent.is_asked(*place, kind)).count() as u64;
    if kind == StampKind::Hardware { known } else { known + (from - first) }
}

/// The largest number below `next` that ends in these 32 bits.
fn widened(id: u32, next: u64) -> Option<u64> {
    const TURN: u64 = 1 << 32;
    let last = next.checked_sub(1)?;
    let number = last & !(TURN - 1) | u64::from(id);
    if number <= last { Some(number) } else { number.checked_sub(TURN) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: u64 = 1 << 32;

    #[test]
    fn ids_are_widened_to_the_latest_number_that_they_can_be() {
        assert_eq!((widened(0, 0), widened(0, 1), widened(1, 1)), (None, Some(0), None));
        assert_eq!(widened(u32::MAX, TURN), Some(TURN - 1));
        assert_eq!(
            (widened(u32::MAX, TURN + 3), widened(2, TURN + 3)),
            (Some(TURN - 1), Some(TURN + 2))
        );
        assert_eq!(widened(3, TURN + 3), Some(3));
    }

    fn datagrams(from: u64, count: u64) -> (Sent, Matching, KindCounts) {
        let sent = Sent::starting_at(from);
        for place in from..from + count {
            sent.ask(place, 0, false);
        }
        (sent, Matching::new(from), KindCounts::default())
    }

    #[test]
    fn stamps_find_their_datagrams_where_ids_wrap() {
        let from = TURN - 3;
        let (sent, mut matching, mut counts) = datagrams(from, 6);
        for place in from..from + 6 {
            let placed = matching.datagram(&sent, place as u32, StampKind::Sched, &mut counts);
            assert_eq!(placed, Placed::Places(place, place + 1));
        }
        assert_eq!(counts, KindCounts { delivered: 6, ..KindCounts::default() });
    }

    #[test]
    fn second_stamps_those_of_nobody_and_those_that_never_come_are_counted() {
        let (sent, mut matching, mut counts) = datagrams(0, 10);
        sent.refuse(4);
        let mut come = |id, kind| matching.datagram(&sent, id, kind, &mut counts);
        assert_eq!(come(2, StampKind::Software), Placed::Places(2, 3));
        assert_eq!(come(2, StampKind::Software), Placed::Nobody);
        assert_eq!(come(10, StampKind::Software), Placed::Nobody);
        assert_eq!(come(4, StampKind::Software), Placed::Nobody, "it was never sent");
        // 0 and 1 were skipped, and 0 comes late; then 3, while 4 was never to come.
        assert_eq!(come(0, StampKind::Software), Placed::Places(0, 1));
        assert_eq!(come(5, StampKind::Software), Placed::Places(5, 6));
        let expected =
            KindCounts { delivered: 3, twice: 1, unknown: 2, skipped: 2, ..KindCounts::default() };
        assert_eq!(counts, expected);
    }

    #[test]
    fn a_stamp_that_never_comes_is_waited_for_until_enough_others_were_asked_for_and_no_longer() {
        let (sent, mut matching, mut counts) = datagrams(0, 10);
        let kind = StampKind::Software;
        assert!(
            !Matching::new(10).waits(&sent, kind),
            "of those before it another half takes care"
        );
        sent.refuse(9);
        for place in (0..9).filter(|place| *place != 3) {
            assert!(matching.waits(&sent, kind), "{place} has not come");
            matching.datagram(&sent, place, kind, &mut counts);
        }
        for place in 10..3 + GIVEN_UP_AFTER {
            assert!(matching.waits(&sent, kind), "3 may still come");
            assert_eq!(sent.ask(place, 0, false), place);
            matching.datagram(&sent, place as u32, kind, &mut counts);
        }
        assert!(matching.waits(&sent, kind), "the last look for it");
        let place = sent.ask(0, 0, false);
        assert!(matching.waits(&sent, kind), "{place} has not come");
        matching.datagram(&sent, place as u32, kind, &mut counts);
        assert!(!matching.waits(&sent, kind), "3 will not come");
        assert!(matching.waits(&sent, StampKind::Sched), "none of these came");
        assert!(!matching.waits(&sent, StampKind::Hardware), "nobody asked the card");
        // It is missing for all that; and one that was not given up is waited for in its turn.
        assert_eq!((counts.delivered, counts.skipped), (sent.taken() - 1, 1));
        sent.ask(0, 0, false);
        assert!(matching.waits(&sent, kind));
    }

    #[test]
    fn the_stamps_of_a_stream_are_waited_for_until_its_last_message_has_its_own() {
        let (sent, mut matching, mut counts) = stream(&[100, 100, 100]);
        assert!(matching.waits(&sent, StampKind::Ack));
        matching.byte(&sent, 199, StampKind::Ack, &mut counts);
        assert!(matching.waits(&sent, StampKind::Ack), "of the last");
        matching.byte(&sent, 299, StampKind::Ack, &mut counts);
        assert!(!matching.waits(&sent, StampKind::Ack));
        assert!(matching.waits(&sent, StampKind::Sched), "none of these came");
    }

    fn stream(lengths: &[u64]) -> (Sent, Matching, KindCounts) {
        let sent = Sent::new();
        for (message, length) in lengths.iter().enumerate() {
            let end = sent.written(*length);
            sent.ask(message as u64, end, false);
        }
        (sent, Matching::new(0), KindCounts::default())
    }

    #[test]
    fn a_stamp_of_a_merged_segment_is_one_of_every_message_in_it_and_covers_none_twice() {
        let (sent, mut matching, mut counts) = stream(&[100, 50, 50, 100]);
        let mut come = |byte, kind| matching.byte(&sent, byte, kind, &mut counts);
        assert_eq!(come(99, StampKind::Ack), Placed::Places(0, 1));
        assert_eq!(come(199, StampKind::Ack), Placed::Places(1, 3));
        assert_eq!(come(149, StampKind::Ack), Placed::Nobody, "covered before");
        assert_eq!(come(299, StampKind::Ack), Placed::Places(3, 4));
        assert_eq!(come(299, StampKind::Ack), Placed::Nobody, "sent again");
        assert_eq!(come(300, StampKind::Ack), Placed::Nobody, "never written");
        let expected =
            KindCounts { delivered: 4, merged: 1, twice: 2, unknown: 1, ..KindCounts::default() };
        assert_eq!(counts, expected);
    }

    #[test]
    fn a_stamp_covers_no_message_that_ended_further_back_than_a_buffer_of_the_kernel_reaches() {
        let (sent, mut matching, mut counts) = stream(&[100, 60_000, 60_000, 100]);
        let placed = matching.byte(&sent, 120_199, StampKind::Software, &mut counts);
        assert_eq!(placed, Placed::Places(1, 4), "the stamp of the first was lost");
        let expected = KindCounts { delivered: 3, merged: 2, skipped: 1, ..KindCounts::default() };
        assert_eq!(counts, expected);
        // The first byte of 64 KiB, and the one before it.
        for (second, placed) in [(65_535, Placed::Places(0, 2)), (65_536, Placed::Places(1, 2))] {
            let (sent, mut matching, mut counts) = stream(&[1, second]);
            let of = matching.byte(&sent, second as u32, StampKind::Ack, &mut counts);
            assert_eq!(of, placed, "{second}");
            let merged = u64::from(placed == Placed::Places(0, 2));
            assert_eq!((counts.merged, counts.skipped), (merged, 1 - merged), "{second}");
        }
        // Of a message that was cut, a part: those far before its byte are skipped all the same.
        let (sent, mut matching, mut counts) = stream(&[100, 100_000]);
        let placed = matching.byte(&sent, 90_000, StampKind::Software, &mut counts);
        assert_eq!((placed, counts.delivered), (Placed::Places(1, 1), 0));
        assert_eq!((counts.split, counts.skipped, counts.merged), (1, 1, 0));
    }

    #[test]
    fn a_cards_stamp_is_of_messages_that_it_was_asked_for_and_skips_none_of_the_others() {
        // Room for one: 0 and 3 are asked for, then 4 and 6, of which the first never comes.
        let (sent, mut counts) = (Sent::new(), KindCounts::default());
        for place in 0..7 {
            sent.ask(place, sent.written(100), [0, 3, 4, 6].contains(&place));
        }
        let mut datagrams = Matching::new(0);
        for place in [0_u32, 3, 6] {
            let placed = datagrams.datagram(&sent, place, StampKind::Hardware, &mut counts);
            assert_eq!(placed, Placed::Places(u64::from(place), u64::from(place) + 1));
        }
        let expected = KindCounts { delivered: 3, skipped: 1, ..KindCounts::default() };
        assert_eq!(counts, expected);
        let (mut stream, mut counts) = (Matching::new(0), KindCounts::default());
        for (place, byte) in [(0, 99), (3, 399), (6, 699)] {
            let placed = stream.byte(&sent, byte, StampKind::Hardware, &mut counts);
            assert_eq!(placed, Placed::Places(place, place + 1), "1, 2 and 5 left before");
        }
        assert_eq!(counts, expected);
        // The stack is asked for each: what has none left in the same segment.
        let (mut stream, mut counts) = (Matching::new(0), KindCounts::default());
        let placed = stream.byte(&sent, 699, StampKind::Software, &mut counts);
        assert_eq!((placed, counts.merged), (Placed::Places(0, 7), 6));
    }

    #[test]
    fn a_stamp_of_a_part_of_a_message_is_none_of_the_whole() {
        let (sent, mut matching, mut counts) = stream(&[100, 100_000, 100]);
        let mut come = |byte| matching.byte(&sent, byte, StampKind::Software, &mut counts);
        assert_eq!(come(60_000), Placed::Places(0, 1), "the first left before it");
        assert_eq!(come(70_000), Placed::Nobody);
        assert_eq!(come(100_099), Placed::Places(1, 2));
        assert_eq!(come(100_199), Placed::Places(2, 3));
        let expected = KindCounts { delivered: 3, merged: 1, split: 2, ..KindCounts::default() };
        assert_eq!(counts, expected);
    }

    #[test]
    fn bytes_of_a_stream_are_found_where_their_ids_wrap() {
        let sent = Sent::new();
        sent.written(TURN - 30);
        for message in 0..3 {
            let end = sent.written(20);
            sent.ask(message, end, false);
        }
        let (mut matching, mut counts) = (Matching::new(0), KindCounts::default());
        for (message, byte) in [(0, TURN - 11), (1, TURN + 9), (2, TURN + 29)] {
            let placed = matching.byte(&sent, byte as u32, StampKind::Sched, &mut counts);
            assert_eq!(placed, Placed::Places(message, message + 1));
        }
        assert_eq!((counts.delivered, counts.merged), (3, 0));
    }
}
