//! `whylate doctor`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use whylate_host::cpus::CpuSpec;
use whylate_host::doctor::COLLECT;

/// Settings that distort measurements, and how to fix them
///
/// Reads back every setting that is known to spoil measurements, says what it found and where, why
/// it matters, and which command fixes it; it changes nothing itself. A file that is absent or
/// cannot be read is `unknown`, never `off`. Root sees more; everybody sees most.
///
/// Example: whylate doctor --cpus 2-5
///
/// Cost: about a second, and 16 MiB written to a nameless file in the current directory, to see how
/// fast recordings can be stored.
///
/// Limits: it reports what can spoil a measurement, not what did; `whylate gaps` measures that. It
/// cannot see the settings of the firmware, nor what a hypervisor does: on a virtual machine,
/// processor, memory and port settings that look fine in the guest are `unknown`.
///
/// Exit status: 0 whatever it finds, 1 when the machine or the run cannot be read, 2 usage.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = format!(
    "A tree for --root is collected on the other machine, as root, by:\n\n{COLLECT}\n"
))]
pub(crate) struct Doctor {
    /// CPUs to be measured: 2-5,8, `all`, `isolated` or cgroup:PATH [default: all but one]
    #[arg(long, value_name = "CPUS")]
    pub(crate) cpus: Option<CpuSpec>,
    /// Look at another machine: copies of its /proc and /sys below this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Show what differs from the machine of this run
    #[arg(long, value_name = "RUN")]
    pub(crate) diff: Option<PathBuf>,
    /// Also show what is fine
    #[arg(long)]
    pub(crate) all: bool,
    /// How to print it
    #[arg(long, value_enum, default_value_t = Findings::Text)]
    pub(crate) format: Findings,
}

/// How to print a diagnosis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Findings {
    /// A report of at most 80 columns.
    Text,
    /// JSON with all details.
    Json,
}
