//! Why tasks cannot be analysed: which task, which of its times, and what to write instead.

use std::fmt;

use whylate_model::Printable;

use super::task::MOST_TASKS;

/// A time of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// Execution time.
    Execution,
    /// Period.
    Period,
    /// Deadline.
    Deadline,
    /// Budget of its reservation.
    Budget,
    /// Period of its reservation.
    ServerPeriod,
}

/// Why tasks cannot be analysed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnalysisError {
    /// Nothing to analyse.
    #[error("there is no task to analyse: give one, such as --task \"3ms 8ms\"")]
    Empty,
    /// More than are taken.
    #[error(
        "{0} tasks: the most is {MOST_TASKS}, as many as threads of a set; join those that run one \
         after the other"
    )]
    TooMany(usize),
    /// A time of zero.
    #[error("the {amount} of task {} is zero: write a time such as 3ms", Printable(.task))]
    Zero {
        /// Whose.
        task: String,
        /// Which.
        amount: Amount,
    },
    /// A reservation of more than there is.
    #[error(
        "the reservation of task {} is longer than its period: write the smaller time first",
        Printable(.task)
    )]
    BudgetAbovePeriod {
        /// Whose.
        task: String,
    },
    /// A task without the reservation that was to be analysed.
    #[error(
        "task {} has no reservation: write one, such as `reserve 3.1ms 8ms`, or analyse with \
         --policy fp", Printable(.task)
    )]
    NoServer {
        /// Whose.
        task: String,
    },
    /// 584 years of nanoseconds are not enough.
    #[error(
        "the times of task {} do not fit into 64 bits of nanoseconds when they are added up: \
         write shorter times", Printable(.task)
    )]
    Overflow {
        /// At which task it was found.
        task: String,
    },
    /// Not an overhead.
    #[error("`{word}` is not an overhead: {reason}; write switch=3us, tick=15us/4ms or both")]
    Overhead {
        /// As written.
        word: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Execution => "execution time",
            Self::Period => "period",
            Self::Deadline => "deadline",
            Self::Budget => "reserved amount",
            Self::ServerPeriod => "period of the reservation",
        })
    }
}
