//! What a network function, a switch or any other box between two ports does to latency.
//!
//! A client measures `M` through the box: its time in the box `T`, plus `E`, all else. What `T` was is
//! bounded without assuming that `T` and `E` have nothing to do with each other: `Q_T(p) <= Q_M(p) - min
//! E`, and `Q_T(1-a) >= Q_M(1-a-b) - Q_E(1-b)` for any `b`. All times in nanoseconds, all percentiles in
//! percent.

use serde::{Deserialize, Serialize};

mod bought;
mod rates;

pub use bought::Bought;
pub use rates::{Throughput, Trial};

use crate::calibration::{SignedQuantile, Slope, Trust};
use crate::configuration::AppliedConfiguration;
use crate::flow::Direction;
use crate::series::Quantile;
use crate::units::Nanos;

/// What a client of a box doubts, by directions as a device names them: to the client they are flows.
#[must_use]
pub fn by_direction(doubt: &str) -> String {
    let of_flow = |direction| match direction {
        Direction::There => "the send delay of there (",
        Direction::Back => "the send delay of back (",
    };
    let told = |doubt: String, direction: Direction| {
        let of_frames = format!("the send delay of {} frames (", direction.name());
        doubt.replace(of_flow(direction), &of_frames)
    };
    [Direction::There, Direction::Back].into_iter().fold(doubt.to_owned(), told)
}

/// A box, measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Device {
    /// What it is, as it was asked for: `bridge`, `forward:packet`, `between`.
    pub name: String,
    /// What was really used, in words.
    pub description: String,
    /// The backend that measured: `packet spin`.
    pub backend: String,
    /// Where `E` comes from; none where it was not measured, and there are no lower bounds.
    pub error: Option<ErrorSource>,
    /// Latency by configuration, size and direction, in the order of measuring.
    pub sizes: Vec<DeviceAtSize>,
    /// Whether it waits for the whole frame, by configuration and direction.
    pub forwarding: Vec<Forwarding>,
    /// The highest rate without loss by configuration and size; empty where it was not looked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throughput: Vec<Throughput>,
    /// Configurations of the operating system, as they read back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configurations: Vec<AppliedConfiguration>,
    /// What each of them bought against the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bought: Vec<Bought>,
    /// What was measured in each round, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<Vec<String>>,
    /// Several ports into one; empty where that was not asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fan_in: Vec<FanIn>,
    /// Where it was measured by two captures of the same traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captures: Option<TwoCaptures>,
    /// What a reader must know, a sentence each: configurations that were refused, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Why what its clients measured is less sure than they were asked to measure, a clause each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
}

/// What the client and its way add to the time in the box.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorSource {
    /// How its quantiles were measured, in words: `through the delay line (af_packet, 10us)`.
    pub quantiles_by: String,
    /// How its smallest value was measured, in words: `back to back`.
    pub least_by: String,
    /// Why the two are not what they should be for these bounds, where they are not: another rate,
    /// another size, another state of the machine. None where they fit.
    pub unfit: Option<String>,
}

/// One size in one direction under one configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceAtSize {
    /// The configuration of the operating system: `local+isolset`; none where none was asked for.
    pub configuration: Option<String>,
    /// Which way.
    pub direction: Direction,
    /// Bytes of the Ethernet frame, check sequence included.
    pub frame_bytes: u32,
    /// Which point of a packet the latency is from and to.
    pub point: PacketPoint,
    /// Vantage point where the clock starts.
    pub from: String,
    /// Vantage point where it stops.
    pub to: String,
    /// Frames a second that were asked for.
    pub asked_pps: Option<f64>,
    /// Frames a second that came about.
    pub achieved_pps: f64,
    /// Frames that left for the box.
    pub sent: u64,
    /// Frames that came out of it.
    pub received: u64,
    /// Frames that did not.
    pub lost: u64,
    /// Independent runs.
    pub runs: u32,
    /// Samples.
    pub n: u64,
    /// Smallest measured.
    #[serde(rename = "min_ns")]
    pub min: Option<Nanos>,
    /// Quantiles of what was measured: `M`.
    pub measured: Vec<Quantile>,
    /// Smallest of `E`, back to back; none where that was not measured.
    pub error_min_ns: Option<f64>,
    /// Quantiles of `E`; empty where they were not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub error_quantiles: Vec<SignedQuantile>,
    /// Bounds of the time in the box; they hold all together with 95 % confidence.
    pub bounds: Vec<BoundsAtPercent>,
    /// Why there are none, or only one side of them.
    pub no_bounds: Option<String>,
    /// What the box itself wrote down; none where it keeps no such log.
    pub residence: Option<ResidenceLog>,
    /// Name of the series of what was measured; none where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    /// How far what was measured may be trusted, where its client was calibrated on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
}

impl DeviceAtSize {
    /// Bits of layer 2 a second that came about, check sequence included.
    #[must_use]
    pub fn l2_bits_per_second(&self) -> f64 {
        self.achieved_pps * f64::from(self.frame_bytes) * 8.0
    }

    /// Does what was measured lie beyond what may be trusted at this percentile?
    #[must_use]
    pub fn is_beyond(&self, percent: f64) -> bool {
        self.trust.as_ref().is_some_and(|trust| trust.is_beyond(percent))
    }

    /// The share of what was sent that did not come out; none where nothing was sent.
    #[must_use]
    pub fn loss(&self) -> Option<f64> {
        (self.sent > 0).then(|| self.lost as f64 / self.sent as f64)
    }

    /// What is known of the time in the box at a percentile; none where it was not judged. A part that is only known
    /// to be no more than what the whole may be, or no less than nothing, has no bound there.
    #[must_use]
    pub fn bound(&self, percent: f64) -> Option<BoundsAtPercent> {
        let same = |of: f64| (of - percent).abs() < 1e-9;
        let found = self.bounds.iter().find(|one| same(one.percent))?;
        let whole = self.measured.iter().find(|one| same(one.percent));
        let whole = whole.and_then(|of| of.high.or(of.value)).map(|most| most.0 as f64);
        let high_ns = found.high_ns.filter(|high| whole.is_some_and(|whole| *high <= whole));
        let low_ns = found.low_ns.filter(|low| high_ns.is_some() || *low > 0.0);
        Some(BoundsAtPercent { low_ns, high_ns, ..*found })
    }

    /// Is the time in the box bounded at any percentile, from one side at least?
    #[must_use]
    pub fn is_bounded(&self) -> bool {
        let known = |of: BoundsAtPercent| of.low_ns.is_some() || of.high_ns.is_some();
        self.bounds.iter().any(|of| self.bound(of.percent).is_some_and(known))
    }

    /// Do the bounds at this percentile contain what the box itself wrote down? None without such a log,
    /// and where there is no bound at all.
    #[must_use]
    pub fn contained(&self, percent: f64) -> Option<bool> {
        let same = |of: f64| (of - percent).abs() < 1e-9;
        let bounds = self.bounds.iter().find(|of| same(of.percent))?;
        let quantiles = &self.residence.as_ref()?.quantiles;
        let own = quantiles.iter().find(|of| same(of.percent))?.value?.0 as f64;
        if bounds.low_ns.is_none() && bounds.high_ns.is_none() {
            return None;
        }
        let above = bounds.low_ns.is_none_or(|low| low <= own);
        Some(above && bounds.high_ns.is_none_or(|high| own <= high))
    }
}

/// Which point of a packet a latency counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PacketPoint {
    /// End of the packet in, to its end out: software stamps, once the whole frame is there.
    EndToEnd,
    /// Start of the packet in, to its start out.
    StartToStart,
    /// End in, to start out: below zero for a box that begins to send before it has received all.
    EndToStart,
    /// Start in, to end out.
    StartToEnd,
    /// Nobody knows.
    #[default]
    Unknown,
}

/// Bounds of one quantile of the time in the box.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BoundsAtPercent {
    /// Which, in percent.
    pub percent: f64,
    /// It is not less; none where the samples do not support a lower bound.
    pub low_ns: Option<f64>,
    /// It is not more; none where the samples do not support an upper bound.
    pub high_ns: Option<f64>,
}

/// What a box wrote down of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResidenceLog {
    /// Who says so, and between which points: such as "whylate forward, ring to ring".
    pub by: String,
    /// Frames.
    pub n: u64,
    /// Its quantiles.
    pub quantiles: Vec<Quantile>,
}

/// Does a box wait for the whole frame?
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Forwarding {
    /// The configuration of the operating system.
    pub configuration: Option<String>,
    /// Which way.
    pub direction: Direction,
    /// The verdict.
    pub kind: ForwardingKind,
    /// Median latency over the size, nanoseconds per byte.
    pub slope: Option<Slope>,
    /// Bits a second of the link that it is judged by; none where the interface does not tell.
    pub link_bps: Option<f64>,
    /// The conclusion and its reason, in one sentence.
    pub why: String,
}

/// How frames get through a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ForwardingKind {
    /// It receives the whole frame before it sends: latency rises with the size by the link's time for
    /// it.
    StoreAndForward,
    /// It does not: latency does not rise with the size.
    CutThrough,
    /// Neither is shown.
    NotTold,
}

/// Several ports that send to one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FanIn {
    /// The port they send to.
    pub to: String,
    /// What each of them offers, frames a second: in the mean, where they do not all offer the same.
    pub offered_pps: f64,
    /// Bits a second that the port takes, and by what it is made narrow, in words; none of a real one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes: Option<String>,
    /// The senders.
    pub sources: Vec<FanInShare>,
    /// Frames that came, from all of them.
    pub received: u64,
}

impl FanIn {
    /// Jain's index of the shares: 1 when all got the same, 1/n when one got everything. None when
    /// nothing came.
    #[must_use]
    pub fn fairness(&self) -> Option<f64> {
        let shares = self.sources.iter().map(|of| of.share);
        let (sum, squares) = shares.fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
        (squares > 0.0).then(|| sum * sum / (squares * self.sources.len() as f64))
    }
}

/// What one of several senders got.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FanInShare {
    /// Its port.
    pub from: String,
    /// Frames it sent.
    pub sent: u64,
    /// Frames of it that came, with those that waited in a queue as counting began.
    pub received: u64,
    /// Its share of all that came, 0 to 1; 0 where nothing came.
    pub share: f64,
    /// Lower end of the 95 % interval of the share; none with too little of it.
    #[serde(rename = "low_share")]
    pub low: Option<f64>,
    /// Upper end.
    #[serde(rename = "high_share")]
    pub high: Option<f64>,
}

/// Two captures of the same traffic, taken on both sides of the box.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TwoCaptures {
    /// The one before the box.
    pub before: String,
    /// The one behind it.
    pub behind: String,
    /// Frames found in both.
    pub matched: u64,
    /// Frames only before it: lost in the box, or not captured behind it.
    pub only_before: u64,
    /// Frames only behind it.
    pub only_behind: u64,
    /// Frames that could not be told from others, and are in no number.
    pub ambiguous: u64,
    /// Frames that one side saw while the other one did not capture: they are in no other number.
    #[serde(default)]
    pub unjudged: u64,
    /// What of a packet was not compared, because the box changes it: `mac`, `ttl`, `checksum`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Each way through the box in which frames were seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ways: Vec<CapturedWay>,
    /// Smallest step of the captures' stamps.
    pub resolution_ns: f64,
    /// What is known of the clocks of the two: one clock, or a bound.
    pub clocks: String,
}

/// One way through a box, by two captures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedWay {
    /// Which: there is from the capture before the box to the one behind it.
    pub direction: Direction,
    /// Which points of a packet its latency is from and to, as it was told: no format says it.
    #[serde(default)]
    pub point: PacketPoint,
    /// Name of the series of latencies; none where no frame has one.
    pub series: Option<String>,
    /// Frames with a latency.
    pub matched: u64,
    /// Frames that went in and did not come out.
    pub lost: u64,
    /// Copies that came out of frames that went in once.
    pub duplicates: u64,
    /// Frames that came out and had not gone in.
    pub only_out: u64,
    /// Frames that came, and could not be told from others with the same content: without a latency.
    pub ambiguous: u64,
    /// Frames that came out before they went in, by clocks that do not agree: without a latency.
    pub backwards: u64,
    /// Frames that came out after one that had gone in later.
    pub reordered: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fan_in(shares: &[f64]) -> FanIn {
        let source = |share: &f64| FanInShare {
            from: "p".to_owned(),
            sent: 10,
            received: 5,
            share: *share,
            low: None,
            high: None,
        };
        FanIn {
            to: "out".to_owned(),
            offered_pps: 1e3,
            takes: None,
            sources: shares.iter().map(source).collect(),
            received: 5,
        }
    }

    #[test]
    fn fairness_is_one_for_equal_shares_and_one_nth_when_one_has_all() {
        assert_eq!(fan_in(&[0.25; 4]).fairness(), Some(1.0));
        assert_eq!(fan_in(&[1.0, 0.0, 0.0, 0.0]).fairness(), Some(0.25));
        assert_eq!(fan_in(&[0.0, 0.0]).fairness(), None);
        assert_eq!(fan_in(&[]).fairness(), None);
    }
}
