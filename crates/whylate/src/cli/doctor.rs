//! `whylate doctor`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use whylate_host::cpus::CpuSpec;

use super::help::COMMON;

/// Settings that distort measurements, and how to fix them
///
/// Reads back every setting that is known to distort measurements, says what it found and where, why
/// it matters, and which command fixes it; it changes nothing itself. A file that is absent or
/// cannot be read is `unknown`, never `off`. Root sees more; everybody sees most.
///
/// Example: whylate doctor --cpus 2-5
///
/// Cost: about a second, and 16 MiB written to a nameless file in the current directory, to see how
/// fast recordings can be stored.
///
/// Limits: it reports what can distort a measurement, not what did; `whylate gaps` measures that. It
/// cannot see the settings of the firmware, nor what a hypervisor does: on a virtual machine,
/// processor, memory and port settings that look fine in the guest are `unknown`.
///
/// Exit status: 0 whatever it finds, 1 when the machine or the run cannot be read, 2 usage.
#[expect(clippy::struct_excessive_bools, reason = "independent switches of a command line")]
#[derive(Debug, Clone, Args)]
pub(crate) struct Doctor {
    /// CPUs to be measured: 2-5,8, `all`, `isolated` or cgroup:PATH [default: all but one]
    #[arg(
        help = "2-5,8, all, isolated or cgroup:PATH [all but one]",
        long_help,
        long,
        value_name = "CPUS"
    )]
    pub(crate) cpus: Option<CpuSpec>,
    /// Explain one check: what was found, why it matters, what was read and every fix
    #[arg(
        help = "Explain one check: why it matters, and every fix",
        long_help,
        long,
        value_name = "CHECK",
        conflicts_with_all = ["all", "diff", "format"]
    )]
    pub(crate) explain: Option<String>,
    /// Print the commands that fix what was found, as a script for a root shell
    #[arg(
        help = "Print a script of the fixes for a root shell",
        long_help,
        long,
        conflicts_with_all = ["explain", "all", "diff", "format"]
    )]
    pub(crate) fix_script: bool,
    /// Print the whole report, and what is fine, too
    #[arg(long)]
    pub(crate) all: bool,
    /// Show what differs from the machine of this run
    #[arg(long, value_name = "RUN")]
    pub(crate) diff: Option<PathBuf>,
    /// Look at another machine: copies of its /proc and /sys below this directory, as
    /// --collect-script makes them
    #[arg(
        help = "Look at another machine's files: see --collect-script",
        long_help,
        long,
        value_name = "DIR"
    )]
    pub(crate) root: Option<PathBuf>,
    /// Print the script that collects a tree for --root; run it as root on the other machine
    #[arg(
        help = "Print the script that collects a tree for --root",
        long_help,
        long,
        exclusive = true
    )]
    pub(crate) collect_script: bool,
    /// How to print it
    #[arg(long, value_enum, default_value_t = Findings::Text, help_heading = COMMON)]
    pub(crate) format: Findings,
    /// Print the whole report, not its first screen
    #[arg(long, help_heading = COMMON, conflicts_with_all = ["explain", "fix_script"])]
    pub(crate) full: bool,
}

/// How to print a diagnosis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Findings {
    /// A report of at most 80 columns.
    Text,
    /// JSON with all details.
    Json,
}
