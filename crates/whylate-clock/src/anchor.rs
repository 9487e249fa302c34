//! The counter tied to wall time.
//!
//! Tables hold raw ticks; whoever merges them with another machine's, or writes a capture file,
//! needs to know which wall time a tick was. An anchor is taken at the start and at the end of a
//! run: between them the wall clock may have been slewed or set.

use whylate_model::run::Anchor;

use crate::Counter;
use crate::kernel::{self, KernelRaw, RawClock};

/// Tries of which the narrowest is the anchor.
const TRIES: u32 = 64;

/// Ties the counter to `CLOCK_REALTIME` and `CLOCK_MONOTONIC_RAW`.
///
/// Each clock is read before and after the counter, and stands at its middle, wrong by at most the
/// anchor's bound; the counter's own resolution comes on top ([`crate::facts`] adds it).
pub fn take<C: Counter>(counter: &mut C) -> Anchor {
    take_with(counter, || KernelRaw.now_ns(), kernel::realtime_ns)
}

fn take_with<C: Counter>(
    counter: &mut C,
    mut raw: impl FnMut() -> u64,
    mut realtime: impl FnMut() -> u64,
) -> Anchor {
    let mut one = || {
        let (raw_low, realtime_low) = (raw(), realtime());
        let (ticks, _) = counter.read_ordered();
        let (realtime_high, raw_high) = (realtime(), raw());
        let (realtime_ns, realtime_half) = middle(realtime_low, realtime_high);
        let (raw_ns, raw_half) = middle(raw_low, raw_high);
        Anchor { ticks, realtime_ns, raw_ns, bound_ns: realtime_half.max(raw_half) }
    };
    let first = one();
    (1..TRIES).map(|_| one()).fold(
        first,
        |best, next| {
            if next.bound_ns < best.bound_ns { next } else { best }
        },
    )
}

/// Middle and half-width of a clock's two readings. Readings are rounded down, and the middle to a
/// whole nanosecond: one more nanosecond covers both. A clock that was set back in between gives
/// a width that no other try fails to beat.
fn middle(low: u64, high: u64) -> (u64, f64) {
    match high.checked_sub(low) {
        Some(width) => (low + width / 2, width as f64 / 2.0 + 1.0),
        None => (high, f64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use whylate_model::{Hertz, Ticks};

    use super::*;
    use crate::mock::MockCounter;

    /// Clocks that stand `offset` above the readings made so far; each reading takes 20 ns, and
    /// one in `slow_every` takes 5 us.
    struct Clocks {
        now: Cell<u64>,
        reads: Cell<u64>,
        slow_every: u64,
    }

    impl Clocks {
        fn read(&self, offset: u64) -> u64 {
            self.reads.set(self.reads.get() + 1);
            let slow = self.reads.get().is_multiple_of(self.slow_every);
            self.now.set(self.now.get() + if slow { 5_000 } else { 20 });
            self.now.get() + offset
        }
    }

    #[test]
    fn the_narrowest_try_is_taken_and_its_bound_covers_the_distance_of_the_clocks() {
        let clocks = Clocks { now: Cell::new(0), reads: Cell::new(0), slow_every: 3 };
        let raw_offset = 7_000_000;
        let real_offset = 1_700_000_000_000_000_000;
        let anchor = take_with(
            &mut MockCounter::new(Hertz(1e9)),
            || clocks.read(raw_offset),
            || clocks.read(real_offset),
        );
        // Three reads of 20 ns lie between the outer two.
        assert!(anchor.bound_ns >= 30.0, "{anchor:?}");
        let distance = anchor.realtime_ns - anchor.raw_ns;
        assert!(distance.abs_diff(real_offset - raw_offset) as f64 <= 2.0 * anchor.bound_ns);
    }

    #[test]
    fn a_wall_clock_that_is_set_back_in_a_try_spoils_that_try_only() {
        let reads = Cell::new(0u64);
        let realtime = || {
            reads.set(reads.get() + 1);
            if reads.get() == 1 { 2_000_000 } else { 1_000_000 + 10 * reads.get() }
        };
        let anchor = take_with(&mut MockCounter::new(Hertz(1e9)), || 0, realtime);
        assert!(anchor.bound_ns < 10.0, "{anchor:?}");
        assert!(anchor.ticks > Ticks(25), "not the first try");
    }

    #[test]
    fn an_anchor_of_this_host_lies_between_readings_around_it() {
        let Some(mut counter) = crate::testing::hardware() else { return };
        let wall = whylate_suite::WallClock::watched();
        let before = (counter.read_ordered().0, KernelRaw.now_ns(), kernel::realtime_ns());
        let anchor = take(&mut counter);
        let after = (counter.read_ordered().0, KernelRaw.now_ns(), kernel::realtime_ns());
        assert!(before.0 <= anchor.ticks && anchor.ticks <= after.0);
        assert!(before.1 <= anchor.raw_ns && anchor.raw_ns <= after.1);
        assert!(anchor.bound_ns >= 1.0);
        if wall.was_set() {
            return whylate_suite::absent("the system's clock was set meanwhile");
        }
        assert!(before.2 <= anchor.realtime_ns && anchor.realtime_ns <= after.2);
    }
}
