//! How late threads that do nothing else were woken, and what each late wake-up waited for.

use serde::{Deserialize, Serialize};

use crate::cause::{Cause, Part};
use crate::units::{CpuId, Nanos, Ticks};

/// Lateness that wake-ups are counted beyond: the columns of Table 1 of the Hourglass paper.
pub const LATER_THAN: [Nanos; 4] =
    [Nanos(1_000_000), Nanos(5_000_000), Nanos(10_000_000), Nanos(50_000_000)];

/// The wake-ups of one thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WakeSummary {
    /// Name of the thread.
    pub thread: String,
    /// Its timer, such as `clock_nanosleep absolute`.
    pub timer: String,
    /// CPUs it was allowed on.
    pub cpus: Vec<CpuId>,
    /// Time between two activations.
    #[serde(rename = "period_ns")]
    pub period: Nanos,
    /// Wake-ups.
    pub woken: u64,
    /// Activations that had passed when the thread woke; none for a schedule that starts anew with
    /// each wake-up, which skips nothing.
    pub skipped: Option<u64>,
    /// Wake-ups later than the lengths of [`LATER_THAN`].
    pub later: Vec<LaterThan>,
    /// Where their lateness went, longest first.
    pub split: Vec<WakePart>,
    /// Their causes, most frequent first. A wake-up whose instant had passed before the
    /// thread began to wait has no name.
    pub causes: Vec<WakeCause>,
    /// Lateness of all wake-ups.
    pub late_ns: f64,
    /// The latest ones, latest first.
    pub latest: Vec<LateWake>,
}

/// How many wake-ups were later than a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaterThan {
    /// The length.
    #[serde(rename = "than_ns")]
    pub than: Nanos,
    /// As they were measured: a thread that woke late once counts once.
    pub raw: u64,
    /// With each skipped activation at its own lateness; none where nothing is skipped.
    pub corrected: Option<u64>,
    /// Of those as measured, how many would have been as late without what the hypervisor took of them;
    /// none where the kernel's trace does not tell.
    #[serde(default)]
    pub without_host: Option<u64>,
    /// Of these again, how many would not without what came before the kernel woke the thread: a timer
    /// that fired late and the exit from idle, of which on a virtual machine nobody knows how much the
    /// host took. 0 on hardware; none where the trace does not tell.
    #[serde(default)]
    pub perhaps_host: Option<u64>,
}

/// Where the time of late wake-ups went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WakeStage {
    /// The timer had not fired while another thread had the CPU.
    TimerLate,
    /// The CPU left idle.
    IdleExit,
    /// Interrupts and NMIs.
    Interrupt,
    /// Softirqs.
    Softirq,
    /// Another thread, after the wake-up.
    OtherThread,
    /// The hypervisor or the firmware.
    Host,
    /// The kernel's own way to the thread and into it.
    Kernel,
    /// Not known.
    Unknown,
}

impl WakeStage {
    /// Where a part of a late wake-up belongs.
    #[must_use]
    pub fn of(cause: &Cause) -> Self {
        match cause {
            Cause::TimerLate => Self::TimerLate,
            Cause::IdleExit => Self::IdleExit,
            Cause::Interrupt { .. } | Cause::Tick | Cause::Nmi => Self::Interrupt,
            Cause::Softirq { .. } => Self::Softirq,
            Cause::Thread { .. }
            | Cause::Member { .. }
            | Cause::Whylate
            | Cause::Throttled
            | Cause::Blocked
            | Cause::Stopped => Self::OtherThread,
            Cause::Host | Cause::Hypervisor | Cause::Firmware => Self::Host,
            Cause::EntryResidual
            | Cause::InnerResidual
            | Cause::ExitResidual
            | Cause::PageFault
            | Cause::Signal { .. } => Self::Kernel,
            Cause::TraceLost
            | Cause::ContextSwitch
            | Cause::NotSwitched
            | Cause::Migration
            | Cause::OwnDemand
            | Cause::LeftOver
            | Cause::Unknown => Self::Unknown,
        }
    }
}

/// A word for the head of a column.
impl std::fmt::Display for WakeStage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::TimerLate => "timer",
            Self::IdleExit => "idle",
            Self::Interrupt => "irq",
            Self::Softirq => "softirq",
            Self::OtherThread => "threads",
            Self::Host => "no event",
            Self::Kernel => "kernel",
            Self::Unknown => "unknown",
        })
    }
}

/// The time of one stage, over all wake-ups of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WakePart {
    /// Which stage.
    pub stage: WakeStage,
    /// Its time in all wake-ups.
    pub total_ns: f64,
    /// Wake-ups that had some of it.
    pub wakes: u64,
    /// Most of it in one wake-up.
    #[serde(rename = "most_ns")]
    pub most: Nanos,
}

/// How many wake-ups have one cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WakeCause {
    /// The part with the largest share of them.
    pub cause: Cause,
    /// How many.
    pub wakes: u64,
    /// Their lateness in all.
    pub late_ns: f64,
    /// The latest.
    #[serde(rename = "latest_ns")]
    pub latest: Nanos,
    /// How many of them were later than each length of [`LATER_THAN`]; empty where that was not
    /// counted.
    #[serde(default)]
    pub later: Vec<u64>,
}

/// One late wake-up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LateWake {
    /// The instant that it was for.
    #[serde(rename = "intended_ticks")]
    pub intended: Ticks,
    /// How late the thread ran.
    #[serde(rename = "late_ns")]
    pub late: Nanos,
    /// Its cause.
    pub cause: Cause,
    /// Where the time went; the parts sum to the lateness.
    pub parts: Vec<Part>,
}
