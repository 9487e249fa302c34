//! The share of a CPU that the kernel keeps back from real-time tasks.
//!
//! With the usual 950000 us in 1000000 us a FIFO thread that never sleeps loses 50 ms each second:
//! seen in a gap measurement, it is the largest gap there is. `sched_rt_runtime_us` = -1 lifts it.
//! While it is lifted a runaway FIFO thread has its CPU for good, so it is lifted on request only.
//!
//! The same limit is what SCHED_DEADLINE may reserve of each CPU. Since Linux 6.12 a part of it, 5 %
//! of the CPU unless changed, belongs to the *fair server*, which lets ordinary tasks run beside
//! real-time ones.

use std::path::Path;

use whylate_model::Nanos;
use whylate_model::warning::Warning;

use super::Guard;
use super::changes::{Changes, Written};
use crate::error::HostError;
use crate::files::{trimmed, under};
use crate::journal::Journal;

const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const PERIOD: &str = "/proc/sys/kernel/sched_rt_period_us";

/// What the kernel grants to real-time tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RtLimits {
    /// Runtime per period in microseconds; negative is unlimited.
    pub runtime_us: i64,
    /// The period in microseconds.
    pub period_us: i64,
}

impl RtLimits {
    /// Does the kernel take the CPU from a FIFO thread that never sleeps?
    #[must_use]
    pub fn throttles(self) -> bool {
        (0..self.period_us).contains(&self.runtime_us)
    }

    /// The warning that belongs to a FIFO measurement under these limits.
    #[must_use]
    pub fn warning(self) -> Option<Warning> {
        let nanos = |us: i64| Nanos(us.max(0).unsigned_abs().saturating_mul(1000));
        let (runtime, period) = (nanos(self.runtime_us), nanos(self.period_us));
        self.throttles().then_some(Warning::RtThrottling { runtime, period })
    }
}

/// The limit lifted or set, until the guard goes.
#[derive(Debug)]
pub struct RtThrottling {
    changes: Changes,
    written: Option<Written>,
    runtime_us: i64,
}

impl RtThrottling {
    /// The limits in force below `root`; `None` when they cannot be read.
    #[must_use]
    pub fn detect(root: &Path) -> Option<RtLimits> {
        let value = |path| trimmed(&under(root, path))?.parse().ok();
        Some(RtLimits { runtime_us: value(RUNTIME)?, period_us: value(PERIOD)? })
    }

    /// Lifts the limit.
    pub fn lift(journal: &Journal) -> Result<Self, HostError> {
        Self::write_at(journal, Path::new(RUNTIME), -1)
    }

    /// Sets the limit to `runtime_us` per period; -1 lifts it. The kernel refuses less than the
    /// deadlines already granted, and more than the period.
    pub fn set(journal: &Journal, runtime_us: i64) -> Result<Self, HostError> {
        Self::write_at(journal, Path::new(RUNTIME), runtime_us)
    }

    fn write_at(journal: &Journal, path: &Path, runtime_us: i64) -> Result<Self, HostError> {
        let mut changes = Changes::new(journal);
        let remedy = match runtime_us {
            -1 => "run as root, or accept the stalls that the limit makes",
            _ => {
                "run as root; it may not be above sched_rt_period_us nor below what deadlines \
                 already hold"
            }
        };
        let written = changes.write(path, &runtime_us.to_string(), remedy)?;
        Ok(Self { changes, written, runtime_us })
    }
}

impl Guard for RtThrottling {
    fn describe(&self) -> Vec<String> {
        let done = if self.runtime_us < 0 { "lifted" } else { "set" };
        vec![match &self.written {
            Some(Written { before, now }) => {
                format!("limit of real-time tasks {done}: {RUNTIME} {before} -> {now}")
            }
            None => {
                format!(
                    "limit of real-time tasks was {done} already: {RUNTIME} is {}",
                    self.runtime_us
                )
            }
        }]
    }

    fn restore(&mut self) -> Vec<Warning> {
        self.changes.restore()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{self, Tree};

    #[test]
    fn limits_are_detected_and_warned_about() {
        let tree = Tree::empty();
        assert_eq!(RtThrottling::detect(tree.root()), None);
        tree.file(RUNTIME, "950000\n").file(PERIOD, "1000000\n");
        let limits = RtThrottling::detect(tree.root()).unwrap();
        assert!(limits.throttles());
        assert_eq!(
            limits.warning(),
            Some(Warning::RtThrottling { runtime: Nanos(950_000_000), period: Nanos::SECOND })
        );
        for free in ["-1\n", "1000000\n"] {
            tree.file(RUNTIME, free);
            let limits = RtThrottling::detect(tree.root()).unwrap();
            assert!(!limits.throttles() && limits.warning().is_none(), "{free}");
        }
        // A runtime of zero lets no real-time task run at all: that throttles, too.
        tree.file(RUNTIME, "0\n");
        assert!(RtThrottling::detect(tree.root()).unwrap().throttles());
    }

    #[test]
    fn limit_is_lifted_on_a_file_and_put_back() {
        let tree = Tree::empty();
        tree.file(RUNTIME, "950000\n");
        let path = under(tree.root(), RUNTIME);
        let journal = Journal::open_in(&tree.root().join("journals")).unwrap();
        let guard = RtThrottling::write_at(&journal, &path, -1).unwrap();
        assert!(guard.describe()[0].contains("950000 -> -1"), "{:?}", guard.describe());
        drop(guard);
        assert_eq!(trimmed(&path).as_deref(), Some("950000"));
        tree.file(RUNTIME, "-1\n");
        let guard = RtThrottling::write_at(&journal, &path, -1).unwrap();
        assert!(guard.describe()[0].contains("already"), "{:?}", guard.describe());
    }

    #[test]
    fn limit_is_set_to_a_value_and_put_back() {
        let tree = Tree::empty();
        tree.file(RUNTIME, "950000\n");
        let path = under(tree.root(), RUNTIME);
        let journal = Journal::open_in(&tree.root().join("journals")).unwrap();
        let guard = RtThrottling::write_at(&journal, &path, 1_000_000).unwrap();
        assert!(guard.describe()[0].contains("set: "), "{:?}", guard.describe());
        assert_eq!(trimmed(&path).as_deref(), Some("1000000"));
        drop(guard);
        assert_eq!(trimmed(&path).as_deref(), Some("950000"));
    }

    #[test]
    fn limit_of_this_host_is_lifted_and_put_back() {
        let before = trimmed(Path::new(RUNTIME));
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(&dir.path().join("journals")).unwrap();
        let guard = match RtThrottling::lift(&journal) {
            Ok(guard) => guard,
            Err(error) => return tree::skip(&error),
        };
        assert_eq!(trimmed(Path::new(RUNTIME)).as_deref(), Some("-1"));
        drop(guard);
        assert_eq!(trimmed(Path::new(RUNTIME)), before);
    }
}
