//! What a server did, as it is told and stored.

use whylate_clock::calibrate::Calibration;
use whylate_model::reflect::{
    REFLECTED_VERSION, Reflected, ReflectedClient, ReflectedConnections, ReflectedEnd, Residence,
    ResidencePercentile,
};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Nanos};
use whylate_port::{BusyPolling, Connections};
use whylate_stats::histogram::Histogram;
use whylate_stats::quantile;

use super::Served;
use super::accounts::Client;
use crate::reflect::ReflectEnd;

/// What the server itself does not know.
#[derive(Debug, Clone)]
pub struct Circumstances<'a> {
    /// The protocol's name.
    pub protocol: &'a str,
    /// The CPU that it was pinned to.
    pub cpu: Option<CpuId>,
    /// When it began to listen, nanoseconds since 1970.
    pub since_ns: u64,
    /// The counter's frequency over the whole time.
    pub clock: &'a Calibration,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
}

impl Served {
    /// What is told of it, times in nanoseconds.
    #[must_use]
    pub fn told(&self, of: Circumstances<'_>) -> Reflected {
        let ns = |ticks: u64| Nanos((ticks as f64 * 1e9 / of.clock.hz.0).round() as u64);
        let mut clients: Vec<ReflectedClient> =
            self.accounts.clients().iter().map(|client| told_client(client, &ns)).collect();
        clients.sort_by_key(|client| std::cmp::Reverse((client.answered, client.warm_ups)));
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
            lasted: of.clock.span,
            ended: match self.why {
                ReflectEnd::ToldTo => ReflectedEnd::ClientFinished,
                ReflectEnd::Idle => ReflectedEnd::Idle,
                ReflectEnd::Stopped | ReflectEnd::PeerGone => ReflectedEnd::Stopped,
            },
            answered: self.answered,
            warm_ups: self.warm_ups,
            unasked: self.unasked,
            foreign: self.foreign,
            unsent: self.unsent,
            first_unsent: self.first_unsent.clone(),
            connections: told_connections(self.connections),
            residence: self.residence(&of, &ns),
            clients,
            clients_replaced: self.accounts.replaced,
            without_account: self.accounts.without,
            warnings: of.warnings,
        }
    }

    fn residence(&self, of: &Circumstances<'_>, ns: &dyn Fn(u64) -> Nanos) -> Option<Residence> {
        let residence: &Histogram = &self.residence;
        let (min, max) = (ns(residence.min()?), ns(residence.max()?));
        let samples = residence.len();
        let percentile = |percent: f64| {
            let estimate = quantile::estimate(residence, percent, samples as f64);
            ResidencePercentile {
                percent,
                value: estimate.value.map(ns),
                low: estimate.low.map(ns),
                high: estimate.high.map(ns),
            }
        };
        Some(Residence {
            samples,
            resolution_ns: self.port.stamps.resolution_ns,
            frequency_bound_ppm: of.clock.bound_ppm,
            min,
            percentiles: quantile::PERCENTS.map(percentile).to_vec(),
            max,
        })
    }
}

fn told_client(client: &Client, ns: &dyn Fn(u64) -> Nanos) -> ReflectedClient {
    ReflectedClient {
        cookie: client.cookie.map(|cookie| format!("{:016x}", cookie.0)),
        from: client.peer.as_ref().map(ToString::to_string),
        answered: client.answered,
        warm_ups: client.warm_ups,
        finished: client.finished,
        median: client.residence.value_at(50.0).map(ns),
        max: client.residence.max().map(ns),
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
