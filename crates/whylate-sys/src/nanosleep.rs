//! Clocks, and sleeping until one of them shows a time.
//!
//! [`clock_gettime(2)`](https://man7.org/linux/man-pages/man2/clock_gettime.2.html),
//! [`clock_nanosleep(2)`](https://man7.org/linux/man-pages/man2/clock_nanosleep.2.html).
//! Capability: none.

use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::SysError;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A clock of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Never set back, slewed by NTP.
    Monotonic,
    /// Never set back, never slewed; one cannot sleep by it.
    MonotonicRaw,
    /// The wall clock in nanoseconds since 1970.
    Realtime,
}

/// What `clock` shows.
#[inline]
#[must_use]
pub fn clock_ns(clock: Clock) -> u64 {
    if clock == Clock::Realtime {
        return wall_ns();
    }
    let now = clock_gettime(clock.id());
    now.tv_sec as u64 * NANOS_PER_SECOND + now.tv_nsec as u64
}

/// The wall clock as the C library has it: who shows this process another time of day, as libraries for
/// tests do, shows it that way.
fn wall_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one time at the pointer. It refuses no clock that every kernel has.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut now) };
    now.tv_sec as u64 * NANOS_PER_SECOND + now.tv_nsec as u64
}

/// Whole seconds that atomic time (`CLOCK_TAI`) is ahead of the wall clock: 0 until somebody tells the
/// kernel the leap seconds. Programs in the kernel stamp by the former.
#[must_use]
pub fn atomic_ahead_s() -> i64 {
    let mut atomic = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let wall = wall_ns();
    // SAFETY: the kernel writes one time at the pointer.
    if unsafe { libc::clock_gettime(libc::CLOCK_TAI, &raw mut atomic) } != 0 {
        return 0;
    }
    let atomic = atomic.tv_sec as u64 * NANOS_PER_SECOND + atomic.tv_nsec as u64;
    let (ahead, by) = (atomic >= wall, atomic.abs_diff(wall));
    // The second reading was made a little later: to the nearest second.
    let seconds = ((by + NANOS_PER_SECOND / 2) / NANOS_PER_SECOND) as i64;
    if ahead { seconds } else { -seconds }
}

/// Sleeps until `clock` shows at least `abs_ns`; a signal does not end the sleep.
#[inline]
pub fn sleep_until(clock: Clock, abs_ns: u64) -> Result<(), SysError> {
    let until = Timespec {
        tv_sec: (abs_ns / NANOS_PER_SECOND) as i64,
        tv_nsec: (abs_ns % NANOS_PER_SECOND) as _,
    };
    loop {
        match clock_nanosleep_absolute(clock.id(), &until) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(refusal(clock, errno)),
        }
    }
}

#[cold]
fn refusal(clock: Clock, errno: Errno) -> SysError {
    let advice = match clock {
        Clock::MonotonicRaw => "the kernel has no sleep on the raw clock: use Monotonic",
        Clock::Monotonic | Clock::Realtime => "",
    };
    SysError::advised("clock_nanosleep", format!("sleep by {clock:?}"), errno, advice)
}

impl Clock {
    fn id(self) -> ClockId {
        match self {
            Self::Monotonic => ClockId::Monotonic,
            Self::MonotonicRaw => ClockId::MonotonicRaw,
            Self::Realtime => ClockId::Realtime,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sleep_ends_early() {
        for clock in [Clock::Monotonic, Clock::Realtime] {
            let until = clock_ns(clock) + 300_000;
            sleep_until(clock, until).unwrap();
            assert!(clock_ns(clock) >= until, "{clock:?}");
        }
    }

    #[test]
    fn a_time_in_the_past_is_no_sleep() {
        sleep_until(Clock::Monotonic, 1).unwrap();
    }

    #[test]
    fn the_raw_clock_is_for_reading_only() {
        let first = clock_ns(Clock::MonotonicRaw);
        assert!(clock_ns(Clock::MonotonicRaw) >= first);
        let refusal = sleep_until(Clock::MonotonicRaw, first).unwrap_err();
        assert!(refusal.to_string().contains("use Monotonic"), "{refusal}");
    }
}
