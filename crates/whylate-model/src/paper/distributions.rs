//! Distributions of a paper's figure, what a tool shows of an effect, and tables as a paper has them.

use serde::{Deserialize, Serialize};

/// Distributions that belong into one figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Distributions {
    /// What is shown.
    pub title: String,
    /// What lies along x: `latency through the device`.
    pub of: String,
    /// Is the cumulative distribution drawn, too, or the complementary one alone?
    pub cumulative: bool,
    /// A curve ends where fewer samples than this lie at or above it.
    pub fewest_above: u64,
    /// Its curves, in the order of their labels.
    pub curves: Vec<Distribution>,
}

/// One distribution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Distribution {
    /// Whose it is.
    pub label: String,
    /// Samples.
    pub n: u64,
    /// Values closer than this are not told apart, in nanoseconds.
    pub granularity_ns: f64,
    /// The run directories behind it, beside the paper's file; none of an imported one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<String>,
    /// The file that it was imported from; none of what was measured here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<String>,
    /// Share of its samples below which it lies beyond what the calibration of its backend on this machine lets be
    /// trusted, 1 for all of it; none where nothing is known of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beyond_share: Option<f64>,
    /// Its steps, in ascending order of the values, thinned for drawing.
    pub points: Vec<DistributionPoint>,
    /// Values at the usual percentiles, of the whole sample.
    pub reached: Vec<Reached>,
}

/// A step of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DistributionPoint {
    /// The value in nanoseconds.
    pub value_ns: f64,
    /// Share of the samples at or above it.
    pub share: f64,
}

/// The value at a percentile.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reached {
    /// In percent.
    pub percent: f64,
    /// The value in nanoseconds; of buckets the middle of the one that holds it.
    pub value_ns: f64,
    /// It lies between these: 95 % interval of a sample, or the ends of a bucket. None where neither
    /// end is known; the upper one is infinite nowhere.
    pub between_ns: Option<(f64, f64)>,
}

/// What one tool, and what the box itself, say of the difference between two configurations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Effect {
    /// The tool.
    pub tool: String,
    /// At which percentile.
    pub percent: f64,
    /// The configuration that is left.
    pub from: String,
    /// The configuration that is gone to.
    pub to: String,
    /// What the tool reports; none where its samples do not tell.
    pub reported: Option<EffectSize>,
    /// What the log of the box says of the same frames; none where it does not tell.
    pub truth: Option<EffectSize>,
    /// Does the tool preserve it?
    pub verdict: EffectVerdict,
    /// Why.
    pub why: String,
}

/// The difference of a percentile between two configurations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EffectSize {
    /// The later less the earlier, in nanoseconds.
    pub ns: f64,
    /// Lower end of its 95 % interval.
    pub low_ns: f64,
    /// Upper end of it.
    pub high_ns: f64,
}

/// What became of an effect in a tool's report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EffectVerdict {
    /// The tool shows the effect that there is.
    Preserved,
    /// The tool shows none where there is one, another one, or one where there is none.
    Lost,
    /// These runs do not tell.
    NotTold,
}

impl EffectVerdict {
    /// Its word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Preserved => "preserved",
            Self::Lost => "lost",
            Self::NotTold => "not told",
        }
    }
}

/// A table of text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TextTable {
    /// What it shows.
    pub caption: String,
    /// Heads of its columns.
    pub head: Vec<String>,
    /// Its rows, each as long as the head.
    pub rows: Vec<Vec<String>>,
    /// Columns that are text rather than numbers, beside the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<usize>,
}
