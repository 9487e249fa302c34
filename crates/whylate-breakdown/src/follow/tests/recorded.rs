//! Three exchanges over lo, as a 6.18 kernel of x86-64 with two CPUs recorded them.
//!
//! A line is `TICKS CPU THREAD EVENT FIELD=VALUE...`. The client is thread 101, the server 102, all
//! others 1; addresses are made short. They were recorded with a filter by thread, so that the switch
//! from an idle CPU to the server is missing.

use std::collections::HashMap;

use whylate_model::event::{EventKind, Protocol, Softirq};
use whylate_model::{CpuId, Pid, Ticks};

use super::closed;
use crate::follow::Passage;
use crate::planted::{Host, task};

fn parse(text: &str, protocol: Protocol) -> Host {
    let mut host = Host::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap();
        let (at, cpu, pid) = (word().parse().unwrap(), word().parse().unwrap(), word());
        let name = word();
        let fields: HashMap<&str, &str> = words.filter_map(|word| word.split_once('=')).collect();
        let address = |name| u64::from_str_radix(&fields[name][2..], 16).unwrap();
        let number = |name| fields[name].parse::<i32>().unwrap();
        let (device, vector) = ("lo".into(), Softirq::NetRx);
        let length = || number("length") as u32;
        let kind = match name {
            "send_call" => EventKind::SendCall,
            "tcp_send" => EventKind::TcpSend { length: 64 },
            "queue" => EventKind::NetQueue { skb: address("skb"), device, length: length() },
            "xmit" => EventKind::NetXmit { skb: address("skb"), device, length: length() },
            "receive" => EventKind::NetReceive { skb: address("skb"), device, length: length() },
            "segment" => {
                let (skb, socket) = (Some(address("skb")), Some(address("socket")));
                EventKind::TcpSegment { skb, socket, length: length() }
            }
            "ready" => EventKind::SocketReady { socket: address("socket"), protocol },
            "sent" | "read" => {
                let (socket, length) = (address("socket"), number("length"));
                if name == "sent" {
                    EventKind::SocketSent { socket, protocol, length }
                } else {
                    EventKind::SocketRead { socket, protocol, length }
                }
            }
            "copied" => EventKind::SkbCopied { skb: address("skb"), length: number("length") },
            "consumed" => EventKind::SkbConsumed { skb: address("skb") },
            "softirq_in" => EventKind::SoftirqEntry { vector },
            "softirq_out" => EventKind::SoftirqExit { vector },
            "switch" => EventKind::Switch {
                from: task(number("from")),
                from_runnable: fields["blocked"] == "0",
                to: task(number("to")),
            },
            "woken" => EventKind::Wakeup { task: task(number("thread")), target: CpuId(cpu) },
            other => panic!("no event is called {other}"),
        };
        host.event(at, cpu, pid.parse().unwrap(), kind);
    }
    host
}

/// What of a passage is known, in its order.
fn instants(passage: &Passage) -> Vec<u64> {
    let all = [
        passage.sent,
        passage.queued,
        passage.driver,
        passage.arrived,
        passage.delivered,
        passage.woken,
        passage.running,
        passage.read,
    ];
    all.into_iter().flatten().map(|at| at.0).collect()
}

fn exchanges(text: &str, protocol: Protocol) -> Vec<Passage> {
    let (found, follower) = parse(text, protocol).follow();
    closed(&follower);
    assert_eq!((follower.counts().read, follower.counts().read_unseen), (6, 0));
    let read: Vec<Passage> = found.into_iter().filter(|passage| passage.bytes > 0).collect();
    let (client, server) = (Some(Pid(101)), Some(Pid(102)));
    for (number, passage) in read.iter().enumerate() {
        let (sender, reader) = if number % 2 == 0 { (client, server) } else { (server, client) };
        assert_eq!((passage.sender, passage.reader, passage.bytes), (sender, reader, 64));
        assert_eq!((passage.protocol, passage.devices), (Some(protocol), 1));
        assert!(passage.sending_socket.is_some() && passage.socket != passage.sending_socket);
        let instants = instants(passage);
        assert!(instants.is_sorted());
        // All but the server's switch, which was not recorded.
        assert_eq!(instants.len(), if number % 2 == 0 { 7 } else { 8 });
    }
    read
}

#[test]
fn recorded_datagrams_over_lo_are_followed_both_ways() {
    let read = exchanges(include_str!("recorded-udp.txt"), Protocol::Udp);
    assert_eq!((read[0].sent, read[0].delivered), (Some(Ticks(1_000)), Some(Ticks(59_086))));
    assert_eq!((read[0].woken, read[0].read), (Some(Ticks(304_420)), Some(Ticks(358_928))));
    assert_eq!((read[1].sent, read[1].woken), (Some(Ticks(562_656)), Some(Ticks(661_082))));
    assert_eq!((read[1].running, read[1].read), (Some(Ticks(668_380)), Some(Ticks(675_586))));
}

#[test]
fn a_recorded_stream_over_lo_is_followed_both_ways() {
    let read = exchanges(include_str!("recorded-tcp.txt"), Protocol::Tcp);
    assert_eq!((read[0].sent, read[0].delivered), (Some(Ticks(1_000)), Some(Ticks(64_030))));
    assert_eq!((read[1].running, read[1].read), (Some(Ticks(407_628)), Some(Ticks(416_572))));
}
