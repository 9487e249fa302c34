//! What was planted into the stamps of a flow, to see whether a calibration finds it.

use serde::{Deserialize, Serialize};

/// Messages that were stamped late on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlantedLate {
    /// So many.
    pub messages: u64,
    /// How late they were in the median, by the counter.
    pub median_ns: f64,
}
