//! A time-out of `io_uring`.
//!
//! [`io_uring(7)`](https://man7.org/linux/man-pages/man7/io_uring.7.html), `IORING_OP_TIMEOUT` with
//! an absolute time on `CLOCK_MONOTONIC` (Linux 5.4). Capability: none, except where
//! `/proc/sys/kernel/io_uring_disabled` says so. The kernel gives such a time-out no slack.
//!
//! The rings are those of the `io-uring` crate: memory shared with the kernel needs barriers that
//! are better reviewed once, by many, and it costs the build one small crate.

use io_uring::{IoUring, opcode, types};
use rustix::io::Errno;

use crate::SysError;
use crate::timespec::NANOS_PER_SECOND;

/// One time-out is in flight at a time.
const ENTRIES: u32 = 2;
const DISABLED: &str = "/proc/sys/kernel/io_uring_disabled";

/// A ring that holds one time-out at a time.
pub struct RingTimeout {
    ring: IoUring,
    /// Where the kernel reads the instant, for as long as there is a ring.
    at: Box<types::Timespec>,
}

impl RingTimeout {
    /// Sets the ring up.
    pub fn new() -> Result<Self, SysError> {
        IoUring::new(ENTRIES)
            .map(|ring| Self { ring, at: Box::default() })
            .map_err(|error| refusal("io_uring_setup", "set up an io_uring", &error))
    }

    /// Submits a time-out for `abs_ns` of `CLOCK_MONOTONIC` and sleeps until it completes; a signal
    /// does not end the sleep.
    pub fn wait_until(&mut self, abs_ns: u64) -> Result<(), SysError> {
        let what = "wait for a time-out of io_uring";
        *self.at = types::Timespec::new()
            .sec(abs_ns / NANOS_PER_SECOND)
            .nsec((abs_ns % NANOS_PER_SECOND) as u32);
        let entry =
            opcode::Timeout::new(&raw const *self.at).flags(types::TimeoutFlags::ABS).build();
        // SAFETY: what the entry points to lives as long as the ring.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.map_err(|_| SysError::invalid(what, "the ring holds another one"))?;
        loop {
            match self.ring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(refusal("io_uring_enter", what, &error)),
            }
            if let Some(completed) = self.ring.completion().next() {
                return match -completed.result() {
                    0 | libc::ETIME => Ok(()),
                    other => {
                        let errno = Errno::from_raw_os_error(other);
                        Err(SysError::call("io_uring_enter", what, errno))
                    }
                };
            }
        }
    }
}

impl std::fmt::Debug for RingTimeout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RingTimeout").finish_non_exhaustive()
    }
}

#[cold]
pub(crate) fn refusal(call: &'static str, what: &str, error: &std::io::Error) -> SysError {
    let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
    let advice = match errno {
        Errno::PERM => format!(
            "{DISABLED} is {}, or a sandbox forbids it; as root: echo 0 > {DISABLED}",
            std::fs::read_to_string(DISABLED).unwrap_or_default().trim()
        ),
        Errno::NOSYS => "this kernel has no io_uring (CONFIG_IO_URING, Linux 5.4)".to_owned(),
        Errno::NOMEM => "its rings are locked memory: raise `ulimit -l`".to_owned(),
        _ => String::new(),
    };
    SysError::advised(call, what, errno, advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nanosleep::{Clock, clock_ns};

    #[test]
    fn no_wait_ends_early_and_the_past_is_no_wait() {
        let mut ring = match RingTimeout::new() {
            Ok(ring) => ring,
            Err(refusal) => return crate::tests::skip(&refusal),
        };
        for _ in 0..5 {
            let until = clock_ns(Clock::Monotonic) + 300_000;
            ring.wait_until(until).unwrap();
            assert!(clock_ns(Clock::Monotonic) >= until);
        }
        ring.wait_until(1).unwrap();
    }
}
