//! A timer behind a file descriptor, waited for by reading it.
//!
//! [`timerfd_create(2)`](https://man7.org/linux/man-pages/man2/timerfd_create.2.html). Capability:
//! none. The kernel gives such a timer no slack: it fires as soon as it can.

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::SysError;
use crate::timespec;

/// A timer on `CLOCK_MONOTONIC`.
#[derive(Debug)]
pub struct TimerFd(OwnedFd);

impl TimerFd {
    /// Makes one, not armed.
    pub fn monotonic() -> Result<Self, SysError> {
        timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)
            .map(Self)
            .map_err(|errno| refusal("timerfd_create", "make a timer descriptor", errno))
    }

    /// Arms it for `abs_ns` of `CLOCK_MONOTONIC` and sleeps until it has fired; a signal does not
    /// end the sleep.
    #[inline]
    pub fn wait_until(&self, abs_ns: u64) -> Result<(), SysError> {
        // An instant of zero would disarm it.
        let once =
            Itimerspec { it_interval: timespec::of(0), it_value: timespec::of(abs_ns.max(1)) };
        timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &once)
            .map_err(|errno| refusal("timerfd_settime", "arm a timer descriptor", errno))?;
        let mut expirations = [0; 8];
        loop {
            match rustix::io::read(&self.0, &mut expirations) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(refusal("read", "read a timer descriptor", errno)),
            }
        }
    }
}

#[cold]
fn refusal(call: &'static str, what: &str, errno: Errno) -> SysError {
    let advice = match errno {
        Errno::MFILE => "this process has too many files open: raise `ulimit -n`",
        Errno::NFILE => "this system has too many files open: see /proc/sys/fs/file-max",
        Errno::NODEV | Errno::NOSYS => "this kernel was built without CONFIG_TIMERFD",
        _ => "",
    };
    SysError::advised(call, what, errno, advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nanosleep::{Clock, clock_ns};

    #[test]
    fn no_wait_ends_early_and_the_past_is_no_wait() {
        let timer = TimerFd::monotonic().unwrap();
        for _ in 0..5 {
            let until = clock_ns(Clock::Monotonic) + 300_000;
            timer.wait_until(until).unwrap();
            assert!(clock_ns(Clock::Monotonic) >= until);
        }
        timer.wait_until(0).unwrap();
    }
}
