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

/// The kernel takes the number as a signed one: more than this is below zero, and wakes a single one.
const MOST: u32 = i32::MAX as u32;

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
    futex::wake(word, Flags::PRIVATE, count.min(MOST))
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
    futex::wake(word, Flags::empty(), count.min(MOST))
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

    #[test]
    fn everybody_is_woken_by_the_largest_number() {
        let word = AtomicU32::new(0);
        let (at_gate, woken) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    at_gate.fetch_add(1, Ordering::Release);
                    while word.load(Ordering::Acquire) == 0 {
                        wait_shared(&word, 0).unwrap();
                    }
                    woken.fetch_add(1, Ordering::Release);
                });
            }
            while at_gate.load(Ordering::Acquire) < 3 {
                std::thread::yield_now();
            }
            // They are about to sleep, or do.
            std::thread::sleep(std::time::Duration::from_millis(100));
            word.store(1, Ordering::Release);
            wake_shared(&word, u32::MAX).unwrap();
            let end = clock_ns(Clock::Monotonic) + 60_000_000_000;
            while woken.load(Ordering::Acquire) < 3 && clock_ns(Clock::Monotonic) < end {
                std::thread::yield_now();
            }
            let all = woken.load(Ordering::Acquire);
            wake_shared(&word, 1).unwrap();
            wake_shared(&word, 1).unwrap();
            assert_eq!(all, 3);
        });
    }
}
