//! `whylate paper`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use whylate_model::configuration::Configurations;
use whylate_report::import::Wanted;

use super::Format;
use super::help::COMMON;
use crate::parse;

/// Repeat a paper's experiments: its figures beside those of this machine
///
/// hourglass2002: Regehr, "Inferring Scheduling Behavior with Hourglass", 2002: Figure 3 and
/// sections 5.1 to 5.6. Each part is a recording in its own directory; paper.json and report.html
/// beside them have all figures, each with its interval and the command that repeats it.
///
/// pam2017: Zilberman and others, "Where Has My Time Gone?", 2017: rows 4 (host latency) and 6a
/// (client and server over UDP) of its Table 1 through a test network of `whylate lab`, with the
/// parts of its Figure 4. The report lists its other experiments with what would repeat them.
///
/// killer2017: Primorac and others, "How to Measure the Killer Microsecond", 2017: Table 1, Figure
/// 2 (a device of constant latency by each tool, beside the truth), Figure 3 (a network function
/// under configurations of the operating system by each tool, beside its own log), and whether each
/// tool preserves their effect. The device is a delay line that logs how long it held each frame.
/// Results of other tools can be imported beside ours: --import trex=FILE (sockperf, moongen;
/// spirent and ixia with the unit of their edges, spirent:10ns=FILE).
///
/// Example: whylate paper hourglass2002 --quick
///
/// Example: whylate paper hourglass2002 --only 5.4,5.6
///
/// Example: whylate paper pam2017 --only 4,6a
///
/// Example: whylate paper killer2017 --quick --tools xdp,udp-block --import trex=stats.json
///
/// Cost: hourglass2002 takes sixteen to twenty minutes of one CPU, two with --quick, with load on
/// that CPU for sections 5.3 and 5.4. pam2017 takes three and a half minutes of two CPUs, some 20 s
/// with --quick. killer2017 makes five runs of two minutes of everything, as the paper: six hours
/// of two CPUs, eight minutes with --quick. The duration is printed before it starts.
///
/// Limits: real-time priorities and reservations need CAP_SYS_NICE; a test network needs root, and
/// without it pam2017 runs over loopback and killer2017 not at all. What this machine cannot do is
/// named in place of a figure.
#[derive(Debug, Clone, Args)]
pub(crate) struct Paper {
    /// Which paper
    #[arg(value_enum, value_name = "PAPER")]
    pub(crate) which: Which,
    /// Only these parts of the paper, separated by commas: "Figure 3", 5.1 ... 5.6; 4, 6a; table1,
    /// fig2, fig3
    #[arg(
        help = "Only these parts, with commas: 5.4,5.6 or table1",
        long_help,
        help_heading = "What to repeat",
        long,
        alias = "experiments",
        value_name = "PLACES",
        value_delimiter = ','
    )]
    pub(crate) only: Option<Vec<String>>,
    /// CPU of the experiments [default: the last one]
    #[arg(help_heading = "What to repeat", long, value_name = "CPU")]
    pub(crate) cpus: Option<String>,
    /// Only these tools of killer2017, separated by commas: xdp, packet, udp, udp-block, sockperf,
    /// dpdk [default: all but dpdk]
    #[arg(
        help = "Of killer2017: xdp, packet, udp ...; more: --help",
        long_help,
        help_heading = "What to repeat",
        long,
        value_name = "TOOLS",
        value_delimiter = ','
    )]
    pub(crate) tools: Option<Vec<String>>,
    /// Configurations of the operating system, for Figure 3 of killer2017, separated by commas
    /// [default: the paper's local,remote,local+isolset,local+isolset+power]
    #[arg(
        help = "Configurations, for its Figure 3; more: --help",
        long_help,
        help_heading = "What to repeat",
        long,
        value_name = "LIST",
        value_parser = parse::configurations
    )]
    pub(crate) config: Option<Configurations>,
    /// Results of another tool, to stand beside those of killer2017: sockperf, trex, moongen,
    /// spirent:UNIT or ixia:UNIT; may be repeated
    #[arg(
        help = "Results of another tool, for killer2017",
        long_help,
        help_heading = "Other tools",
        long,
        value_name = "TOOL=FILE"
    )]
    pub(crate) import: Vec<Wanted>,
    /// Write into this directory, which must be new or empty [default: whylate-DATE-TIME]
    #[arg(short = 'o', long = "out", alias = "output", value_name = "DIR", help_heading = COMMON)]
    pub(crate) output: Option<PathBuf>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = COMMON)]
    pub(crate) format: Format,
    /// Random seed [default: drawn and recorded]
    #[arg(long, value_name = "N", help_heading = COMMON)]
    pub(crate) seed: Option<u64>,
    /// Shorter parts; the report says so
    #[arg(long, help_heading = COMMON)]
    pub(crate) quick: bool,
    /// Print the whole report, not its first screen
    #[arg(long, help_heading = COMMON)]
    pub(crate) full: bool,
}

/// The papers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Which {
    /// Regehr, Inferring Scheduling Behavior with Hourglass, 2002
    Hourglass2002,
    /// Zilberman and others, Where Has My Time Gone?, 2017
    Pam2017,
    /// Primorac and others, How to Measure the Killer Microsecond, 2017
    Killer2017,
}
