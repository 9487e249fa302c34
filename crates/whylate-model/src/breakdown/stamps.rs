//! What became of the stamps that a host was asked for, kind by kind.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// What became of one kind of stamp when packets were sent to find out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Probed {
    /// `tx sched`, `tx software`, `tx hardware`, `tx ack`, `tx completion`, `rx software`, `rx hardware`.
    pub stamp: String,
    /// The kernel took the flag.
    pub accepted: bool,
    /// Packets that were sent for it.
    pub sent: u64,
    /// Stamps that came.
    pub delivered: u64,
    /// Smallest distance of two that differ; none of fewer than two.
    #[serde(rename = "step_ns")]
    pub step: Option<Nanos>,
    /// What reading one costs: median; none where none came.
    #[serde(rename = "read_cost_ns")]
    pub read_cost: Option<Nanos>,
    /// Why there are none, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What became of the stamps of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountedStamps {
    /// Which, in the words of [`Probed::stamp`].
    pub stamp: String,
    /// Messages of which one was asked for: those that came and those that are missing.
    pub asked: u64,
    /// Messages for which one came.
    pub came: u64,
    /// Messages for which none came.
    pub missing: u64,
    /// Messages that were sent and of which none was asked for: they are none of the sample, or the card
    /// had no room for one more.
    #[serde(default)]
    pub not_asked: u64,
    /// Of these: one of a later message came.
    pub skipped: u64,
    /// Came for a message that had one.
    pub twice: u64,
    /// Came for a message that nobody sent, or that was sent too long ago.
    pub unknown: u64,
    /// Came without a time.
    pub zero: u64,
    /// Of those that came: for a later message in the same segment of TCP. Of stamps of what was received,
    /// of those missing: it was read together with later bytes, whose stamp came instead.
    pub merged: u64,
    /// Came for a part of a message, which TCP had cut.
    pub split: u64,
}

/// What became of the stamps of one kind at the other end, which tells each stamp that came, and no counts
/// of its sockets: what else became of them is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FarStamps {
    /// Which, in the words of [`Probed::stamp`].
    pub stamp: String,
    /// Messages of which one was asked for: those that came and those that are missing.
    pub asked: u64,
    /// Messages for which one came.
    pub came: u64,
    /// Messages for which none came.
    pub missing: u64,
    /// Came for a message that had one.
    pub twice: u64,
    /// Came for a message that it did not tell of, or told of too long ago.
    pub unknown: u64,
}

/// One kind of stamp of requests that lies not on their way from sender to reader, and so divides no part:
/// how long after the client's reading before the call that sent a request it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StampBeside"))]
pub struct Aside {
    /// `tx ack`: this machine's kernel had the other end's acknowledgement of the request's last byte.
    /// `tx completion`: its driver had the card's word that the request is out.
    pub stamp: String,
    /// Requests that were sent.
    pub requests: u64,
    /// Of these: for which it came.
    pub came: u64,
    /// For which it was asked for and never came.
    pub missing: u64,
    /// For which it was not asked for: they are none of the sample.
    #[serde(default)]
    pub not_asked: u64,
    /// Came for a request that was not sent, for one that had it, or too late to be put to its own.
    pub unknown: u64,
    /// Of those that came: before that reading by no more than the bounds and resolutions of the two; it
    /// is taken to be at the same time.
    pub unordered: u64,
    /// Before it by more: it is not used.
    pub contradicted: u64,
    /// Smallest step of the stamp's clock.
    #[serde(rename = "resolution_ns")]
    pub resolution: Nanos,
    /// How far it may lie from the counter's timeline.
    #[serde(rename = "bound_ns")]
    pub bound: Nanos,
    /// Median of the distances; none where there are none.
    #[serde(rename = "median_ns", default, skip_serializing_if = "Option::is_none")]
    pub median: Option<Nanos>,
    /// Their 99th percentile.
    #[serde(rename = "p99_ns", default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<Nanos>,
    /// The longest.
    #[serde(rename = "most_ns", default, skip_serializing_if = "Option::is_none")]
    pub most: Option<Nanos>,
    /// Name of their series; none where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
}

impl CountedStamps {
    /// Is each that was asked for one that came or one that is missing?
    #[must_use]
    pub fn adds_up(&self) -> bool {
        self.came.checked_add(self.missing) == Some(self.asked)
    }
}

impl FarStamps {
    /// Is each that was asked for one that came or one that is missing?
    #[must_use]
    pub fn adds_up(&self) -> bool {
        self.came.checked_add(self.missing) == Some(self.asked)
    }
}
