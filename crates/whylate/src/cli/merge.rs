//! `whylate merge`.

use std::path::PathBuf;

use clap::Args;
use whylate_model::identity::Component;
use whylate_report::Percentiles;

use super::Format;
use super::help::COMMON;
use crate::parse;

/// Merge runs into one histogram, with the spread between them
///
/// Histograms and tables are added, and percentiles are those of the sum; they are never averaged.
/// Each recording keeps its clock and its machine, and the report shows the spread between them.
/// The result is a run directory that `report` and `compare` read, with its page.
///
/// Intervals: the wider of two, one as if the recordings were one, one from the spread between
/// them; both are in the report, with the ratio of their variances.
///
/// Series that measure different things (other points, another clock, loop, transport, size, rate,
/// task set, timer or load) are refused with all their differences; --across allows them by name.
/// Recordings with different thresholds are added above the largest one; the number of shorter stalls
/// that are left out is reported.
///
/// Example: whylate merge host-*/run -o fleet
///
/// Cost: every directory is read twice; memory does not grow with their length.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of a command line")]
pub(crate) struct Merge {
    /// Run directories, in any order
    #[arg(required = true, value_name = "DIR")]
    pub(crate) runs: Vec<PathBuf>,
    /// Merge the CPUs, too: gap-cpu1 and gap-cpu2 become gap
    #[arg(help_heading = "What to merge", long)]
    pub(crate) across_cpus: bool,
    /// Merge although these differ: rate, size, transport, load, timer ...
    #[arg(
        help = "Merge although these differ: rate ...; more: --help",
        long_help,
        help_heading = "What to merge",
        long,
        value_name = "LIST",
        value_delimiter = ','
    )]
    pub(crate) across: Vec<Component>,
    /// Leave out directories that cannot be read, and name them; trust in the sum is then poor
    #[arg(
        help = "Leave out directories that cannot be read",
        long_help,
        help_heading = "What to merge",
        long
    )]
    pub(crate) skip_damaged: bool,
    /// Do not copy the tables of single stalls and events
    #[arg(help_heading = "Tables", long, conflicts_with = "max_disk")]
    pub(crate) without_tables: bool,
    /// Most bytes of tables to copy
    #[arg(
        help_heading = "Tables",
        long,
        value_name = "SIZE",
        default_value = "16GiB",
        value_parser = parse::size
    )]
    pub(crate) max_disk: u64,
    /// Write the sum into this directory, which must be new or empty
    #[arg(short = 'o', long = "out", alias = "output", value_name = "DIR", help_heading = COMMON)]
    pub(crate) output: PathBuf,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = COMMON)]
    pub(crate) format: Format,
    /// Percentiles to print, of 50 90 99 99.9 99.99 99.999 99.9999 [default: 50,99,99.9]
    #[arg(long, value_name = "LIST", help_heading = COMMON)]
    pub(crate) percentiles: Option<Percentiles>,
    /// Print the whole report, not its first screen
    #[arg(long, help_heading = COMMON)]
    pub(crate) full: bool,
}
