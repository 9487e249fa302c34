//! Where the numbers of a merged run come from.
//!
//! `whylate merge` adds up what any number of recordings measured. Counts can be added; clocks
//! cannot: the raw ticks of two hosts are not one timeline. So a merged run holds no clock of its
//! own. Its ticks are nanoseconds (`clock.hz` is 1e9 and `clock.epoch` 0), and each [`Origin`] keeps
//! the clock facts of its recording: frequency, epoch, anchors to wall time. What has raw ticks is
//! read with those of its origin:
//!
//! - the rows of a segment, with the clock of the origin that lists the segment;
//! - the longest gaps, which each origin keeps by itself.
//!
//! In `histograms.hlog` an interval has the tag `SERIES@N`, N being the index of its origin, and a
//! start that counts from the beginning of the earliest recording by wall time. The relation of two
//! origins is as good as their anchors and their hosts' wall clocks.

use serde::{Deserialize, Serialize};

use crate::calibration::Trust;
use crate::cause::WorstGap;
use crate::host::Fingerprint;
use crate::load::LoadFacts;
use crate::run::{ClockFacts, Rate, RunState, Segment, Verdict};
use crate::series::Quantile;
use crate::settings::Settings;
use crate::switch_cost::SwitchCost;
use crate::units::{Nanos, TicksDelta};
use crate::warning::Warning;

/// One recording in a merged run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Origin {
    /// The directory it was read from, as it was named.
    pub directory: String,
    /// Version of the tool that recorded it.
    pub tool_version: String,
    /// Its command line.
    pub command_line: Vec<String>,
    /// What was asked.
    pub question: String,
    /// Random seed of it.
    pub seed: u64,
    /// How far it came.
    pub state: RunState,
    /// Its host.
    pub host: Fingerprint,
    /// Its clock: what the ticks of its segments and of its longest gaps are to be read with.
    pub clock: ClockFacts,
    /// Its settings.
    pub settings: Settings,
    /// What it added to each series.
    pub series: Vec<Share>,
    /// Its longest gaps, with raw ticks.
    pub worst: Vec<WorstGap>,
    /// Its warnings.
    pub warnings: Vec<Warning>,
    /// Its verdict.
    pub verdict: Verdict,
    /// What limited trust in it and cannot be judged of a sum, one clause each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// Segments that hold its rows, with raw ticks, under their names in the merged directory.
    pub segments: Vec<Segment>,
    /// The load that was made beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<LoadFacts>,
    /// What it found of context switches, on its own host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch_cost: Option<SwitchCost>,
    /// Did it have the kernel's trace? Sums of older releases do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traced: Option<bool>,
}

/// What one recording added to a series, so that the spread between recordings can be seen. Its
/// intervals are those within the recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Share {
    /// Name of the series in the merged run.
    pub series: String,
    /// Name that it had in the recording; several where CPUs are added up.
    pub recorded_as: String,
    /// Samples.
    pub n: u64,
    /// Samples of the recording that are not in the sum: gaps below the largest threshold of all.
    #[serde(default)]
    pub left_out: u64,
    /// The recording's own median, where it supports one.
    #[serde(rename = "p50_ns")]
    pub p50: Option<Nanos>,
    /// Its p99.
    #[serde(rename = "p99_ns")]
    pub p99: Option<Nanos>,
    /// Its p99.9.
    #[serde(rename = "p999_ns")]
    pub p999: Option<Nanos>,
    /// Its largest value.
    #[serde(rename = "max_ns")]
    pub max: Option<Nanos>,
    /// Time measured, for gaps.
    #[serde(rename = "elapsed_ns")]
    pub elapsed: Option<Nanos>,
    /// Share of that which was lost.
    pub lost_share: Option<f64>,
    /// Its 95 % interval.
    #[serde(rename = "lost_interval_share", default)]
    pub lost_share_interval: Option<(f64, f64)>,
    /// The threshold that it was recorded with, for gaps.
    #[serde(rename = "threshold_ns", default)]
    pub threshold: Option<Nanos>,
    /// Period of the loop, for gaps.
    #[serde(default)]
    pub period_ns: Option<f64>,
    /// How often gaps of the usual lengths came.
    #[serde(default)]
    pub rates: Vec<Rate>,
    /// All quantiles.
    #[serde(default)]
    pub quantiles: Vec<Quantile>,
    /// How far its numbers may be trusted, where what it measured with was calibrated on its machine. Sums of
    /// older releases do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
}

/// How far a number of a merged run may lie from the truth: by chance within the recordings, and
/// by what differs between them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spread {
    /// Series of the merged run.
    pub series: String,
    /// Which number.
    pub of: Measure,
    /// The number itself, of all recordings together.
    pub value: f64,
    /// 95 % interval as if the recordings were one; none where it is not known.
    pub within: Option<(f64, f64)>,
    /// 95 % interval from the spread between the recordings; none where it is not bounded.
    pub between: Option<(f64, f64)>,
    /// Variance between over variance within; none where either is not known. About 1 when the
    /// recordings differ by chance alone.
    pub ratio: Option<f64>,
}

/// Which number of a series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// A quantile, ns.
    Quantile {
        /// Which, in percent.
        percent: f64,
    },
    /// The lost share of the elapsed time.
    LostShare,
    /// Gaps per second.
    Rate {
        /// Of at least this length.
        #[serde(rename = "at_least_ns")]
        at_least: Nanos,
    },
}

impl Spread {
    /// The wider of the two intervals: the one to go by.
    #[must_use]
    pub fn headline(&self) -> Option<(f64, f64)> {
        let width = |(low, high): (f64, f64)| high - low;
        match (self.within, self.between) {
            (Some(within), Some(between)) if width(between) > width(within) => Some(between),
            (within, between) => within.or(between),
        }
    }
}

impl Origin {
    /// When its epoch was by wall time, nanoseconds since 1970; none without an anchor.
    #[must_use]
    pub fn began(&self) -> Option<u64> {
        began(&self.clock)
    }
}

/// When the epoch of a clock was by wall time, nanoseconds since 1970; none without an anchor.
#[must_use]
pub fn began(clock: &ClockFacts) -> Option<u64> {
    let anchor = clock.anchors.first()?;
    let nanos = |ticks: TicksDelta| ticks.to_nanos(clock.hz).0;
    Some(if anchor.ticks >= clock.epoch {
        anchor.realtime_ns.saturating_sub(nanos(anchor.ticks.since(clock.epoch)))
    } else {
        anchor.realtime_ns.saturating_add(nanos(clock.epoch.since(anchor.ticks)))
    })
}
