//! Pairs of counter and raw clock, and a store of the narrowest of them that does not grow.

use whylate_model::Ticks;

use crate::Counter;
use crate::kernel::RawClock;

/// Bins of the store. Half of them at least are in use once the run is long; two neighbours become
/// one when they run out.
const BINS: usize = 512;

/// Width of a bin at first: about a millisecond.
const FIRST_BIN_NS: u64 = 1 << 20;

/// A reading of the counter between two readings of the raw clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sandwich {
    /// The counter.
    pub(crate) ticks: Ticks,
    /// The raw clock before.
    pub(crate) low_ns: u64,
    /// The raw clock after, and the nanosecond that it leaves out: its readings are rounded down.
    pub(crate) high_ns: u64,
}

impl Sandwich {
    /// Takes one. The ordered read keeps the processor from moving the counter out of it.
    #[inline]
    pub(crate) fn take<C: Counter, R: RawClock>(counter: &mut C, raw: &mut R) -> Self {
        let low_ns = raw.now_ns();
        let (ticks, _) = counter.read_ordered();
        Self { ticks, low_ns, high_ns: raw.now_ns() + 1 }
    }

    /// Takes several and gives the narrowest.
    pub(crate) fn narrowest<C: Counter, R: RawClock>(
        counter: &mut C,
        raw: &mut R,
        tries: u32,
    ) -> Self {
        let first = Self::take(counter, raw);
        (1..tries).fold(first, |best, _| best.narrower(Self::take(counter, raw)))
    }

    /// Width in nanoseconds, at least 1; endless when the clock went back inside it.
    pub(crate) fn width_ns(&self) -> u64 {
        self.high_ns.checked_sub(self.low_ns).map_or(u64::MAX, |width| width.max(1))
    }

    /// The narrower one of two.
    pub(crate) fn narrower(self, other: Self) -> Self {
        if other.width_ns() < self.width_ns() { other } else { self }
    }
}

/// The narrowest sandwich of each stretch of time, evenly over a run of any length.
#[derive(Debug, Clone)]
pub(crate) struct Narrowest {
    bins: Box<[Option<Sandwich>; BINS]>,
    bin_ns: u64,
    origin: Sandwich,
    last: Sandwich,
    went_back: u64,
}

impl Narrowest {
    /// A store that begins with its first sandwich.
    pub(crate) fn starting_with(first: Sandwich) -> Self {
        let mut bins = Box::new([None; BINS]);
        bins[0] = Some(first);
        Self { bins, bin_ns: FIRST_BIN_NS, origin: first, last: first, went_back: 0 }
    }

    /// Keeps a sandwich if it is the narrowest of its stretch. One in which the clock went back, or
    /// that lies before an earlier one by the counter or by the clock, is counted and left out; one
    /// with the same reading of a slow counter is left out.
    pub(crate) fn offer(&mut self, sandwich: Sandwich) {
        let went_back = sandwich.ticks < self.last.ticks
            || sandwich.low_ns < self.last.low_ns
            || sandwich.high_ns < sandwich.low_ns;
        if went_back || sandwich.ticks == self.last.ticks {
            self.went_back += u64::from(went_back);
            return;
        }
        self.last = sandwich;
        while self.bin_of(&sandwich) >= BINS {
            self.halve();
        }
        let bin = self.bin_of(&sandwich);
        let kept = &mut self.bins[bin];
        *kept = Some(kept.map_or(sandwich, |kept| kept.narrower(sandwich)));
    }

    /// The kept ones in order of time.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &Sandwich> {
        self.bins.iter().flatten()
    }

    /// The first and the last sandwich offered, kept or not: the ends of the run.
    pub(crate) fn ends(&self) -> (Sandwich, Sandwich) {
        (self.origin, self.last)
    }

    /// How often the counter or the clock went back inside or between sandwiches.
    pub(crate) fn went_back(&self) -> u64 {
        self.went_back
    }

    fn bin_of(&self, sandwich: &Sandwich) -> usize {
        ((sandwich.low_ns - self.origin.low_ns) / self.bin_ns) as usize
    }

    fn halve(&mut self) {
        for bin in 0..BINS / 2 {
            let pair = (self.bins[2 * bin], self.bins[2 * bin + 1]);
            self.bins[bin] = match pair {
                (Some(first), Some(second)) => Some(first.narrower(second)),
                (first, second) => first.or(second),
            };
        }
        self.bins[BINS / 2..].fill(None);
        self.bin_ns *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64, width_ns: u64) -> Sandwich {
        let low_ns = ms * 1_000_000;
        Sandwich { ticks: Ticks(low_ns + width_ns / 2), low_ns, high_ns: low_ns + width_ns }
    }

    #[test]
    fn the_store_covers_three_days_evenly_in_the_memory_of_one_minute() {
        let mut store = Narrowest::starting_with(at(0, 60));
        for second in 1..=259_200 {
            store.offer(at(second * 1_000, 40 + second % 20));
        }
        let kept: Vec<u64> = store.kept().map(|s| s.low_ns / 1_000_000_000).collect();
        assert!((BINS / 2 - 1..=BINS).contains(&kept.len()), "{} kept", kept.len());
        assert!(kept.is_sorted());
        assert!(kept[0] < 1_100 && *kept.last().unwrap() > 258_100);
        assert!(kept.windows(2).all(|pair| pair[1] - pair[0] < 2_200));
    }

    #[test]
    fn the_narrowest_of_a_stretch_is_kept() {
        let mut store = Narrowest::starting_with(at(0, 60));
        for width in [55, 20, 80] {
            let mut sandwich = at(0, width);
            sandwich.ticks.0 = store.last.ticks.0 + 1;
            store.offer(sandwich);
        }
        let widths: Vec<u64> = store.kept().map(Sandwich::width_ns).collect();
        assert_eq!(widths, [20]);
    }

    #[test]
    fn a_counter_that_goes_back_is_counted_and_left_out() {
        let mut store = Narrowest::starting_with(at(10, 60));
        store.offer(at(20, 50));
        store.offer(Sandwich { ticks: Ticks(5), ..at(30, 40) });
        store.offer(at(15, 40));
        assert_eq!(store.went_back(), 2);
        assert_eq!(store.kept().count(), 2);
        assert_eq!(store.ends(), (at(10, 60), at(20, 50)));
    }
}
