//! What is to be measured.

use std::fmt;

use whylate_model::run::LoopKind;
use whylate_model::{CpuId, CpuList, Nanos};

use crate::threshold::Threshold;

/// A gap measurement. Built from checked values: CPUs that exist, durations that fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Where the measuring threads run.
    pub placement: Placement,
    /// Which loop.
    pub loop_kind: LoopKind,
    /// Count every delta, not only gaps.
    pub counting: bool,
    /// What the loop does between readings.
    pub work: Work,
    /// Which delta is a gap.
    pub threshold: Threshold,
    /// Time before the measurement proper; nothing of it is kept.
    pub warmup: Nanos,
    /// Scheduling policy of the measuring threads.
    pub policy: Policy,
    /// Busy threads that share each measured CPU.
    pub competitors: u32,
    /// A gap longer than this stops the measurement.
    pub stop_at: Option<Nanos>,
}

/// Where the measuring threads run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// One thread on each of these CPUs.
    Pinned(Vec<CpuId>),
    /// So many threads, wherever the scheduler puts them among these CPUs.
    Floating {
        /// Threads.
        threads: u32,
        /// CPUs they may use.
        allowed: Vec<CpuId>,
    },
}

/// What the loop does between readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Work {
    /// Nothing.
    Nothing,
    /// Copies a buffer of so many bytes.
    Memmove {
        /// Size of the buffer.
        bytes: usize,
    },
    /// Reads an array of so many bytes, a cache line in each iteration.
    Scan {
        /// Size of the array.
        bytes: usize,
    },
}

/// Scheduling policy of the measuring threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// As the kernel gives it: SCHED_OTHER.
    Ordinary,
    /// SCHED_FIFO at this priority.
    Fifo(u8),
}

impl Placement {
    /// Number of measuring threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        match self {
            Self::Pinned(cpus) => cpus.len(),
            Self::Floating { threads, .. } => *threads as usize,
        }
    }

    /// Every CPU a measuring thread may run on.
    #[must_use]
    pub fn cpus(&self) -> &[CpuId] {
        match self {
            Self::Pinned(cpus) => cpus,
            Self::Floating { allowed, .. } => allowed,
        }
    }

    /// The CPUs of thread `index`.
    #[must_use]
    pub(crate) fn of_thread(&self, index: usize) -> &[CpuId] {
        match self {
            Self::Pinned(cpus) => &cpus[index..=index],
            Self::Floating { allowed, .. } => allowed,
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pinned(cpus) => write!(f, "pinned to {}", CpuList(cpus)),
            Self::Floating { threads, allowed } => {
                write!(f, "{threads} floating on {}", CpuList(allowed))
            }
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::Memmove { bytes } => write!(f, "memmove of {bytes} bytes"),
            Self::Scan { bytes } => write!(f, "scan of {bytes} bytes"),
        }
    }
}
