//! `whylate compare`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use whylate_model::identity::Component;
use whylate_report::compare::Limit;

/// Set runs against each other: what differs, and is it chance.
///
/// With two run directories the first is what was before (A), the second what came after (B). With
/// --baseline the runs named there are A and the others B; give several a side, recorded in turns
/// (A B A B), and the spread between runs counts, too.
///
/// Nothing is computed for series that measure different things (other points, another clock, loop,
/// transport, size, rate, task set, timer or load); all they differ in is named, and --across allows it by
/// name. Gaps are compared above the larger of two thresholds.
///
/// Example: whylate compare before after
///
/// Example: whylate compare new-1 new-2 new-3 --baseline old-1 old-2 old-3 --limit p99.9=+10%
///
/// Exit status: 0 done; 1 nothing could be compared; 3 a limit was exceeded: the interval of the
/// difference lies wholly beyond it; 4 a limit cannot be judged, as when n is too small.
///
/// Limits: an interval is 95 % for each line by itself; among twenty lines one is wrong by chance.
#[derive(Debug, Clone, Args)]
pub(crate) struct Compare {
    /// Run directories: BEFORE AFTER, or with --baseline those that came after
    #[arg(required_unless_present = "baseline", value_name = "DIR")]
    pub(crate) runs: Vec<PathBuf>,
    /// Run directories to compare with: all that follow, so that those that came after stand before it
    #[arg(long, value_name = "DIR", num_args = 1..)]
    pub(crate) baseline: Vec<PathBuf>,
    /// Only this series; NAME=NAME pairs a series of A with one of B
    #[arg(long, value_name = "NAME", value_parser = series)]
    pub(crate) series: Vec<(String, String)>,
    /// Compare all the same what differs in these: rate, size, transport, load, timer ...
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "side_by_side")]
    pub(crate) across: Vec<Component>,
    /// How much more B may be: p99.9=+10%, max=+50us, lost=+10%, or SERIES:p99=+5%
    #[arg(long = "limit", value_name = "LIMIT", value_parser = str::parse::<Limit>)]
    pub(crate) limits: Vec<Limit>,
    /// Write the limits as a JUnit report for a CI system
    #[arg(long, value_name = "FILE", requires = "limits")]
    pub(crate) junit: Option<PathBuf>,
    /// Write one page with both curves of each series in one figure
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Show both sides beside each other, alike or not, and judge nothing
    #[arg(long, conflicts_with = "limits")]
    pub(crate) side_by_side: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Shape::Text)]
    pub(crate) format: Shape,
}

/// How to print a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    /// Tables of at most 80 columns.
    Text,
    /// JSON, by the schema in the repository.
    Json,
}

fn series(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        None if !text.is_empty() => Ok((text.to_owned(), text.to_owned())),
        Some((left, right)) if !left.is_empty() && !right.is_empty() => {
            Ok((left.to_owned(), right.to_owned()))
        }
        _ => Err(format!("`{text}` names no series: write NAME, or NAME_IN_A=NAME_IN_B")),
    }
}
