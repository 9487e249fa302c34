//! What a reflector did.

use serde::{Deserialize, Serialize};

use crate::units::{CpuId, Nanos};
use crate::warning::Warning;

/// Version of the format of this account.
pub const REFLECTED_VERSION: u32 = 1;

/// What a reflector did from its start to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reflected {
    /// [`REFLECTED_VERSION`] when it was made.
    pub format_version: u32,
    /// The protocol it spoke.
    pub protocol: String,
    /// The port's backend: `udp over ipv4`.
    pub backend: String,
    /// Where it listened.
    pub listening: String,
    /// How it waited for messages.
    pub wait: String,
    /// Whether busy-polling did anything; none where it was not asked for.
    pub busy_polling: Option<String>,
    /// The CPU that it was pinned to.
    pub cpu: Option<CpuId>,
    /// When it began to listen, nanoseconds since 1970.
    pub since_ns: u64,
    /// How long it listened.
    pub lasted: Nanos,
    /// Why it ended.
    pub ended: ReflectedEnd,
    /// Measured requests answered.
    pub answered: u64,
    /// Requests of warm-ups, and greetings, answered.
    pub warm_ups: u64,
    /// Messages of the protocol that ask for no answer.
    pub unasked: u64,
    /// Messages that were not well-formed, and not answered.
    pub foreign: u64,
    /// Answers that could not be sent.
    pub unsent: u64,
    /// Why the first of them could not.
    pub first_unsent: Option<String>,
    /// Connections; none where the port has no such thing.
    pub connections: Option<ReflectedConnections>,
    /// Residence of measured requests, from the reading of the counter after the receiving system
    /// call to the one before the sending one; none where none was answered.
    pub residence: Option<Residence>,
    /// Clients, those with the most requests first.
    pub clients: Vec<ReflectedClient>,
    /// Clients that are not listed, because others took their place.
    pub clients_replaced: u64,
    /// Requests answered that are in nobody's account, for want of a place.
    pub without_account: u64,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
}

/// Why a reflector ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReflectedEnd {
    /// It was stopped.
    Stopped,
    /// Nothing came for the idle limit.
    Idle,
    /// A client had finished, and it was to end then.
    ClientFinished,
}

/// What became of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReflectedConnections {
    /// Taken.
    pub accepted: u64,
    /// Turned away, because as many were open as there is room for.
    pub turned_away: u64,
    /// Closed because what came was no message.
    pub broken: u64,
    /// Closed by the client in the middle of a message.
    pub cut: u64,
    /// Closed because the client did not read its answers.
    pub stuck: u64,
}

/// How long requests stayed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Residence {
    /// Requests.
    pub samples: u64,
    /// Smallest step that the counter shows.
    pub resolution_ns: f64,
    /// Bound of the error of its frequency, in parts per million.
    pub frequency_bound_ppm: f64,
    /// Smallest.
    pub min: Nanos,
    /// In the order 50 90 99 99.9 99.99 99.999 99.9999.
    pub percentiles: Vec<ResidencePercentile>,
    /// Largest.
    pub max: Nanos,
}

/// One percentile of the residence; without a value where there are too few samples for it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResidencePercentile {
    /// Which, in percent.
    pub percent: f64,
    /// The value.
    pub value: Option<Nanos>,
    /// Lower end of its 95 % interval, for independent samples.
    pub low: Option<Nanos>,
    /// Upper end.
    pub high: Option<Nanos>,
}

/// What one client got.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReflectedClient {
    /// Its cookie in hexadecimal digits, where the protocol has one.
    pub cookie: Option<String>,
    /// Where it was heard from first.
    pub from: Option<String>,
    /// Measured requests answered.
    pub answered: u64,
    /// Requests of its warm-up, and greetings, answered.
    pub warm_ups: u64,
    /// It said that it had finished.
    pub finished: bool,
    /// Median of their residence.
    pub median: Option<Nanos>,
    /// Largest residence.
    pub max: Option<Nanos>,
}
