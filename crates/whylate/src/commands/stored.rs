//! How much of a run its directory holds: a disk that was full took less than there was.

use std::path::Path;

use whylate_model::directory::{RUN_FILE, RunDir};
use whylate_model::run::{Run, Verdict};
use whylate_model::warning::Warning;
use whylate_report::{Place, ReportError};

/// So much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    Whole,
    UpToCheckpoint,
    Nothing,
}

impl Stored {
    pub(super) fn of(run: &Run, path: &Path) -> Self {
        let stored = RunDir::open(path).and_then(|directory| directory.read_run());
        match stored.map(|stored| stored.verdict) {
            Ok(Verdict::Pending) if run.verdict != Verdict::Pending => Self::UpToCheckpoint,
            Ok(_) => Self::Whole,
            Err(_) => Self::Nothing,
        }
    }

    /// What is wrong with what is there; none of a whole run.
    pub(super) fn told(self, run: &Run) -> Option<String> {
        let what = match self {
            Self::Whole => return None,
            Self::UpToCheckpoint => "the run is kept up to its last checkpoint",
            Self::Nothing => "nothing of this run is kept",
        };
        // The last is of the run's own file.
        let reason = run.warnings.iter().rev().find_map(|warning| match warning {
            Warning::WritingFailed { reason } => Some(format!(": {reason}")),
            _ => None,
        });
        Some(format!("{what}{}", reason.unwrap_or_default()))
    }

    /// Why its page could not be written; that of a run that is not whole has nothing to be made from.
    pub(super) fn without_page(self, error: ReportError) -> String {
        match error {
            ReportError::Write { path, why } if self != Self::Whole => {
                format!("cannot write the report {}: {why}", path.display())
            }
            other => other.to_string(),
        }
    }
}

/// Where a new run lies, if it does.
pub(super) fn place(path: &Path) -> Place<'_> {
    Place { directory: path.join(RUN_FILE).is_file().then_some(path), again: false }
}
