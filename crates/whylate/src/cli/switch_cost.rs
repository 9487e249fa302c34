//! `whylate switch-cost`.

use clap::Args;
use whylate_model::Nanos;

use super::Common;
use crate::parse;

/// Cost of a context switch, directly and through the caches
///
/// Directly: two runners share a CPU and read the counter in a loop. Where one stops and the other
/// continues there is a switch; it takes from the last reading of the one to the first of the
/// other. Both for threads and for processes; involuntary (a time slice expires, with its timer
/// interrupt), by sched_yield among equals of a real-time priority (today's scheduler does not
/// switch away from normal threads that yield), and by hand-off (one wakes the other and waits: a
/// voluntary switch). All kinds are measured in turns, up to ten times, and the interval is that
/// over these repetitions. The times come from parts without tracing; parts with the kernel's trace
/// classify each switch.
///
/// Through the caches: one runner reads through a working set again and again, and then ten do,
/// each through its own, for the same time. What the ten do less is the price of their switches: C
/// = ((W1 - W10) / W1) x (T / N10), with W passes and N10 switches. Beside it is the time that
/// filling the caches again should take: bytes divided by the read bandwidth of the level that they
/// come from, which is measured once for each cache and for memory, on sets of its own. Each size
/// beyond the first-level cache is compared with those inside it: whether the cost grows there, or
/// why that is not shown.
///
/// Example: whylate switch-cost --cpus 1
///
/// Example: whylate rta --task "3ms 8ms" --task "17ms 33ms" --overhead whylate-20261122-024500
///
/// Cost: one CPU is busy for three to four minutes (--quick: a minute), with real-time priority
/// where runners yield; a quarter of the free memory at most. The direct cost takes six times
/// --duration, for there are six kinds of switches; the cost through the caches takes two trials
/// for each pair and working set, by default 8 s for each of about ten. --direct and --indirect
/// measure one of them.
///
/// Limits: yielding needs CAP_SYS_NICE, and the classes of switches root; without them the rest is
/// measured. A switch that the hypervisor interrupts is long: costs are those of the dense cluster
/// near the shortest. Trials over working sets have no trace: a pair that interruptions made
/// unequal is discarded, and is attributed to the hypervisor only where the kernel counts that time
/// as stolen.
#[derive(Debug, Clone, Args)]
pub(crate) struct SwitchCost {
    /// The CPU that all runners share [default: the last one]
    #[arg(help_heading = "What to measure", long, value_name = "CPU")]
    pub(crate) cpus: Option<String>,
    /// Only the direct cost
    #[arg(help_heading = "What to measure", long, conflicts_with = "indirect")]
    pub(crate) direct: bool,
    /// Only the cost through the caches
    #[arg(help_heading = "What to measure", long)]
    pub(crate) indirect: bool,
    /// How long each of six kinds of switches is measured, half of it with tracing; all of them take
    /// six times as long, and the cost through the caches comes on top of it [default: 4s]
    #[arg(
        help = "Time for each of 6 kinds of switches [4s]",
        long_help,
        help_heading = "Direct cost",
        long,
        value_name = "TIME",
        value_parser = parse::row_time,
        conflicts_with = "indirect"
    )]
    pub(crate) duration: Option<Nanos>,
    /// Working sets, such as 16KiB,1MiB [default: from half of the first cache of this CPU to twice
    /// its last one, 512MiB at most]
    #[arg(
        help = "Working sets, such as 16KiB,1MiB [from the caches]",
        long_help,
        help_heading = "Cost through the caches",
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = parse::working_set,
        conflicts_with = "direct"
    )]
    pub(crate) sizes: Option<Vec<u64>>,
    /// Good pairs of trials for each working set; up to three times as many are tried [default: 20,
    /// or 15 with --quick]
    #[arg(
        help = "Good pairs of trials for each working set [20]",
        long_help,
        help_heading = "Cost through the caches",
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(2..=1000),
        conflicts_with = "direct"
    )]
    pub(crate) trials: Option<u32>,
    /// Length of a trial [default: 200ms, or 1s with the time slices of the kernel]; with runners
    /// that yield, at most as long as the kernel lets real-time threads run
    /// (kernel.sched_rt_runtime_us)
    #[arg(
        help = "Length of a trial [200ms; 1s with --quantum kernel]",
        long_help,
        help_heading = "Cost through the caches",
        long,
        alias = "trial",
        value_name = "TIME",
        value_parser = parse::row_time,
        conflicts_with = "direct"
    )]
    pub(crate) trial_time: Option<Nanos>,
    /// CPU time after which a runner of a trial yields, or `kernel` for normal runners and the
    /// time slices of the kernel, as in the paper
    #[arg(
        help = "CPU time until a runner yields, or kernel",
        long_help,
        help_heading = "Cost through the caches",
        long,
        value_name = "TIME",
        default_value = "200us",
        value_parser = parse::quantum,
        conflicts_with = "direct"
    )]
    pub(crate) quantum: parse::Turn,
    /// Common options.
    #[command(flatten)]
    pub(crate) common: Common,
}
