//! What stands behind a calibration: its parts, each a line and a client of their own, and how their logs
//! met.
//!
//! A part is a process of the delay line and one of the client. Their run directories lie below that of the
//! calibration. All counts are of messages, all times in nanoseconds.

use serde::{Deserialize, Serialize};

use crate::calibration::{Limit, Slope};
use crate::units::Nanos;

/// What the client measured with nothing between its ports, in the histogram log.
const BACK_TO_BACK: &str = "-back-to-back";
/// Errors of messages that are not below zero, there.
const ERROR: &str = "-error";
/// By how much the others are below it.
const ERROR_BELOW: &str = "-error-below-zero";
/// Before a delay that curves are not of.
const AT: &str = "-at-";

/// A backend's name as series and tags have it: `udp-spin`.
#[must_use]
pub fn slug(backend: &str) -> String {
    backend.replace(' ', "-")
}

/// Tags of the errors in the histogram log: those that are not below zero, and by what the others are.
#[must_use]
pub fn error_tags(backend: &str) -> [String; 2] {
    [ERROR, ERROR_BELOW].map(|of| format!("{}{of}", slug(backend)))
}

/// The tag of what a backend measures with nothing between its ports.
#[must_use]
pub fn back_to_back_tag(backend: &str) -> String {
    format!("{}{BACK_TO_BACK}", slug(backend))
}

/// What stands behind a calibration.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CalibrationParts {
    /// Messages a second that were asked for first.
    pub wanted_pps: f64,
    /// Messages a second that all of them hold, and that all were asked for.
    pub common_pps: f64,
    /// What each held, attempt by attempt: the last of them is at the rate that all hold, or the last that was
    /// tried.
    pub held: Vec<HeldRate>,
    /// Why curves of some backends are not to be compared, a sentence each; empty where all are.
    pub not_compared: Vec<String>,
    /// The order of each round, by the indices of `parts`.
    pub order: Vec<Vec<u32>>,
    /// Every part, as it was measured.
    pub parts: Vec<CalibrationPart>,
    /// How the median of each backend follows the delay that the line was set to.
    pub slopes: Vec<BackendSlope>,
    /// What was planted into the client's stamps on purpose, and what was found of it. Empty in every
    /// calibration that is to be used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub planted: Vec<PlantedFound>,
}

impl CalibrationParts {
    /// Is this a tag of the histogram log that no series of the run sums up? Errors message by message and
    /// what was measured back to back are there for whoever looks again, and so is what other delays than
    /// the first one gave: its slope and its medians are what is said of it.
    #[must_use]
    pub fn is_behind(&self, tag: &str) -> bool {
        let is =
            |rest: &str| [ERROR, ERROR_BELOW, BACK_TO_BACK].contains(&rest) || rest.starts_with(AT);
        self.parts.iter().any(|part| tag.strip_prefix(&slug(&part.backend)).is_some_and(is))
    }
}

impl CalibrationParts {
    /// Messages a second that were asked for, attempt by attempt.
    #[must_use]
    pub fn attempts(&self) -> Vec<f64> {
        let mut asked: Vec<(u32, f64)> =
            self.held.iter().map(|of| (of.attempt, of.asked_pps)).collect();
        asked.sort_by_key(|(attempt, _)| *attempt);
        asked.dedup_by_key(|(attempt, _)| *attempt);
        asked.into_iter().map(|(_, pps)| pps).collect()
    }
}

/// What a backend held when it was asked for a rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldRate {
    /// Which backend.
    pub backend: String,
    /// At which attempt, from 0; all are of the first where it was not kept.
    #[serde(default)]
    pub attempt: u32,
    /// Asked for, messages a second.
    pub asked_pps: f64,
    /// Sent, messages a second.
    pub sent_pps: f64,
    /// Taken in behind the line, messages a second: what the sink says.
    pub received_pps: f64,
}

/// What lay between the client's ports in a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PartOf {
    /// The delay line.
    Line {
        /// What it was set to.
        #[serde(rename = "delay_ns")]
        delay: Nanos,
    },
    /// Nothing: its two ports are back to back.
    BackToBack,
}

/// A part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CalibrationPart {
    /// Which backend.
    pub backend: String,
    /// What lay between.
    pub between: PartOf,
    /// In which round, from 0.
    pub round: u32,
    /// The directory of its runs, below that of the calibration.
    pub directory: String,
    /// The commands, the line's first.
    pub commands: Vec<String>,
    /// Messages a second that were sent.
    pub achieved_pps: f64,
    /// How both logs met; none back to back.
    pub met: Option<Met>,
    /// Median of what the client measured.
    #[serde(rename = "measured_p50_ns")]
    pub measured_p50: Option<Nanos>,
    /// Median of the truth; none back to back.
    #[serde(rename = "truth_p50_ns")]
    pub truth_p50: Option<Nanos>,
    /// Why nothing is known of it, where that is so.
    pub failed: Option<String>,
}

/// How the client's log and the line's met. `requests = joined + lost_behind + lost_in + too_early +
/// without_truth + lost_before`, and `passed = joined + lost_behind + lost_in + too_early +
/// without_request + outside + again`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Met {
    /// Requests that the client logged.
    pub requests: u64,
    /// Messages of ours that the line logged, copies not among them.
    pub passed: u64,
    /// Both are known.
    pub joined: u64,
    /// The line handed it over, and it did not come.
    pub lost_behind: u64,
    /// The line itself lost it.
    pub lost_in: u64,
    /// It came, and the line has nothing of it.
    pub without_truth: u64,
    /// It did not come, and the line has nothing of it.
    pub lost_before: u64,
    /// The line has it, and the client, which has earlier and later ones, has not.
    pub without_request: u64,
    /// The line has it from before the first or after the last request.
    pub outside: u64,
    /// A number that the line had already.
    pub again: u64,
    /// Copies that the line made on purpose.
    pub copies: u64,
    /// Messages without a number: the client's own before it measured, and those of others.
    pub foreign: u64,
    /// Taken in before the line handed it over: clocks that disagree.
    pub too_early: u64,
}

impl Met {
    /// Is every row of either log in one count?
    #[must_use]
    pub fn adds_up(&self) -> bool {
        let both = [self.joined, self.lost_behind, self.lost_in, self.too_early];
        let sum = |more: &[u64]| {
            both.iter().chain(more).try_fold(0_u64, |sum, count| sum.checked_add(*count))
        };
        sum(&[self.without_truth, self.lost_before]) == Some(self.requests)
            && sum(&[self.without_request, self.outside, self.again]) == Some(self.passed)
    }

    /// Messages that the line handed over, and that the client never had or has nothing of.
    #[must_use]
    pub fn never_had(&self) -> u64 {
        self.lost_behind.saturating_add(self.without_request)
    }

    /// Adds those of another part.
    pub fn add(&mut self, more: &Self) {
        for (sum, more) in [
            (&mut self.requests, more.requests),
            (&mut self.passed, more.passed),
            (&mut self.joined, more.joined),
            (&mut self.lost_behind, more.lost_behind),
            (&mut self.lost_in, more.lost_in),
            (&mut self.without_truth, more.without_truth),
            (&mut self.lost_before, more.lost_before),
            (&mut self.without_request, more.without_request),
            (&mut self.outside, more.outside),
            (&mut self.again, more.again),
            (&mut self.copies, more.copies),
            (&mut self.foreign, more.foreign),
            (&mut self.too_early, more.too_early),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}

/// How the median of a backend follows the delay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BackendSlope {
    /// Which backend.
    pub backend: String,
    /// Over all its parts; none where there was one delay only.
    pub slope: Option<Slope>,
}

/// Something planted into the stamps of receptions by the client itself, and what came out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlantedFound {
    /// In which backend.
    pub backend: String,
    /// What: `a bias of 500ns in every other message, drawn by number`.
    pub what: String,
    /// Messages with it.
    pub planted: u64,
    /// Messages without.
    pub unplanted: u64,
    /// How late the planted ones really were, as the client measured each by its counter, in the median, ns;
    /// none where it was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_ns: Option<f64>,
    /// Median error with it less that without, in the mean of blocks of time; none of a tail, which moves
    /// no median.
    pub difference_ns: Option<f64>,
    /// Its 95 % interval over the blocks.
    pub interval_ns: Option<(f64, f64)>,
    /// Blocks.
    pub blocks: u32,
    /// The compensated limit without it.
    pub limit_without: Limit,
    /// And with it, by the same base.
    pub limit_with: Limit,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_that_no_series_sums_up_are_known_and_no_others_are() {
        let part = CalibrationPart {
            backend: "udp spin".to_owned(),
            between: PartOf::BackToBack,
            round: 0,
            directory: "parts/1".to_owned(),
            commands: Vec::new(),
            achieved_pps: 0.0,
            met: None,
            measured_p50: None,
            truth_p50: None,
            failed: None,
        };
        let parts = CalibrationParts { parts: vec![part], ..CalibrationParts::default() };
        let [above, below] = error_tags("udp spin");
        assert_eq!([above.as_str(), &below], ["udp-spin-error", "udp-spin-error-below-zero"]);
        let base = back_to_back_tag("udp spin");
        for tag in [above.as_str(), &below, &base, "udp-spin-at-100us-truth"] {
            assert!(parts.is_behind(tag), "{tag}");
        }
        for tag in ["udp-spin-measured", "udp-spin-truth", "xdp-spin-error", "udp-spin", "gap-cpu1"]
        {
            assert!(!parts.is_behind(tag), "{tag}");
        }
        assert!(!CalibrationParts::default().is_behind(&above));
    }

    #[test]
    fn rows_that_are_in_no_count_are_found_and_hostile_counts_overflow_nothing() {
        let met = Met {
            requests: 10,
            joined: 5,
            lost_behind: 1,
            lost_in: 1,
            too_early: 1,
            without_truth: 1,
            lost_before: 1,
            passed: 11,
            without_request: 1,
            outside: 1,
            again: 1,
            copies: 7,
            foreign: 8,
        };
        assert!(met.adds_up());
        assert!(!Met { requests: 11, ..met }.adds_up());
        assert!(!Met { passed: 12, ..met }.adds_up());
        assert!(!Met { joined: u64::MAX, lost_in: u64::MAX, ..met }.adds_up());
        let mut sum = met;
        sum.add(&met);
        assert!(sum.adds_up() && sum.requests == 20);
    }
}
