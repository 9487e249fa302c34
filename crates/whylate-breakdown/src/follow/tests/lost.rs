//! Lost events, too many of them, and anything at all: nothing is invented.

use std::collections::BTreeMap;

use proptest::prelude::*;
use whylate_model::event::Event;
use whylate_model::{CpuId, Pid, Ticks};

use super::closed;
use crate::follow::{Follower, Limits, Passage};
use crate::planted::{CPUS, DATAGRAM, Host, Message, PATIENCE, complete, follower, found};

/// Pushes all events but some of one CPU, which are told to be lost.
fn follow_with_a_loss(host: &Host, cpu: u32, lost: std::ops::Range<usize>) -> Follower {
    let mut follower = follower();
    for (number, events) in host.by_cpu().into_iter().enumerate() {
        let of = CpuId(number as u32);
        if number as u32 == cpu {
            let to = lost.end.min(events.len());
            follower.push(of, &events[..lost.start.min(to)]);
            follower.lost(of);
            follower.push(of, &events[to..]);
        } else {
            follower.push(of, events);
        }
    }
    complete(&mut follower, 1 << 40);
    follower
}

fn exchange(number: u64) -> (Message, Message) {
    let there = Message { at: 1_000 + 1_000 * number, skb: 0x1000 + 2 * number, ..DATAGRAM };
    (there, there.back(there.at + 400, 0x1001 + 2 * number))
}

#[test]
fn a_loss_gives_up_what_is_open_and_sockets_are_trusted_again_when_their_bottom_is_known() {
    let mut host = Host::new();
    for number in 0..40 {
        let (there, back) = exchange(number);
        host.message(&there).message(&back);
    }
    let whole = host.by_cpu();
    // The tenth exchange loses its reading on CPU 1.
    let from = whole[1].partition_point(|event| event.ticks < Ticks(10_100));
    let to = whole[1].partition_point(|event| event.ticks < Ticks(10_405));
    let mut follower = follow_with_a_loss(&host, 1, from..to);
    let found = found(&mut follower);
    let counts = follower.counts();
    assert_eq!((counts.losses, counts.found_again), (1, 2));
    // Nine before it are whole, and those after the eighth that showed the bottom.
    assert!(found.len() >= 2 * (9 + 40 - 10 - 9), "{} {counts:?}", found.len());
    let planted = (0..40).flat_map(|number| [exchange(number).0, exchange(number).1]);
    let planted: Vec<Passage> = planted.map(|m| m.passage()).collect();
    assert!(found.iter().all(|passage| planted.contains(passage)));
    closed(&follower);
}

#[test]
fn what_a_cpu_has_no_room_for_is_a_loss_and_is_counted() {
    let mut host = Host::new();
    for number in 0..100 {
        host.message(&exchange(number).0);
    }
    let cpus = (0..CPUS).map(CpuId).collect();
    let mut follower = Follower::new(Limits { events: 50, ..Limits::usual(cpus, PATIENCE) });
    for (cpu, events) in host.by_cpu().into_iter().enumerate() {
        follower.push(CpuId(cpu as u32), events);
    }
    complete(&mut follower, 1 << 40);
    let counts = follower.counts();
    assert!(counts.no_room > 0 && counts.losses > 0, "{counts:?}");
    assert!(found(&mut follower).len() <= 8);
    closed(&follower);
}

#[test]
fn events_of_a_cpu_that_was_not_named_and_those_that_come_too_late_are_counted() {
    let mut follower = follower();
    let mut host = Host::new();
    host.message(&DATAGRAM);
    let events: Vec<Event> = host.by_cpu().concat();
    follower.push(CpuId(77), &events);
    assert_eq!((follower.counts().elsewhere, follower.counts().events), (events.len() as u64, 0));
    follower.push(CpuId(2), Host::new().sleep(5_000, 2, 7).events.as_slice());
    complete(&mut follower, 9_000);
    follower.push(CpuId(0), &host.by_cpu()[0]);
    complete(&mut follower, 9_500);
    assert_eq!(follower.counts().late, host.by_cpu()[0].len() as u64);
    assert_eq!(found(&mut follower), []);
}

/// A stream of exchanges of one client with a server of its own.
fn any_exchanges(number: u32) -> impl Strategy<Value = Vec<Message>> {
    let delays = proptest::array::uniform7(1_u64..200);
    let one = (delays, 0..CPUS, any::<bool>(), 1_u32..1_400);
    proptest::collection::vec(one, 1..25).prop_map(move |all| {
        let mut at = 1_000 + u64::from(number);
        let mut messages = Vec::new();
        for (index, (delays, stack_cpu, asleep, bytes)) in all.into_iter().enumerate() {
            // Each instant lies at least three ticks behind the one before.
            let mut sum = 0;
            let after: Vec<u64> = delays
                .iter()
                .map(|delay| {
                    sum += 3 + 3 * delay;
                    sum
                })
                .collect();
            let skb = u64::from(number) << 32 | (index as u64 % 5 + 1);
            let message = Message {
                at,
                skb,
                bytes,
                sender: 100 + number as i32,
                sending_socket: 0xa00 + u64::from(number),
                sender_cpu: number % CPUS,
                reader: 200 + number as i32,
                socket: 0xb00 + u64::from(number),
                reader_cpu: (number + 1) % CPUS,
                stack_cpu,
                asleep,
                queued: after[0],
                driver: after[1],
                arrived: after[2],
                delivered: after[3] + 6,
                woken: after[4] + 12,
                running: after[5] + 12,
                read: after[6] + 12,
                ..DATAGRAM
            };
            messages.push(message);
            at += sum + 60;
        }
        messages
    })
}

/// Whether something of one message falls into the other one's soft interrupt, on its CPU: no thread
/// calls and no thread is switched there.
fn disturbs(one: &Message, other: &Message) -> bool {
    let softirq = |m: &Message| m.at + m.arrived - 1..=m.at + m.delivered + 1;
    let within = softirq(other);
    let at = |cpu: u32, after: u64| cpu == other.stack_cpu && within.contains(&(one.at + after));
    let own = softirq(one);
    let both = one.stack_cpu == other.stack_cpu
        && own.start() <= within.end()
        && within.start() <= own.end();
    both || at(one.sender_cpu, 0)
        || at(one.sender_cpu, one.queued)
        || at(one.sender_cpu, one.driver)
        || at(one.sender_cpu, one.delivered + 5)
        || at(one.reader_cpu, one.arrived - 2)
        || at(one.reader_cpu, one.running)
        || at(one.reader_cpu, one.read)
}

/// Three clients at once; a message that would disturb another one's soft interrupt is left out.
fn any_host() -> impl Strategy<Value = Vec<Message>> {
    (any_exchanges(0), any_exchanges(1), any_exchanges(2)).prop_map(|(a, b, c)| {
        let mut kept: Vec<Message> = Vec::new();
        for message in a.into_iter().chain(b).chain(c) {
            let apart = |other: &Message| !disturbs(&message, other) && !disturbs(other, &message);
            if kept.iter().all(apart) {
                kept.push(message);
            }
        }
        kept
    })
}

fn planted(messages: &[Message]) -> (Host, BTreeMap<(Pid, Ticks), Passage>) {
    let mut host = Host::new();
    for message in messages {
        host.message(message);
    }
    let by_start = |m: &Message| ((Pid(m.sender), Ticks(m.at)), m.passage());
    (host, messages.iter().map(by_start).collect())
}

proptest! {
    #[test]
    fn every_planted_instant_is_found_and_none_else(messages in any_host()) {
        let (host, mut planted) = planted(&messages);
        let (found, follower) = host.follow();
        for passage in found {
            let key = (passage.sender.unwrap(), passage.sent.unwrap());
            prop_assert_eq!(Some(passage), planted.remove(&key));
        }
        prop_assert!(planted.is_empty(), "not found: {planted:?}");
        closed(&follower);
    }

    #[test]
    fn of_any_stretch_that_is_lost_nothing_is_invented(
        messages in any_host(),
        cpu in 0..CPUS,
        from in 0..300_usize,
        count in 1..60_usize,
    ) {
        let (host, mut planted) = planted(&messages);
        let mut follower = follow_with_a_loss(&host, cpu, from..from + count);
        for passage in found(&mut follower) {
            // Of what began before the loss ended only the rest may be known.
            let instants = [
                passage.sent, passage.queued, passage.driver, passage.arrived, passage.delivered,
                passage.woken, passage.running, passage.read,
            ];
            let known: Vec<Ticks> = instants.into_iter().flatten().collect();
            prop_assert!(known.is_sorted(), "{passage:?}");
            let Some(sent) = passage.sent else { continue };
            let whole = planted.remove(&(passage.sender.unwrap(), sent));
            prop_assert!(whole.is_some(), "invented: {passage:?}");
            if passage.read.is_some() {
                prop_assert_eq!(Some(passage), whole);
            }
        }
        closed(&follower);
    }
}
