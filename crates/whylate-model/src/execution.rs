//! The execution trace: which thread had which CPU when, and what switching between them took.

use serde::{Deserialize, Serialize};

use crate::units::{CpuId, Nanos, Ticks, TicksDelta};

/// A continuous stretch of CPU time that a thread received, as the thread itself saw it: between
/// its first reading after one gap and its last reading before the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Number of the thread in its set.
    pub thread: u16,
    /// The CPU.
    pub cpu: CpuId,
    /// First reading.
    pub start: Ticks,
    /// Last reading.
    pub end: Ticks,
}

impl Block {
    /// How long it is.
    #[must_use]
    pub fn length(&self) -> TicksDelta {
        self.end.since(self.start)
    }
}

/// One job of a thread, as a segment holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredJob {
    /// Number of the thread in its set.
    pub thread: u16,
    /// Number of the job in its schedule, from 0.
    pub index: u64,
    /// Nominal release.
    pub release: Ticks,
    /// Deadline.
    pub deadline: Ticks,
    /// First reading of the thread at work on it; none for a job that never began.
    pub woke: Option<Ticks>,
    /// Reading at which it had its execution time; none for a job that never did.
    pub done: Option<Ticks>,
    /// The execution time that it asked for and received; zero for a job that never did.
    pub received: Nanos,
    /// What came of it.
    pub verdict: Verdict,
    /// Between release and end, time that other threads had the CPU.
    pub threads: Nanos,
    /// The same for its wake-up: a late timer, a CPU that had yet to leave idle.
    pub waking: Nanos,
    /// The same for interrupts, while it had the CPU.
    pub interrupts: Nanos,
    /// The same for the hypervisor or the firmware.
    pub host: Nanos,
    /// The same for waiting for what others held or had yet to provide.
    pub blocked: Nanos,
    /// The same for interrupts and the hypervisor while it did not have the CPU.
    pub away: Nanos,
    /// The same for nothing that is known.
    pub unknown: Nanos,
}

/// What came of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It had its execution time by its deadline.
    Hit,
    /// It had it later.
    Late,
    /// It did not have it when the run ended.
    Unfinished,
    /// It never began: its deadline was over before the job before it was done.
    Skipped,
}

/// What the context switches of an execution trace took: the histogram of `process_ctx`, and what
/// rule R1 makes of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SwitchTimes {
    /// Context switches: gaps between two threads on one CPU.
    pub n: u64,
    /// Length of the trace.
    pub over: Nanos,
    /// R1a: the shortest, the fastest path through the switching code.
    pub shortest: Nanos,
    /// R1b: median of the dense cluster near the shortest, the cost to expect; none without one.
    pub expected: Option<Nanos>,
    /// Switches in that cluster.
    pub in_cluster: u64,
    /// R1c: switches more than twice the expected cost; none without a cluster.
    pub contaminated: Option<u64>,
    /// Mean of all of them, ns.
    pub mean_ns: f64,
    /// The longest.
    pub longest: Nanos,
    /// The histogram: bins of one width, each beginning where the one before ends.
    pub bins: Vec<SwitchBin>,
    /// Switches longer than the last bin.
    pub beyond: u64,
}

/// A bin of the histogram of context switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SwitchBin {
    /// Shortest switch in it.
    pub from: Nanos,
    /// The first length beyond it.
    pub to: Nanos,
    /// How many.
    pub count: u64,
}
