//! What is wrong with a workload file: where, what stands there, and what to write.

use std::io;
use std::path::PathBuf;

use whylate_model::Printable;

use super::json::{self, Entry, Malformed, Node};
use crate::file::Position;
use crate::task_set::TaskSetError;

/// Why a file holds no workload that can be run.
#[derive(Debug, thiserror::Error)]
pub enum RtAppError {
    /// It cannot be read.
    #[error("cannot read `{}`: {why}; name a workload of rt-app", .path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why not.
        why: io::Error,
    },
    /// Larger than any workload.
    #[error("the file has more than {} bytes: split the workload", json::LONGEST)]
    TooLarge,
    /// Not of the format.
    #[error("{at}: {}", Printable(reason))]
    Malformed {
        /// Where.
        at: Position,
        /// What is wrong.
        reason: String,
    },
    /// Of rt-app, and not taken here.
    #[error("{at}: `{}` is not supported: {why}", Printable(name))]
    Unsupported {
        /// Where.
        at: Position,
        /// What it is called.
        name: String,
        /// Why, and what to do instead.
        why: &'static str,
    },
    /// Of the format, and not possible.
    #[error("{at}: {error}")]
    Set {
        /// Where the task begins.
        at: Position,
        /// What is wrong with it.
        error: TaskSetError,
    },
}

impl RtAppError {
    /// A key that there is not.
    pub(super) fn unknown(entry: &Entry, instead: &str) -> Self {
        let reason = format!("there is no key `{}` here: {instead}", entry.key);
        Self::Malformed { at: entry.at, reason }
    }

    /// A key that stands twice where it may stand once.
    pub(super) fn twice(entry: &Entry) -> Self {
        let reason = format!("`{}` stands here a second time: leave one", entry.key);
        Self::Malformed { at: entry.at, reason }
    }

    /// A value of another type.
    pub(super) fn kind(node: &Node, what: &str, wanted: &str) -> Self {
        let reason = format!("{what} is {wanted}, not {}", node.value.kind());
        Self::Malformed { at: node.at, reason }
    }

    /// A value that cannot be.
    pub(super) fn value(node: &Node, reason: impl Into<String>) -> Self {
        Self::Malformed { at: node.at, reason: reason.into() }
    }
}

impl From<Malformed> for RtAppError {
    fn from(Malformed { at, reason }: Malformed) -> Self {
        Self::Malformed { at, reason }
    }
}
