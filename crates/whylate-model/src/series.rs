//! A series: one measured quantity, with everything needed to read its numbers.

pub mod summary;

use serde::{Deserialize, Serialize};

use crate::breakdown::shown_steps;
use crate::calibration::Trust;
use crate::units::Nanos;

/// One measured quantity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// Identifier, also the tag in `histograms.hlog`: `gap-cpu1`, `wake-cpu1`, `udp-rtt-other-core`.
    pub name: String,
    /// Row label for people.
    pub label: String,
    /// Row of Table 1 of the PAM paper that this repeats, such as `1c`; none otherwise.
    pub paper_row: Option<String>,
    /// Vantage point where the clock starts.
    pub from: String,
    /// Vantage point where the clock stops.
    pub to: String,
    /// The clock.
    pub clock: String,
    /// What the number is: `gap`, `dispatch latency`, `rtt`, ...
    pub definition: Definition,
    /// Smallest step of the clock behind these values.
    pub resolution_ns: f64,
    /// Samples.
    pub n: u64,
    /// What was to be measured and was lost: counted, never dropped unseen. What is only known from below
    /// is in `censored`.
    pub lost: u64,
    /// Samples of which only a lower bound is known.
    #[serde(default)]
    pub censored: Option<Censored>,
    /// Exact smallest value.
    #[serde(rename = "min_ns")]
    pub min: Option<Nanos>,
    /// Exact largest value; none when samples are censored.
    #[serde(rename = "max_ns")]
    pub max: Option<Nanos>,
    /// Mean; none when samples are censored.
    pub mean_ns: Option<f64>,
    /// Quantiles in the one order, each with its interval; unsupported ones say so.
    pub quantiles: Vec<Quantile>,
    /// Class by the p99.9 of what was measured.
    pub class: Option<Class>,
    /// The value that decided the class: the p99.9, or a lower bound of it that leaves no other.
    #[serde(rename = "class_by_ns")]
    pub class_by: Option<Nanos>,
    /// The tail: events over 100 us.
    pub tail: Option<Tail>,
    /// Both readings of the paper's signal-to-noise ratio.
    pub snr: Option<Snr>,
    /// Block series and trend tests.
    pub stationarity: Option<Stationarity>,
    /// In a sum: how far its numbers may be trusted, which is as far as those of the recording that is trusted
    /// least. None where nothing was calibrated, and in a recording, which says so of what it measured with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
}

impl Series {
    /// The value at a percentile; none where the sample does not show it.
    #[must_use]
    pub fn at(&self, percent: f64) -> Option<Nanos> {
        self.quantiles.iter().find(|of| (of.percent - percent).abs() < 1e-9)?.value
    }
}

/// What a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Definition {
    /// Distance of two readings of the counter, every pair counted.
    ReadDelta,
    /// Distance above a threshold.
    Gap,
    /// Scheduled instant to running.
    DispatchLatency,
    /// Nominal release of a job to the instant at which it has its execution time.
    ResponseTime,
    /// End of a job that was in time to its deadline.
    Slack,
    /// Deadline to the end of a job that was late.
    Tardiness,
    /// Actual send to response.
    RoundTrip,
    /// Intended send to response.
    Response,
    /// Actual send by one port to the reception by another, by one clock.
    OneWay,
    /// Intended send by one port to the reception by another, by one clock.
    OneWayResponse,
    /// Intended send to actual send; in a delay line, when a frame was to leave to when it did.
    SendLateness,
    /// The same without what left late behind long turns of the sender's loop.
    UninterruptedLateness,
    /// Actual send to the next one.
    Departures,
    /// Reception to the next one of the same sender.
    Receptions,
    /// Reception of a request to the sending of its answer, inside a server; of a frame to its handing
    /// over, inside a forwarder.
    Residence,
    /// Last reading of one runner to the first of the next on its CPU.
    ContextSwitch,
    /// A point on the way of a request and its reply to a later one.
    PartOfRequest,
}

impl Definition {
    /// Do the paper's classes and its signal-to-noise ratio speak of it? They judge how long something
    /// is kept waiting: a job or a switch takes what it takes, and distances of departures are as asked.
    #[must_use]
    pub fn has_class(self) -> bool {
        match self {
            Self::ReadDelta
            | Self::Gap
            | Self::DispatchLatency
            | Self::RoundTrip
            | Self::Response
            | Self::OneWay
            | Self::OneWayResponse
            | Self::Residence => true,
            Self::ResponseTime
            | Self::Slack
            | Self::Tardiness
            | Self::SendLateness
            | Self::UninterruptedLateness
            | Self::Departures
            | Self::Receptions
            | Self::ContextSwitch
            | Self::PartOfRequest => false,
        }
    }
}

/// Samples that were given up: they stay in the sample, and all that is known of them is that they
/// are larger than this. Quantiles that fall among them have no value and no upper end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Censored {
    /// How many.
    pub count: u64,
    /// What each of them exceeds.
    #[serde(rename = "above_ns")]
    pub above: Nanos,
}

impl Censored {
    /// What was given up of two recordings together: with different bounds the lower one holds for all.
    #[must_use]
    pub fn of_both(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(Self {
                count: one.count.saturating_add(other.count),
                above: one.above.min(other.above),
            }),
            (one, other) => one.or(other),
        }
    }
}

/// One quantile with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Quantile {
    /// In percent: 99.9.
    pub percent: f64,
    /// The estimate; none when the sample is too small to have one.
    #[serde(rename = "value_ns")]
    pub value: Option<Nanos>,
    /// Lower end.
    #[serde(rename = "low_ns")]
    pub low: Option<Nanos>,
    /// Upper end; none when the sample does not support one.
    #[serde(rename = "high_ns")]
    pub high: Option<Nanos>,
    /// Effective sample size behind the interval.
    pub n_eff: f64,
}

/// How timer wake-ups are called.
pub(crate) const WAKE_UPS: &str = "wake-up latency";
/// The same with each skipped one at its own latency.
const ALL_DUE: &str = "all due wake-ups";

/// `  and skipped, HR`, or with how many were skipped.
fn with_skipped(label: &str) -> Option<String> {
    let rest = label.trim_start().strip_prefix("and ")?;
    let (many, rest) = rest.split_once("skipped")?;
    let is_many = many.trim_end().bytes().all(|of| of.is_ascii_digit());
    (is_many && (rest.is_empty() || rest.starts_with(','))).then(|| format!("{ALL_DUE}{rest}"))
}

/// The label of a series in the words of reports, whatever it is stored as.
#[must_use]
pub fn shown_label(label: &str) -> String {
    if let Some(all) = with_skipped(label) {
        return all;
    }
    let shown = [
        ("gaps", "stalls"),
        ("two reads", "clock reading"),
        ("wake-up", WAKE_UPS),
        ("service", "service time"),
        ("response", "response time"),
        ("response times", "response time"),
        ("send lateness", "send delay"),
    ];
    if let Some(steps) = shown_steps(label) {
        return steps;
    }
    if let Some(place) = ["message, ", "UDP, "].iter().find(|of| label.starts_with(**of)) {
        let rest = &label[place.len()..];
        let cpu = ["same core", "other core"].iter().find(|of| rest.starts_with(**of));
        if cpu.is_some() {
            return format!("{place}{}", rest.replacen("core", "CPU", 1));
        }
    }
    // A label is shown twice where a report is of a run that was made for another.
    let of = |rest: &str| rest.is_empty() || rest.starts_with([',', '*']);
    let known = shown.iter().find_map(|(stored, shown)| {
        let rest = label.strip_prefix(stored).filter(|rest| of(rest))?;
        Some(format!("{shown}{rest}"))
    });
    known.unwrap_or_else(|| label.to_owned())
}

/// The paper's classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// p99.9 below 1 us.
    Good,
    /// From 1 us to 100 us.
    Bad,
    /// Above 100 us.
    Ugly,
}

/// Events over 100 us.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SeriesTail"))]
pub struct Tail {
    /// How many.
    pub count: u64,
    /// Their share of the time that `denominator` names.
    pub share: f64,
    /// What the share is a share of.
    pub denominator: Denominator,
}

/// What a share of time is a share of: always named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Denominator {
    /// The elapsed time of the measurement.
    Elapsed,
    /// The time inside the pairs of readings, or the sum of the measured latencies.
    Measured,
}

/// Signal-to-noise ratio, in both readings of the paper's text.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Snr {
    /// Events below p99.9 over events above: about 999 by construction, ties apart.
    #[serde(rename = "by_count_ratio")]
    pub by_count: Option<f64>,
    /// Time below p99.9 over time above.
    #[serde(rename = "by_time_ratio")]
    pub by_time: Option<f64>,
}

/// Ten equal blocks of time and two tests for a trend.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stationarity {
    /// p50 of each block.
    #[serde(rename = "p50_ns")]
    pub p50: Vec<Option<Nanos>>,
    /// p99 of each block.
    #[serde(rename = "p99_ns")]
    pub p99: Vec<Option<Nanos>>,
    /// Mann-Kendall p-value of the p50 series.
    #[serde(rename = "trend_p50_p_value")]
    pub trend_p50: Option<f64>,
    /// Mann-Kendall p-value of the p99 series.
    #[serde(rename = "trend_p99_p_value")]
    pub trend_p99: Option<f64>,
    /// Kruskal-Wallis p-value over the blocks.
    #[serde(rename = "blocks_differ_p_value")]
    pub blocks_differ: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_shown_in_the_words_of_reports_and_those_of_others_stay() {
        for (stored, shown) in [
            ("gaps, CPU 1", "stalls, CPU 1"),
            ("two reads, CPU 1", "clock reading, CPU 1"),
            ("wake-up, HR", "wake-up latency, HR"),
            ("service", "service time"),
            ("response, video", "response time, video"),
            ("response times", "response time"),
            ("send lateness, uninterrupted", "send delay, uninterrupted"),
            ("services", "services"),
            ("UDP, other core [2d]", "UDP, other CPU [2d]"),
            ("message, same core*", "message, same CPU*"),
            ("jobs of scorer", "jobs of scorer"),
            ("send call and protocols, request of rtt", "send path, request of rtt"),
            (
                "receiving stack, wake-up and return from the read, reply of rtt",
                "receive path, wake-up, read, reply of rtt",
            ),
            ("send lateness, request of rtt", "send delay, request of rtt"),
            ("wake-up and return from the read, request of rtt", "wake-up, read, request of rtt"),
            (
                "the server, between request and reply of rtt",
                "the server, between request and reply of rtt",
            ),
            ("  and skipped, HR", "all due wake-ups, HR"),
            ("  and 34 skipped", "all due wake-ups"),
            ("and so skipped, HR", "and so skipped, HR"),
            ("sending card and wire, request of rtt", "card, wire, request of rtt"),
            ("cut and paste, between meals", "cut and paste, between meals"),
        ] {
            assert_eq!(shown_label(stored), shown);
            assert_eq!(shown_label(shown), shown, "shown twice");
        }
    }
}
