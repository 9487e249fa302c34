//! Things the reader of a number must know, each with advice.

use serde::{Deserialize, Serialize};

use crate::units::{CpuId, Nanos};

/// A warning. One arm per fact; [`Warning::advice`] says what to do about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "warning")]
pub enum Warning {
    /// Loop time against the gap-free period is off by more than 1 % of the elapsed time.
    NoiseBelowThreshold {
        /// CPU.
        cpu: CpuId,
        /// Share of elapsed time, signed.
        share: f64,
    },
    /// Ring overflow: gaps were counted in the histogram but not kept one by one.
    RecordsDropped {
        /// CPU.
        cpu: CpuId,
        /// How many.
        dropped: u64,
    },
    /// Ring overflow: what a thread recorded of its jobs or wake-ups found no room.
    JobsUnrecorded {
        /// Which thread.
        thread: String,
        /// How many records.
        records: u64,
    },
    /// The kernel's trace buffer lost events.
    TraceLost {
        /// CPU.
        cpu: CpuId,
        /// How many, where the kernel says.
        events: Option<u64>,
    },
    /// Gaps had to be named before all their events had come, or senders were lost.
    CausesIncomplete {
        /// Gaps taken apart too early.
        gaps_forced: u64,
        /// Sends of interrupts and wake-ups lost: at least so many.
        sends: u64,
    },
    /// Kernel tracing was not available; causes come from evidence B alone.
    NoKernelTrace {
        /// Why.
        reason: String,
        /// What would make it available.
        remedy: String,
    },
    /// Interrupts and wake-ups are recorded, and who sent them is not.
    NoSenders {
        /// Why.
        reason: String,
        /// What would make them available.
        remedy: String,
    },
    /// The rseq trick failed its self-test.
    RseqUnusable {
        /// Why.
        reason: String,
    },
    /// Only one independent source of the counter's frequency.
    FrequencyFromRegressionOnly,
    /// Frequency sources disagree.
    FrequencyDisagreement {
        /// Largest difference in parts per million.
        ppm: f64,
    },
    /// A CPU changed under the measurement: offline, or the affinity was changed from outside.
    HostChanged {
        /// What changed.
        what: String,
    },
    /// No CPU was left for the main thread.
    NoHousekeepingCpu,
    /// Memory could not be locked.
    MemoryNotLocked {
        /// Why and what to do.
        reason: String,
    },
    /// A scheduling policy was refused.
    PolicyRefused {
        /// Why and what to do.
        reason: String,
    },
    /// RT throttling takes the CPU from a FIFO thread.
    RtThrottling {
        /// Runtime the kernel grants per period.
        runtime: Nanos,
        /// The period.
        period: Nanos,
    },
    /// The threshold lies close to the loop's own period.
    ThresholdNearPeriod {
        /// Threshold.
        threshold: Nanos,
        /// Period.
        period: Nanos,
    },
    /// Oldest segments were deleted to stay within the disk bound.
    SegmentsRotated {
        /// How many.
        deleted: u64,
    },
    /// A CPU had no time for anybody but a set of threads, which was ended for it.
    SetStarved {
        /// The CPU.
        cpu: CpuId,
        /// For so long.
        patience: Nanos,
    },
    /// The execution trace has no room for all records; sums and deadlines cover the whole run.
    ExecutionCut {
        /// Records that it holds.
        kept: u64,
        /// Records that found no room.
        lost: u64,
    },
    /// The disk filled up or writing failed during the run; summaries go on.
    WritingFailed {
        /// The error.
        reason: String,
    },
    /// The run did not end by itself.
    Interrupted,
    /// Two runs at once on this machine.
    AnotherRun {
        /// Process id of the other.
        pid: i32,
    },
    /// A percentile moves over the run.
    NotStationary {
        /// Series.
        series: String,
        /// Which test says so.
        test: String,
        /// Its p-value.
        p_value: f64,
    },
    /// `/dev/cpu_dma_latency` could not be held.
    IdleStatesNotHeld {
        /// Why.
        reason: String,
    },
    /// Something that was to be done at the first gap above the stop limit was not.
    ActionFailed {
        /// What, and why.
        what: String,
    },
    /// A part of the recording ended before its time: what it had measured until then is kept.
    PartEndedEarly {
        /// Which part.
        part: String,
        /// Why.
        reason: String,
    },
    /// A part of the recording was left out.
    PartLeftOut {
        /// Which part.
        part: String,
        /// Why.
        reason: String,
    },
    /// Wake-ups were stamped before the instant they were scheduled for; they count as 0.
    WokeEarly {
        /// How many.
        early: u64,
        /// Of how many.
        of: u64,
        /// The earliest came this much too early.
        earliest: Nanos,
    },
    /// A guard could not do or undo its change.
    Guard {
        /// What happened.
        what: String,
    },
    /// Load that was asked for ended before it was told to.
    LoadEnded {
        /// Which load.
        load: String,
        /// How it ended.
        how: String,
    },
    /// A flow of requests could not hold the rate that was asked for.
    Saturated {
        /// Which flow.
        flow: String,
        /// Share of the intended requests that left within the measured time.
        share: f64,
    },
    /// Requests of a flow left later than the tolerance, or at other distances than asked for.
    DeparturesDisturbed {
        /// Which flow.
        flow: String,
        /// In what.
        how: String,
    },
    /// The counts of a flow do not add up: an error of the tool.
    AccountBroken {
        /// Which flow.
        flow: String,
    },
    /// A warning of one part of a run: of a cell of the matrix.
    Within {
        /// Which part.
        part: String,
        /// What is to be known about it.
        of: Box<Warning>,
    },
}

impl Warning {
    /// Does this warning make the result untrustworthy (exit status 4)?
    #[must_use]
    pub fn spoils_trust(&self) -> bool {
        if let Self::Within { of, .. } = self {
            return of.spoils_trust();
        }
        matches!(
            self,
            Self::RecordsDropped { .. }
                | Self::JobsUnrecorded { .. }
                | Self::TraceLost { .. }
                | Self::FrequencyDisagreement { .. }
                | Self::HostChanged { .. }
                | Self::PartEndedEarly { .. }
                | Self::SetStarved { .. }
                | Self::WritingFailed { .. }
                | Self::LoadEnded { .. }
                | Self::Saturated { .. }
                | Self::AccountBroken { .. }
        )
    }
}
