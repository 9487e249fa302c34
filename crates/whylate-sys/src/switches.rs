//! How often the calling thread was switched out.
//!
//! [`getrusage(2)`](https://man7.org/linux/man-pages/man2/getrusage.2.html) with `RUSAGE_THREAD`.
//! Capability: none.

use std::mem::MaybeUninit;

/// Counts since the thread began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Switches {
    /// The thread slept or yielded.
    pub voluntary: u64,
    /// Another thread took the CPU.
    pub involuntary: u64,
}

/// The calling thread's counts; one system call, no allocation.
#[inline]
#[must_use]
pub fn thread_switches() -> Switches {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one `rusage` at the pointer, which is what it points to.
    let _ = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    // SAFETY: integers alone, so that the zeros it started from are as valid as what was written.
    let usage = unsafe { usage.assume_init() };
    Switches { voluntary: usage.ru_nvcsw as u64, involuntary: usage.ru_nivcsw as u64 }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::nanosleep::{Clock, clock_ns};

    #[test]
    fn sleeps_are_voluntary_switches_of_the_thread_that_slept() {
        let sleeps = 100;
        let before = thread_switches();
        for _ in 0..sleeps {
            // A shorter one may be over before a slow machine has begun to wait.
            thread::sleep(Duration::from_millis(2));
        }
        let after = thread_switches();
        if after == before {
            return crate::tests::skip(&"this kernel (or emulator) does not count per thread");
        }
        // Some may have been over before it waited all the same.
        let enough = || thread_switches().voluntary >= before.voluntary + sleeps;
        let end = clock_ns(Clock::Monotonic) + 60_000_000_000;
        while !enough() && clock_ns(Clock::Monotonic) < end {
            thread::sleep(Duration::from_millis(2));
        }
        assert!(enough());
        let fresh = thread::spawn(thread_switches).join().unwrap();
        assert!(fresh.voluntary < sleeps, "a fresh thread has slept {} times", fresh.voluntary);
    }
}
