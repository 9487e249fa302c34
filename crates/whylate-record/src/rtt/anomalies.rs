//! Odd messages of a run in a file that other tools open, each with what is odd about it in words.

use std::collections::BTreeMap;

use whylate_model::flow::Kept;
use whylate_model::pcapng::{Carrier, Direction, PACKETS_FILE, Packet, PacketFile};
use whylate_model::run::{ClockFacts, Run};
use whylate_model::{Nanos, Ticks};
use whylate_net::OpenOutcome;
use whylate_net::open_loop::anomalies::{Anomaly, Odd};
use whylate_port::PortFacts;

use crate::storage::Storage;

/// The file's own comment.
const COMMENT: &str = "The first odd messages of each kind in a run of whylate. The headers of IP, \
     UDP and TCP are made up from the addresses of both ends: only what follows them was seen. Bytes \
     of a lost request are made again from its number.";

/// The odd messages of one flow.
pub(super) struct Odds {
    flow: usize,
    carrier: Carrier,
    timeout: Nanos,
    messages: Vec<Anomaly>,
    left_out: u64,
}

impl Odds {
    /// Those of this flow; none where there were none.
    pub(super) fn of(outcome: &OpenOutcome, flow: usize, timeout: Nanos) -> Option<Self> {
        let messages: Vec<Anomaly> = outcome.anomalies.in_order().into_iter().cloned().collect();
        let carrier = carrier(&outcome.port);
        let left_out = outcome.anomalies.left_out;
        (!messages.is_empty()).then_some(Self { flow, carrier, timeout, messages, left_out })
    }
}

/// Puts odd messages into the run's directory, and the file's name into their flows.
pub(super) fn keep(odd: &[Odds], run: &mut Run, storage: &mut Storage) {
    let mut file = PacketFile::new(COMMENT);
    let mut kept = Vec::new();
    for odds in odd {
        let Some(flow) = run.flows.get(odds.flow) else { continue };
        let before = file.packets();
        let interface = file.interface(&flow.name, odds.carrier);
        add(odds, interface, &run.clock, &mut file);
        kept.push((odds, file.packets() - before));
    }
    if file.packets() == 0 || !storage.packet_file(&file) {
        return;
    }
    for (odds, messages) in kept {
        if let Some(flow) = run.flows.get_mut(odds.flow).filter(|_| messages > 0) {
            let (file, left_out) = (PACKETS_FILE.to_owned(), odds.left_out);
            flow.anomalies = Some(Kept { file, messages, left_out });
        }
    }
}

fn add(odds: &Odds, interface: usize, clock: &ClockFacts, file: &mut PacketFile) {
    let mut replies: BTreeMap<u64, u32> = BTreeMap::new();
    for message in &odds.messages {
        // Without an anchor to wall time there is no place for it.
        let Some(at_ns) = clock.realtime_ns(message.at) else { continue };
        let direction = match message.odd {
            Odd::Lost => Direction::Outbound,
            _ => Direction::Inbound,
        };
        let comment = words(message, odds.timeout, clock, &mut replies);
        file.packet(
            interface,
            &Packet {
                at_ns,
                direction,
                message: message.message(),
                length: message.length,
                comment: &comment,
            },
        );
    }
}

/// What is odd about a message. `replies` counts those to each request that were told before.
fn words(
    message: &Anomaly,
    timeout: Nanos,
    clock: &ClockFacts,
    replies: &mut BTreeMap<u64, u32>,
) -> String {
    let since = |from: Ticks| message.at.since(from).to_nanos(clock.hz);
    let request = match message.number {
        Some(number) => format!("request {number}"),
        None => "no request".to_owned(),
    };
    let after_sending = match message.sent {
        Some(sent) => format!(", {} after it left", since(sent)),
        None => String::new(),
    };
    match message.odd {
        Odd::Duplicate => {
            let count = replies.entry(message.number.unwrap_or(u64::MAX)).or_insert(1);
            *count += 1;
            let ordinal = match count {
                2 => "second reply".to_owned(),
                3 => "third reply".to_owned(),
                count => format!("reply number {count}"),
            };
            match message.first {
                Some(first) => format!("{request}: {ordinal}, {} after the first", since(first)),
                None => format!("{request}: {ordinal}{after_sending}"),
            }
        }
        Odd::Late => {
            format!("{request}: reply{after_sending}; it had been given up after {timeout}")
        }
        Odd::Reordered => match message.after {
            Some(after) => {
                format!("{request}: reply after the one to request {after}{after_sending}")
            }
            None => format!("{request}: reply out of order{after_sending}"),
        },
        Odd::Foreign => {
            format!("foreign: {} bytes that are no message of this run", message.length)
        }
        Odd::Lost => {
            format!("{request}: no reply within {timeout}; this is the request as it left")
        }
    }
}

fn carrier(port: &PortFacts) -> Carrier {
    let ends = port.socket.as_ref().and_then(|socket| {
        let client = socket.local.parse().ok()?;
        let server = socket.remote.as_ref()?.parse().ok()?;
        Some((client, server))
    });
    match ends {
        Some((client, server)) if port.backend.starts_with("udp") || port.frames.is_some() => {
            Carrier::Udp { client, server }
        }
        Some((client, server)) if port.backend.starts_with("tcp") => {
            Carrier::Tcp { client, server }
        }
        _ => Carrier::Local,
    }
}
