//! What a server did, as it is told and stored.

use std::cmp::Reverse;

use whylate_model::flow::{Queues, Socket};
use whylate_model::reflect::{
    OneWay, REFLECTED_VERSION, Reflected, ReflectedClient, ReflectedConnections, ReflectedEnd,
    Residence, ResidencePercentile,
};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Hertz, Nanos};
use whylate_port::{BusyPolling, Connections, SocketFacts};
use whylate_stats::histogram::Histogram;
use whylate_stats::quantile;

use super::Served;
use super::accounts::Client;
use super::frames::{not_to_be_had, told_frames};
use super::sink::Sink;
use crate::reflect::ReflectEnd;

/// What warnings call a server.
const SERVER: &str = "the reflector";
/// Clients that are told of while a server goes on.
const MOST_SO_FAR: usize = 16;

/// What the server itself does not know.
#[derive(Debug, Clone)]
pub struct Circumstances<'a> {
    /// The protocol's name.
    pub protocol: &'a str,
    /// The CPU that it was pinned to.
    pub cpu: Option<CpuId>,
    /// When it began to listen, nanoseconds since 1970.
    pub since_ns: u64,
    /// The counter's frequency.
    pub hz: Hertz,
    /// How far that may be off, in parts per million.
    pub bound_ppm: f64,
    /// How long it listened.
    pub lasted: Nanos,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
}

impl Served {
    /// What is told of it, times in nanoseconds.
    #[must_use]
    pub fn told(&self, of: Circumstances<'_>) -> Reflected {
        let hz = of.hz;
        let ns = |ticks: u64| Nanos((ticks as f64 * 1e9 / hz.0).round() as u64);
        let mut clients: Vec<ReflectedClient> =
            self.accounts.clients().iter().map(|client| told_client(client, &ns, hz)).collect();
        clients
            .sort_by_key(|client| Reverse((client.answered, client.received(), client.warm_ups)));
        let residence = self.residence(&of, &ns);
        let ended = match self.why {
            ReflectEnd::ToldTo => ReflectedEnd::ClientFinished,
            ReflectEnd::Idle => ReflectedEnd::Idle,
            ReflectEnd::LinkLost => ReflectedEnd::Lost,
            ReflectEnd::Stopped | ReflectEnd::PeerGone => ReflectedEnd::Stopped,
        };
        Reflected { ended, residence, clients, ..self.counts(of) }
    }

    /// What can be told of it at little cost while it serves: counts, and the first clients' own. No
    /// percentile is worked out: that takes as long as some tens of requests.
    #[must_use]
    pub fn so_far(&self, of: Circumstances<'_>) -> Reflected {
        let clients =
            self.accounts.clients().iter().take(MOST_SO_FAR).map(counted_client).collect();
        Reflected { clients, ..self.counts(of) }
    }

    fn counts(&self, of: Circumstances<'_>) -> Reflected {
        let mut warnings = of.warnings;
        let other = self.other_version;
        warnings
            .extend(other.map(|(version, messages)| Warning::OtherVersion { version, messages }));
        let frames = self.port.frames.as_ref().map(|of| told_frames(of, self.frames.as_ref()));
        warnings.extend(frames.iter().flat_map(|of| not_to_be_had(SERVER, of)));
        let part = SERVER.to_owned();
        warnings.extend(self.lost.clone().map(|reason| Warning::PartEndedEarly { part, reason }));
        let unstamped = self.connections.unstamped;
        warnings.extend((unstamped > 0).then(|| Warning::PartLeftOut {
            part: format!("the kernel's stamps of {unstamped} connections of {SERVER}"),
            reason:
                "the kernel refuses them there: their messages were answered without".to_owned(),
        }));
        let socket = self.port.socket.as_ref();
        Reflected {
            format_version: REFLECTED_VERSION,
            protocol: of.protocol.to_owned(),
            backend: self.port.backend.to_owned(),
            listening: socket.map(|socket| socket.local.clone()).unwrap_or_default(),
            wait: self.port.wait.to_string(),
            busy_polling: told_polling(self.busy_polling),
            cpu: of.cpu,
            since_ns: of.since_ns,
            socket: socket.map(|socket| told_socket(socket, of.cpu)),
            frames,
            program: None,
            lasted: of.lasted,
            ended: ReflectedEnd::GoingOn,
            answered: self.answered,
            warm_ups: self.warm_ups,
            one_way: self.one_way,
            unasked: self.unasked,
            foreign: self.foreign,
            other_version: other.map_or(0, |(_, messages)| messages),
            unsent: self.unsent,
            first_unsent: self.first_unsent.clone(),
            connections: told_connections(self.connections),
            residence: None,
            clients: Vec::new(),
            clients_replaced: self.accounts.replaced,
            without_account: self.accounts.without,
            warnings,
        }
    }

    fn residence(&self, of: &Circumstances<'_>, ns: &dyn Fn(u64) -> Nanos) -> Option<Residence> {
        let residence: &Histogram = &self.residence;
        let (min, max) = (ns(residence.min()?), ns(residence.max()?));
        let samples = residence.len();
        Some(Residence {
            samples,
            resolution_ns: self.port.stamps.resolution_ns,
            frequency_bound_ppm: of.bound_ppm,
            min,
            percentiles: percentiles(residence, ns),
            max,
        })
    }
}

/// Without intervals: what follows each other depends on each other, and a server that keeps no
/// intervals of time cannot tell by how much.
fn percentiles(values: &Histogram, ns: &dyn Fn(u64) -> Nanos) -> Vec<ResidencePercentile> {
    let percentile = |percent: f64| {
        let estimate = quantile::estimate(values, percent, values.len() as f64);
        ResidencePercentile { percent, value: estimate.value.map(ns), low: estimate.low.map(ns) }
    };
    quantile::PERCENTS.map(percentile).to_vec()
}

fn told_sink(sink: &Sink, ns: &dyn Fn(u64) -> Nanos, rate: Hertz) -> OneWay {
    let counted = sink.counted();
    OneWay {
        received: counted.received,
        duplicates: counted.duplicates,
        reordered: counted.reordered,
        receptions: counted.receptions(rate),
        gaps: percentiles(sink.gaps(), ns),
    }
}

fn told_client(client: &Client, ns: &dyn Fn(u64) -> Nanos, rate: Hertz) -> ReflectedClient {
    ReflectedClient {
        one_way: client.sink.as_deref().map(|sink| told_sink(sink, ns, rate)),
        median: client.residence.value_at(50.0).map(ns),
        max: client.residence.max().map(ns),
        ..counted_client(client)
    }
}

fn counted_client(client: &Client) -> ReflectedClient {
    ReflectedClient {
        cookie: client.cookie.map(|cookie| format!("{:016x}", cookie.0)),
        from: client.peer.as_ref().map(ToString::to_string),
        answered: client.answered,
        warm_ups: client.warm_ups,
        one_way: None,
        finished: client.finished,
        median: None,
        max: None,
    }
}

/// What the kernel gave a socket of a thread on this CPU.
#[must_use]
pub fn told_socket(facts: &SocketFacts, cpu: Option<CpuId>) -> Socket {
    let queues = facts.queues.as_ref().map(|of| Queues {
        transmit: of.transmit.len() as u32,
        receive: of.receive,
        sent_by: cpu.map(|cpu| of.sent_by(cpu)),
    });
    Socket {
        interface: facts.interface.clone(),
        mtu: facts.mtu,
        receive_buffer: facts.receive_buffer,
        send_buffer: facts.send_buffer,
        whole_packets: facts.whole_packets,
        traffic_class: facts.traffic_class,
        hops: facts.hops,
        queues,
        napi: facts.incoming.napi,
        incoming_cpu: facts.incoming.cpu,
    }
}

fn told_connections(counts: Connections) -> Option<ReflectedConnections> {
    let Connections { accepted, turned_away, broken, cut, stuck, .. } = counts;
    let any = accepted + turned_away > 0;
    any.then_some(ReflectedConnections { accepted, turned_away, broken, cut, stuck })
}

fn told_polling(outcome: BusyPolling) -> Option<String> {
    match outcome {
        BusyPolling::NotAsked => None,
        BusyPolling::NoQueue => {
            Some("no message came through a queue that can be polled: it was spinning".to_owned())
        }
        BusyPolling::Queue(id) => Some(format!("of the receiving queue {id} (NAPI id)")),
    }
}
