//! Whether departures were those of the process that was asked for.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// Is the process of departures the one that was asked for?
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Process {
    /// The verdict.
    pub verdict: ProcessVerdict,
    /// How late a departure of the p99.9 was; none for a closed loop, for fewer than 1 000 and where
    /// it was never sent.
    #[serde(rename = "lateness_p999_ns")]
    pub lateness_p999: Option<Nanos>,
    /// What that may be.
    #[serde(rename = "tolerance_ns")]
    pub tolerance: Nanos,
    /// How many left later than the tolerance; none for a closed loop, and where it was not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beyond_tolerance: Option<OutOf>,
    /// For Poisson arrivals: how far the distances are from exponential.
    pub distribution: Option<Distribution>,
}

/// So many of a number of departures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutOf {
    /// Those that are counted, those that never left among them.
    pub count: u64,
    /// Of this many.
    pub of: u64,
}

impl OutOf {
    /// Those of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let (count, of) =
            (self.count.saturating_add(other.count), self.of.saturating_add(other.of));
        Self { count, of }
    }
}

/// How far distances of neighbours are from their distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Distribution {
    /// Distances.
    pub n: u64,
    /// Largest distance of the distribution functions.
    pub largest: f64,
    /// Anderson and Darling's A squared, after the probability integral transform.
    pub a_squared: f64,
    /// A squared per distance: the size of the difference, whatever their number.
    pub effect: f64,
}

/// What the departures were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProcessVerdict {
    /// The process that was asked for, within the tolerance.
    Held,
    /// All left, yet later than the tolerance or at other distances.
    Disturbed,
    /// The rate could not be held.
    Saturated,
    /// Fewer left than a p99.9 needs, and some of them late: nothing can be told.
    TooFew,
    /// Nothing was asked for: a closed loop.
    ClosedLoop,
}
