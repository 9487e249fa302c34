//! The gap loop, its rings and drains, and the noise injector.
//!
//! A busy thread reads the counter in a loop; two readings further apart than the threshold are a
//! gap: time the thread did not get. This crate measures gaps and proves that it does; it names no
//! cause.

pub mod blocks;
pub mod closure;
pub mod hot;
pub mod inject;
pub mod plan;
pub mod ring;
pub mod selftest_rseq;
pub mod session;
pub mod table;
mod thread;
pub mod threshold;
pub mod workload;

use whylate_model::{CpuId, Nanos};
use whylate_sys::SysError;

pub use plan::{Placement, Plan, Policy, Work};
pub use session::{Session, Source, State, ThreadFacts, Totals};
pub use threshold::Threshold;

/// Why gaps could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum GapError {
    /// The user gave up before anything was measured.
    #[error("stopped in the warm-up: nothing was measured")]
    Stopped,
    /// The plan names no CPU.
    #[error("no CPU to measure on: name at least one with --cpus")]
    NoCpus,
    /// A thread could not be pinned.
    #[error("cannot run the measuring thread on CPU {cpus}: check the cpuset of this process")]
    Affinity {
        /// The CPUs.
        cpus: String,
        /// What the kernel said.
        source: SysError,
    },
    /// No thread could be started.
    #[error("cannot start a measuring thread: check `ulimit -u` and free memory")]
    Spawn(#[source] std::io::Error),
    /// A measuring thread panicked.
    #[error("the measuring thread of CPU {cpu} died; its records up to then are kept")]
    ThreadDied {
        /// CPU.
        cpu: CpuId,
    },
    /// No block of the warm-up was without a gap.
    #[error(
        "CPU {cpu} was never quiet for {iterations} iterations in the whole warm-up, so the loop's \
         period is not known: give a longer --warmup, a smaller --workload or a quieter CPU"
    )]
    NeverQuiet {
        /// CPU.
        cpu: CpuId,
        /// Length of a block.
        iterations: u64,
    },
    /// Every iteration would be a gap.
    #[error(
        "the threshold of {threshold} is not above the loop's own period of {period:.1}ns, so every \
         iteration would be a gap: give a larger --threshold or none"
    )]
    ThresholdBelowPeriod {
        /// As given.
        threshold: Nanos,
        /// Period in nanoseconds.
        period: f64,
    },
    /// The handler's statics serve one injector at a time.
    #[error("another self-test runs in this process: wait for it to end")]
    InjectorBusy,
    /// The injector could not do its work.
    #[error("cannot inject {what}")]
    Inject {
        /// Which kind of interruption.
        what: String,
        /// What the kernel said.
        source: SysError,
    },
}
