//! `whylate gaps`.

use std::num::NonZeroU32;

use clap::{Args, ValueEnum};
use whylate_gap::Work;
use whylate_model::Nanos;

use super::Common;
use crate::parse::{self, Sched};

/// OS noise: how much CPU time does a busy thread lose, and to what?
///
/// A busy loop on each CPU reads the cycle counter; two readings further apart than the threshold
/// are a stall. With root, kernel events recorded on the same counter name the cause of each stall;
/// without, causes are inferred from the rseq word and /proc.
///
/// Example: whylate gaps --cpus 2-5 --duration 60s
///
/// Cost: one busy thread per measured CPU, 3 MiB each, and a housekeeping thread that wakes every
/// 20 ms. Tracing adds about a microsecond to each interrupt; the report states what it measured.
///
/// Limits: stalls shorter than the threshold are not seen one by one; their sum is measured as noise
/// below the threshold.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of a command line")]
pub(crate) struct Gaps {
    /// CPUs to measure: 2-5,8, `all`, `isolated`, or cgroup:PATH to measure inside a cgroup
    /// [default: all but one]
    #[arg(
        help = "2-5,8, all, isolated or cgroup:PATH [all but one]",
        long_help,
        long,
        value_name = "CPUS",
        help_heading = "What to measure"
    )]
    pub(crate) cpus: Option<String>,
    /// How long to measure
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10s",
        value_parser = parse::measuring_time,
        help_heading = "What to measure"
    )]
    pub(crate) duration: Nanos,
    /// Warm-up time, discarded
    #[arg(
        long,
        value_name = "TIME",
        default_value = "1s",
        value_parser = parse::measuring_time,
        help_heading = "What to measure"
    )]
    pub(crate) warmup: Nanos,
    /// Shortest stall to record [default: max(100ns, 8 x p99.9 of the warm-up)]
    #[arg(
        help = "Shortest stall to record [from the warm-up]",
        long_help,
        long,
        value_name = "TIME",
        value_parser = parse::limit,
        help_heading = "What to measure"
    )]
    pub(crate) threshold: Option<Nanos>,
    /// Stop at the first stall above this, keep the evidence, and exit with 3
    #[arg(
        help = "Stop at the first stall above this, keep the evidence",
        long_help,
        long,
        value_name = "TIME",
        value_parser = parse::limit,
        alias = "threshold-stop",
        help_heading = "Stopping"
    )]
    pub(crate) stop_above: Option<Nanos>,
    /// Scheduling policy: other or fifo:1-98
    #[arg(
        long,
        alias = "fifo",
        value_name = "POLICY",
        num_args = 0..=1,
        default_value = "other",
        default_missing_value = "fifo:50",
        value_parser = parse::sched,
        help_heading = "How to run"
    )]
    pub(crate) sched: Sched,
    /// Move other tasks off the measured CPUs, and back afterwards
    #[arg(
        help = "Move other tasks off the CPUs, and back afterwards",
        long_help,
        long,
        help_heading = "How to run"
    )]
    pub(crate) move_tasks: bool,
    /// Move interrupts off the measured CPUs, and back afterwards
    #[arg(
        help = "Move interrupts off the CPUs, and back afterwards",
        long_help,
        long,
        help_heading = "How to run"
    )]
    pub(crate) move_interrupts: bool,
    /// What the loop does between readings: none or memmove:SIZE
    #[arg(
        help = "Work between readings: none or memmove:SIZE",
        long_help,
        long,
        value_name = "WORK",
        default_value = "none",
        value_parser = parse::work,
        help_heading = "What to measure"
    )]
    pub(crate) workload: Work,
    /// Inject known interruptions into one measured CPU, and check that each is found and named;
    /// ends when all are injected
    #[arg(
        help = "Inject known interruptions, check that each is found",
        long_help,
        long,
        help_heading = "What to measure",
        conflicts_with_all = ["floating", "workload", "loop_kind", "quick", "duration", "share"]
    )]
    pub(crate) selftest: bool,
    /// Of the interruptions of each kind inject one of N: a short recording, such as `cargo xtask keep
    /// selftest` makes
    #[arg(long, value_name = "N", default_value = "1", requires = "selftest", value_parser = parse::count,
          hide = true)]
    pub(crate) selftest_part: NonZeroU32,
    /// Compare pinned and floating, FIFO and not, locked memory and not, alone and sharing, one
    /// after another
    #[arg(
        help = "Compare pinned/floating, FIFO/other, shared, mlock",
        long_help,
        long,
        help_heading = "What to measure",
        conflicts_with_all = ["selftest", "floating", "sched", "share", "no_mlock", "move_tasks", "move_interrupts"]
    )]
    pub(crate) matrix: bool,
    /// Let N threads float over the CPUs, instead of pinning one to each
    #[arg(
        help = "Let N threads float over the CPUs, without pinning",
        long_help,
        long,
        value_name = "N",
        value_parser = parse::count,
        help_heading = "How to run"
    )]
    pub(crate) floating: Option<NonZeroU32>,
    /// Busy threads that share each measured CPU
    #[arg(long, value_name = "N", value_parser = parse::count, help_heading = "How to run")]
    pub(crate) share: Option<NonZeroU32>,
    /// Do not lock memory
    #[arg(long, help_heading = "How to run")]
    pub(crate) no_mlock: bool,
    /// Which loop: `chain` reads once per iteration, `pair` twice back to back
    #[arg(
        help = "Read the counter once per iteration, or twice",
        long_help,
        long = "loop",
        value_enum,
        default_value_t = Loop::Chain,
        help_heading = "What to measure"
    )]
    pub(crate) loop_kind: Loop,
    /// Count every interval between two readings, not only stalls, for min/p50/p99/p99.9/max
    #[arg(
        help = "Distribution of all readings, not of stalls alone",
        long_help,
        long,
        help_heading = "What to measure"
    )]
    pub(crate) distribution: bool,
    /// What to do at that stall: trace-off, marker[:TEXT], snapshot, signal:NUM:PID, command:LINE
    #[arg(
        help = "trace-off, marker, snapshot, signal or command",
        long_help,
        long,
        value_name = "ACTION",
        requires = "stop_above",
        help_heading = "Stopping"
    )]
    pub(crate) on_threshold: Vec<whylate_record::actions::Action>,
    /// Check inferred causes (rseq, /proc) against the kernel trace, and print the confusion matrix
    #[arg(
        help = "Check inferred causes against the kernel trace",
        long_help,
        long,
        alias = "validate",
        conflicts_with = "no_trace",
        help_heading = "Causes"
    )]
    pub(crate) verify_causes: bool,
    /// How many of the longest stalls to keep with all their details
    #[arg(
        help = "Longest stalls to keep with all their details",
        long_help,
        long,
        value_name = "N",
        default_value = "10",
        value_parser = parse::count,
        help_heading = "Causes"
    )]
    pub(crate) worst: NonZeroU32,
    /// Most disk space for segments of stalls and events; the oldest are deleted
    #[arg(
        help = "Most disk space for segments",
        long_help,
        long,
        value_name = "SIZE",
        default_value = "1GiB",
        value_parser = parse::disk,
        help_heading = "Long runs"
    )]
    pub(crate) max_disk: u64,
    /// Print a line on standard error this often
    #[arg(
        long,
        value_name = "TIME",
        default_value = "60s",
        value_parser = parse::beat,
        help_heading = "Long runs"
    )]
    pub(crate) heartbeat: Nanos,
    /// Close segments and write run.json this often
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10s",
        value_parser = parse::beat,
        help_heading = "Long runs"
    )]
    pub(crate) checkpoint: Nanos,
    /// Common options.
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Which loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Loop {
    /// One reading per iteration.
    Chain,
    /// Two readings back to back.
    Pair,
}
