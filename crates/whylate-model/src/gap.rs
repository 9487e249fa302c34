//! What a busy loop did not get.

use serde::{Deserialize, Serialize};

use crate::units::{CpuId, Ticks, TicksDelta};

/// One interval in which the measuring loop did not run, as the loop itself saw it.
///
/// The loop read `start`, then `end`, and found them further apart than its threshold. It stored
/// the record and read the clock once more: `end..resumed` is the cost of recording, a class of
/// its own that is never part of a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Last reading before the gap.
    pub start: Ticks,
    /// First reading after the gap.
    pub end: Ticks,
    /// First reading after the record was stored.
    pub resumed: Ticks,
    /// CPU the loop ran on before the gap.
    pub cpu_before: CpuId,
    /// CPU the loop ran on after the gap.
    pub cpu_after: CpuId,
    /// Was the time taken from the loop, or did it wait, asleep or blocked?
    pub kind: GapKind,
    /// What the loop knows about the gap without the kernel's help.
    pub evidence: Evidence,
}

/// Why a thread did not run.
///
/// A loop that never waits has interruptions only. A thread of a set also waits, and a wait that
/// ends late has two gaps: the wait to the instant it was meant to end, and the dispatch after it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum GapKind {
    /// The thread wanted to run and did not.
    #[default]
    Interruption,
    /// It was to run again at the gap's start, and did at its end: dispatch latency.
    Dispatch,
    /// It slept until its timer.
    Sleep,
    /// It yielded: it could run, and let others go first.
    Yield,
    /// It handed the CPU to another thread and waited to be handed it back.
    HandOff,
    /// It waited for a resource that another thread held or had yet to provide.
    Blocked,
    /// It waited busily, reading the clock until its instant had come: it kept the CPU.
    Spin,
    /// It was to run, and its timer fires later by its own design: a coarse clock. Not a wait: it
    /// wanted to run.
    LateTimer,
}

impl GapKind {
    /// The thread gave the CPU up itself: nothing was lost.
    #[must_use]
    pub fn is_wait(self) -> bool {
        !matches!(self, Self::Interruption | Self::Dispatch | Self::LateTimer)
    }

    /// The wait gives the CPU to whoever wants it; a yield only where somebody does.
    #[must_use]
    pub fn leaves_cpu(self) -> bool {
        matches!(self, Self::Sleep | Self::HandOff | Self::Blocked)
    }
}

/// Evidence B of one gap: what an unprivileged thread can know by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// State of the rseq critical-section word after the gap.
    pub rseq: RseqWord,
    /// Involuntary context switches since the gap before, where they were read.
    pub involuntary_switches: Option<u32>,
    /// The gap lies inside the recording of the gap before it.
    pub in_recording: bool,
}

/// State of the rseq critical-section word after a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RseqWord {
    /// The word was not armed: the trick is not available in this run.
    #[default]
    Unarmed,
    /// Still set: the thread was not preempted, migrated or signalled. Certain.
    Set,
    /// Cleared by the kernel: perhaps preempted, perhaps other work on the way out.
    Cleared,
}

impl Gap {
    /// Length of the gap, the loop's own period included.
    #[must_use]
    pub fn length(&self) -> TicksDelta {
        self.end.since(self.start)
    }

    /// Time taken to record the gap.
    #[must_use]
    pub fn recording(&self) -> TicksDelta {
        self.resumed.since(self.end)
    }

    /// The CPU changed: the gap is kept and marked, for such gaps are the long ones.
    #[must_use]
    pub fn migrated(&self) -> bool {
        self.cpu_before != self.cpu_after
    }
}
