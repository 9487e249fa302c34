//! Proofs: what is asked for, and over real sockets on 127.0.0.1 what comes of it.

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::net::sockopt;
use whylate_clock::HardwareCounter;
use whylate_model::Hertz;
use whylate_suite::{absent, missing};
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::timestamping::{Sending, Times};

use super::card::{Card, Share};
use super::matching::Matching;
use super::sent::Sent;
use super::socket::{Ids, LOOKS_FOR_ACKS, place};
use super::*;
use crate::error::PortError;
use crate::framing::Frame;
use crate::open::{Client, Server, Target, Transport};
use crate::options::Options;
use crate::port::{Port, Received, Setup, Wait};
use crate::udp::{Family, loopback_pair};

const LIMIT: Nanos = Nanos(60_000_000_000);
/// Messages: their stamps are more than a buffer of [`ROOM`] holds, and fewer than are remembered.
const MANY: u64 = 2_000;
/// Bytes, which the kernel doubles. What stamps take is counted as received.
const ROOM: usize = 64 << 10;
const WISH: StampWish =
    StampWish { sched: true, software: true, receive: true, ..StampWish::NOTHING };

#[test]
fn what_is_asked_for_is_recorded_and_told_and_nothing_else_is() {
    assert_eq!(StampWish::NOTHING.records(), Flags::default());
    assert!(StampKind::ALL.into_iter().all(|kind| !StampWish::NOTHING.has(kind)));
    let wish = StampWish { software: true, receive: true, ..StampWish::NOTHING };
    assert_eq!(wish.records(), Flags::TX_SOFTWARE);
    assert!(wish.ways(false).has(Flags::OPT_ID.with(Flags::RX_SOFTWARE)));
    assert!(!wish.ways(false).has(Flags::RAW_HARDWARE) && !wish.has(StampKind::Hardware));
    let both = StampWish { hardware: true, ..wish };
    assert!(both.ways(true).has(Flags::OPT_TX_SWHW.with(Flags::OPT_ID_TCP)));
    assert!(both.has(StampKind::ReceivedHardware));
    assert_eq!(both.ways(true).0 & Flags::RECORDS.0, 0, "records are no ways to tell them");
}

#[test]
fn kinds_stand_at_their_places_and_counts_add_up() {
    for (at, kind) in StampKind::ALL.into_iter().enumerate() {
        assert_eq!(kind.index(), at);
    }
    let mut one = StampCounts::default();
    *one.kind(StampKind::Ack) = KindCounts { expected: 5, delivered: 3, ..KindCounts::default() };
    let two = one.with(&one);
    assert_eq!((two.of(StampKind::Ack).missing(), two.of(StampKind::Sched).missing()), (4, 0));
}

#[test]
fn cards_with_few_registers_are_known_by_their_drivers() {
    assert_eq!((registers("igb"), registers("igc"), registers("veth")), (Some(1), Some(4), None));
    for driver in ["e1000e", "ixgbe", "i40e"] {
        assert_eq!(registers(driver), Some(1), "{driver} has one on its way at a time");
    }
    for driver in ["e1000", "ixgbevf", "ice", "mlx5_core"] {
        assert_eq!(registers(driver), None, "{driver}");
    }
}

/// A pair of sockets, the first of which asks for stamps of what it sends.
fn asking(
    wish: &StampWish,
    (ids, room): (Ids, Option<u64>),
    sent: Sent,
) -> Option<(OwnedFd, OwnedFd, SocketStamps)> {
    asking_of(wish, (ids, room.map(Card::with_room)), sent)
}

/// The same of a card.
fn asking_of(
    wish: &StampWish,
    (ids, card): (Ids, Option<Arc<Card>>),
    sent: Sent,
) -> Option<(OwnedFd, OwnedFd, SocketStamps)> {
    let (one, other) = loopback_pair(Family::V4).unwrap();
    let asked = SocketStamps::asking(&one, wish, (ids, card), sent, "udp over ipv4");
    let stamps = asked.inspect_err(absent).ok()?;
    if ids == Ids::Own && !takes_own_ids() {
        absent("this kernel takes no ids of the caller's");
        return None;
    }
    Some((one, other, stamps))
}

/// What comes within a while, until there are so many.
fn come(stamps: &mut SocketStamps, fd: &OwnedFd, count: usize) -> Vec<Stamp> {
    let mut come = Vec::new();
    for _ in 0..100 {
        stamps.take(fd, &mut |stamp| come.push(stamp)).unwrap();
        if come.len() >= count {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    come
}

fn messages(come: &[Stamp], kind: StampKind) -> Vec<u64> {
    come.iter().filter(|stamp| stamp.kind == kind).map(|stamp| stamp.message).collect()
}

#[test]
fn stamps_find_their_messages_where_ids_of_either_sort_wrap() {
    const TURN: u64 = 1 << 32;
    let Some((fd, _other, mut stamps)) =
        asking(&WISH, (Ids::Own, None), Sent::starting_at(TURN - 3))
    else {
        return;
    };
    for number in 0..6 {
        stamps.send(&fd, (b"wraps", number), None, 0).unwrap();
    }
    let come = come(&mut stamps, &fd, 12);
    for kind in [StampKind::Sched, StampKind::Software] {
        assert_eq!(messages(&come, kind), [0, 1, 2, 3, 4, 5], "{come:?}");
        let expected = KindCounts { expected: 6, delivered: 6, ..KindCounts::default() };
        assert_eq!(*stamps.counts().of(kind), expected);
    }
}

#[test]
fn the_kernels_own_count_is_followed_also_beyond_a_message_that_it_refused() {
    let Some((fd, _other, mut stamps)) = asking(&WISH, (Ids::Counted, None), Sent::new()) else {
        return;
    };
    let too_long = vec![0; 70_000];
    for number in 0..6 {
        let message = if number == 3 { &too_long[..] } else { b"counted" };
        let sent = stamps.send(&fd, (message, number), None, 0);
        assert_eq!(sent.is_err(), number == 3, "{sent:?}");
        // What lies in the queue still has the ids of before.
        let come = come(&mut stamps, &fd, 2);
        let expected: &[u64] = if number == 3 { &[] } else { &[number] };
        assert_eq!(messages(&come, StampKind::Software), expected, "{come:?}");
    }
    let counts = *stamps.counts().of(StampKind::Software);
    assert_eq!((counts.expected, counts.delivered, counts.unknown), (5, 5, 0));
}

#[test]
fn an_error_queue_that_nobody_reads_overflows_and_the_stamps_that_never_came_are_counted() {
    let Some((fd, _other, mut stamps)) = asking(&WISH, (Ids::Own, None), Sent::new()) else {
        return;
    };
    sockopt::set_socket_recv_buffer_size(&fd, ROOM).unwrap();
    for number in 0..MANY {
        stamps.send(&fd, (b"many", number), None, 0).unwrap();
    }
    come(&mut stamps, &fd, usize::MAX);
    let first = *stamps.counts().of(StampKind::Software);
    assert!(first.delivered > 0 && first.missing() > 0, "{first:?}");
    // The next one tells that those before it were skipped.
    stamps.send(&fd, (b"last", MANY), None, 0).unwrap();
    let last = come(&mut stamps, &fd, 2);
    assert_eq!(messages(&last, StampKind::Software), [MANY]);
    let counts = *stamps.counts().of(StampKind::Software);
    assert_eq!((counts.expected, counts.skipped), (MANY + 1, counts.missing()), "{counts:?}");
    assert_eq!((counts.twice, counts.unknown), (0, 0));
}

#[test]
fn stamps_that_are_taken_for_granted_and_never_come_are_missing() {
    let wish = StampWish { hardware: true, ..WISH };
    let Some((fd, _other, mut stamps)) = asking(&wish, (Ids::Own, None), Sent::new()) else {
        return;
    };
    for number in 0..5 {
        stamps.send(&fd, (b"loopback has no card", number), None, 0).unwrap();
    }
    assert_eq!(messages(&come(&mut stamps, &fd, 10), StampKind::Software).len(), 5);
    let counts = stamps.counts();
    let hardware = counts.of(StampKind::Hardware);
    assert!(counts.wished[StampKind::Hardware.index()]);
    assert_eq!((hardware.expected, hardware.delivered, hardware.missing()), (5, 0, 5));
}

#[test]
fn a_stamp_without_a_time_is_counted_by_its_kind_and_is_nobodys_and_the_card_has_room_again() {
    for stream in [false, true] {
        let (mut counts, card) = (StampCounts::default(), Share::of(Card::with_room(1)));
        let (sent, mut matching) = (Sent::new(), Matching::new(0));
        for number in 0..3 {
            sent.ask(number, sent.written(10), number > 0);
        }
        // Without a time, or by the driver.
        let (none, timed) = (Times::default(), Times { software: Some(5), hardware: None });
        let mut come = |sending, message: u32, times, by_driver| {
            let (ids, id) =
                if stream { (Ids::Bytes, 10 * message + 9) } else { (Ids::Own, message) };
            let of = (&mut matching, &sent, &mut counts, (ids, by_driver));
            let mut handed_on = 0;
            place(of, Some(&card), (sending, id, times), &mut |_| handed_on += 1);
            handed_on
        };
        assert_eq!(come(Sending::Scheduled, 0, none, true), 0);
        assert_eq!(come(Sending::Sent, 0, none, true), 0, "the card was not asked");
        assert!(card.take() && !card.take());
        assert_eq!(come(Sending::Sent, 1, none, true), 0, "the driver's comes first");
        assert!(!card.take(), "the card has told nothing yet");
        assert!(come(Sending::Sent, 1, timed, true) > 0);
        assert_eq!(come(Sending::Sent, 1, none, true), 0);
        assert!(card.take(), "the card has told, if not when");
        assert_eq!(come(Sending::Sent, 2, none, false), 0, "the driver was not asked");
        assert!(card.take());
        let zero = |kind| counts.of(kind).zero;
        let zeros = [StampKind::Sched, StampKind::Software, StampKind::Hardware].map(zero);
        assert_eq!(zeros, [1, 2, 2], "stream: {stream}");
        assert_eq!(counts.of(StampKind::Hardware).delivered, 0);
    }
}

#[test]
fn a_kind_of_which_none_ever_comes_is_looked_for_now_and_then_and_not_each_time() {
    const ROUNDS: u32 = 10;
    let wish = StampWish { hardware: true, ..StampWish::NOTHING };
    let Some((fd, _other, mut stamps)) = asking(&wish, (Ids::Own, None), Sent::new()) else {
        return;
    };
    let looks =
        |stamps: &mut SocketStamps| (0..ROUNDS * LOOKS_FOR_ACKS).filter(|_| stamps.waits()).count();
    stamps.send(&fd, (b"one", 0), None, 0).unwrap();
    assert_eq!(looks(&mut stamps), (ROUNDS * LOOKS_FOR_ACKS) as usize, "it may still come");
    // Nothing here has a card.
    for number in 1..300 {
        stamps.send(&fd, (b"many", number), None, 0).unwrap();
    }
    assert_eq!(looks(&mut stamps), ROUNDS as usize);
    // What comes is looked for each time beside it.
    let wish = StampWish { sched: true, ..wish };
    let Some((fd, _other, mut stamps)) = asking(&wish, (Ids::Own, None), Sent::new()) else {
        return;
    };
    for number in 0..300 {
        stamps.send(&fd, (b"many", number), None, 0).unwrap();
        come(&mut stamps, &fd, 1);
    }
    stamps.send(&fd, (b"last", 300), None, 0).unwrap();
    assert!(stamps.waits() && stamps.waits(), "one that was queued is told of");
}

#[test]
fn one_message_in_so_many_asks_and_a_card_is_asked_for_no_more_than_it_has_room_for() {
    let wish = StampWish { every: 3, ..WISH };
    let Some((fd, _other, mut stamps)) = asking(&wish, (Ids::Own, None), Sent::new()) else {
        return;
    };
    for number in 0..9 {
        stamps.send(&fd, (b"sampled", number), None, 0).unwrap();
    }
    assert_eq!(messages(&come(&mut stamps, &fd, 6), StampKind::Sched), [0, 3, 6]);
    // The others are told of, and every message that was sent is one of both.
    let (mut others, both) = (Vec::new(), StampKind::Sched.bit() | StampKind::Software.bit());
    stamps.take_not_asked(&mut |message, kinds| others.push((message, kinds)));
    assert_eq!(others, [1, 2, 4, 5, 7, 8].map(|message| (message, both)));
    for kind in [StampKind::Sched, StampKind::Software] {
        let of = *stamps.counts().of(kind);
        assert_eq!((of.expected, of.not_asked, of.delivered + of.missing()), (3, 6, 3));
    }
    let wish = StampWish { hardware: true, ..WISH };
    let Some((fd, _other, mut stamps)) = asking(&wish, (Ids::Own, Some(1)), Sent::new()) else {
        return;
    };
    // The only register never gives its stamp: it is given up after a while, and asked again.
    for number in 0..300 {
        stamps.send(&fd, (b"card", number), None, 0).unwrap();
        come(&mut stamps, &fd, 2);
    }
    assert_eq!(stamps.counts().of(StampKind::Hardware).expected, 2);
    assert_eq!(stamps.counts().of(StampKind::Software).delivered, 300);
    let mut others = Vec::new();
    stamps.take_not_asked(&mut |message, kinds| others.push((message, kinds)));
    assert_eq!(others.len(), 298);
    assert!(others.iter().all(|(_, kinds)| *kinds == StampKind::Hardware.bit()), "{others:?}");
    let counts = stamps.counts();
    let not_asked = |kind| counts.of(kind).not_asked;
    assert_eq!((not_asked(StampKind::Hardware), not_asked(StampKind::Software)), (298, 0));
    let card = counts.of(StampKind::Hardware);
    assert_eq!(card.delivered + card.missing() + card.not_asked, 300);
}

#[test]
fn sockets_of_one_card_ask_it_together_for_no_more_than_it_has_room_for() {
    let wish = StampWish { hardware: true, ..WISH };
    let card = Card::with_room(1);
    let ask = || asking_of(&wish, (Ids::Own, Some(Arc::clone(&card))), Sent::new());
    let (Some(mut one), Some(mut other)) = (ask(), ask()) else { return };
    // Nothing here makes a card's stamp: the only register stays taken until it is given up.
    for number in 0..150 {
        for (fd, _other, stamps) in [&mut one, &mut other] {
            stamps.send(fd, (b"card", number), None, 0).unwrap();
            come(stamps, fd, 2);
        }
    }
    let counts = [&one, &other].map(|(.., stamps)| *stamps.counts().of(StampKind::Hardware));
    assert_eq!(counts.map(|of| of.expected + of.not_asked), [150, 150]);
    assert_eq!(counts.map(|of| of.expected).iter().sum::<u64>(), 2, "{counts:?}");
    assert_eq!(counts[1].expected, 1, "the other had it when it was given up");
    // With its socket closed the register is free.
    drop(other);
    let (fd, _other, stamps) = &mut one;
    for number in 150..152 {
        stamps.send(fd, (b"card", number), None, 0).unwrap();
    }
    let of = *stamps.counts().of(StampKind::Hardware);
    assert_eq!((of.expected, of.not_asked), (counts[0].expected + 1, counts[0].not_asked + 1));
}

fn setup(wait: Wait) -> Option<Setup<HardwareCounter>> {
    let counter = HardwareCounter::open().inspect_err(missing).ok()?;
    Some(Setup { counter, rate: Hertz(1e9), wait })
}

/// The first byte tells the length.
fn framing(bytes: &[u8]) -> Frame {
    bytes.first().map_or(Frame::Unknown, |length| Frame::Length(usize::from(*length)))
}

/// A client and its server.
fn ends(transport: Transport, wait: Wait) -> Option<[Box<dyn Port>; 2]> {
    let (target, options) = (Target::Address("127.0.0.1:0".parse().unwrap()), Options::default());
    let server = Server { transport, target, options: options.clone() };
    let server = server.open(setup(Wait::Epoll)?, framing).unwrap();
    let local = server.facts().socket.clone().unwrap().local;
    let target = Target::Address(local.parse().unwrap());
    let client = Client { transport, target, from: None, options };
    Some([client.open(setup(wait)?, framing).unwrap(), server])
}

fn receive(port: &mut dyn Port) -> Option<usize> {
    // Stamps end a wait, too.
    for _ in 0..100 {
        match port.receive(&mut [0; 300], Nanos(LIMIT.0 / 100)).unwrap() {
            Received::Message { length, .. } => return Some(length),
            Received::Nothing { .. } => port.take_stamps(&mut |_| ()).unwrap(),
        }
    }
    None
}

/// Looks until it is so.
fn until(what: &str, mut look: impl FnMut() -> bool) {
    let end = clock_ns(Clock::Monotonic) + LIMIT.0;
    while !look() {
        assert!(clock_ns(Clock::Monotonic) < end, "waited a minute in vain until {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Bytes on the way from a port of this machine that nobody has acknowledged, by the kernel's own list.
fn not_acknowledged(port: u16) -> u64 {
    let connections = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let queues = connections.lines().skip(1).find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[1].ends_with(&format!(":{port:04X}")).then(|| words[4].to_owned())
    });
    let queues = queues.unwrap();
    u64::from_str_radix(queues.split_once(':').unwrap().0, 16).unwrap()
}

/// Takes stamps until there are so many, for a while.
fn take(port: &mut dyn Port, count: usize) -> Vec<Stamp> {
    let mut taken = Vec::new();
    for _ in 0..100 {
        port.take_stamps(&mut |stamp| taken.push(stamp)).unwrap();
        if taken.len() >= count {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    taken
}

#[test]
fn both_halves_of_a_divided_client_and_a_server_number_their_messages() {
    for transport in [Transport::Udp, Transport::Tcp] {
        let Some([mut client, mut server]) = ends(transport, Wait::Block) else { return };
        if let Err(refusal) = client.stamp(&WISH).and_then(|()| server.stamp(&WISH)) {
            return absent(&refusal);
        }
        let mut sending = client.duplicate().unwrap();
        for number in 0..4_u64 {
            sending.send(&[9; 9]).unwrap();
            assert_eq!(receive(&mut *server), Some(9), "{transport}");
            server.send(&[7; 7]).unwrap();
            assert_eq!(receive(&mut *client), Some(7), "{transport}");
            let taken = take(&mut *client, 3);
            for kind in [StampKind::Sched, StampKind::Software] {
                assert_eq!(messages(&taken, kind), [number], "{transport} {taken:?}");
            }
            assert_eq!(client.numbers(), Some((number + 1, number + 1)));
            assert_eq!(server.numbers(), Some((number + 1, number + 1)));
        }
        thread::sleep(Duration::from_millis(5));
        server.take_stamps(&mut |_| ()).unwrap();
        let counts = server.stamp_counts().unwrap();
        assert_eq!(counts.of(StampKind::Software).expected, 4, "{transport}");
        assert_eq!(counts.of(StampKind::ReceivedSoftware).expected, 4, "{transport}");
    }
}

#[test]
fn messages_of_a_stream_that_leave_together_have_their_stamps_and_none_twice() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let target = Target::Address(to);
    let client =
        Client { transport: Transport::Tcp, target, from: None, options: Options::default() };
    let Some(setup) = setup(Wait::Spin) else { return };
    let mut client = client.open(setup, framing).unwrap();
    let wish = StampWish { ack: true, ..WISH };
    if let Err(refusal) = client.stamp(&wish) {
        return absent(&refusal);
    }
    let (_peer, _) = listener.accept().unwrap();
    // Faster than they are acknowledged: some leave in one segment.
    for _ in 0..200 {
        client.send(&[100; 100]).unwrap();
    }
    let (mut taken, kinds) = (Vec::new(), [StampKind::Sched, StampKind::Software, StampKind::Ack]);
    until("stamps of each kind have come", || {
        client.take_stamps(&mut |stamp| taken.push(stamp)).unwrap();
        kinds.iter().all(|kind| !messages(&taken, *kind).is_empty())
    });
    // The queue may have overflowed: whatever came is of one message each, in order.
    for kind in kinds {
        let of = messages(&taken, kind);
        assert!(of.is_sorted_by(|one, next| one < next), "{kind} {of:?}");
        let counts = *client.stamp_counts().unwrap().of(kind);
        assert_eq!(counts.delivered, of.len() as u64, "{kind} {counts:?}");
        assert_eq!(counts.expected, 200, "{kind} {counts:?}");
    }
}

#[test]
fn of_messages_that_one_read_brought_the_last_has_its_stamp_and_the_others_are_counted() {
    let Some((fd, _other, mut stamps)) = asking(&WISH, (Ids::Own, None), Sent::new()) else {
        return;
    };
    stamps.last = Times { software: Some(7), hardware: None };
    for ends_read in [false, false, true] {
        stamps.message_came(ends_read);
    }
    // Without a time there is nothing that a message shares with another.
    stamps.last = Times::default();
    stamps.message_came(false);
    let kind = StampKind::ReceivedSoftware;
    assert_eq!(come(&mut stamps, &fd, 1), [Stamp { message: 2, kind, at: Nanos(7) }]);
    let counts = *stamps.counts().of(kind);
    assert_eq!((counts.expected, counts.delivered, counts.merged), (4, 1, 2));
    assert_eq!((counts.missing(), stamps.received()), (3, 4));
}

#[test]
fn what_a_stream_brings_in_one_read_is_stamped_at_either_end_as_its_last_message_alone() {
    const ROUNDS: u64 = 20;
    let Some([mut client, mut server]) = ends(Transport::Tcp, Wait::Block) else { return };
    if let Err(refusal) = client.stamp(&WISH).and_then(|()| server.stamp(&WISH)) {
        return absent(&refusal);
    }
    // Two messages in one, as the framing of the ends tells them.
    let two = [&[5_u8; 5][..], &[7_u8; 7][..]].concat();
    let (mut of_client, mut of_server) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        client.send(&two).unwrap();
        assert_eq!([receive(&mut *server), receive(&mut *server)], [Some(5), Some(7)]);
        server.send(&two).unwrap();
        assert_eq!([receive(&mut *client), receive(&mut *client)], [Some(5), Some(7)]);
        of_client.extend(take(&mut *client, 3));
        of_server.extend(take(&mut *server, 3));
    }
    for (port, taken) in [(&client, &of_client), (&server, &of_server)] {
        let numbers = messages(taken, StampKind::ReceivedSoftware);
        assert!(numbers.iter().all(|number| number % 2 == 1), "{numbers:?}");
        let counts = *port.stamp_counts().unwrap().of(StampKind::ReceivedSoftware);
        assert_eq!((counts.expected, counts.merged), (2 * ROUNDS, counts.delivered), "{counts:?}");
        assert!(counts.delivered > 0, "{counts:?}");
        assert_eq!(counts.delivered + counts.missing(), counts.expected);
    }
}

#[test]
fn an_acknowledgement_is_looked_for_after_a_reply_and_else_now_and_then() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = Target::Address(listener.local_addr().unwrap());
    let client =
        Client { transport: Transport::Tcp, target, from: None, options: Options::default() };
    let Some(setup) = setup(Wait::Spin) else { return };
    let mut client = client.open(setup, framing).unwrap();
    if let Err(refusal) = client.stamp(&StampWish { ack: true, ..StampWish::NOTHING }) {
        return absent(&refusal);
    }
    let (mut peer, from) = listener.accept().unwrap();
    let (mut taken, mut looks) = (Vec::new(), 0);
    client.send(&[100; 100]).unwrap();
    peer.read_exact(&mut [0; 100]).unwrap();
    until("it is acknowledged", || not_acknowledged(from.port()) == 0);
    until("the acknowledgement's stamp is found", || {
        client.take_stamps(&mut |stamp| taken.push(stamp)).unwrap();
        looks += 1;
        !taken.is_empty()
    });
    // The looks in between were not worth a call.
    assert_eq!(looks % LOOKS_FOR_ACKS, 0, "found at look {looks}");
    assert_eq!(messages(&taken, StampKind::Ack), [0], "{taken:?}");
    client.send(&[100; 100]).unwrap();
    peer.read_exact(&mut [0; 100]).unwrap();
    peer.write_all(&[100; 100]).unwrap();
    let came = client.receive(&mut [0; 100], LIMIT).unwrap();
    assert!(matches!(came, Received::Message { .. }), "{came:?}");
    client.take_stamps(&mut |stamp| taken.push(stamp)).unwrap();
    assert_eq!(messages(&taken, StampKind::Ack), [0, 1], "{taken:?}");
}

#[test]
fn a_server_that_closes_ends_the_port_and_the_stamps_until_then_are_taken() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = Target::Address(listener.local_addr().unwrap());
    let client =
        Client { transport: Transport::Tcp, target, from: None, options: Options::default() };
    let Some(setup) = setup(Wait::Block) else { return };
    let mut client = client.open(setup, framing).unwrap();
    if let Err(refusal) = client.stamp(&WISH) {
        return absent(&refusal);
    }
    let (peer, _) = listener.accept().unwrap();
    client.send(&[5; 5]).unwrap();
    drop(peer);
    drop(listener);
    let ended = (0..10).find_map(|_| client.receive(&mut [0; 9], LIMIT).err()).unwrap();
    assert!(ended.is_peer_gone(), "{ended}");
    let mut taken = Vec::new();
    // The socket may still say why it is closed.
    let _ = client.take_stamps(&mut |stamp| taken.push(stamp));
    assert_eq!(messages(&taken, StampKind::Software), [0], "{taken:?}");
}

#[test]
fn that_nobody_listens_is_still_told_to_who_sends_or_receives() {
    let Some(setup) = setup(Wait::Block) else { return };
    // Holds its number, so that nobody else has it, and takes nothing from strangers: the kernel
    // answers.
    let deaf = UdpSocket::bind("127.0.0.1:0").unwrap();
    deaf.connect("127.0.0.1:9").unwrap();
    let (transport, target) = (Transport::Udp, Target::Address(deaf.local_addr().unwrap()));
    let client = Client { transport, target, from: None, options: Options::default() };
    let mut client = client.open(setup, framing).unwrap();
    if let Err(refusal) = client.stamp(&WISH) {
        return absent(&refusal);
    }
    client.send(&[3; 3]).unwrap();
    let taken = take(&mut *client, 2);
    assert_eq!(messages(&taken, StampKind::Software), [0], "{taken:?}");
    // The kernel says it to so many in a second: it may have to be asked again.
    let told = (0..60_000).find_map(|_| {
        let received = client.receive(&mut [0; 9], Nanos(1_000_000)).err();
        received.or_else(|| client.send(&[3; 3]).err())
    });
    assert!(matches!(told, Some(PortError::Refused { .. })), "{told:?}");
}

#[test]
fn ports_without_the_kernels_sockets_and_waits_that_bring_no_stamps_refuse() {
    let mut memory = crate::MemoryPort::new(|_: &[u8], _: &mut crate::memory::Network| ());
    let told = memory.stamp(&WISH).unwrap_err();
    assert!(matches!(told, PortError::StampsNotHere { .. }), "{told}");
    assert_eq!((memory.stamp_counts(), memory.numbers()), (None, None));
    let Some(setup) = setup(Wait::IoUring) else { return };
    let (one, _other) = loopback_pair(Family::V4).unwrap();
    let mut ring = match crate::Udp::open(one, setup) {
        Ok(ring) => ring,
        Err(refusal) => return absent(&refusal),
    };
    let told = ring.stamp(&WISH).unwrap_err();
    assert!(told.to_string().contains("io-uring"), "{told}");
}
