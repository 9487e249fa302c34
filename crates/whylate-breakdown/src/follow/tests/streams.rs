//! Streams: pieces are merged and split on their way, and some frames hold none.

use proptest::prelude::*;
use whylate_model::event::{EventKind, Protocol};
use whylate_model::{Ticks, TicksDelta};

use super::closed;
use crate::follow::Passage;
use crate::planted::{DATAGRAM, Host, Message};

const PIECE: Message =
    Message { protocol: Protocol::Tcp, bytes: 100, asleep: false, read: 150, ..DATAGRAM };

fn read_at(host: &mut Host, at: u64, bytes: i32) {
    let kind = EventKind::SocketRead { socket: 0xb0, protocol: Protocol::Tcp, length: bytes };
    host.event(at, 1, 20, kind);
}

#[test]
fn a_piece_of_a_stream_is_followed_and_a_mere_acknowledgement_is_none() {
    let mut host = Host::new();
    host.message(&PIECE);
    // The receiver acknowledges, within the same soft interrupt.
    let (skb, device, length) = (0x77, "lo".into(), 66);
    let at = PIECE.at + PIECE.delivered;
    host.event(at, 0, 10, EventKind::NetQueue { skb, device, length });
    host.event(at, 0, 10, EventKind::NetXmit { skb, device, length });
    host.event(at + 20, 0, 10, EventKind::NetReceive { skb, device, length: 52 });
    let kind = EventKind::TcpSegment { skb: Some(skb), socket: Some(0xa0), length: 0 };
    host.event(at + 30, 0, 10, kind);
    let (found, follower) = host.follow();
    assert_eq!(found, [PIECE.passage()]);
    assert_eq!(follower.counts().acknowledgements, 1);
    closed(&follower);
}

#[test]
fn a_call_that_reads_two_pieces_reads_both_and_one_that_reads_a_half_reads_none() {
    let second = Message { at: 1_100, skb: 0xee00, ..PIECE };
    let mut host = Host::new();
    for m in [PIECE, second] {
        host.send(&m).deliver(&m).sent(&m);
    }
    read_at(&mut host, 1_400, 200);
    let (found, follower) = host.follow();
    let read = |m: Message, at| Passage { read: Some(Ticks(at)), ..m.passage() };
    assert_eq!(found, [read(PIECE, 1_400), read(second, 1_400)]);
    assert_eq!((follower.counts().merged, follower.counts().split), (1, 0));
    closed(&follower);

    let mut host = Host::new();
    for m in [PIECE, second] {
        host.send(&m).deliver(&m).sent(&m);
    }
    // The first is read by halves, the second with the rest of the first.
    for (at, bytes) in [(1_300, 50), (1_400, 100), (1_500, 50)] {
        read_at(&mut host, at, bytes);
    }
    let (found, follower) = host.follow();
    assert_eq!(found, [read(PIECE, 1_400), read(second, 1_500)]);
    assert_eq!((follower.counts().merged, follower.counts().split), (0, 2));
    closed(&follower);
}

#[test]
fn pieces_of_one_call_have_its_number_in_common_and_those_of_two_have_not() {
    let mut host = Host::new();
    let second = Message { at: 1_002, skb: 0xee00, queued: 22, driver: 32, ..PIECE };
    let third = Message { at: 2_000, skb: 0xdd00, ..PIECE };
    host.send(&PIECE).deliver(&PIECE);
    let (skb, device, length) = (second.skb, "lo".into(), second.frame());
    host.event(1_024, 0, 10, EventKind::NetQueue { skb, device, length });
    host.event(1_034, 0, 10, EventKind::NetXmit { skb, device, length });
    host.deliver(&Message { arrived: 80, delivered: 90, ..second });
    host.sent(&Message { delivered: 100, ..PIECE }).message(&third);
    read_at(&mut host, 1_400, 200);
    let mut follower = crate::planted::follower();
    for (cpu, events) in host.by_cpu().into_iter().enumerate() {
        follower.push(whylate_model::CpuId(cpu as u32), events);
    }
    crate::planted::complete(&mut follower, 1 << 40);
    let mut found = follower.take();
    found.sort_by_key(|passage| passage.queued);
    assert_eq!(found.len(), 3);
    assert_eq!((found[0].sent, found[1].sent), (Some(Ticks(1_000)), Some(Ticks(1_000))));
    assert_eq!(found[0].call, found[1].call);
    assert_ne!(found[1].call, found[2].call);
}

#[test]
fn a_segment_that_waited_for_the_sockets_owner_is_delivered_where_that_gives_it_back() {
    // The reader holds the socket when the segment arrives on CPU 0, and processes it itself.
    let mut host = Host::new();
    host.send(&PIECE).sent(&PIECE);
    let (skb, length) = (PIECE.skb, PIECE.frame() - 14);
    host.softirq(0, 10, (1_049, 1_055));
    host.event(1_050, 0, 10, EventKind::NetReceive { skb, device: "lo".into(), length });
    let kind = EventKind::TcpSegment { skb: Some(skb), socket: Some(0xb0), length: 100 };
    host.event(1_058, 1, 20, kind);
    let kind = EventKind::SocketReady { socket: 0xb0, protocol: Protocol::Tcp };
    host.event(1_060, 1, 20, kind);
    read_at(&mut host, 1_150, 100);
    let (found, follower) = host.follow();
    assert_eq!(found, [PIECE.passage()]);
    closed(&follower);
}

#[test]
fn a_connection_that_ends_or_a_segment_that_came_twice_makes_no_message() {
    let mut host = Host::new();
    host.message(&PIECE);
    // The end of a stream: ready, and nothing to read.
    let ready = EventKind::SocketReady { socket: 0xb0, protocol: Protocol::Tcp };
    host.event(2_000, 0, 10, ready);
    read_at(&mut host, 2_100, 0);
    // Sent again, and dropped as old: no socket becomes ready.
    let again = Message { at: 3_000, skb: 0xcc00, ..PIECE };
    let (skb, length) = (again.skb, again.frame());
    host.softirq(0, 0, (3_000, 3_100));
    host.event(3_010, 0, 0, EventKind::NetQueue { skb, device: "lo".into(), length });
    host.event(3_020, 0, 0, EventKind::NetXmit { skb, device: "lo".into(), length });
    let length = length - 14;
    host.event(3_030, 0, 0, EventKind::NetReceive { skb, device: "lo".into(), length });
    let kind = EventKind::TcpSegment { skb: Some(skb), socket: Some(0xb0), length: 100 };
    host.event(3_040, 0, 0, kind);
    let reason = "TCP_OLD_DATA".to_owned();
    host.event(3_050, 0, 0, EventKind::SkbFreed { skb, reason });
    let next = Message { at: 4_000, skb: 0xdd00, ..PIECE };
    let (found, follower) = host.message(&next).follow();
    assert_eq!(found, [PIECE.passage(), next.passage()]);
    assert_eq!(follower.counts().dropped["TCP_OLD_DATA"], 1);
    closed(&follower);
}

#[test]
fn a_stream_with_more_bytes_than_were_seen_is_not_trusted_until_its_bottom_is_found() {
    let mut host = Host::new();
    let mut at = 1_000;
    let mut messages = Vec::new();
    for number in 0..30 {
        let m = Message { at, skb: 0x1000 + number, ..PIECE };
        at += 400;
        messages.push(m);
        host.send(&m).deliver(&m).sent(&m);
        // The third is read with 60 bytes that nobody saw come.
        let bytes = if number == 2 { 160 } else { 100 };
        read_at(&mut host, m.at + m.read, bytes);
    }
    let (found, follower) = host.follow();
    let counts = follower.counts();
    assert_eq!((counts.out_of_step, counts.found_again, counts.given_up), (1, 1, 9));
    let sent: Vec<_> = found.iter().map(|passage| passage.sent).collect();
    let kept = messages.iter().enumerate().filter(|(number, _)| *number < 2 || *number > 10);
    assert_eq!(sent, kept.map(|(_, m)| Some(Ticks(m.at))).collect::<Vec<_>>());
    assert!(found.iter().all(|p| p.read.unwrap().since(p.sent.unwrap()) == TicksDelta(150)));
    closed(&follower);
}

#[test]
fn a_stream_that_is_found_empty_after_more_was_read_than_was_seen_is_trusted_with_the_next_piece() {
    let piece = |number: u64| Message { at: 1_000 + 400 * number, skb: 0x1000 + number, ..PIECE };
    let mut host = Host::new();
    for number in 0..4 {
        let m = piece(number);
        host.send(&m).deliver(&m).sent(&m);
        if number == 1 {
            read_at(&mut host, m.at + m.read, 160);
            read_at(&mut host, m.at + m.read + 10, -11);
        } else {
            read_at(&mut host, m.at + m.read, 100);
        }
    }
    let (found, follower) = host.follow();
    assert_eq!(found, [0, 2, 3].map(|number| piece(number).passage()));
    let counts = follower.counts();
    assert_eq!((counts.out_of_step, counts.found_again, counts.given_up), (1, 1, 1));
    closed(&follower);
}

#[test]
fn a_reader_of_a_stream_that_spins_is_quicker_than_the_event_of_the_delivery() {
    let early = |at, skb| Message { at, skb, read: PIECE.delivered - 5, ..PIECE };
    let (first, second) = (early(1_000, 0x100), early(3_000, 0x200));
    let later = Message { at: 5_000, ..PIECE };
    let mut host = Host::new();
    host.message(&first).message(&second).message(&later);
    // The buffer of the second goes before its delivery is told.
    host.event(second.at + second.delivered - 1, 1, 20, EventKind::SkbConsumed { skb: 0x200 });
    let (found, follower) = host.follow();
    let expected = |of: &Message| Passage { delivered: None, ..of.passage() };
    assert_eq!(found, [expected(&first), expected(&second), later.passage()]);
    let counts = follower.counts();
    assert_eq!((counts.read, counts.read_unseen, counts.out_of_step), (3, 0, 0));
    closed(&follower);
}

#[test]
fn a_call_that_reads_what_is_there_and_what_is_about_to_be_told_waits_for_all_its_bytes() {
    let second = Message { at: 1_100, skb: 0xee00, ..PIECE };
    let mut host = Host::new();
    for m in [PIECE, second] {
        host.send(&m).deliver(&m).sent(&m);
    }
    // Of the second, which arrived at 1 150 and is told of at 1 160.
    read_at(&mut host, 1_155, 200);
    let (found, follower) = host.follow();
    let read = Some(Ticks(1_155));
    let first = Passage { read, ..PIECE.passage() };
    assert_eq!(found, [first, Passage { read, delivered: None, ..second.passage() }]);
    let counts = follower.counts();
    assert_eq!((counts.merged, counts.read_unseen, counts.out_of_step), (1, 0, 0));
    closed(&follower);
}

#[test]
fn a_piece_that_is_read_in_parts_before_and_behind_its_delivery_is_read_with_its_last_byte() {
    let mut host = Host::new();
    host.send(&PIECE).deliver(&PIECE).sent(&PIECE);
    for (at, bytes) in [(1_052, 30), (1_055, 30), (1_200, 40)] {
        read_at(&mut host, at, bytes);
    }
    let (found, follower) = host.follow();
    assert_eq!(found, [Passage { read: Some(Ticks(1_200)), ..PIECE.passage() }]);
    let counts = follower.counts();
    assert_eq!((counts.split, counts.read_unseen, counts.out_of_step), (1, 0, 0));
    closed(&follower);
}

#[test]
fn a_read_of_a_streams_bytes_that_were_never_seen_to_come_is_not_the_next_pieces() {
    let mut host = Host::new();
    read_at(&mut host, 900, 100);
    host.message(&PIECE);
    let (found, follower) = host.follow();
    assert_eq!(found, [PIECE.passage()]);
    let counts = follower.counts();
    assert_eq!((counts.read, counts.read_unseen, counts.out_of_step), (1, 1, 0));
    closed(&follower);
}

proptest! {
    /// Each piece is read by one call or two, at any time after it arrived: before its delivery is told,
    /// behind that, or one here and one there.
    #[test]
    fn pieces_of_a_stream_are_read_with_their_last_byte_whenever_that_is_after_they_arrived(
        plan in proptest::collection::vec(
            (1_u32..500, 0_u32..500, 51_u64..200, 1_u64..200),
            1..20,
        ),
    ) {
        let mut host = Host::new();
        let mut expected = Vec::new();
        for (number, (first, more, soon, later)) in (0_u64..).zip(plan) {
            let (at, skb) = (1_000 + 1_000 * number, 0x1000 + number);
            let m = Message { at, skb, bytes: first + more, delivered: 120, ..PIECE };
            host.send(&m).deliver(&m).sent(&m);
            let mut read = at + soon;
            read_at(&mut host, read, first as i32);
            if more > 0 {
                read += later;
                read_at(&mut host, read, more as i32);
            }
            let delivered = Some(Ticks(at + m.delivered)).filter(|told| *told <= Ticks(read));
            expected.push(Passage { read: Some(Ticks(read)), delivered, ..m.passage() });
        }
        let (found, follower) = host.follow();
        prop_assert_eq!(found, expected);
        let counts = follower.counts();
        prop_assert_eq!((counts.read_unseen, counts.out_of_step, counts.given_up), (0, 0, 0));
        closed(&follower);
    }
}
