//! A coarse clock: sleeping as on a system whose timers fire at its periodic tick only.
//!
//! A thread that asks to sleep wakes at the first tick at or after its instant, so it is released up
//! to one step late. As `usleep` of Linux 2.4 did for real-time threads, a sleep of 2 ms or less is
//! a busy wait, which takes CPU time from everybody less urgent (Regehr, *Inferring Scheduling
//! Behavior with Hourglass*, 5.5). It models that clock exactly, on hardware that has better.
//!
//! The ticks are the multiples of the step on `CLOCK_MONOTONIC`: all threads of the machine see the
//! same ones. A wait that is cut into pieces is quantised at each of them; only the last decides
//! when the thread goes on.

use whylate_model::Nanos;
use whylate_sys::nanosleep::{self, Clock};

use super::slack::Slack;
use super::spin::busy_until;
use super::{MONOTONIC, now};
use crate::error::ThreadsError;
use crate::timer::{Timer, TimerFacts, TimerNanos};

const NAME: &str = "grid";
/// The tick of most systems of 2002: 100 Hz.
pub const STEP: Nanos = Nanos(10_000_000);
/// The longest sleep for which Linux 2.4 did not leave the CPU.
pub const BUSY_UP_TO: Nanos = Nanos(2_000_000);
/// A step beyond this is no clock tick.
pub const LONGEST_STEP: Nanos = Nanos(1_000_000_000);

/// A clock that ticks every `step`.
#[derive(Debug, Clone, Copy)]
pub struct Grid {
    /// Distance of two ticks, above zero.
    pub step: Nanos,
    /// A sleep of this length or less is a busy wait; zero for none.
    pub busy_up_to: Nanos,
    slack: Slack,
}

/// What a thread does that asks to sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Busy,
    SleepUntil(TimerNanos),
}

impl Grid {
    /// Ticks every `step`, and busy waits up to [`BUSY_UP_TO`].
    #[must_use]
    pub fn of(step: Nanos) -> Self {
        Self { step, busy_up_to: BUSY_UP_TO, slack: Slack::default() }
    }

    fn plan(&self, now: TimerNanos, at: TimerNanos) -> Wait {
        if at.since(now) <= self.busy_up_to {
            return Wait::Busy;
        }
        let step = self.step.0.max(1);
        Wait::SleepUntil(TimerNanos(at.0.div_ceil(step).saturating_mul(step)))
    }
}

impl Default for Grid {
    fn default() -> Self {
        Self::of(STEP)
    }
}

impl Timer for Grid {
    fn prepare(&mut self) -> Result<(), ThreadsError> {
        self.slack = Slack::least();
        Ok(())
    }

    fn wait_until(&mut self, at: TimerNanos) -> Result<(), ThreadsError> {
        match self.plan(now(), at) {
            Wait::Busy => busy_until(at),
            Wait::SleepUntil(tick) => nanosleep::sleep_until(Clock::Monotonic, tick.0)
                .map_err(|source| ThreadsError::Timer { timer: NAME, source })?,
        }
        Ok(())
    }

    #[inline]
    fn keeps_cpu(&mut self, at: TimerNanos) -> bool {
        self.plan(now(), at) == Wait::Busy
    }

    fn fires_at(&mut self, at: TimerNanos) -> TimerNanos {
        match self.plan(now(), at) {
            Wait::Busy => at,
            Wait::SleepUntil(tick) => tick,
        }
    }

    #[inline]
    fn now(&mut self) -> TimerNanos {
        now()
    }

    fn facts(&self) -> TimerFacts {
        TimerFacts { name: NAME, clock: MONOTONIC, slack: self.slack.read_back() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_sleep_ends_at_the_first_tick_at_or_after_its_instant() {
        let grid = Grid::default();
        let plan = |now, at| grid.plan(TimerNanos(now), TimerNanos(at));
        assert_eq!(plan(0, 33 * MS), Wait::SleepUntil(TimerNanos(40 * MS)));
        assert_eq!(plan(5 * MS, 10 * MS), Wait::SleepUntil(TimerNanos(10 * MS)));
        assert_eq!(plan(5 * MS, 10 * MS + 1), Wait::SleepUntil(TimerNanos(20 * MS)));
    }

    #[test]
    fn a_sleep_of_two_milliseconds_or_less_is_a_busy_wait() {
        let grid = Grid::default();
        let plan = |now, at| grid.plan(TimerNanos(now), TimerNanos(at));
        assert_eq!(plan(7 * MS, 9 * MS), Wait::Busy);
        assert_eq!(plan(7 * MS, 7 * MS), Wait::Busy);
        assert_eq!(plan(9 * MS, 7 * MS), Wait::Busy);
        assert_eq!(plan(7 * MS - 1, 9 * MS), Wait::SleepUntil(TimerNanos(10 * MS)));
        let asleep = Grid { busy_up_to: Nanos(0), ..grid };
        assert_eq!(
            asleep.plan(TimerNanos(7 * MS), TimerNanos(8 * MS)),
            Wait::SleepUntil(TimerNanos(10 * MS))
        );
    }

    #[test]
    fn on_this_machine_a_longer_sleep_ends_behind_a_tick_and_a_short_one_at_its_instant() {
        let mut grid = Grid::default();
        grid.prepare().unwrap();
        for phase in [0, 3, 7] {
            let at = now() + Nanos(5 * MS + phase * MS);
            grid.wait_until(at).unwrap();
            let woke = now();
            let tick = at.0.div_ceil(STEP.0) * STEP.0;
            assert!(woke.0 >= tick, "asked for {at:?}, woke at {woke:?}");
            let at = now() + Nanos(MS);
            grid.wait_until(at).unwrap();
            assert!(now() >= at);
        }
    }

    proptest! {
        #[test]
        fn no_plan_ends_early_or_more_than_a_step_late(
            now in 0..u64::MAX / 4, length in 0..u64::MAX / 4, step in 1..2_000_000_000_u64,
        ) {
            let (now, at) = (TimerNanos(now), TimerNanos(now + length));
            match Grid::of(Nanos(step)).plan(now, at) {
                Wait::Busy => prop_assert!(at.since(now) <= BUSY_UP_TO),
                Wait::SleepUntil(tick) => {
                    prop_assert!(tick >= at && tick.since(at).0 < step && tick.0 % step == 0);
                }
            }
        }
    }
}
