//! What can be wrong with the input of this crate.

use thiserror::Error;
use whylate_model::Ticks;

/// Why something could not be attributed or inferred.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CauseError {
    /// Gaps came for a thread that was not announced.
    #[error(
        "gaps of thread {thread} cannot be attributed: it is not in the context; list it there before the run"
    )]
    UnknownThread {
        /// Index of the thread.
        thread: u16,
    },
    /// Two threads that are said to share one CPU ran at the same time.
    #[error(
        "context switches cannot be inferred: both threads ran at tick {}, so they did not share \
         one CPU; pin both to the same CPU",
        at.0
    )]
    Overlap {
        /// Where the second began before the first had ended.
        at: Ticks,
    },
    /// A two-sample rule got an empty sample.
    #[error("{what} cannot be compared: one of the two samples is empty; measure both")]
    EmptySample {
        /// What was to be compared.
        what: &'static str,
    },
}
