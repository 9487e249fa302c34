//! Messages whose every instant is planted, and what must not be made of the others.

mod lost;
mod queued;
mod recorded;
mod streams;

use whylate_model::event::EventKind;
use whylate_model::{CpuId, Ticks};

use super::Passage;
use crate::planted::{DATAGRAM, Host, Message, complete, follower, found};

/// All that was begun is somewhere, and nothing is where it should not be.
fn closed(follower: &super::Follower) {
    let counts = follower.counts();
    assert_eq!(counts.messages, counts.accounted(), "{counts:?}");
}

#[test]
fn a_datagram_is_followed_from_the_call_that_sends_it_to_the_call_that_reads_it() {
    let (found, follower) = Host::new().message(&DATAGRAM).follow();
    assert_eq!(found, [DATAGRAM.passage()]);
    let counts = follower.counts();
    assert_eq!((counts.messages, counts.read, counts.open), (1, 1, 0));
    closed(&follower);
}

#[test]
fn a_reader_that_was_awake_was_not_woken() {
    let spinning = Message { asleep: false, ..DATAGRAM };
    let mut host = Host::new();
    // It slept before, and it sleeps after: neither has to do with the message.
    host.sleep(800, 1, 20).wake(1, 20, (900, 920)).message(&spinning);
    host.sleep(1_300, 1, 20).wake(1, 20, (1_400, 1_420));
    let (found, _) = host.follow();
    assert_eq!(found, [spinning.passage()]);
    assert_eq!((found[0].woken, found[0].running), (None, None));
}

#[test]
fn a_reader_that_spins_is_quicker_than_the_event_of_the_delivery_and_nothing_is_out_of_step() {
    let early =
        |at, skb| Message { at, skb, asleep: false, read: DATAGRAM.delivered - 5, ..DATAGRAM };
    let (first, second) = (early(1_000, 0x100), early(3_000, 0x200));
    let later = Message { at: 5_000, asleep: false, ..DATAGRAM };
    let mut host = Host::new();
    host.message(&first).message(&second).message(&later);
    let (found, follower) = host.follow();
    let expected = |of: &Message| Passage { delivered: None, ..of.passage() };
    assert_eq!(found, [expected(&first), expected(&second), later.passage()]);
    let counts = follower.counts();
    assert_eq!((counts.read, counts.read_unseen, counts.out_of_step), (3, 0, 0));
    closed(&follower);
}

#[test]
fn a_read_of_what_was_never_seen_to_come_is_not_the_next_messages() {
    let unseen = Message { at: 1_000, asleep: false, ..DATAGRAM };
    let next = Message { at: 5_000, asleep: false, skb: 0x300, ..DATAGRAM };
    let mut host = Host::new();
    host.read(&unseen, 64).message(&next);
    let (found, follower) = host.follow();
    assert_eq!(found, [next.passage()]);
    assert_eq!((follower.counts().read, follower.counts().read_unseen), (1, 1));
}

#[test]
fn a_cpu_taken_at_wake_up_and_a_busy_soft_interrupt_show_where_they_were_planted() {
    let hog = Message { running: 5_120, read: 5_150, ..DATAGRAM };
    let later = Message { at: 10_000, stack_cpu: 2, arrived: 3_050, delivered: 3_060, ..DATAGRAM };
    let busy = Message { woken: 3_070, running: 3_120, read: 3_150, skb: 0xff80, ..later };
    let (found, _) = Host::new().message(&hog).message(&busy).follow();
    assert_eq!(found, [hog.passage(), busy.passage()]);
    assert_eq!(found[0].running.unwrap().since(found[0].woken.unwrap()).0, 5_050);
    assert_eq!(found[1].arrived.unwrap().since(found[1].driver.unwrap()).0, 3_020);
}

#[test]
fn of_several_interfaces_on_the_way_the_last_arrival_counts_and_the_first_driver() {
    let m =
        Message { arrived: 400, delivered: 410, woken: 420, running: 430, read: 440, ..DATAGRAM };
    let mut host = Host::new();
    host.send(&m).deliver(&m).sent(&m).read(&m, 64);
    // A bridge between two virtual links: taken from the one, queued at the other.
    let (skb, length) = (m.skb, m.frame());
    let bridge = "bridge0".into();
    host.softirq(0, 10, (m.at + 90, m.at + 150));
    let kind = EventKind::NetReceive { skb, device: "veth0".into(), length: length - 14 };
    host.event(m.at + 100, 0, 10, kind);
    let kind = EventKind::NetReceive { skb, device: bridge, length: length - 14 };
    host.event(m.at + 110, 0, 10, kind);
    host.event(m.at + 120, 0, 10, EventKind::NetQueue { skb, device: bridge, length });
    host.event(m.at + 130, 0, 10, EventKind::NetXmit { skb, device: bridge, length });
    let (found, follower) = host.follow();
    assert_eq!(found, [Passage { devices: 3, ..m.passage() }]);
    assert_eq!(follower.counts().hops, 1);
    closed(&follower);
}

#[test]
fn messages_of_two_sockets_that_overlap_stay_apart() {
    let other = Message {
        at: 1_005,
        skb: 0xee00,
        bytes: 32,
        sender: 11,
        sending_socket: 0xa1,
        sender_cpu: 2,
        stack_cpu: 2,
        socket: 0xb1,
        asleep: false,
        read: 160,
        ..DATAGRAM
    };
    // Both are read by one thread, the second while nothing is left of the first.
    let (found, follower) = Host::new().message(&DATAGRAM).message(&other).follow();
    // It slept when either was delivered.
    let (woken, running) = (Some(Ticks(1_070)), Some(Ticks(1_120)));
    assert_eq!(found, [DATAGRAM.passage(), Passage { woken, running, ..other.passage() }]);
    closed(&follower);
}

#[test]
fn datagrams_of_one_socket_are_read_in_the_order_of_delivery_and_a_look_takes_none() {
    let first = Message { asleep: false, read: 500, ..DATAGRAM };
    let second = Message { at: 1_100, skb: 0xee00, read: 450, ..first };
    let mut host = Host::new();
    host.message(&first).message(&second);
    host.event(1_450, 1, 20, EventKind::SocketPeeked { socket: first.socket });
    let (found, follower) = host.follow();
    assert_eq!(found, [first.passage(), second.passage()]);
    closed(&follower);
}

#[test]
fn a_buffers_address_that_is_used_again_begins_another_message() {
    let mut host = Host::new();
    // Queued, never given to a driver, and freed without a word.
    let skb = DATAGRAM.skb;
    let kind = EventKind::NetQueue { skb, device: "lo".into(), length: 106 };
    host.event(500, 0, 99, kind).message(&DATAGRAM);
    let again = Message { at: 3_000, ..DATAGRAM };
    let (found, follower) = host.message(&again).follow();
    assert_eq!(found, [DATAGRAM.passage(), again.passage()]);
    assert_eq!(follower.counts().reused, 1);
    closed(&follower);
}

#[test]
fn frames_that_are_dropped_are_counted_by_the_kernels_reason() {
    let mut host = Host::new();
    for (at, skb, reason) in [
        (1_000, 1, "NO_SOCKET"),
        (2_000, 2, "SOCKET_RCVBUFF"),
        (3_000, 3, "NO_SOCKET"),
        (4_000, 4, ""),
    ] {
        let m = Message { at, skb, ..DATAGRAM };
        host.send(&m).event(at + 40, 0, 10, EventKind::SkbFreed { skb, reason: reason.into() });
    }
    // Delivered, and in the queue when the socket is closed.
    let m = Message { at: 5_000, skb: 5, ..DATAGRAM };
    let reason = "QUEUE_PURGE".to_owned();
    host.send(&m).deliver(&m).sent(&m).event(6_000, 1, 20, EventKind::SkbFreed { skb: 5, reason });
    // A frame that nobody knows of is none of ours.
    let reason = "NO_SOCKET".to_owned();
    host.event(7_000, 1, 20, EventKind::SkbFreed { skb: 6, reason });
    let (found, follower) = host.follow();
    assert_eq!(found, []);
    let dropped: Vec<_> = follower.counts().dropped.into_iter().collect();
    let expected =
        [("NO_SOCKET", 2), ("QUEUE_PURGE", 1), ("SOCKET_RCVBUFF", 1), ("no reason told", 1)];
    assert_eq!(dropped, expected.map(|(reason, count)| (reason.to_owned(), count)));
    closed(&follower);
}

#[test]
fn a_message_from_outside_begins_where_it_arrived() {
    let m = Message { stack_cpu: 2, ..DATAGRAM };
    let (found, follower) = Host::new().deliver(&m).read(&m, 64).follow();
    let expected = Passage {
        sending_socket: None,
        sender: None,
        sent: None,
        queued: None,
        driver: None,
        sender_cpu: None,
        ..m.passage()
    };
    assert_eq!(found, [expected]);
    assert_eq!(follower.counts().from_outside, 1);
    closed(&follower);
}

#[test]
fn a_message_that_leaves_ends_at_its_driver_and_is_not_the_next_one_at_its_address() {
    let skb = DATAGRAM.skb;
    let long = Message { bytes: 600, ..DATAGRAM };
    for told in [true, false] {
        let mut host = Host::new();
        host.send(&long).sent(&long);
        if told {
            host.event(1_500, 0, 0, EventKind::SkbConsumed { skb });
        }
        // Another one from outside has the same address by then.
        let incoming = Message { at: 2_000, stack_cpu: 2, ..DATAGRAM };
        let (found, follower) = host.deliver(&incoming).read(&incoming, 64).follow();
        assert_eq!(found.len(), 2);
        let left = found[0];
        assert_eq!((left.sent, left.driver), (Some(Ticks(1_000)), Some(Ticks(1_030))));
        assert_eq!((left.arrived, left.socket, left.sending_socket), (None, None, Some(0xa0)));
        assert_eq!((found[1].sender, found[1].arrived), (None, Some(Ticks(2_050))));
        let counts = follower.counts();
        assert_eq!((counts.left, counts.read, counts.from_outside), (1, 1, 1), "{told}");
        closed(&follower);
    }
}

#[test]
fn what_the_kernel_sends_in_a_soft_interrupt_is_not_the_current_threads() {
    let mut host = Host::new();
    host.message(&DATAGRAM);
    let (skb, device, length) = (0x77, "lo".into(), 66);
    // Within the soft interrupt that delivers, while the sender is current.
    let at = DATAGRAM.at + DATAGRAM.delivered;
    host.event(at, 0, 10, EventKind::NetQueue { skb, device, length });
    host.event(at, 0, 10, EventKind::NetXmit { skb, device, length });
    host.event(at + 40, 0, 10, EventKind::SkbConsumed { skb });
    let (found, _) = host.follow();
    assert_eq!(found[0], DATAGRAM.passage());
    assert_eq!((found[1].sender, found[1].sent, found[1].queued), (None, None, Some(Ticks(at))));
}

#[test]
fn events_of_several_cpus_are_put_in_order_however_they_come() {
    let mut host = Host::new();
    for number in 0..20 {
        let at = 1_000 + number * 400;
        let m = Message { at, skb: number, stack_cpu: (number % 3) as u32, ..DATAGRAM };
        host.message(&m);
    }
    let (expected, _) = host.follow();
    assert_eq!(expected.len(), 20);
    let mut follower = follower();
    let all = host.by_cpu();
    // CPU 2 is far behind the others, and pieces are of any size.
    for (cpu, events) in all.iter().enumerate() {
        for piece in events.chunks(3 + cpu) {
            follower.push(CpuId(cpu as u32), piece);
            let last = piece.last().unwrap().ticks;
            follower.complete(CpuId(cpu as u32), last);
        }
    }
    let early = found(&mut follower);
    assert!(follower.settled() <= all.iter().map(|of| of.last().unwrap().ticks).min().unwrap());
    complete(&mut follower, u64::MAX / 2);
    let mut all = early;
    all.extend(found(&mut follower));
    all.sort_by_key(Passage::begins);
    assert_eq!(all, expected);
    assert_eq!(follower.counts().late, 0);
}

#[test]
fn nothing_is_settled_that_may_still_be_given_out() {
    let slow = Message { read: 2_000, ..DATAGRAM };
    let mut host = Host::new();
    host.message(&slow);
    let mut follower = follower();
    for (cpu, events) in host.by_cpu().into_iter().enumerate() {
        follower.push(CpuId(cpu as u32), events);
    }
    complete(&mut follower, 2_500);
    assert_eq!((found(&mut follower), follower.settled()), (vec![], Ticks(1_000)));
    complete(&mut follower, 3_500);
    assert_eq!((found(&mut follower).len(), follower.settled()), (1, Ticks(3_500)));
    // What waits for longer than the patience holds up nobody, and is given out when it is read.
    let m = Message { at: 10_000, read: 500_000, ..DATAGRAM };
    host = Host::new();
    host.message(&m);
    for (cpu, events) in host.by_cpu().into_iter().enumerate() {
        follower.push(CpuId(cpu as u32), events);
    }
    complete(&mut follower, 400_000);
    assert_eq!(follower.settled(), Ticks(400_000));
    complete(&mut follower, 600_000);
    assert_eq!(found(&mut follower), [m.passage()]);
    closed(&follower);
}
