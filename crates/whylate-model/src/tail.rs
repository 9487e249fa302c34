//! Why slow requests were slow: what took time from either end meanwhile, and how much oftener than
//! chance has it.

use serde::{Deserialize, Serialize};

use crate::cause::Cause;
use crate::units::Nanos;

/// The slowest requests of a flow against what interrupted its two ends.
///
/// A request is *struck* by a cause that took at least [`Tail::strike`] from one end between its
/// intended send and its reply. That a slow request was struck is no proof: a long request meets more
/// of everything. So each share stands beside two others, of the ordinary requests and of windows as
/// long as the slow requests' that lie elsewhere in time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SlowRequests"))]
pub struct Tail {
    /// The percentile from which on a request counts as slow.
    pub percent: f64,
    /// Response times from here on are slow.
    #[serde(rename = "slow_from_ns")]
    pub slow_from: Nanos,
    /// The median response time.
    #[serde(rename = "median_ns")]
    pub median: Nanos,
    /// What a cause must have taken from a request to have struck it: half of what lies between the
    /// median and the slow ones.
    #[serde(rename = "strike_ns")]
    pub strike: Nanos,
    /// Requests that were looked at.
    pub requests: u64,
    /// Slow ones among them.
    pub slow: u64,
    /// Slow ones that no cause struck.
    pub not_explained: u64,
    /// Requests that were not looked at, because too much had come between to know their time.
    pub left_aside: u64,
    /// Requests that were left out because threads of whylate itself had a CPU of one of their ends for
    /// half of their time and more: they tell of the measurement.
    pub by_whylate: u64,
    /// How the ends were looked at.
    pub ends: Vec<Watched>,
    /// Causes, by the share of the slow requests that they struck.
    pub causes: Vec<TailCause>,
    /// Causes left out, for they struck fewer.
    pub causes_left_out: u64,
    /// Causes that were tried: the intervals hold for all of them together.
    pub tried: u64,
    /// Blocks of time that the intervals are over.
    pub blocks: u64,
    /// Episodes that must have struck a slow request before a cause is tried.
    pub episodes_least: u64,
    /// A lift counts only where its whole interval lies above this.
    #[serde(rename = "lift_least_ratio")]
    pub lift_least: f64,
    /// What came of it.
    pub verdict: TailVerdict,
}

/// What came of looking for causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TailVerdict {
    /// At least one cause is claimed.
    Claimed,
    /// Too few requests, or all alike, to tell slow ones from ordinary ones.
    TooFew,
    /// No cause struck slow requests in enough episodes.
    NothingStruck,
    /// Causes struck slow requests, and none is shown to do so more than by chance.
    NoneStands,
}

/// One end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Who asks.
    Client,
    /// Who answers.
    Other,
}

/// How one end was looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "EndWatched"))]
pub struct Watched {
    /// Which.
    pub end: End,
    /// How its interruptions were found.
    pub by: WatchedBy,
    /// The kernel's trace names them.
    pub traced: bool,
    /// Interruptions found.
    pub interruptions: u64,
    /// Interruptions that found no room on their way.
    pub missed: u64,
}

/// How the interruptions of an end are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WatchedBy {
    /// It spins, and knows a turn that took too long.
    Turns {
        /// Longer turns are interruptions, where nothing was sent.
        #[serde(rename = "looking_ns")]
        looking: Nanos,
        /// Longer turns are interruptions, where a message was sent.
        #[serde(rename = "sending_ns")]
        sending: Nanos,
    },
    /// It sleeps, and the kernel's scheduler tells when it was to run and did not.
    Scheduler,
    /// Not at all: it is not known, or it sleeps and there is no trace.
    Nothing,
}

/// What struck slow requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TailCause {
    /// The end that it took time from.
    pub end: End,
    /// What took it.
    pub cause: Cause,
    /// Distinct episodes of it that struck slow requests.
    pub episodes: u64,
    /// Slow requests that it struck.
    pub slow: u64,
    /// The share of them.
    #[serde(rename = "of_slow_share")]
    pub of_slow: f64,
    /// The share of the ordinary requests that it struck.
    #[serde(rename = "of_ordinary_share")]
    pub of_ordinary: f64,
    /// The share of windows as long as the slow requests', at other times, that it would have struck;
    /// none where there were too few to tell.
    #[serde(rename = "by_chance_share")]
    pub by_chance: Option<f64>,
    /// How much oftener it struck slow requests than ordinary ones; none where it was not tried.
    pub lift: Option<Lift>,
    /// How much oftener it struck slow requests than such windows.
    pub over_chance: Option<Lift>,
    /// What it took from a slow request that it struck: median.
    #[serde(rename = "took_ns")]
    pub took: Nanos,
    /// It is claimed: both lifts lie above the least as a whole.
    pub claimed: bool,
}

/// A ratio of shares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lift {
    /// Estimate; where one of the shares is zero, half a request is added to each count.
    pub ratio: f64,
    /// Lower end of its interval.
    #[serde(rename = "low_ratio")]
    pub low: f64,
    /// Upper end.
    #[serde(rename = "high_ratio")]
    pub high: f64,
}

impl Tail {
    /// The causes that are claimed.
    pub fn claimed(&self) -> impl Iterator<Item = &TailCause> {
        self.causes.iter().filter(|cause| cause.claimed)
    }
}
