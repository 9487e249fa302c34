//! What a configuration of the operating system buys a box, against another.

use serde::{Deserialize, Serialize};

use crate::flow::Direction;

/// The difference that one configuration makes to a quantile of the latency through a box.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bought {
    /// The configuration.
    pub configuration: String,
    /// The one that it is set against: the first that was asked for.
    pub against: String,
    /// Which way.
    pub direction: Direction,
    /// Bytes of the Ethernet frame, check sequence included.
    pub frame_bytes: u32,
    /// The quantile, in percent.
    pub percent: f64,
    /// What it has become less, in nanoseconds: below zero where it has become more. None where a sample
    /// does not support it.
    pub saved_ns: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low_ns: Option<f64>,
    /// Upper end.
    pub high_ns: Option<f64>,
}

impl Bought {
    /// Does the interval leave out zero?
    #[must_use]
    pub fn is_shown(&self) -> bool {
        let above = self.low_ns.is_some_and(|low| low > 0.0);
        above || self.high_ns.is_some_and(|high| high < 0.0)
    }
}
