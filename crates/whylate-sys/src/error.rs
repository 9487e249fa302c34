//! What the kernel refused, why, and what to try.

use rustix::io::Errno;
use whylate_model::CpuId;

use crate::memory::LockRefusal;
use crate::rseq::RseqRefusal;
use crate::sched::Denial;
use crate::tracefs::TracefsRefusal;

/// Why a kernel interface could not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SysError {
    /// A call failed.
    #[error("cannot {what}: {errno}{}{advice}", if advice.is_empty() { "" } else { "; " })]
    Call {
        /// The system call, as its manual page is called.
        call: &'static str,
        /// What was tried, on what: "open /dev/cpu_dma_latency".
        what: String,
        /// What the kernel answered.
        errno: Errno,
        /// What to try; empty where nothing general can be said.
        advice: String,
    },
    /// The kernel took fewer CPUs than were asked for, and now the thread runs on those.
    #[error(
        "cannot bind {thread} to CPUs {}: the kernel left {}; the others are offline, do not exist \
         or lie outside the cpuset of the task",
        list(wanted),
        list(got)
    )]
    AffinityPartial {
        /// "this thread" or "task 17".
        thread: String,
        /// What was asked for.
        wanted: Vec<CpuId>,
        /// What is in force now.
        got: Vec<CpuId>,
    },
    /// A scheduling policy was refused.
    #[error("cannot give {thread} {policy}: {denial}")]
    Scheduling {
        /// "this thread" or "task 17".
        thread: String,
        /// The policy asked for.
        policy: String,
        /// Why not.
        denial: Denial,
    },
    /// Memory could not be locked.
    #[error("cannot lock the memory of this process: {0}")]
    MemoryLock(LockRefusal),
    /// The rseq area cannot be used.
    #[error("cannot use the restartable-sequence word of this thread: {0}")]
    Rseq(RseqRefusal),
    /// There is no way to tracefs.
    #[error("cannot open tracefs: {0}")]
    Tracefs(TracefsRefusal),
    /// Only real-time signals carry injected work.
    #[error("cannot take signal {number}: it is not a real-time signal ({first} to {last})")]
    NotRealTimeSignal {
        /// What was asked for.
        number: i32,
        /// SIGRTMIN.
        first: i32,
        /// SIGRTMAX.
        last: i32,
    },
    /// One handler per signal.
    #[error("cannot take signal {0}: this process already handles it; use another or wait for it")]
    SignalTaken(i32),
    /// Content or arguments that cannot be right.
    #[error("cannot {what}: {why}")]
    Invalid {
        /// What was tried, on what.
        what: String,
        /// What is wrong with it.
        why: String,
    },
}

impl SysError {
    /// A failed call about which nothing more can be said.
    pub(crate) fn call(call: &'static str, what: impl Into<String>, errno: Errno) -> Self {
        Self::advised(call, what, errno, "")
    }

    /// A failed call and what to try.
    pub(crate) fn advised(
        call: &'static str,
        what: impl Into<String>,
        errno: Errno,
        advice: impl Into<String>,
    ) -> Self {
        Self::Call { call, what: what.into(), errno, advice: advice.into() }
    }

    pub(crate) fn invalid(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Invalid { what: what.into(), why: why.into() }
    }

    /// What was refused and why, and apart from that what to try; empty where nothing general can be said.
    #[must_use]
    pub fn parted(&self) -> (String, String) {
        match self {
            Self::Call { what, errno, advice, .. } => {
                (format!("cannot {what}: {errno}"), advice.clone())
            }
            Self::Tracefs(of) => (format!("cannot open tracefs: {}", of.reason()), of.remedy()),
            other => (other.to_string(), String::new()),
        }
    }

    /// The kernel's answer, where it was the kernel that refused.
    #[must_use]
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Call { errno, .. } => Some(*errno),
            Self::Scheduling { denial, .. } => Some(denial.errno()),
            Self::MemoryLock(refusal) => Some(refusal.errno),
            Self::Tracefs(refusal) => refusal.errno(),
            _ => None,
        }
    }
}

/// What the last failed libc call left in `errno`.
pub(crate) fn last_errno() -> Errno {
    std::io::Error::last_os_error().raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}

fn list(cpus: &[CpuId]) -> String {
    if cpus.is_empty() {
        return "none".to_owned();
    }
    cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn what_is_told_in_two_parts_is_what_is_told_in_one() {
        let denied = TracefsRefusal::Denied {
            path: PathBuf::from("/sys/kernel/tracing"),
            errno: Errno::ACCESS,
        };
        for error in [
            SysError::Tracefs(denied),
            SysError::Tracefs(TracefsRefusal::MayNotMount),
            SysError::advised("openat", "read trace_clock", Errno::ACCESS, "run as root"),
        ] {
            let (reason, remedy) = error.parted();
            assert_eq!(format!("{reason}; {remedy}"), error.to_string());
            assert_eq!(error.to_string().matches("run as root").count(), 1, "{error}");
            assert!(!reason.contains("run as root"), "{reason}");
        }
        let plain = SysError::call("openat", "read trace_clock", Errno::IO);
        assert_eq!(plain.parted(), (plain.to_string(), String::new()));
    }
}
