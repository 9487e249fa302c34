//! The same requests over several backends in turns, and what each of them saves against the first.
//!
//! The first is measured twice in every round: what it differs from itself by is the control that every
//! claim rests on.

use serde::{Deserialize, Serialize};

use crate::calibration::Trust;
use crate::flow::{Asked, Packets, Way};
use crate::units::Nanos;

/// One comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Backends {
    /// Who answers, in words.
    pub other_end: String,
    /// Does the other end go by the backend that is measured? If not, it is the same for all.
    pub both_ends: bool,
    /// What was asked of each.
    pub asked: Asked,
    /// Rounds asked for.
    pub rounds: u32,
    /// Time measured of each in a round.
    #[serde(rename = "length_ns")]
    pub length: Nanos,
    /// Discarded time before that.
    #[serde(rename = "warmup_ns")]
    pub warmup: Nanos,
    /// The order of each round: indices of `rows`, those among them of which nothing came of it.
    pub order: Vec<Vec<u32>>,
    /// The backends, the first one first and then itself again.
    pub rows: Vec<BackendRow>,
}

impl Backends {
    /// The backend that the others are set against.
    #[must_use]
    pub fn first(&self) -> Option<&BackendRow> {
        self.rows.iter().find(|row| row.role == BackendRole::First)
    }

    /// The same backend again.
    #[must_use]
    pub fn control(&self) -> Option<&BackendRow> {
        self.rows.iter().find(|row| row.role == BackendRole::Control)
    }
}

/// One backend.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BackendRow {
    /// What carries the messages, and how the client waits: `udp spin`.
    pub backend: String,
    /// What it is there for.
    pub role: BackendRole,
    /// What was measured; none where not one round came about.
    pub measured: Option<BackendMeasured>,
    /// Why there is nothing, or why it ended before its last round.
    pub reason: Option<String>,
    /// Against the first; of the control, the first against itself. Empty for the first.
    pub saved: Vec<Saved>,
}

impl BackendRow {
    /// What it saves at this percentile.
    #[must_use]
    pub fn saved_at(&self, percent: f64) -> Option<&Saved> {
        self.saved.iter().find(|saved| (saved.percent - percent).abs() < 1e-9)
    }
}

/// What a backend is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BackendRole {
    /// The others are set against it.
    First,
    /// It is the first again.
    Control,
    /// It is set against the first.
    Compared,
}

/// What was measured of one backend in all its rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BackendMeasured {
    /// Name of the series of its round trips, all rounds together.
    pub service: String,
    /// Name of that of its response times; none for a closed loop, which intends nothing.
    pub response: Option<String>,
    /// The way that its messages took, as the port told it in the last round.
    pub way: Way,
    /// Requests and messages: how many were sent, answered and lost, all rounds together.
    pub packets: Packets,
    /// Each round of it.
    pub rounds: Vec<BackendRound>,
    /// How far its times may be trusted; none where it was never calibrated on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
}

impl BackendMeasured {
    /// Requests that left per second, in the mean of its rounds; none without a round.
    #[must_use]
    pub fn per_second(&self) -> Option<f64> {
        let n = self.rounds.len() as f64;
        let sum: f64 = self.rounds.iter().map(|round| round.per_second).sum();
        (n > 0.0).then(|| sum / n)
    }
}

/// One round of one backend.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BackendRound {
    /// Which round, from 0.
    pub round: u32,
    /// Round trips.
    pub n: u64,
    /// Requests that left per second of the measured time.
    #[serde(rename = "per_s")]
    pub per_second: f64,
    /// Median round trip; none where it is not known.
    #[serde(rename = "p50_ns")]
    pub p50: Option<Nanos>,
    /// The 99th percentile; none where it is not known, as of fewer than a hundred.
    #[serde(rename = "p99_ns")]
    pub p99: Option<Nanos>,
}

/// What a backend saves against the first, over the rounds that both have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Saved {
    /// At which percentile of the round trips of a round.
    pub percent: f64,
    /// Rounds that both have.
    pub rounds: u32,
    /// The first less this one, in the mean of the rounds, in nanoseconds; below zero where it costs.
    pub mean_ns: f64,
    /// Its 95 % interval, by a studentised bootstrap over the rounds; none of fewer than two.
    pub interval_ns: Option<(f64, f64)>,
    /// This one over the first, in the geometric mean of the rounds.
    pub ratio: f64,
    /// Its 95 % interval, by the same of the logarithms; none of fewer than two rounds.
    #[serde(rename = "interval_ratio")]
    pub ratio_interval: Option<(f64, f64)>,
    /// What is claimed; none of the control, of which nothing is to be claimed.
    pub claim: Option<Claim>,
}

impl Saved {
    /// Half of the width of the ratio's interval.
    #[must_use]
    pub fn half_width(&self) -> Option<f64> {
        self.ratio_interval.map(|(low, high)| (high - low) / 2.0)
    }
}

/// What the rounds show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// It is faster: the ratio's whole interval lies below 1.
    Saves,
    /// It is slower: the whole interval lies above 1.
    Costs,
    /// The interval holds 1.
    NoDifference,
    /// Nothing is claimed.
    Nothing {
        /// Why.
        why: String,
    },
}
