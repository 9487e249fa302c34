//! Datagrams in a socket's queue: of before anything was seen, read by several threads, looked at; and bytes
//! of a stream that were there before.

use whylate_model::event::{EventKind, Protocol};
use whylate_model::{CpuId, Ticks};

use super::closed;
use crate::follow::Passage;
use crate::planted::{DATAGRAM, Host, Message, complete, follower, found};

/// Sent, delivered and not read yet.
fn delivered(host: &mut Host, m: &Message) {
    host.send(m).deliver(m).sent(m);
}

#[test]
fn datagrams_that_waited_before_anything_was_seen_are_none_of_those_that_come() {
    // Three were in the queue: they are read first, and nobody saw them come.
    let first = Message { asleep: false, read: 700, ..DATAGRAM };
    let second = Message { at: 1_100, skb: 0xee00, read: 700, ..first };
    let mut host = Host::new();
    delivered(&mut host, &first);
    delivered(&mut host, &second);
    for (at, skb) in [(1_400, 1), (1_500, 2), (1_600, 3), (1_700, first.skb), (1_800, second.skb)] {
        host.read_copying(&first, (at, skb));
    }
    let (found, follower) = host.follow();
    assert_eq!(found, [first.passage(), second.passage()]);
    let counts = follower.counts();
    assert_eq!((counts.read, counts.read_unseen, counts.out_of_step), (2, 3, 0));
    closed(&follower);
}

#[test]
fn two_threads_that_read_one_socket_have_what_each_of_them_copied() {
    let first = Message { asleep: false, read: 700, ..DATAGRAM };
    // Read by another thread, whose call ends before the first one's does.
    let second = Message { at: 1_100, skb: 0xee00, reader: 21, reader_cpu: 2, read: 400, ..first };
    let mut host = Host::new();
    delivered(&mut host, &first);
    delivered(&mut host, &second);
    host.read_copying(&second, (1_500, second.skb)).read_copying(&first, (1_700, first.skb));
    let (found, follower) = host.follow();
    assert_eq!(found, [first.passage(), second.passage()]);
    closed(&follower);
}

#[test]
fn a_look_into_the_queue_reads_nothing_and_what_it_copied_is_not_the_next_reads() {
    let m = Message { asleep: false, read: 700, ..DATAGRAM };
    let mut host = Host::new();
    delivered(&mut host, &m);
    // It looks at something that nobody saw come; of the read no copy is told.
    let length = m.bytes as i32;
    host.event(1_299, 1, 20, EventKind::SkbCopied { skb: 1, length });
    host.event(1_300, 1, 20, EventKind::SocketPeeked { socket: m.socket });
    host.read(&Message { read: 700, ..m }, m.bytes);
    let (found, follower) = host.follow();
    assert_eq!(found, [m.passage()]);
    assert_eq!(follower.counts().read_unseen, 0);
    closed(&follower);
}

#[test]
fn a_copy_that_is_told_before_the_delivery_waits_for_its_own() {
    // A reader that spins is quicker than the events of two deliveries that come in their order.
    let first = Message { asleep: false, read: DATAGRAM.delivered - 5, ..DATAGRAM };
    let other = Message { at: 3_000, skb: 0xee00, ..first };
    let mut host = Host::new();
    for m in [&first, &other] {
        delivered(&mut host, m);
        // And between its arrival and its delivery one of before is read.
        host.read_copying(m, (m.at + m.arrived + 2, 7));
        host.read_copying(m, (m.at + m.read, m.skb));
    }
    let (found, follower) = host.follow();
    let early = |m: &Message| Passage { delivered: None, ..m.passage() };
    assert_eq!(found, [early(&first), early(&other)]);
    assert_eq!((follower.counts().read, follower.counts().read_unseen), (2, 2));
    closed(&follower);
}

#[test]
fn a_datagram_whose_buffer_has_another_message_is_no_more() {
    // Its read was not told of, and its buffer is used again.
    let gone = Message { asleep: false, ..DATAGRAM };
    let next = Message { at: 3_000, read: 200, ..gone };
    let mut host = Host::new();
    delivered(&mut host, &gone);
    delivered(&mut host, &next);
    host.read_copying(&next, (3_200, next.skb));
    let (found, follower) = host.follow();
    assert_eq!(found, [next.passage()]);
    let counts = follower.counts();
    assert_eq!((counts.read, counts.given_up, counts.open), (1, 1, 0));
    closed(&follower);
}

#[test]
fn what_waits_when_following_begins_makes_every_socket_doubted_until_its_bottom_is_known() {
    // Two wait that nobody saw; no copy is told of. Two come, then four are read, then ten come one by one.
    let mut host = Host::new();
    let early = [1_000, 1_100].map(|at| Message { at, skb: at, asleep: false, ..DATAGRAM });
    for m in &early {
        delivered(&mut host, m);
    }
    for read in [1_400, 1_500, 1_600, 1_700] {
        host.read(&Message { read: read - 1_000, asleep: false, ..DATAGRAM }, DATAGRAM.bytes);
    }
    let later: Vec<Message> = (0..10)
        .map(|number| Message { at: 3_000 + 1_000 * number, asleep: false, ..DATAGRAM })
        .collect();
    for m in &later {
        host.message(m);
    }
    let mut follower = follower();
    follower.doubt();
    for (cpu, events) in host.by_cpu().into_iter().enumerate() {
        follower.push(CpuId(cpu as u32), events);
    }
    complete(&mut follower, u64::MAX / 2);
    // The bottom was reached with the last of the four, and by seven of those that came alone.
    let expected: Vec<Passage> = later[7..].iter().map(Message::passage).collect();
    assert_eq!(found(&mut follower), expected);
    let counts = follower.counts();
    assert_eq!((counts.untrusted, counts.found_again, counts.read), (11, 1, 3));
    closed(&follower);
}

/// A piece of a stream that its reader does not sleep for.
const PIECE: Message = Message { protocol: Protocol::Tcp, bytes: 100, asleep: false, ..DATAGRAM };

#[test]
fn bytes_of_a_stream_that_wait_when_following_begins_are_none_of_those_that_come() {
    // 300 wait that nobody saw. 200 come, then five calls read 100 each, then ten pieces come one by one.
    let mut host = Host::new();
    for at in [1_000, 1_100] {
        delivered(&mut host, &Message { at, skb: at, ..PIECE });
    }
    for read in [1_400, 1_500, 1_600, 1_700, 1_800] {
        host.read(&Message { read: read - 1_000, ..PIECE }, 100);
    }
    let later: Vec<Message> =
        (0..10).map(|number| Message { at: 3_000 + 1_000 * number, ..PIECE }).collect();
    for m in &later {
        host.message(m);
    }
    let followed = |doubted: bool| {
        let mut follower = follower();
        if doubted {
            follower.doubt();
        }
        for (cpu, events) in host.by_cpu().into_iter().enumerate() {
            follower.push(CpuId(cpu as u32), events);
        }
        complete(&mut follower, u64::MAX / 2);
        follower
    };
    let mut doubting = followed(true);
    // The bottom was reached with the last of the five, and by seven of those that came alone.
    let expected: Vec<Passage> = later[7..].iter().map(Message::passage).collect();
    assert_eq!(found(&mut doubting), expected);
    let counts = doubting.counts();
    assert_eq!((counts.untrusted, counts.found_again, counts.read), (12, 1, 3));
    closed(&doubting);
    // Who does not doubt has two that were read by calls of before.
    let mut trusting = followed(false);
    let first = found(&mut trusting)[0];
    assert_eq!((first.sent, first.read), (Some(Ticks(1_000)), Some(Ticks(1_400))));
}

#[test]
fn bytes_of_a_stream_are_trusted_at_once_when_the_newest_piece_was_copied_whole() {
    // 300 that nobody saw and the 100 that came are read by one call, whose last copy is the newest piece.
    let first = Message { skb: 0xee00, ..PIECE };
    let next = Message { at: 3_000, ..PIECE };
    let mut host = Host::new();
    delivered(&mut host, &first);
    host.event(1_399, 1, 20, EventKind::SkbCopied { skb: first.skb, length: 100 });
    host.read(&Message { read: 400, ..first }, 400).message(&next);
    let mut follower = follower();
    follower.doubt();
    for (cpu, events) in host.by_cpu().into_iter().enumerate() {
        follower.push(CpuId(cpu as u32), events);
    }
    complete(&mut follower, u64::MAX / 2);
    assert_eq!(found(&mut follower), [next.passage()]);
    let counts = follower.counts();
    assert_eq!((counts.untrusted, counts.found_again, counts.read), (1, 1, 1));
    closed(&follower);
}
