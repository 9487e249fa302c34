//! `whylate wake`.

use clap::Args;
use whylate_model::Nanos;

use super::Common;
use crate::parse;

/// How late does a timer wake a thread, and what did each late wake-up wait for.
///
/// On each CPU, a thread of the highest real-time priority sleeps until the next multiple of the
/// period and reads the counter first thing. Its lateness is counted as measured, and with each
/// activation that a late thread passed over at that activation's own lateness: a stall of 10 ms at
/// a period of 1 ms is ten late activations, not one. By the kernel's trace each wake-up is split
/// into timer late, exit from idle, interrupts, softirqs, other threads and the host.
///
/// Several timers are measured side by side, each at its own phase of the period, and compared.
///
/// Example: whylate wake --cpus 1 --timers all --duration 60s
///
/// Cost: some 10 us of CPU time for each wake-up, and a housekeeping thread that wakes every 20 ms.
///
/// Limits: real-time priority needs CAP_SYS_NICE; without it the threads have an ordinary one, and
/// the report says so. What a wake-up waited for needs the kernel's trace.
#[derive(Debug, Clone, Args)]
pub(crate) struct Wake {
    /// Common options.
    #[command(flatten)]
    pub(crate) common: Common,
    /// CPUs to be woken on [default: all but one]
    #[arg(long, value_name = "CPUS")]
    pub(crate) cpus: Option<String>,
    /// Timers, apart by commas (see `threads --list`), or `all`
    #[arg(long, visible_alias = "timer", value_name = "TIMERS", default_value = "HR")]
    pub(crate) timers: String,
    /// Time between two wake-ups of a thread
    #[arg(long, value_name = "TIME", value_parser = parse::limit, default_value = "1ms")]
    pub(crate) period: Nanos,
    /// Priority of the woken threads [default: RTHIGH, or NORMAL where that is not allowed]
    #[arg(long, value_name = "PRIORITY")]
    pub(crate) priority: Option<String>,
    /// How long to measure
    #[arg(long, value_name = "TIME", value_parser = parse::measuring_time, default_value = "60s")]
    pub(crate) duration: Nanos,
    /// A delta above this is a gap [default: max(100ns, 8 x p99.9 of the warm-up)]
    #[arg(long, value_name = "TIME", value_parser = parse::limit)]
    pub(crate) threshold: Option<Nanos>,
    /// Close segments and write run.json this often
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse::beat)]
    pub(crate) checkpoint: Nanos,
    /// Load to make on the same CPUs meanwhile: net, net:udp=20000pps, disk:files=5000, ipi,
    /// cpu:50%, mem:64MiB, with commas between them
    #[arg(long, value_name = "LOADS", value_parser = parse::loads)]
    pub(crate) load: Option<parse::Loads>,
    /// Send network load through this bed of `whylate lab` instead of over loopback
    #[arg(long, value_name = "NAME", requires = "load")]
    pub(crate) bed: Option<String>,
    /// Do not lock memory
    #[arg(long)]
    pub(crate) no_mlock: bool,
}
