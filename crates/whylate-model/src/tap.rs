//! What a tap between two ends saw of their requests: the facts of its capture, and what was counted.

use serde::{Deserialize, Serialize};

use crate::breakdown::{Leg, Station};
use crate::units::Nanos;

/// The capture of a bed's tap in a run directory.
pub const TAP_FILE: &str = "tap-0001.pcapng";

/// Bytes from which the beginning of a message is told at most.
pub const HEADING_BYTES: usize = 24;

/// What the first bytes of a message tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heading {
    /// Which way it goes.
    pub leg: Leg,
    /// Its request's number; none of a message that is not measured.
    pub number: Option<u64>,
    /// Bytes of the whole message.
    pub length: u32,
}

/// What a tap saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TapFacts {
    /// Who captured.
    pub from: TapFrom,
    /// By which clock.
    pub clock: TapClock,
    /// How requests and replies were told.
    pub pairing: TapPairing,
    /// Smallest step of its times, rounded up to a nanosecond; 0 where nothing came.
    #[serde(rename = "resolution_ns")]
    pub resolution: Nanos,
    /// Packets that it saw, of whatever kind.
    pub packets: u64,
    /// Packets that it says it lost: its ring was full, or its card's buffer.
    pub lost: u64,
    /// Records of the capture that hold no packet which can be read.
    pub skipped: u64,
    /// Packets that the run directory's file had no room for; they count all the same.
    #[serde(default)]
    pub unwritten: u64,
    /// What became of the messages in them.
    pub counts: TapCounts,
    /// How its times lie to the kernel's stamps of the same messages; none where there are not both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<TapBetween>,
    /// Name of the series of distances from request to reply; none where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    /// The capture in the run directory; none where it came from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// Who captured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TapFrom {
    /// The run itself, on an interface between client and server of its bed.
    Bed {
        /// The interface.
        interface: String,
        /// Bytes that are kept of a packet.
        #[serde(rename = "kept_bytes")]
        kept: u32,
    },
    /// Somebody else, into a file.
    File {
        /// Its name.
        name: String,
        /// Its format: `pcap`, `pcapng`, `ERF`.
        format: String,
    },
}

/// The clock of a capture's times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TapClock {
    /// This machine's system clock: its times can be set beside other stamps of the same request.
    System,
    /// A clock of its own: only distances by it mean anything here.
    Own,
}

/// How the messages of a capture were told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TapPairing {
    /// By their own numbers.
    Numbers,
}

/// Whether a tap's times lie between the kernel's stamps of the same messages: after the sender's, made
/// when its driver was given a frame, and before the receiver's, made when its stack took it. Each
/// request that was taken apart is one of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TapBetween {
    /// Requests in which all that could be compared lies so.
    pub agree: u64,
    /// Requests in which something does not.
    pub disagree: u64,
    /// Requests of which a tap's time, or every stamp beside one, is missing.
    pub not_compared: u64,
    /// How far a tap's time lay outside of its stamps at most; 0 where none did.
    #[serde(rename = "largest_ns")]
    pub largest: Nanos,
    /// Within this it may lie outside: resolutions and bounds of both.
    #[serde(rename = "within_ns")]
    pub within: Nanos,
    /// The same for each stamp, in the order of the way.
    pub sides: Vec<TapSide>,
}

/// Of a hundred requests so many may disagree: a clock is slewed, a frame is sent again.
const MOST_OF_A_HUNDRED: u64 = 1;

impl TapBetween {
    /// Requests of which something could be compared.
    #[must_use]
    pub fn compared(&self) -> u64 {
        self.agree.saturating_add(self.disagree)
    }

    /// Do more requests disagree than some in a hundred?
    #[must_use]
    pub fn is_contradiction(&self) -> bool {
        self.disagree.saturating_mul(100) > self.compared().saturating_mul(MOST_OF_A_HUNDRED)
    }
}

/// How a tap's times lie to one stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TapSide {
    /// On which way.
    pub leg: Leg,
    /// Where it was stamped: `driver`, before the tap, or `arrived`, after it.
    pub stamp: Station,
    /// Requests of which both came.
    pub compared: u64,
    /// Requests in which the tap was passed on the right side, or within what both can tell.
    pub agree: u64,
    /// How far it was on the wrong side at most.
    #[serde(rename = "largest_ns")]
    pub largest: Nanos,
}

/// What became of the messages that a tap saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TapCounts {
    /// Requests, each once.
    pub requests: u64,
    /// Replies, each once.
    pub replies: u64,
    /// Requests with their replies.
    pub paired: u64,
    /// Requests whose reply was not seen.
    pub unanswered: u64,
    /// Replies whose request was not seen.
    pub unasked: u64,
    /// Requests that came by again; the first counts.
    pub requests_twice: u64,
    /// Replies that came by again; the first counts.
    pub replies_twice: u64,
    /// Messages that came by after a later one of their way, or segments after a later one.
    pub reordered: u64,
    /// Segments of bytes that had come by before.
    pub retransmitted: u64,
    /// Places of a stream where bytes were missing when those behind them came by.
    pub gaps: u64,
    /// Times at which it was not known any more where messages begin in a stream, because of a gap or
    /// because too few bytes of a packet were kept.
    pub unframed: u64,
    /// Pairs whose reply came by before its request, by the capture's clock: not in the series.
    pub backwards: u64,
    /// Messages so late that their number had been forgotten.
    pub late: u64,
    /// Messages of the protocol that are not measured: greetings, warm-up.
    pub beside: u64,
    /// Messages of nobody asked about.
    pub foreign: u64,
    /// Packets that hold neither UDP nor TCP in a form that can be read.
    pub unread: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_one_request_in_a_hundred_that_disagrees_is_a_contradiction() {
        let of = |agree, disagree| TapBetween {
            agree,
            disagree,
            not_compared: 7,
            largest: Nanos(9),
            within: Nanos(1),
            sides: Vec::new(),
        };
        assert!(!of(99, 1).is_contradiction() && !of(0, 0).is_contradiction());
        assert!(of(98, 2).is_contradiction() && of(0, 1).is_contradiction());
        assert_eq!(of(98, 2).compared(), 100);
        assert!(!of(u64::MAX, 1).is_contradiction());
    }
}
