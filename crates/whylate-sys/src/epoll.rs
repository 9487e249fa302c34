//! Waiting for nothing but a time-out, as an event loop does.
//!
//! [`epoll_wait(2)`](https://man7.org/linux/man-pages/man2/epoll_wait.2.html): `epoll_pwait2` takes
//! nanoseconds (Linux 5.11), `epoll_wait` milliseconds, which are rounded up here. Capability: none.
//!
//! For a thread without real-time policy the kernel lets the time-out be late by a thousandth of its
//! length (a two-hundredth where the niceness is positive), or by the thread's timer slack where
//! that is more.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::epoll::{self, CreateFlags};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;

use crate::error::{SysError, last_errno};
use crate::timespec;

/// Set once the kernel, or a sandbox, has said that it has no `epoll_pwait2`.
static MILLISECONDS_ONLY: AtomicBool = AtomicBool::new(false);

const NANOS_PER_MILLISECOND: u64 = 1_000_000;

/// An epoll instance that watches nothing.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

/// What a time-out is rounded up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// `epoll_pwait2`.
    Nanosecond,
    /// `epoll_wait`.
    Millisecond,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By its time-out, which this call knows to that resolution.
    TimedOut(Resolution),
    /// By a signal, before.
    Interrupted,
}

impl Epoll {
    /// Makes one.
    pub fn new() -> Result<Self, SysError> {
        epoll::create(CreateFlags::CLOEXEC)
            .map(Self)
            .map_err(|errno| refusal("epoll_create1", "make an epoll instance", errno))
    }

    /// Waits for `ns`, or until a signal comes.
    #[inline]
    pub fn wait_for(&self, ns: u64) -> Result<Ended, SysError> {
        if !MILLISECONDS_ONLY.load(Ordering::Relaxed) {
            match self.wait_nanoseconds(ns) {
                Ok(()) => return Ok(Ended::TimedOut(Resolution::Nanosecond)),
                Err(Errno::INTR) => return Ok(Ended::Interrupted),
                Err(Errno::NOSYS | Errno::PERM) => MILLISECONDS_ONLY.store(true, Ordering::Relaxed),
                Err(errno) => return Err(refusal("epoll_pwait2", "wait for a time-out", errno)),
            }
        }
        match self.wait_milliseconds(ns) {
            Ok(()) => Ok(Ended::TimedOut(Resolution::Millisecond)),
            Err(Errno::INTR) => Ok(Ended::Interrupted),
            Err(errno) => Err(refusal("epoll_wait", "wait for a time-out", errno)),
        }
    }

    fn wait_nanoseconds(&self, ns: u64) -> Result<(), Errno> {
        let limit = timespec::raw(ns);
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: room for one event, one time-out, and no mask of signals.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.0.as_raw_fd(),
                &raw mut event,
                1,
                &raw const limit,
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        if answer < 0 { Err(last_errno()) } else { Ok(()) }
    }

    fn wait_milliseconds(&self, ns: u64) -> Result<(), Errno> {
        let milliseconds = ns.div_ceil(NANOS_PER_MILLISECOND).min(i32::MAX as u64) as i32;
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: room for one event.
        let answer =
            unsafe { libc::epoll_wait(self.0.as_raw_fd(), &raw mut event, 1, milliseconds) };
        if answer < 0 { Err(last_errno()) } else { Ok(()) }
    }
}

#[cold]
fn refusal(call: &'static str, what: &str, errno: Errno) -> SysError {
    let advice = match errno {
        Errno::MFILE => "this process has too many files open: raise `ulimit -n`",
        Errno::NFILE => "this system has too many files open: see /proc/sys/fs/file-max",
        Errno::NOSYS => "this kernel was built without CONFIG_EPOLL",
        _ => "",
    };
    SysError::advised(call, what, errno, advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nanosleep::{Clock, clock_ns};

    #[test]
    fn both_calls_wait_at_least_as_long_as_asked() {
        let epoll = Epoll::new().unwrap();
        for ns in [1, 250_000, 1_700_000] {
            let before = clock_ns(Clock::Monotonic);
            assert!(matches!(epoll.wait_for(ns).unwrap(), Ended::TimedOut(_)));
            assert!(clock_ns(Clock::Monotonic) - before >= ns, "{ns}");
            let before = clock_ns(Clock::Monotonic);
            epoll.wait_milliseconds(ns).unwrap();
            assert!(clock_ns(Clock::Monotonic) - before >= ns, "{ns} ns by milliseconds");
        }
    }
}
