//! Whether the wall clock ran on, by which the kernel stamps frames.
//!
//! Each of its readings lies between two of the counter, so what passed between two of them by the one is
//! known by the other as well, give or take the widths and the 500 ppm that the kernel slews its clock by.
//! A clock that went on by more or less was set: stamps from before are by another clock, and none of
//! them is taken. What is smaller than that cannot be told from slewing: some microseconds.

use whylate_model::Ticks;

use crate::conversation::Scale;

/// What the kernel lets its clock run beside its rate, and a little for the calibration of the counter.
const LIMIT: f64 = 510e-6;

/// The wall clock between two readings of the counter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub(super) from: Ticks,
    pub(super) wall: u64,
    pub(super) to: Ticks,
}

/// What is known of the wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Steady {
    last: Option<Reading>,
    /// Stamps from before are by another clock.
    since: u64,
    steps: u64,
}

impl Steady {
    /// Takes a reading, later than the one before.
    #[inline]
    pub(super) fn read(&mut self, reading: Reading, scale: Scale) {
        let Some(last) = self.last.replace(reading) else { return };
        let shortest = scale.nanos(last.to, reading.from).0 as f64 * (1.0 - LIMIT) - 1.0;
        let most = scale.nanos(last.from, reading.to).0 as f64 * (1.0 + LIMIT) + 1.0;
        let passed = reading.wall.wrapping_sub(last.wall).cast_signed() as f64;
        if !(shortest..=most).contains(&passed) {
            self.was_set(reading.wall, passed - shortest.midpoint(most));
        }
    }

    #[cold]
    fn was_set(&mut self, wall: u64, by: f64) {
        self.steps += 1;
        // Where it was set back, what it showed just before is still to come.
        let back = (-by).max(0.0).ceil() as u64;
        self.since = wall.saturating_add(back);
    }

    /// Is this stamp by the clock as it runs now?
    #[inline]
    pub(super) fn vouches_for(&self, stamp: u64) -> bool {
        stamp >= self.since
    }

    /// How often the clock was set.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }
}

#[cfg(test)]
mod tests {
    use whylate_model::Hertz;

    use super::*;

    const START: u64 = 1_700_000_000_000_000_000;

    /// Readings once a millisecond, each within a microsecond, of a clock that runs 400 ppm fast and is set
    /// after ten of them.
    fn after(by: i64) -> (Steady, u64) {
        let scale = Scale::new(Hertz(1e9));
        let mut steady = Steady::default();
        let mut wall = 0;
        for number in 0..20_u64 {
            let at = number * 1_000_000;
            wall = START + at + at / 2_500;
            if number >= 10 {
                wall = wall.wrapping_add_signed(by);
            }
            let reading = Reading { from: Ticks(at), wall, to: Ticks(at + 1_000) };
            steady.read(reading, scale);
        }
        (steady, wall)
    }

    #[test]
    fn a_clock_that_is_slewed_is_trusted_and_one_that_is_set_has_its_older_stamps_refused() {
        let (slewed, wall) = after(0);
        assert_eq!(slewed.steps(), 0);
        assert!(slewed.vouches_for(wall - 15_000_000));
        for by in [10_000, -10_000, 1_000_000_000, -1_000_000_000] {
            let (set, wall) = after(by);
            assert_eq!(set.steps(), 1, "{by}");
            // The step was before the tenth reading.
            let then = wall - 9_000_000;
            assert!(!set.vouches_for(then - 100_000), "{by}");
            assert!(!set.vouches_for(then.wrapping_add_signed(-by) - 100_000) || by > 0, "{by}");
            let clear = then + by.min(0).unsigned_abs() + 100_000;
            assert!(set.vouches_for(clear), "{by}");
        }
    }

    #[test]
    fn a_reading_that_took_long_is_no_step() {
        let scale = Scale::new(Hertz(1e9));
        let mut steady = Steady::default();
        // The thread was away between the counter and the clock, and then between the clock and the counter.
        let readings =
            [(0, 0, 10), (1_000, 9_001_000, 9_001_100), (9_002_000, 9_002_000, 30_000_000)];
        for (from, wall, to) in readings {
            steady.read(Reading { from: Ticks(from), wall: START + wall, to: Ticks(to) }, scale);
        }
        assert_eq!(steady.steps(), 0);
    }
}
