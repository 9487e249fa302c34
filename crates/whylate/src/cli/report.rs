//! `whylate report`.

use std::path::PathBuf;

use clap::Args;
use whylate_report::Percentiles;
use whylate_report::execution::Window;

use super::Format;
use super::help::COMMON;

/// Show a recorded run
///
/// Needs neither privilege nor the machine that made the run.
///
/// Example: whylate report whylate-20261121-070000
///
/// Example: whylate report whylate-20261121-070000 --timeline 1s..1.5s
#[derive(Debug, Clone, Args)]
pub(crate) struct Report {
    /// Run directory
    pub(crate) run: PathBuf,
    /// Draw which thread had the CPU when, from FROM to TO after the start of the run, such as
    /// 1s..1.5s [default: around the first missed deadline, or the start]
    #[arg(
        help = "Draw which thread had the CPU when, as in 1s..1.5s",
        long_help,
        long,
        alias = "trace",
        value_name = "FROM..TO",
        num_args = 0..=1,
        conflicts_with_all = ["format", "html"]
    )]
    #[expect(clippy::option_option, reason = "clap's form of an option that may have a value")]
    pub(crate) timeline: Option<Option<Window>>,
    /// Write one self-contained page to this file; - is standard output
    #[arg(
        help = "Write one page to this file; - is standard output",
        long_help,
        long,
        value_name = "FILE",
        conflicts_with = "format"
    )]
    pub(crate) html: Option<PathBuf>,
    /// How to print it
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = COMMON)]
    pub(crate) format: Format,
    /// Percentiles to print, of 50 90 99 99.9 99.99 99.999 99.9999 [default: 50,99,99.9]
    #[arg(long, value_name = "LIST", conflicts_with = "html", help_heading = COMMON)]
    pub(crate) percentiles: Option<Percentiles>,
    /// Print the whole report, not its first screen
    #[arg(long, conflicts_with = "html", help_heading = COMMON)]
    pub(crate) full: bool,
}
