//! `whylate compare`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use whylate_model::identity::Component;
use whylate_report::compare::Limit;

use super::help::COMMON;

/// Compare runs: what changed, by how much, and is it significant?
///
/// With two run directories the first is the one before the change (A), the second the one after it
/// (B). With --baseline the runs named there are A and the others B. Give several runs per side,
/// alternating A B A B, so that the spread between runs counts, too.
///
/// Series that measure different things (other points, another clock, loop, transport, size, rate,
/// task set, timer or load) are not compared; every difference is named, and --across allows it by
/// name. Stalls are compared above the larger of two thresholds.
///
/// Example: whylate compare before after
///
/// Example: whylate compare new-1 new-2 new-3 --baseline old-1 old-2 old-3 --limit p99.9=+10%
///
/// Exit status: 0 done; 1 nothing could be compared; 3 a limit was exceeded: the whole interval of
/// the difference is beyond it; 4 a limit cannot be judged, for example because n is too small, or
/// trust is poor.
///
/// Limits: each line has its own 95% interval; among twenty lines one is wrong by chance.
#[derive(Debug, Clone, Args)]
pub(crate) struct Compare {
    /// Run directories: BEFORE AFTER, or with --baseline those after the change
    #[arg(
        help = "BEFORE AFTER; with --baseline, those after the change",
        long_help,
        required_unless_present = "baseline",
        value_name = "DIR"
    )]
    pub(crate) runs: Vec<PathBuf>,
    /// Run directories to compare with; takes all that follow, so put it last
    #[arg(
        help = "Runs to compare with; put it last",
        long_help,
        help_heading = "What to compare",
        long,
        value_name = "DIR",
        num_args = 1..
    )]
    pub(crate) baseline: Vec<PathBuf>,
    /// Limit for B against A: p99.9=+10%, max=+50us, lost=+10%, or SERIES:p99=+5%
    #[arg(
        help = "Limit for B against A, such as p99.9=+10%",
        long_help,
        help_heading = "Limits and files",
        long = "limit",
        value_name = "LIMIT",
        value_parser = str::parse::<Limit>
    )]
    pub(crate) limits: Vec<Limit>,
    /// Write one page with both curves of each series in one figure
    #[arg(
        help = "Write a page with the curves of both sides",
        long_help,
        help_heading = "Limits and files",
        long,
        value_name = "FILE"
    )]
    pub(crate) html: Option<PathBuf>,
    /// Write the limits as a JUnit report
    #[arg(help_heading = "Limits and files", long, value_name = "FILE", requires = "limits")]
    pub(crate) junit: Option<PathBuf>,
    /// Only this series; NAME=NAME pairs a series of A with one of B
    #[arg(
        help = "Only this series; NAME=NAME pairs one of A and of B",
        long_help,
        help_heading = "What to compare",
        long,
        value_name = "NAME",
        value_parser = series
    )]
    pub(crate) series: Vec<(String, String)>,
    /// Compare although these differ: rate, size, transport, load, timer ...
    #[arg(
        help = "Compare although these differ: rate ...; more: --help",
        long_help,
        help_heading = "What to compare",
        long,
        value_name = "LIST",
        value_delimiter = ',',
        conflicts_with = "side_by_side"
    )]
    pub(crate) across: Vec<Component>,
    /// Show both sides without judging, also where they measure different things
    #[arg(
        help = "Show both sides without judging",
        long_help,
        help_heading = "What to compare",
        long,
        conflicts_with = "limits"
    )]
    pub(crate) side_by_side: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Shape::Text, help_heading = COMMON)]
    pub(crate) format: Shape,
    /// Print the whole report, not its first screen
    #[arg(long, help_heading = COMMON)]
    pub(crate) full: bool,
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
