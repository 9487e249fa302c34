//! The first timer: `clock_nanosleep` with an absolute instant on `CLOCK_MONOTONIC`.
//!
//! For a thread without real-time policy the kernel may let it fire up to the *timer slack* late,
//! 50 us unless set. It is set to 1 ns, the least a thread can ask for, and reported as read back.

use whylate_model::Nanos;
use whylate_sys::nanosleep::{self, Clock};
use whylate_sys::timerslack;

use crate::error::ThreadsError;
use crate::timer::{Timer, TimerFacts, TimerNanos};

const NAME: &str = "clock_nanosleep absolute";
/// The least a thread can ask for: 0 would mean the default of 50 us.
const SLACK: Nanos = Nanos(1);

/// `clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME)`.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClockNanosleep {
    slack: Option<Nanos>,
}

impl Timer for ClockNanosleep {
    fn prepare(&mut self) -> Result<(), ThreadsError> {
        // A kernel that refuses leaves what was there; either way the facts say what it is now.
        let _ = timerslack::set_ns(SLACK.0);
        self.slack = timerslack::get_ns().ok().map(Nanos);
        Ok(())
    }

    #[inline]
    fn wait_until(&mut self, at: TimerNanos) -> Result<(), ThreadsError> {
        nanosleep::sleep_until(Clock::Monotonic, at.0)
            .map_err(|source| ThreadsError::Timer { timer: NAME, source })
    }

    #[inline]
    fn now(&mut self) -> TimerNanos {
        TimerNanos(nanosleep::clock_ns(Clock::Monotonic))
    }

    fn facts(&self) -> TimerFacts {
        TimerFacts { name: NAME, clock: "CLOCK_MONOTONIC", slack: self.slack }
    }
}
