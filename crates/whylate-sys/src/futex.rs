//! Waiting for a word of memory to change, until an instant.
//!
//! [`futex(2)`](https://man7.org/linux/man-pages/man2/futex.2.html): `FUTEX_WAIT_BITSET` with an
//! absolute time on `CLOCK_MONOTONIC`, `FUTEX_WAKE`, both private to this process; and both for words
//! that several processes have in common. Capability: none.
//! This is what the condition variables of the C library and of Rust sleep by. The thread's timer
//! slack applies.

use std::num::NonZeroU32;
use std::sync::atomic::AtomicU32;

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};

use crate::SysError;
use crate::timespec;

/// Any waker may wake.
const ANYONE: NonZeroU32 = NonZeroU32::MAX;

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Somebody woke it, or the kernel did for no reason: look at the word again.
    Woken,
    /// The word did not hold the expected value, so there was no wait.
    Changed,
    /// The instant came first.
    TimedOut,
}

/// Sleeps while `word` holds `expected`, until it is woken or `CLOCK_MONOTONIC` shows `abs_ns`;
/// `None` waits for ever. A signal does not end the sleep.
#[inline]
pub fn wait_until(word: &AtomicU32, expected: u32, abs_ns: Option<u64>) -> Result<Ended, SysError> {
    let limit = abs_ns.map(timespec::of);
    loop {
        match futex::wait_bitset(word, Flags::PRIVATE, expected, limit.as_ref(), ANYONE) {
            Ok(()) => return Ok(Ended::Woken),
            Err(Errno::AGAIN) => return Ok(Ended::Changed),
            Err(Errno::TIMEDOUT) => return Ok(Ended::TimedOut),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(refusal("wait for a word of memory", errno)),
        }
    }
}

/// Wakes at most `count` threads that sleep on `word`; gives how many.
#[inline]
pub fn wake(word: &AtomicU32, count: u32) -> Result<usize, SysError> {
    futex::wake(word, Flags::PRIVATE, count)
        .map_err(|errno| refusal("wake who waits for a word of memory", errno))
}

/// As [`wait_until`] without a limit, for a word in memory that several processes have in common.
#[inline]
pub fn wait_shared(word: &AtomicU32, expected: u32) -> Result<Ended, SysError> {
    loop {
        match futex::wait(word, Flags::empty(), expected, None) {
            Ok(()) => return Ok(Ended::Woken),
            Err(Errno::AGAIN) => return Ok(Ended::Changed),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(refusal("wait for a shared word of memory", errno)),
        }
    }
}

/// As [`wake`], for a word in memory that several processes have in common.
#[inline]
pub fn wake_shared(word: &AtomicU32, count: u32) -> Result<usize, SysError> {
    futex::wake(word, Flags::empty(), count)
        .map_err(|errno| refusal("wake who waits for a shared word of memory", errno))
}

#[cold]
fn refusal(what: &str, errno: Errno) -> SysError {
    SysError::call("futex", what, errno)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::nanosleep::{Clock, clock_ns};

    #[test]
    fn a_wait_ends_by_time_by_value_or_by_a_waker() {
        let word = AtomicU32::new(0);
        let until = clock_ns(Clock::Monotonic) + 500_000;
        assert_eq!(wait_until(&word, 0, Some(until)).unwrap(), Ended::TimedOut);
        assert!(clock_ns(Clock::Monotonic) >= until);
        assert_eq!(wait_until(&word, 1, Some(until)).unwrap(), Ended::Changed);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                while word.load(Ordering::Acquire) == 0 {
                    wait_until(&word, 0, None).unwrap();
                }
            });
            word.store(1, Ordering::Release);
            while !sleeper.is_finished() {
                wake(&word, u32::MAX).unwrap();
                std::thread::yield_now();
            }
        });
        assert_eq!(wake(&word, 1).unwrap(), 0, "nobody sleeps any more");
    }
}
