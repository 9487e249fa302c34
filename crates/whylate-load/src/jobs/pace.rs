//! A constant rate: how many are due, and when the next are.

use whylate_sys::SysError;
use whylate_sys::nanosleep::{Clock, clock_ns, sleep_until};

/// Shortest sleep: below it, several are done at once.
const STEP_NS: u64 = 100_000;
/// What a stop of the machine or a busy CPU let fall behind is made up for up to this time, and
/// forgotten beyond it: load is bounded also after a stop.
const CATCH_UP_NS: u64 = 10_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// A schedule of equal distances.
#[derive(Debug)]
pub(super) struct Pace {
    per_second: u64,
    /// Counting begins here.
    begin: u64,
    /// Done or forgotten since.
    done: u64,
}

impl Pace {
    pub(super) fn new(per_second: u64) -> Self {
        Self::at(per_second, clock_ns(Clock::Monotonic))
    }

    fn at(per_second: u64, now: u64) -> Self {
        Self { per_second: per_second.max(1), begin: now, done: 0 }
    }

    /// Sleeps until something is due, and says how many are.
    pub(super) fn next(&mut self) -> Result<u64, SysError> {
        let next = self.begin + self.time_of(self.done + 1);
        let now = clock_ns(Clock::Monotonic);
        if next > now {
            sleep_until(Clock::Monotonic, next.max(now + STEP_NS))?;
        }
        Ok(self.due(clock_ns(Clock::Monotonic)))
    }

    fn due(&mut self, now: u64) -> u64 {
        let elapsed = now.saturating_sub(self.begin);
        let all =
            (u128::from(elapsed) * u128::from(self.per_second) / u128::from(SECOND_NS)) as u64;
        let due = all.saturating_sub(self.done);
        self.done = self.done.max(all);
        due.min((self.per_second * CATCH_UP_NS / SECOND_NS).max(1))
    }

    fn time_of(&self, number: u64) -> u64 {
        (u128::from(number) * u128::from(SECOND_NS)).div_ceil(u128::from(self.per_second)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_adds_up_to_the_rate_and_a_long_stop_is_not_made_up_for() {
        let mut pace = Pace::at(10_000, 0);
        let due: u64 = (1..=1000).map(|ms| pace.due(ms * 1_000_000)).sum();
        assert_eq!(due, 10_000);
        assert_eq!(pace.due(1_000_000_000), 0);
        // A second is missed: ten milliseconds of it are made up for.
        assert_eq!(pace.due(2_000_000_000), 100);
        assert_eq!(pace.due(2_001_000_000), 10);
    }

    #[test]
    fn the_slowest_and_the_fastest_rate_keep_their_count() {
        let mut slow = Pace::at(1, 0);
        assert_eq!(
            (slow.time_of(1), slow.due(999_999_999), slow.due(1_000_000_000)),
            (1_000_000_000, 0, 1)
        );
        let mut fast = Pace::at(u64::MAX / 2_000_000_000, 0);
        assert!(fast.due(u64::MAX) > 0);
    }
}
