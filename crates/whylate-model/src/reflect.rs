//! What a reflector did.

use serde::{Deserialize, Serialize};

use crate::flow::{Receptions, Socket};
use crate::frames::{Frames, Program};
use crate::units::{CpuId, Nanos};
use crate::warning::Warning;

/// Version of the format of this account.
pub const REFLECTED_VERSION: u32 = 2;

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
    /// What the kernel gave its socket; none where it had several, or a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<Socket>,
    /// Of a port of whole frames: its rings, and what it saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<Frames>,
    /// The program that answered inside the kernel; then there is no residence, and no client is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    /// The CPU that it was pinned to.
    pub cpu: Option<CpuId>,
    /// When it began to listen, nanoseconds since 1970.
    pub since_ns: u64,
    /// How long it listened.
    #[serde(rename = "lasted_ns")]
    pub lasted: Nanos,
    /// Why it ended.
    pub ended: ReflectedEnd,
    /// Measured requests answered.
    pub answered: u64,
    /// Requests of warm-ups, and greetings, answered.
    pub warm_ups: u64,
    /// Measured messages that ask for no answer, and are counted by client.
    #[serde(default)]
    pub one_way: u64,
    /// Messages of the protocol that ask for no answer.
    pub unasked: u64,
    /// Messages that were not well-formed, and not answered.
    pub foreign: u64,
    /// Messages of another version of the protocol, and not answered.
    #[serde(default)]
    pub other_version: u64,
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
    /// Its port, or its program, was gone with the interface.
    Lost,
    /// It had not when this was written: it was killed after that, or still goes on.
    GoingOn,
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
    #[serde(rename = "min_ns")]
    pub min: Nanos,
    /// In the order 50 90 99 99.9 99.99 99.999 99.9999.
    pub percentiles: Vec<ResidencePercentile>,
    /// Largest.
    #[serde(rename = "max_ns")]
    pub max: Nanos,
}

/// One percentile of the residence; without a value where there are too few samples for it. In a recording
/// (`-o`) it is that of the series, which knows how far neighbours depend on each other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResidencePercentile {
    /// Which, in percent.
    pub percent: f64,
    /// The value.
    #[serde(rename = "value_ns")]
    pub value: Option<Nanos>,
    /// What it reaches with 95 % confidence.
    #[serde(default, rename = "low_ns")]
    pub low: Option<Nanos>,
}

/// Measured messages of one client that asked for no answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OneWay {
    /// Messages that came, each number once.
    pub received: u64,
    /// Messages that came again.
    pub duplicates: u64,
    /// Of the received ones, those that came after a later one (RFC 4737).
    pub reordered: u64,
    /// Their rate and their distances.
    pub receptions: Receptions,
    /// Percentiles of the distances, as of the residence.
    pub gaps: Vec<ResidencePercentile>,
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
    /// Its messages that asked for no answer, where it sent any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way: Option<OneWay>,
    /// It said that it had finished.
    pub finished: bool,
    /// Median of their residence.
    #[serde(rename = "median_ns")]
    pub median: Option<Nanos>,
    /// Largest residence.
    #[serde(rename = "max_ns")]
    pub max: Option<Nanos>,
}

impl ReflectedClient {
    /// Messages that came of those that asked for no answer.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.one_way.as_ref().map_or(0, |of| of.received)
    }
}
