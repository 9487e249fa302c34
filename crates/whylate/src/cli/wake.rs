//! `whylate wake`.

use clap::Args;
use whylate_model::Nanos;

use super::Common;
use crate::parse;

/// Timer wake-up latency: how late are timer wake-ups, and why?
///
/// On each CPU, a thread of a high real-time priority (fifo:95) sleeps until the next multiple of
/// the period and reads the counter as soon as it runs. Its latency is reported as measured, and
/// with the wake-ups that a late thread skipped, each at its own latency: a stall of 10 ms at a
/// period of 1 ms is ten late wake-ups, not one. The kernel's trace splits each latency into timer
/// fired late, leaving idle, interrupts, softirqs, other threads, and time with no kernel event.
///
/// Several timers are measured side by side, each at its own phase of the period, and compared.
///
/// Example: whylate wake --cpus 1 --timers all --duration 60s
///
/// Cost: some 10 us of CPU time per wake-up, and a housekeeping thread that wakes every 20 ms.
///
/// Limits: real-time priority needs CAP_SYS_NICE; without it the threads are normal ones, and the
/// report says so. The causes of a wake-up latency need the kernel's trace.
#[derive(Debug, Clone, Args)]
pub(crate) struct Wake {
    /// CPUs to measure [default: all but one]
    #[arg(help_heading = "What to measure", long, value_name = "CPUS")]
    pub(crate) cpus: Option<String>,
    /// Timers, separated by commas (see `threads --list`), or `all`
    #[arg(
        help = "Timers, as in `threads --list`, or all of them",
        long_help,
        help_heading = "What to measure",
        long,
        alias = "timer",
        value_name = "TIMERS",
        default_value = "HR"
    )]
    pub(crate) timers: String,
    /// Period of the wake-ups
    #[arg(
        help_heading = "What to measure",
        long,
        value_name = "TIME",
        value_parser = parse::limit,
        default_value = "1ms"
    )]
    pub(crate) period: Nanos,
    /// How long to measure
    #[arg(
        help_heading = "What to measure",
        long,
        value_name = "TIME",
        value_parser = parse::measuring_time,
        default_value = "60s"
    )]
    pub(crate) duration: Nanos,
    /// Scheduling policy of the woken threads: other, fifo:1-99, rr:1-99 or nice(-20..19)
    /// [default: fifo:95, or other where that is not allowed]
    #[arg(
        help = "other, fifo:1-99, rr:1-99 or nice(-20..19) [fifo:95]",
        long_help,
        help_heading = "How to run",
        long,
        alias = "priority",
        value_name = "POLICY"
    )]
    pub(crate) sched: Option<String>,
    /// Load to generate on the same CPUs meanwhile: net, net:udp=20000pps, disk:files=5000, ipi,
    /// cpu:50%, mem:64MiB, separated by commas
    #[arg(
        help = "Background load: net,disk,ipi,cpu,mem",
        long_help,
        help_heading = "Load",
        long,
        value_name = "LOADS",
        value_parser = parse::loads
    )]
    pub(crate) load: Option<parse::Loads>,
    /// Shortest stall to record [default: max(100ns, 8 x p99.9 of the warm-up)]
    #[arg(
        help = "Shortest stall to record [from the warm-up]",
        long_help,
        help_heading = "What to measure",
        long,
        value_name = "TIME",
        value_parser = parse::limit
    )]
    pub(crate) threshold: Option<Nanos>,
    /// Warm-up time for each CPU, discarded [default: 200ms]
    #[arg(
        help_heading = "What to measure",
        long,
        value_name = "TIME",
        value_parser = parse::measuring_time
    )]
    pub(crate) warmup: Option<Nanos>,
    /// Close segments and write run.json this often
    #[arg(
        help_heading = "Long runs",
        long,
        value_name = "TIME",
        default_value = "10s",
        value_parser = parse::beat
    )]
    pub(crate) checkpoint: Nanos,
    /// Send network load through this test network (see `whylate lab`) instead of over loopback
    #[arg(
        help = "Send network load through this test network",
        long_help,
        help_heading = "Load",
        long,
        value_name = "NAME",
        requires = "load"
    )]
    pub(crate) bed: Option<String>,
    /// Do not lock memory
    #[arg(help_heading = "How to run", long)]
    pub(crate) no_mlock: bool,
    /// Common options.
    #[command(flatten)]
    pub(crate) common: Common,
}
