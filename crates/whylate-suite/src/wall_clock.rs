//! The system's clock, which somebody may set in the middle of a test.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// Far in the future, in seconds since 1970: the kernel's own end is in the year 2262.
const NEVER: i64 = 9_000_000_000;

/// Notices that the clock was set, however little; to be slewed is no setting.
#[derive(Debug)]
pub struct WallClock(OwnedFd);

impl WallClock {
    /// From now on.
    ///
    /// # Panics
    /// The kernel has no timers behind descriptors.
    #[must_use]
    pub fn watched() -> Self {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Realtime, flags).expect("a timer");
        let (it_interval, it_value) =
            (Timespec { tv_sec: 0, tv_nsec: 0 }, Timespec { tv_sec: NEVER, tv_nsec: 0 });
        let when = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        timerfd_settime(&timer, when, &Itimerspec { it_interval, it_value }).expect("an armed one");
        Self(timer)
    }

    /// Was it set since then?
    ///
    /// # Panics
    /// The timer cannot be read.
    #[must_use]
    pub fn was_set(&self) -> bool {
        match rustix::io::read(&self.0, &mut [0; 8]) {
            Err(Errno::CANCELED) => true,
            Err(Errno::AGAIN) => false,
            other => panic!("a timer that never ends: {other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::WallClock;

    #[test]
    fn a_clock_that_nobody_sets_is_not_said_to_be_set() {
        // Somebody may set it, but not each time.
        assert!((0..1_000).any(|_| !WallClock::watched().was_set()));
    }
}
