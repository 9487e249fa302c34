//! `clock_nanosleep`, by an absolute instant or, as `usleep` does, by a length.
//!
//! For a thread without real-time policy the kernel may let it fire up to the *timer slack* late,
//! 50 us unless set.

use whylate_sys::nanosleep::{self, Clock};
use whylate_sys::relative_sleep;

use super::slack::Slack;
use super::{MONOTONIC, now};
use crate::error::ThreadsError;
use crate::timer::{Timer, TimerFacts, TimerNanos};

const ABSOLUTE: &str = "clock_nanosleep absolute";
const RELATIVE: &str = "clock_nanosleep relative";

/// `clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME)`, with the least slack a thread can ask for.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClockNanosleep {
    slack: Slack,
}

impl Timer for ClockNanosleep {
    fn prepare(&mut self) -> Result<(), ThreadsError> {
        self.slack = Slack::least();
        Ok(())
    }

    #[inline]
    fn wait_until(&mut self, at: TimerNanos) -> Result<(), ThreadsError> {
        nanosleep::sleep_until(Clock::Monotonic, at.0)
            .map_err(|source| ThreadsError::Timer { timer: ABSOLUTE, source })
    }

    #[inline]
    fn now(&mut self) -> TimerNanos {
        now()
    }

    fn facts(&self) -> TimerFacts {
        TimerFacts { name: ABSOLUTE, clock: MONOTONIC, slack: self.slack.read_back() }
    }
}

/// `clock_nanosleep(CLOCK_MONOTONIC)` for the length from now to the instant.
///
/// What the thread loses between reading the clock and sleeping makes it later by as much.
#[derive(Debug, Clone, Copy)]
pub struct RelativeSleep {
    wanted: Wanted,
    slack: Slack,
}

/// What is done about the timer slack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Least,
    AsItIs,
}

impl RelativeSleep {
    /// With the least slack a thread can ask for.
    #[must_use]
    pub fn precise() -> Self {
        Self { wanted: Wanted::Least, slack: Slack::default() }
    }

    /// With whatever slack the thread has: what a program that calls `usleep` gets.
    #[must_use]
    pub fn native() -> Self {
        Self { wanted: Wanted::AsItIs, slack: Slack::default() }
    }
}

impl Timer for RelativeSleep {
    fn prepare(&mut self) -> Result<(), ThreadsError> {
        self.slack = match self.wanted {
            Wanted::Least => Slack::least(),
            Wanted::AsItIs => Slack::as_it_is(),
        };
        Ok(())
    }

    #[inline]
    fn wait_until(&mut self, at: TimerNanos) -> Result<(), ThreadsError> {
        let left = at.since(now());
        if left.0 == 0 {
            return Ok(());
        }
        relative_sleep::sleep_for(left.0)
            .map_err(|source| ThreadsError::Timer { timer: RELATIVE, source })
    }

    #[inline]
    fn now(&mut self) -> TimerNanos {
        now()
    }

    fn facts(&self) -> TimerFacts {
        TimerFacts { name: RELATIVE, clock: MONOTONIC, slack: self.slack.read_back() }
    }
}
