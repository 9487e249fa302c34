//! `whylate threads`.

use std::path::PathBuf;

use clap::Args;
use whylate_model::Nanos;

use super::Common;
use crate::parse;

/// Run a task set; report deadline misses and why they happened
///
/// Synthetic threads receive CPU time, wait, lock and hand over as the set says, and record when
/// they had the CPU. Deadlines, response times and each miss are reported with its cause. A set
/// comes from a file, or from one option per thread (--thread): the workload, then clauses
/// separated by commas. A file is a task set in TOML, or a workload of rt-app in JSON as people
/// write it: with comments, trailing commas and a key that occurs more than once. Execution time of
/// either is counted between stalls; rt-app's calibration is not used.
///
/// Example: whylate threads --thread "PERIODIC 3ms 8ms, timer HR, priority RTMED" --thread
/// "PERIODIC 17ms 33ms, timer HR, priority RTLOW" --cpus 1
///
/// Example: whylate threads --thread "PERIODIC 3ms 8ms"
///
/// Cost: the CPU time that the set asks for, and a housekeeping thread that wakes every 20 ms.
///
/// Limits: real-time priorities and reservations need CAP_SYS_NICE; a stall shorter than the
/// threshold counts as CPU time received.
#[derive(Debug, Clone, Args)]
pub(crate) struct Threads {
    /// A task set in TOML, or a workload of rt-app (.json)
    #[arg(
        help = "Task set in TOML, or a workload of rt-app (.json)",
        long_help,
        value_name = "FILE",
        help_heading = "The set",
        required_unless_present_any = ["thread", "file"],
        conflicts_with = "file"
    )]
    pub(crate) set: Option<PathBuf>,
    /// A thread, such as "PERIODIC 3ms 8ms, priority RTMED": WORKLOAD[, timer T][, priority P][, cpus LIST][, reserve [hard|soft|quota] C T][,
    /// deadline D][, start T][, finish T][, name N][, count N]
    #[arg(
        help = "A thread, such as \"PERIODIC 3ms 8ms, timer HR\"",
        long_help,
        long,
        value_name = "THREAD",
        help_heading = "The set"
    )]
    pub(crate) thread: Vec<String>,
    /// CPUs of threads that name none [default: all but one]
    #[arg(long, value_name = "CPUS", help_heading = "The set")]
    pub(crate) cpus: Option<String>,
    /// How long to run [default: what the file says, or 10s]
    #[arg(
        help = "How long to run [10s, or what the file says]",
        long_help,
        long,
        value_name = "TIME",
        value_parser = parse::measuring_time,
        help_heading = "The set"
    )]
    pub(crate) duration: Option<Nanos>,
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
    /// List the workloads, timers and priorities, and exit
    #[arg(help_heading = "What to print", long, exclusive = true)]
    pub(crate) list: bool,
    /// Propose a reservation for each periodic thread: at most this share of its jobs may miss
    #[arg(
        help = "Propose reservations with this share of misses",
        long_help,
        help_heading = "What to print",
        long,
        value_name = "SHARE",
        value_parser = parse::share
    )]
    pub(crate) suggest_reservation: Option<f64>,
    /// Write a log of each rt-app task here, in rt-app's columns
    #[arg(
        help = "Write a log of each rt-app task here",
        long_help,
        help_heading = "What to print",
        long,
        value_name = "DIR"
    )]
    pub(crate) rt_app_log: Option<PathBuf>,
    /// Fail without a kernel trace, against which inferred causes are checked
    #[arg(
        help = "Fail without a kernel trace",
        long_help,
        help_heading = "Causes",
        long,
        alias = "validate",
        conflicts_with = "no_trace"
    )]
    pub(crate) require_trace: bool,
    /// Shortest stall to record [default: max(100ns, 8 x p99.9 of the warm-up)]
    #[arg(
        help = "Shortest stall to record [from the warm-up]",
        long_help,
        help_heading = "Causes",
        long,
        value_name = "TIME",
        value_parser = parse::limit
    )]
    pub(crate) threshold: Option<Nanos>,
    /// Warm-up time for each CPU, discarded [default: 200ms, or 400ms for threads that use memory]
    #[arg(
        help = "Warm-up time for each CPU [200ms; 400ms with memory]",
        long_help,
        help_heading = "How to run",
        long,
        value_name = "TIME",
        value_parser = parse::measuring_time
    )]
    pub(crate) warmup: Option<Nanos>,
    /// The same, by name
    #[arg(
        help = "Task set or workload, as FILE",
        long_help,
        long,
        value_name = "FILE",
        help_heading = "The set"
    )]
    pub(crate) file: Option<PathBuf>,
    /// Close segments and write run.json this often
    #[arg(
        help_heading = "Long runs",
        long,
        value_name = "TIME",
        default_value = "10s",
        value_parser = parse::beat
    )]
    pub(crate) checkpoint: Nanos,
    /// Most records of the execution trace
    #[arg(help_heading = "Long runs", long, value_name = "N", default_value_t = 300_000)]
    pub(crate) records: u64,
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
