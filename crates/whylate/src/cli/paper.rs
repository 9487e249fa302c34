//! `whylate paper`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::Format;

/// Repeat the experiments of a paper: its figures beside this host's, and why they differ.
///
/// hourglass2002: Regehr, "Inferring Scheduling Behavior with Hourglass", 2002: Figure 3 and sections
/// 5.1 to 5.6. Each part is a recording in a directory of its own; paper.json and report.html beside
/// them hold all figures, each with its interval and the command that repeats it.
///
/// Example: whylate paper hourglass2002 --quick
///
/// Example: whylate paper hourglass2002 --only 5.4,5.6
///
/// Cost: some eight minutes of one CPU, two with --quick; load on that CPU for sections 5.3 and 5.4.
///
/// Limits: real-time priorities and reservations need CAP_SYS_NICE. What this host cannot do is named
/// in place of a figure.
#[derive(Debug, Clone, Args)]
pub(crate) struct Paper {
    /// Which paper
    #[arg(value_enum, value_name = "PAPER")]
    pub(crate) which: Which,
    /// Write into this directory, which must be new or empty [default: whylate-DATE-TIME]
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Only these places of the paper, apart by commas: "Figure 3", 5.1 ... 5.6
    #[arg(long, value_name = "PLACES", value_delimiter = ',')]
    pub(crate) only: Option<Vec<String>>,
    /// The CPU of the experiments [default: the last one]
    #[arg(long, value_name = "CPU")]
    pub(crate) cpus: Option<String>,
    /// Seed of everything random; the default is drawn and recorded
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Shorter parts; the report says so
    #[arg(long)]
    pub(crate) quick: bool,
}

/// The papers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Which {
    /// Regehr, Inferring Scheduling Behavior with Hourglass, 2002
    Hourglass2002,
}
