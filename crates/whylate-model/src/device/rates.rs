//! How much a box carries without loss, found as RFC 2544 (section 26.1) says.

use serde::{Deserialize, Serialize};

/// The highest rate without loss at one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Throughput {
    /// The configuration of the operating system; none where none was asked for.
    pub configuration: Option<String>,
    /// Bytes of the Ethernet frame, check sequence included.
    pub frame_bytes: u32,
    /// Frames a second that the client could send over a bare link; none where there was none to try.
    /// A box that carries them all is as fast as that at least.
    pub client_pps: Option<f64>,
    /// Frames that it lost of those itself, over that link.
    pub client_lost: u64,
    /// The highest rate that the box carried without loss; none where it lost frames in every trial.
    pub highest_pps: Option<f64>,
    /// The lowest rate at which it lost frames; none where it lost none in any trial.
    pub lowest_lossy_pps: Option<f64>,
    /// Share of frames that a trial may lose all the same.
    #[serde(rename = "tolerated_share")]
    pub tolerated: f64,
    /// The trials in their order.
    pub trials: Vec<Trial>,
}

/// One trial at one rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trial {
    /// Frames a second that were to be sent.
    pub asked_pps: f64,
    /// Frames a second that were sent.
    pub achieved_pps: f64,
    /// Frames sent.
    pub sent: u64,
    /// Of them those that did not come.
    pub lost: u64,
    /// Did it lose no more than is tolerated?
    pub passed: bool,
}

impl Throughput {
    /// Is it the client that limits what was found, not the box?
    #[must_use]
    pub fn is_limited_by_the_client(&self) -> bool {
        self.highest_pps.is_some() && self.lowest_lossy_pps.is_none()
    }

    /// Bits of layer 2 a second at the highest rate.
    #[must_use]
    pub fn l2_bits_per_second(&self) -> Option<f64> {
        self.highest_pps.map(|pps| pps * f64::from(self.frame_bytes) * 8.0)
    }
}
