//! How close each backend of a host comes to the truth, and up to which percentile it may be trusted.
//!
//! A client sends through a delay line that writes down when each frame came and left. Of every message
//! the truth `t` (departure minus arrival at the line) and what the client measured `m` are then known,
//! and `e = m - t` is what the client, its backend and the way to the line and back add. The *error* of a
//! percentile is `Q_m(p) - Q_t(p)`. Positive errors are too slow. All times in nanoseconds.

use serde::{Deserialize, Serialize};

use crate::series::Quantile;
use crate::units::Nanos;

/// The error that a result may have and still be trusted, where nobody says otherwise.
pub const USUAL_TOLERANCE: Nanos = Nanos(1_000);

/// A calibration of this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Calibration {
    /// A percentile holds when its error lies within this of zero, its whole interval included.
    #[serde(rename = "tolerance_ns")]
    pub tolerance: Nanos,
    /// When it was made, nanoseconds since 1970.
    pub made_at_ns: u64,
    /// What tells this machine from others, as results of later are looked up by it.
    pub host_identity: String,
    /// The delay line.
    pub line: CalibrationLine,
    /// The backends, in the order in which they were asked for.
    pub backends: Vec<CalibratedBackend>,
    /// Backends that were asked for and of which nothing came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<NotCalibrated>,
    /// The line beside another emulator of delays, where this kernel has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub emulators: Vec<Emulator>,
}

impl Calibration {
    /// The backend of that name.
    #[must_use]
    pub fn of(&self, backend: &str) -> Option<&CalibratedBackend> {
        self.backends.iter().find(|one| one.backend == backend)
    }
}

/// The delay line that told the truth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CalibrationLine {
    /// What carried its frames: `af_packet`, `af_xdp`, `dpdk`, `udp proxy`.
    pub transport: String,
    /// What it was set to, as it is asked for: `10us`, `uniform:5us..15us`.
    pub delay: String,
    /// Median residence with no delay set.
    #[serde(rename = "base_ns")]
    pub base: Nanos,
    /// Departure minus arrival minus what was set stays within this, by its own measurement.
    #[serde(rename = "error_ns")]
    pub error: Nanos,
    /// Frames behind these two.
    pub frames: u64,
    /// Smallest step of its counter.
    pub resolution_ns: f64,
}

/// One backend, calibrated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CalibratedBackend {
    /// What carries the messages, and how the client waits: `xdp spin`. Later results are looked up by
    /// it.
    pub backend: String,
    /// Vantage point where the client's clock starts.
    pub from: String,
    /// Vantage point where it stops.
    pub to: String,
    /// What the client's number is: `one-way`, `rtt`.
    pub definition: String,
    /// Bytes of the Ethernet frame, check sequence included; none where it is not known.
    pub frame_bytes: Option<u32>,
    /// Independent runs, each in a fresh process.
    pub runs: u32,
    /// Messages of which both the truth and the measurement are known.
    pub n: u64,
    /// Messages measured that the line has no truth of.
    pub without_truth: u64,
    /// Messages that left the line and that the client never had: lost behind it, or read too late.
    pub without_measurement: u64,
    /// Messages a second that were asked for, in each direction; none for a closed loop.
    pub asked_pps: Option<f64>,
    /// Messages a second that came about, in each direction.
    pub achieved_pps: f64,
    /// What the client measured. Of a foreign tool without value, from the least to the most of its runs.
    pub measured: Vec<Quantile>,
    /// The truth.
    pub truth: Vec<Quantile>,
    /// The error at each percentile, as it is.
    pub errors_raw: Vec<ErrorAtPercent>,
    /// The same with `base` taken off.
    pub errors_compensated: Vec<ErrorAtPercent>,
    /// Median of what the path measures back to back, the line's own part not in it: the constant that
    /// the compensated errors are without. None where that was not measured.
    #[serde(rename = "base_ns")]
    pub base: Option<Nanos>,
    /// Messages behind it.
    pub base_n: u64,
    /// Up to where the errors hold as they are.
    pub limit_raw: Limit,
    /// Up to where they hold with `base` taken off; as the raw one where there is no `base`.
    pub limit_compensated: Limit,
    /// Smallest `e`.
    pub error_min_ns: i64,
    /// Quantiles of `e`, message by message: not the differences of quantiles above.
    pub error_quantiles: Vec<SignedQuantile>,
    /// Of a tool that is not ours: what it was, and how its number follows the delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<ForeignTool>,
    /// What a reader must know, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Quantile of what was measured minus the same quantile of the truth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorAtPercent {
    /// Which, in percent.
    pub percent: f64,
    /// The error; none where one of the samples is too small for this percentile.
    pub error_ns: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low_ns: Option<f64>,
    /// Upper end; none where the sample supports none.
    pub high_ns: Option<f64>,
    /// Independent samples behind the interval.
    pub n_eff: f64,
}

/// Up to which percentile errors stay within the tolerance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limit {
    /// The largest one up to which all hold; none where not even the first one does.
    pub percent: Option<f64>,
    /// What ended it.
    pub ended_by: LimitEnd,
    /// The first percentile that does not hold; none where all hold.
    #[serde(rename = "fails_at_percent")]
    pub fails_at: Option<f64>,
}

/// What ends trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitEnd {
    /// Nothing: all percentiles that were looked at hold.
    Nothing,
    /// The next percentile's error is beyond the tolerance.
    Error,
    /// Its error is within, and its interval is not.
    Interval,
    /// The sample is too small for an interval.
    Sample,
}

/// One quantile of numbers that may be negative, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SignedQuantile {
    /// In percent.
    pub percent: f64,
    /// The estimate; none when the sample is too small to have one.
    pub value_ns: Option<f64>,
    /// Lower end.
    pub low_ns: Option<f64>,
    /// Upper end; none when the sample does not support one.
    pub high_ns: Option<f64>,
    /// Effective sample size behind the interval.
    pub n_eff: f64,
}

/// A backend of which nothing came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotCalibrated {
    /// Which.
    pub backend: String,
    /// Why.
    pub why: String,
}

/// A client that is not ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForeignTool {
    /// Its command line.
    pub command: String,
    /// How its number was found in what it printed.
    pub metric: String,
    /// Does its number count the way through the line once, or there and back? Delays that the line was
    /// set to count as often in the truth.
    pub passes: u32,
    /// What it reported at each setting of the line.
    pub readings: Vec<ForeignReading>,
    /// Its number over the truth: 1 where it follows, one half where it halves what it measured. None
    /// with too few settings.
    pub slope: Option<Slope>,
}

/// How near a slope must lie to one half to be called a halving.
const HALF: std::ops::RangeInclusive<f64> = 0.45..=0.55;

impl ForeignTool {
    /// Does it report half of what it measured? Only where the slope's interval excludes 1.
    #[must_use]
    pub fn halves(&self) -> bool {
        let follows = |slope: &Slope| {
            HALF.contains(&slope.value) && slope.high.is_some_and(|high| high < 0.9)
        };
        self.slope.as_ref().is_some_and(follows)
    }
}

/// One setting of the line, and what a foreign tool made of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForeignReading {
    /// What the line was set to.
    #[serde(rename = "delay_ns")]
    pub delay: Nanos,
    /// Median of the truth over all passes; its mean where the tool's number is one.
    #[serde(rename = "truth_ns")]
    pub truth: Nanos,
    /// What the tool reported.
    pub reported_ns: f64,
    /// Its readings behind that.
    pub readings: u32,
}

/// A slope with its 95 % interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Slope {
    /// What rises over what, with both units: `ns of the median over ns of delay`.
    pub of: String,
    /// `least squares` or `Theil-Sen`.
    pub method: String,
    /// The slope.
    pub value: f64,
    /// Lower end; none with too few points.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Value at zero.
    pub intercept: f64,
    /// Points.
    pub points: u32,
}

/// How far another emulator's delay lies from what it was set to, beside the line's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Emulator {
    /// `the delay line`, `netem`.
    pub name: String,
    /// What it was set to.
    #[serde(rename = "delay_ns")]
    pub delay: Nanos,
    /// What came about minus what was set, by percentile.
    pub errors: Vec<SignedQuantile>,
    /// Frames.
    pub n: u64,
    /// Why there are no numbers, where there are none.
    pub missing: Option<String>,
}

/// How far a result of later may be trusted, by the calibration of its backend.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trust {
    /// The backend as the calibration calls it.
    pub backend: String,
    /// Percentiles beyond this one are the instrument's as much as what was measured: the compensated
    /// limit. None: none is trusted.
    pub limit_percent: Option<f64>,
    /// The limit of the errors as they are; beyond it a constant is in the numbers.
    pub limit_raw_percent: Option<f64>,
    /// The constant; none where it was not measured.
    #[serde(rename = "base_ns")]
    pub base: Option<Nanos>,
    /// The tolerance behind the limits.
    #[serde(rename = "tolerance_ns")]
    pub tolerance: Nanos,
    /// When the calibration was made, nanoseconds since 1970.
    pub calibrated_at_ns: u64,
    /// How old it was when this was measured.
    #[serde(rename = "age_ns")]
    pub age: Nanos,
    /// Messages a second of the calibration.
    pub calibrated_pps: f64,
    /// Why it may not hold any more: what of the machine changed since. None where nothing did.
    pub stale: Option<String>,
    /// In what rate, size, definition and path of this differ from those of the calibration; empty where
    /// all are the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other: Vec<String>,
}

impl Trust {
    /// Is a number at this percentile beyond what may be trusted?
    #[must_use]
    pub fn is_beyond(&self, percent: f64) -> bool {
        // Percentiles are decimal, and binary numbers of them differ in the last digits.
        self.limit_percent.is_none_or(|limit| percent > limit + 1e-9)
    }

    /// Up to which percentile it trusts; less than the first one where it trusts none.
    #[must_use]
    pub fn reach(&self) -> f64 {
        self.limit_percent.unwrap_or(-1.0)
    }

    /// The one of two that trusts less; what either says of being stale stays.
    #[must_use]
    pub fn least_of(self, other: Self) -> Self {
        let (less, more) = if other.reach() < self.reach() { (other, self) } else { (self, other) };
        Self { stale: less.stale.clone().or(more.stale), ..less }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(value: f64, high: Option<f64>) -> ForeignTool {
        let slope = Slope {
            of: "ns over ns".to_owned(),
            method: "least squares".to_owned(),
            value,
            low: high.map(|high| 2.0 * value - high),
            high,
            intercept: 0.0,
            points: 5,
        };
        ForeignTool {
            command: "client".to_owned(),
            metric: "median".to_owned(),
            passes: 2,
            readings: Vec::new(),
            slope: Some(slope),
        }
    }

    #[test]
    fn a_tool_halves_when_its_slope_is_one_half_and_surely_not_one() {
        assert!(tool(0.5, Some(0.51)).halves());
        assert!(!tool(1.0, Some(1.01)).halves());
        assert!(!tool(0.5, Some(1.1)).halves());
        assert!(!tool(0.5, None).halves());
        assert!(!ForeignTool { slope: None, ..tool(0.5, Some(0.51)) }.halves());
    }

    #[test]
    fn what_is_beyond_the_limit_is_not_trusted_and_without_a_limit_nothing_is() {
        let trust = Trust {
            backend: "udp spin".to_owned(),
            limit_percent: Some(99.9),
            limit_raw_percent: None,
            base: None,
            tolerance: USUAL_TOLERANCE,
            calibrated_at_ns: 0,
            age: Nanos(0),
            calibrated_pps: 1e3,
            stale: None,
            other: Vec::new(),
        };
        assert!(!trust.is_beyond(99.9) && !trust.is_beyond(50.0));
        assert!(trust.is_beyond(99.99));
        assert!(Trust { limit_percent: None, ..trust }.is_beyond(50.0));
    }
}
