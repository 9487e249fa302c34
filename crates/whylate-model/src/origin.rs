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

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cause::WorstGap;
use crate::host::Fingerprint;
use crate::run::{ClockFacts, RunState, Segment, Verdict};
use crate::units::{Nanos, TicksDelta};
use crate::warning::Warning;

/// One recording in a merged run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Origin {
    /// The directory it was read from, as it was named.
    pub directory: String,
    /// Version of the tool that recorded it.
    pub tool_version: String,
    /// Its command line.
    pub command_line: Vec<String>,
    /// What was asked.
    pub question: String,
    /// Seed of everything random in it.
    pub seed: u64,
    /// How far it came.
    pub state: RunState,
    /// Its host.
    pub host: Fingerprint,
    /// Its clock: what the ticks of its segments and of its longest gaps are to be read with.
    pub clock: ClockFacts,
    /// Its settings.
    pub settings: BTreeMap<String, String>,
    /// What it added to each series.
    pub series: Vec<Share>,
    /// Its longest gaps, with raw ticks.
    pub worst: Vec<WorstGap>,
    /// Its warnings.
    pub warnings: Vec<Warning>,
    /// Its verdict.
    pub verdict: Verdict,
    /// Segments that hold its rows, with raw ticks, under their names in the merged directory.
    pub segments: Vec<Segment>,
}

/// What one recording added to a series, so that the spread between recordings can be seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// Name of the series in the merged run.
    pub series: String,
    /// Name that it had in the recording.
    pub recorded_as: String,
    /// Samples.
    pub n: u64,
    /// The recording's own median, where it supports one.
    pub p50: Option<Nanos>,
    /// Its p99.
    pub p99: Option<Nanos>,
    /// Its p99.9.
    pub p999: Option<Nanos>,
    /// Its largest value.
    pub max: Option<Nanos>,
    /// Time measured, for gaps.
    pub elapsed: Option<Nanos>,
    /// Share of that which was lost.
    pub lost_share: Option<f64>,
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
