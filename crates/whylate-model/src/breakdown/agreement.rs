//! Two sources of the same thing, beside each other.

use serde::{Deserialize, Serialize};

use super::{Part, Point, Source};
use crate::units::Nanos;

/// How far two sources of the same thing are from each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Differences {
    /// The source that is used.
    pub used: Source,
    /// The one beside it.
    pub beside: Source,
    /// Requests for which both came: of a part, at both of its points.
    pub requests: u64,
    /// The second less the first: smallest.
    pub least_ns: i64,
    /// Median.
    pub median_ns: i64,
    /// Largest.
    pub most_ns: i64,
    /// Within this they are the same: resolutions and bounds of both, of a part at both of its points.
    #[serde(rename = "within_ns")]
    pub within: Nanos,
    /// Requests for which they are, whichever was earlier, or shorter.
    pub agree: u64,
    /// Requests for which they are, or each stands at its own place in the kernel: not on the wrong side
    /// of the other one, where their order is known, and not beyond the neighbouring point that is told on
    /// the counter. Of a part: at both of its points. What the kernel does between two places is part of
    /// the difference.
    #[serde(default)]
    pub in_order: u64,
}

/// Of a hundred requests so many may be out of their order: a clock is slewed, a frame is sent again.
const MOST_OF_A_HUNDRED: u64 = 1;

/// Two sources of the same point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Agreement {
    /// Which point.
    pub point: Point,
    /// The two, and how far they are from each other.
    #[serde(flatten)]
    pub told: Differences,
}

/// Two sources of the same part: both of them tell both of its points.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartAgreement {
    /// Which part, between two points that follow one another among those that both sources tell.
    pub part: Part,
    /// The two, and how much longer it is by the second.
    #[serde(flatten)]
    pub told: Differences,
}

impl Differences {
    /// Requests for which they are not the same.
    #[must_use]
    pub fn disagree(&self) -> u64 {
        self.requests.saturating_sub(self.agree)
    }

    /// Requests for which they are not the same, and one of them is not at its place either.
    #[must_use]
    pub fn out_of_order(&self) -> u64 {
        self.requests.saturating_sub(self.in_order)
    }

    /// Are more requests out of order than some in a hundred?
    #[must_use]
    pub fn is_contradiction(&self) -> bool {
        self.out_of_order().saturating_mul(100) > self.requests.saturating_mul(MOST_OF_A_HUNDRED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breakdown::Station;

    fn differences(requests: u64, in_order: u64) -> Differences {
        Differences {
            used: Source::Trace,
            beside: Source::Software,
            requests,
            least_ns: 0,
            median_ns: 0,
            most_ns: 0,
            within: Nanos(0),
            agree: in_order.min(requests) / 2,
            in_order,
        }
    }

    #[test]
    fn more_than_one_request_in_a_hundred_out_of_order_is_a_contradiction_of_two_sources() {
        assert!(!differences(0, 0).is_contradiction());
        assert!(!differences(200, 198).is_contradiction());
        assert!(differences(200, 197).is_contradiction());
        assert!(differences(1, 0).is_contradiction());
        let of = differences(200, 150);
        assert_eq!((of.agree, of.disagree(), of.out_of_order()), (75, 125, 50));
    }

    #[test]
    fn what_two_sources_tell_is_written_beside_their_point_and_read_again() {
        let point = Point::there(Station::Driver);
        let of = Agreement { point, told: differences(9, 8) };
        let words = serde_json::to_string(&of).unwrap();
        assert!(words.contains("\"in_order\":8") && !words.contains("told"), "{words}");
        assert_eq!(serde_json::from_str::<Agreement>(&words).unwrap(), of);
    }
}
