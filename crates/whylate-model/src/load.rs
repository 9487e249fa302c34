//! Load that a run made on purpose beside what it measured.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// What one load generator did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadFacts {
    /// Its word on the command line: `net`.
    pub load: String,
    /// What it does and where, in one sentence without a full stop.
    pub what: String,
    /// How much it did beside the measurement: of network load, what was received; of interrupts,
    /// those that the disturbed CPUs counted, where the kernel tells.
    pub amount: u64,
    /// What [`amount`](Self::amount) counts: `bytes`, `datagrams`, `files`, `interrupts`,
    /// `shootdowns asked for`, or `ns of CPU time`.
    pub unit: String,
    /// The time in which it did so, by its own clock: that of the measurement, to 50 ms.
    #[serde(rename = "time_ns")]
    pub time: Nanos,
    /// How much it tried, where that is another number than what was done: of datagrams those whose
    /// numbers the receiver saw or missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<u64>,
    /// How much of that was lost on the way, where that is known: of datagrams, numbers that the
    /// receiver missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// How far it was by when, from the beginning of the measurement on and thinned as it grows:
    /// how much it did is not known to be steady. Empty where only the sum was counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub course: Vec<LoadPoint>,
    /// It ended before it was told to: what was measured afterwards was measured without it.
    pub ended_early: bool,
    /// What else is to be known of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// How far a load was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadPoint {
    /// After so long, by its own clock.
    #[serde(rename = "time_ns")]
    pub time: Nanos,
    /// It had done so much.
    pub amount: u64,
}

impl LoadFacts {
    /// Amount per second; none where it took no time.
    #[must_use]
    pub fn per_second(&self) -> Option<f64> {
        (self.time.0 > 0).then(|| self.amount as f64 * 1e9 / self.time.0 as f64)
    }
}
