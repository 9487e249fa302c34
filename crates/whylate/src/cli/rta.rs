//! `whylate rta`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use whylate_model::Nanos;

use super::Common;
use crate::parse;

/// Response-time analysis of a task set; with --run, compared with measurement
///
/// Computes for each task of one CPU the longest time from the nominal release of a job to its end,
/// with release jitter, blocking, deadlines beyond the next release and the overhead of the
/// operating system; under fixed priorities, under earliest deadline first (--policy edf, with its
/// demand test) or inside reservations (--policy cbs). Tasks come from a file (--file) or from one
/// option each (--task): execution time and period, then clauses separated by commas. --simulate
/// also runs them in a simulator under the same policy; --run runs them on this machine, puts each
/// beside its prediction, and names the stall behind each job that took longer than predicted.
///
/// Example: whylate rta --task "3ms 8ms" --task "17ms 33ms"
///
/// Example: whylate rta --task "3ms 8ms" --task "19ms 33ms, jitter 8ms"
///
/// Example: whylate rta --task "3ms 8ms" --task "17ms 33ms" --policy edf --simulate
///
/// Example: whylate rta --file examples/reservations.toml --policy cbs --simulate
///
/// Example: whylate rta --file examples/audio-video.toml --run --duration 10s
///
/// Example: whylate rta --task "3ms 8ms" --task "17ms 33ms, timer grid(10ms)" --run --jitter
/// measured
///
/// Cost: milliseconds without --run; with it, that of `whylate threads`.
///
/// Limits: one CPU; tasks that are released by time; servers that hold a task to its budget. What
/// waits for other threads, or has no period, is refused by name; so is a task that waits by
/// `spin`, which keeps the CPU until its next release, above or beside another one. A bound holds
/// for the tasks as stated: interrupts and the hypervisor are not in it.
///
/// Exit status: 0 an answer, also where deadlines may be missed; 2 usage; 3 with --check where the
/// analysis does not show that every deadline is met, whatever the trust in a run; else with --run
/// those of `whylate threads`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Rta {
    /// Execution time and period of a task, such as "3ms 8ms"; then any of jitter T, deadline T,
    /// blocking T, priority N, timer T, reserve C T and name N, separated by commas
    #[arg(
        help = "Execution time and period, such as \"3ms 8ms, name a\"",
        long_help,
        long,
        value_name = "TASK",
        help_heading = "The tasks"
    )]
    pub(crate) task: Vec<String>,
    /// A task set in TOML
    #[arg(long, value_name = "FILE", help_heading = "The tasks", required_unless_present = "task")]
    pub(crate) file: Option<PathBuf>,
    /// Scheduling policy: fp, edf or cbs
    #[arg(
        help = "Fixed priorities, deadlines, or reservations",
        long_help,
        long,
        value_enum,
        default_value_t = Policy::Fp,
        help_heading = "The tasks"
    )]
    pub(crate) policy: Policy,
    /// Assign priorities [default: as the tasks say, or rm where none does]
    #[arg(
        help = "Assign priorities [as the tasks say, or rm]",
        long_help,
        long,
        value_enum,
        help_heading = "The tasks"
    )]
    pub(crate) assign: Option<Assign>,
    /// Overhead of the operating system: switch=3us,tick=15us/4ms, the directory of a run of
    /// switch-cost, or `measured` for the newest one of this machine in its present state
    #[arg(
        help = "switch=3us,tick=15us/4ms, a run, or measured",
        long_help,
        long,
        value_name = "COSTS|DIR",
        help_heading = "The tasks"
    )]
    pub(crate) overhead: Option<String>,
    /// Exit with 3 unless every deadline is met by analysis
    #[arg(help_heading = "Analysis", long)]
    pub(crate) check: bool,
    /// Simulate the worst known release patterns, and N random ones
    #[arg(
        help = "Simulate the worst known patterns, and N random ones",
        long_help,
        help_heading = "Analysis",
        long,
        value_name = "N",
        num_args = 0..=1,
        default_missing_value = "100"
    )]
    pub(crate) simulate: Option<u64>,
    /// Run the tasks on this machine and compare
    #[arg(help_heading = "The run", long)]
    pub(crate) run: bool,
    /// Release jitter: as stated, or as measured in the run (the analysis is then repeated with it)
    #[arg(
        help = "Release jitter: of the tasks, or of the run",
        long_help,
        help_heading = "The run",
        long,
        value_enum,
        default_value_t = Jitter::Stated,
        requires_if("measured", "run")
    )]
    pub(crate) jitter: Jitter,
    /// How long to run [default: what the file says, or 10s]
    #[arg(
        help = "How long to run [10s, or what the file says]",
        long_help,
        long,
        value_name = "TIME",
        value_parser = parse::measuring_time,
        help_heading = "The run"
    )]
    pub(crate) duration: Option<Nanos>,
    /// The CPU [default: the last one]
    #[arg(long, value_name = "CPU", help_heading = "The run")]
    pub(crate) cpus: Option<String>,
    /// Timer for tasks of --task that name none: HR, NATIVE, grid(10ms) and others, as in `threads
    /// --list` [default: HR]
    #[arg(
        help = "Timer of tasks without one (`threads --list`) [HR]",
        long_help,
        long,
        value_name = "TIMER",
        help_heading = "The run"
    )]
    pub(crate) timer: Option<String>,
    /// Warm-up time, discarded [default: 200ms, or 400ms for tasks that use memory]
    #[arg(
        help = "Warm-up time, discarded [200ms; 400ms with memory]",
        long_help,
        long,
        value_name = "TIME",
        value_parser = parse::measuring_time,
        help_heading = "The run"
    )]
    pub(crate) warmup: Option<Nanos>,
    /// Most records of the execution trace [default: 300000]
    #[arg(long, value_name = "N", help_heading = "The run")]
    pub(crate) records: Option<NonZeroU32>,
    /// Common options.
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Scheduling policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Policy {
    /// The most urgent by a fixed priority.
    Fp,
    /// The one whose deadline is next.
    Edf,
    /// Reservations of constant bandwidth.
    Cbs,
}

/// How priorities are assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Assign {
    /// Rate-monotonic: the shorter the period.
    Rm,
    /// Deadline-monotonic: the shorter the deadline.
    Dm,
}

/// Which release jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Jitter {
    /// As the tasks state it.
    Stated,
    /// As the run shows it.
    Measured,
}
