//! Two sides of recorded runs, set against each other.
//!
//! Guarantees: nothing is computed for series that are not one ([`whylate_model::identity`]), unless what
//! they differ in was allowed by name, and each difference is named; every difference has an interval; "no
//! difference shown" is a result; a quantile that a side does not support is absent, never the maximum in its place,
//! and so is one that falls among samples that were given up: each side is summed up as a report sums it up. Gaps are compared above the larger of the two
//! thresholds, for below it one side saw none. Works from run directories alone; the same
//! directories give the same answer, to the last digit.
//!
//! Side A is what was before (the baseline), side B what came after. A difference is B less A.

mod causes;
mod caution;
mod differs;
mod likeness;
mod limit;
mod limited;
mod load;
mod page;
mod pair;
pub(crate) mod section;
mod shown;
mod sides;

pub mod junit;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use whylate_model::Nanos;
use whylate_model::difference::Difference;
use whylate_model::identity::Component;
use whylate_model::run::RunState;
use whylate_model::series::{Censored, Definition, Quantile};
use whylate_model::trust::{Reason, Told, Trust};

pub use causes::CauseChange;
pub use caution::Caution;
pub(crate) use differs::renamed;
pub(crate) use likeness::unlike;
pub(crate) use limit::runs;
pub use limit::{Bound, Excess, Judged, Limit, Measure, Outcome};
pub use page::html;
pub use sides::{Compared as WithValues, compare};

/// What is said of what falls among samples that were given up.
pub(crate) const TIMED_OUT: &str = "timed out";

/// Version of the JSON form.
pub const FORMAT_VERSION: u32 = 2;

/// What is asked.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Run directories of side A, the baseline.
    pub before: Vec<PathBuf>,
    /// Run directories of side B.
    pub after: Vec<PathBuf>,
    /// Series to compare, as name in A and name in B; all that both sides have where empty.
    pub series: Vec<(String, String)>,
    /// What series may differ in and still be held against each other.
    pub across: Vec<Component>,
    /// Show what is not alike beside each other, and judge nothing.
    pub side_by_side: bool,
    /// Limits on differences.
    pub limits: Vec<Limit>,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Version of this form.
    pub format_version: u32,
    /// Version of the tool that compared.
    pub tool_version: String,
    /// Runs of side A.
    pub before: Vec<RunFacts>,
    /// Runs of side B.
    pub after: Vec<RunFacts>,
    /// Series that both sides have.
    pub pairs: Vec<Pair>,
    /// Series that one side has alone.
    pub unpaired: Vec<Unpaired>,
    /// What differs between the hosts, the tools and the settings of the first run of each side.
    pub differences: Vec<Difference>,
    /// What the reader must know.
    pub cautions: Vec<Caution>,
    /// The limits, judged.
    pub limits: Vec<Judged>,
}

/// A run of one side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunFacts {
    /// Its directory, as it was named.
    pub directory: String,
    /// Version of the tool that recorded it.
    pub tool_version: String,
    /// Its host.
    pub hostname: String,
    /// The host's architecture.
    pub architecture: String,
    /// How far it came.
    pub state: RunState,
    /// Recordings in it: more than one when it was merged.
    pub recordings: usize,
    /// What it measured, in a few words.
    #[serde(skip)]
    pub measured: String,
}

/// A series that one side has alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unpaired {
    /// Its name.
    pub series: String,
    /// Which side has it.
    pub only_in: Side,
}

/// One of the two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Side {
    /// Before, or the baseline.
    A,
    /// After.
    B,
}

/// A series of both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pair {
    /// Its name in A; in B, too, unless the user paired two names.
    pub series: String,
    /// What A measured.
    pub before: Shown,
    /// What B measured.
    pub after: Shown,
    /// What became of the comparison.
    pub result: PairResult,
}

/// What one side measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shown {
    /// Name of the series.
    pub name: String,
    /// Its label.
    pub label: String,
    /// Vantage point where the clock starts.
    pub from: String,
    /// Vantage point where it stops.
    pub to: String,
    /// The clock.
    pub clock: String,
    /// What the number is.
    pub definition: Definition,
    /// Smallest step of the clock, the coarsest of the runs.
    pub resolution_ns: f64,
    /// Recordings behind the numbers.
    pub runs: usize,
    /// Samples.
    pub n: u64,
    /// Those of them that were given up, as in the runs themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored: Option<Censored>,
    /// Smallest value.
    #[serde(rename = "min_ns")]
    pub min: Option<Nanos>,
    /// Largest value; none where samples were given up.
    #[serde(rename = "max_ns")]
    pub max: Option<Nanos>,
    /// Quantiles of all runs pooled. What the report of a run withholds has no value here.
    pub quantiles: Vec<Quantile>,
}

/// What became of the comparison of a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum PairResult {
    /// Compared.
    Compared(Box<Compared>),
    /// Not alike: nothing was computed.
    Unlike {
        /// The fields in which the two differ.
        fields: Vec<Difference>,
    },
    /// Shown beside each other, as asked, without a verdict.
    SideBySide,
    /// Alike, but there is nothing to compute from.
    NoData {
        /// Why.
        reason: String,
    },
}

/// Differences of two alike series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compared {
    /// What the two measure differs in this, as was allowed by name: the difference of the numbers may be
    /// no other's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub across: Vec<Difference>,
    /// Only gaps of at least this length were compared: the larger of the two thresholds.
    #[serde(rename = "above_ns")]
    pub above: Option<Nanos>,
    /// Quantiles, in the one order.
    pub quantiles: Vec<QuantileDifference>,
    /// The largest values.
    pub max: MaxDifference,
    /// The rank test.
    pub rank: Option<Rank>,
    /// Lost share of the elapsed time, for gaps.
    pub lost_share: Option<NumberDifference>,
    /// The cause whose part of the lost share changed most, for gaps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causes: Option<CauseChange>,
    /// Gaps per second of at least so many nanoseconds.
    pub rates: Vec<RateDifference>,
}

/// The difference of a quantile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuantileDifference {
    /// Which, in percent.
    pub percent: f64,
    /// In A; none when A does not support it, or it falls among samples that were given up.
    #[serde(rename = "before_ns")]
    pub before: Option<Nanos>,
    /// In B; none when B does not support it, or it falls among samples that were given up.
    #[serde(rename = "after_ns")]
    pub after: Option<Nanos>,
    /// B less A, with its intervals; none unless both support it.
    #[serde(rename = "difference_ns")]
    pub difference: Option<Spread>,
    /// In words; none without a difference.
    pub verdict: Option<Verdict>,
}

/// The largest values: they grow with the duration, and only runs tell how they scatter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MaxDifference {
    /// Largest value of all runs of A; none where samples were given up.
    #[serde(rename = "before_ns")]
    pub before: Option<Nanos>,
    /// Largest value of all runs of B; none where samples were given up.
    #[serde(rename = "after_ns")]
    pub after: Option<Nanos>,
    /// Difference of the runs' largest values on average; none with one run a side.
    #[serde(rename = "difference_ns")]
    pub difference: Option<Spread>,
    /// In words; none without a difference.
    pub verdict: Option<Verdict>,
}

/// A number with a unit of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NumberDifference {
    /// In A.
    pub before: f64,
    /// In B.
    pub after: f64,
    /// B less A.
    pub difference: Spread,
    /// In words.
    pub verdict: Verdict,
}

/// The difference of a rate, per second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RateDifference {
    /// Gaps of at least this length.
    #[serde(rename = "at_least_ns")]
    pub at_least: Nanos,
    /// Where A has none of them: the rate is below this (95 %, three over the time measured).
    #[serde(rename = "before_below_per_s")]
    pub before_below: Option<f64>,
    /// The same of B.
    #[serde(rename = "after_below_per_s")]
    pub after_below: Option<f64>,
    /// How often, and the difference.
    #[serde(rename = "per_s")]
    pub per_second: NumberDifference,
}

/// A difference and how sure it is, in the unit of what differs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spread {
    /// The difference, B less A.
    pub difference: f64,
    /// Relative to A; none where A is 0.
    pub relative: Option<f64>,
    /// 95 % interval: the wider of the two below.
    pub interval: (f64, f64),
    /// From the time within the runs; none where only runs can tell.
    pub within: Option<(f64, f64)>,
    /// From the spread between runs; none with one run a side.
    pub between: Option<(f64, f64)>,
    /// Blocks of time were resampled; otherwise samples were taken as independent.
    pub resampled: bool,
}

/// The rank test: probability of superiority, with dependence accounted for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rank {
    /// Probability that a value of B is larger than one of A, ties as a half.
    pub superiority: f64,
    /// Its 95 % interval.
    #[serde(rename = "superiority_interval")]
    pub interval: (f64, f64),
    /// Two-sided p-value of "neither is larger".
    pub p_value: f64,
    /// What the p-value would be if all samples were independent: for the curious.
    pub p_value_if_independent: f64,
    /// `samples`, `blocks`, `runs`: what the spread was taken from.
    pub basis: Basis,
}

/// What the spread of the rank test was taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Single samples, taken as independent.
    Samples,
    /// Blocks of time within the runs.
    Blocks,
    /// Runs.
    Runs,
}

/// What an interval says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The interval does not exclude that both are equal, or they differ by less than a step of the
    /// clock.
    NoDifferenceShown,
    /// A is lower.
    ALower,
    /// A is higher.
    AHigher,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::NoDifferenceShown => "no difference shown",
            Self::ALower => "B higher",
            Self::AHigher => "B lower",
        })
    }
}

impl Comparison {
    /// Was anything computed at all, or shown as asked?
    #[must_use]
    pub fn says_anything(&self) -> bool {
        let said = |result: &PairResult| {
            matches!(result, PairResult::Compared(_) | PairResult::SideBySide)
        };
        self.pairs.iter().any(|pair| said(&pair.result))
    }

    /// How far its differences may be trusted: by the cautions, each once and the worst first.
    #[must_use]
    pub fn trust(&self) -> Trust {
        let mut reasons: Vec<Reason> = Vec::new();
        for caution in &self.cautions {
            let reason = Reason { level: caution.level(), what: self.told(caution) };
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.level));
        Trust { reasons }
    }

    /// A caution with the series as the first screen calls it.
    pub(crate) fn told(&self, caution: &Caution) -> String {
        let mut named = caution.clone();
        if let Some(series) = named.series()
            && let Some(pair) = self.pairs.iter().find(|pair| pair.series == *series)
        {
            *series = crate::first::row_name(self, pair);
        }
        named.to_string()
    }

    /// The JSON form with how far it may be trusted, and a line break at its end.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let printed = Printed { comparison: self, trust: self.trust().into() };
        serde_json::to_string_pretty(&printed).map(|text| text + "\n")
    }
}

/// What is printed as JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Comparison"))]
struct Printed<'a> {
    #[serde(flatten)]
    comparison: &'a Comparison,
    /// How far its differences may be trusted: by the cautions, each once and the worst first. With `poor` the status
    /// is 4.
    trust: Told,
}

/// What `--across` has to name so that series that differ in these are compared; none where that cannot be.
pub(crate) fn allowed_by(fields: &[Difference]) -> Option<String> {
    let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    names.iter().all(|name| name.parse::<Component>().is_ok()).then(|| names.join(","))
}

/// The JSON schema of a [`Comparison`], committed as `schema/comparison.schema.json`.
///
/// # Panics
///
/// Never: a schema is made of strings, numbers and lists, and JSON has them all.
#[cfg(feature = "schema")]
#[must_use]
pub fn schema() -> String {
    let mut text = serde_json::to_string_pretty(&schemars::schema_for!(Printed<'_>))
        .expect("invariant: a schema is made of strings, numbers and lists");
    text.push('\n');
    text
}
