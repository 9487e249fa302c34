//! The command line: every flag documented once, here.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use whylate_gap::Work;
use whylate_model::Nanos;

use crate::parse;

/// Measures where the microseconds of this machine go, names what took them, and says how far each
/// number can be trusted.
///
/// Without a command: a check-up of one minute. It measures what a busy thread, a timer wake-up, a
/// message between two processes and a UDP round trip experience on this host, where the lost time
/// went, and writes a run directory.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// The question to answer; none for the check-up.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// Options of the check-up.
    #[command(flatten)]
    pub(crate) checkup: Checkup,
}

/// A question.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// What did a busy thread not get, and who took it (per CPU, per cause)
    Gaps(Box<Gaps>),
    /// Look at a recorded run
    Report(Report),
    /// Answers probes on the socket that is its standard input
    #[command(hide = true)]
    ReflectStdin(ReflectStdin),
}

/// Options that every measuring command has.
#[derive(Debug, Clone, Args)]
pub(crate) struct Common {
    /// Write the run into this directory, which must be new or empty [default: whylate-DATE-TIME]
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Seed of everything random; the default is drawn and recorded
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// CPUs for everything that is not measured, such as the drain of the rings
    #[arg(long, value_name = "CPUS")]
    pub(crate) housekeeping: Option<String>,
    /// Measure a tenth as long; the report says so
    #[arg(long)]
    pub(crate) quick: bool,
    /// Do not hold /dev/cpu_dma_latency at 0 (idle states stay as they are)
    #[arg(long)]
    pub(crate) no_dma_latency: bool,
    /// Do not use the kernel's tracing, only what a thread can know by itself
    #[arg(long)]
    pub(crate) no_trace: bool,
}

/// How to print a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A report of at most 80 columns.
    Text,
    /// The run as it is stored in run.json.
    Json,
}

/// Options of the check-up.
#[derive(Debug, Clone, Args)]
pub(crate) struct Checkup {
    /// Common options.
    #[command(flatten)]
    pub(crate) common: Common,
    /// The CPU to check up [default: the last one this process may use]
    #[arg(long, value_name = "CPU")]
    pub(crate) cpu: Option<String>,
}

/// What did a busy thread not get, and who took it.
///
/// A busy loop on each CPU reads the cycle counter; two readings further apart than the threshold
/// are a gap. With root, kernel events recorded on the same counter name what took each gap;
/// without, the rseq word and /proc say what they can.
///
/// Example: whylate gaps --cpus 2-5 --duration 60s
///
/// Cost: one busy thread per measured CPU, 3 MiB each, and a housekeeping thread that wakes every
/// 20 ms. Tracing adds about a microsecond to each interrupt; the report states what it measured.
///
/// Limits: a gap shorter than the threshold is not seen one by one; it is counted as noise below
/// the threshold.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of a command line")]
pub(crate) struct Gaps {
    /// Common options.
    #[command(flatten)]
    pub(crate) common: Common,
    /// CPUs to measure: 2-5,8 or `isolated` or cgroup:PATH [default: all but one]
    #[arg(long, value_name = "CPUS", help_heading = "What to measure")]
    pub(crate) cpus: Option<String>,
    /// How long to measure
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse::measuring_time,
          help_heading = "What to measure")]
    pub(crate) duration: Nanos,
    /// Time before it, of which nothing is kept
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse::measuring_time,
          help_heading = "What to measure")]
    pub(crate) warmup: Nanos,
    /// A delta above this is a gap [default: max(100ns, 8 x p99.9 of the warm-up)]
    #[arg(long, value_name = "TIME", value_parser = parse::limit, help_heading = "What to measure")]
    pub(crate) threshold: Option<Nanos>,
    /// Which loop: `chain` reads once per iteration, `pair` twice back to back
    #[arg(long = "loop", value_enum, default_value_t = Loop::Chain, help_heading = "What to measure")]
    pub(crate) loop_kind: Loop,
    /// What the loop does between readings: none or memmove:SIZE
    #[arg(long, value_name = "WORK", default_value = "none", value_parser = parse::work,
          help_heading = "What to measure")]
    pub(crate) workload: Work,
    /// Count every delta, not only gaps, for min/p50/p99/p99.9/max over all readings
    #[arg(long, help_heading = "What to measure")]
    pub(crate) distribution: bool,
    /// Interrupt the measured CPU in known ways and judge whether each was found and named
    #[arg(long, help_heading = "What to measure")]
    pub(crate) selftest: bool,
    /// Measure pinned and floating, FIFO or not, mlock or not, alone and sharing, one after another
    #[arg(long, help_heading = "What to measure", conflicts_with_all = ["selftest", "floating"])]
    pub(crate) matrix: bool,

    /// Let N threads float over the CPUs instead of pinning one to each
    #[arg(long, value_name = "N", value_parser = parse::count, help_heading = "How to run")]
    pub(crate) floating: Option<NonZeroU32>,
    /// Run the measuring threads under SCHED_FIFO
    #[arg(long, value_name = "PRIO", num_args = 0..=1, default_missing_value = "50",
          value_parser = parse::priority, help_heading = "How to run")]
    pub(crate) fifo: Option<u8>,
    /// Do not lock memory
    #[arg(long, help_heading = "How to run")]
    pub(crate) no_mlock: bool,
    /// Busy threads that share each measured CPU
    #[arg(long, value_name = "N", value_parser = parse::count, help_heading = "How to run")]
    pub(crate) share: Option<NonZeroU32>,
    /// Move other tasks away from the measured CPUs; undone afterwards
    #[arg(long, help_heading = "How to run")]
    pub(crate) move_tasks: bool,
    /// Move interrupts away from the measured CPUs; undone afterwards
    #[arg(long, help_heading = "How to run")]
    pub(crate) move_interrupts: bool,

    /// Stop at the first gap above this, keep the evidence, and exit with 3
    #[arg(long, value_name = "TIME", value_parser = parse::limit, help_heading = "Stopping")]
    pub(crate) threshold_stop: Option<Nanos>,
    /// What to do at that gap: trace-off, marker[:TEXT], snapshot, signal:NUM:PID, command:LINE
    #[arg(long, value_name = "ACTION", requires = "threshold_stop", help_heading = "Stopping")]
    pub(crate) on_threshold: Vec<whylate_record::actions::Action>,

    /// Judge evidence B against the kernel's trace and print the confusion matrix
    #[arg(long, conflicts_with = "no_trace", help_heading = "Causes")]
    pub(crate) validate: bool,
    /// How many of the longest gaps to keep with everything known about them
    #[arg(long, value_name = "N", default_value = "10", value_parser = parse::count,
          help_heading = "Causes")]
    pub(crate) worst: NonZeroU32,

    /// Disk bound of the gap and event segments; the oldest are deleted
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse::size,
          help_heading = "Long runs")]
    pub(crate) max_disk: u64,
    /// A line on stderr this often
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse::limit,
          help_heading = "Long runs")]
    pub(crate) heartbeat: Nanos,
    /// Close segments and write run.json this often
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse::limit,
          help_heading = "Long runs")]
    pub(crate) checkpoint: Nanos,
}

/// Which loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Loop {
    /// One reading per iteration.
    Chain,
    /// Two readings back to back.
    Pair,
}

/// Look at a recorded run.
///
/// Needs no privilege and not the machine that made it.
///
/// Example: whylate report whylate-20261121-070000
#[derive(Debug, Clone, Args)]
pub(crate) struct Report {
    /// Run directory
    pub(crate) run: PathBuf,
    /// How to print it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// The other end of the check-up's messages.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReflectStdin {
    /// CPU to run on.
    #[arg(long)]
    pub(crate) cpu: u32,
    /// How to wait for a message: block or spin.
    #[arg(long, default_value = "block")]
    pub(crate) wait: whylate_port::Wait,
}
