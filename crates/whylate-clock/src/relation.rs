//! The system's clock against the counter, over a run.
//!
//! The kernel's stamps are by `CLOCK_REALTIME`, which is slewed and set; everything else is by the
//! counter. A [`Relation`] is fed both, read together, some twenty times a second, and gives for a stamp
//! the ticks and the bound of their error. A stamp from a stretch in which the clock was set (by an
//! operator, a leap second, a daemon) is refused with [`Unrelated::Stepped`] and counted.
//!
//! The bound holds while the clock's rate changes no more than once between two observations: daemons
//! change it once a second at most. The kernel lets a clock run 500 ppm beside its rate; one that is
//! further off was set, or is slewed by a daemon that changes the length of its tick, and is refused as
//! well.

use std::sync::atomic::{AtomicU64, Ordering};

use whylate_model::{Hertz, Nanos, Ticks};

use crate::Counter;
use crate::kernel::{KernelRealtime, RawClock};
use crate::pieces::{Missing, Pieces, Point};
use crate::sandwich::Sandwich;

/// What the kernel lets the clock run beside its rate (`MAXFREQ`), and a little for the calibration of
/// the counter.
const LIMIT: f64 = 510e-6;
/// Readings of which the narrowest is taken: as many as it takes to be about as narrow as the narrowest
/// ever, within these.
const FEW: u32 = 8;
const TRIES: u32 = 64;

/// Why a time of the system's clock is not known in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unrelated {
    /// It is before the first observation, or what was kept of them.
    #[error("the time lies before the first observation of the clock that is kept")]
    TooEarly,
    /// It is after the last observation: observe again and ask again.
    #[error("the time lies behind the last observation of the clock, or too close to it")]
    NotYet,
    /// The clock was set about then.
    #[error("the clock was set by {by_ns} ns about then")]
    Stepped {
        /// By how much, forward or back.
        by_ns: i64,
    },
}

impl From<Missing> for Unrelated {
    fn from(missing: Missing) -> Self {
        match missing {
            Missing::TooEarly => Self::TooEarly,
            Missing::NotYet => Self::NotYet,
            Missing::Set(by_ns) => Self::Stepped { by_ns },
        }
    }
}

/// `CLOCK_REALTIME` against the counter.
#[derive(Debug)]
pub struct Relation {
    pieces: Pieces,
    /// The narrowest pair of readings so far.
    narrowest_ns: u64,
    spoilt: u64,
    refused: AtomicU64,
}

impl Relation {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(rate: Hertz) -> Self {
        Self {
            pieces: Pieces::new(1e9 / rate.0, LIMIT),
            narrowest_ns: u64::MAX,
            spoilt: 0,
            refused: AtomicU64::new(0),
        }
    }

    /// Reads both clocks: some microseconds. To be called every 50 ms or so, twice before the first stamp
    /// and twice behind the last one; a call within 10 ms of the one before does nothing.
    pub fn observe<C: Counter>(&mut self, counter: &mut C) {
        self.observe_by(counter, &mut KernelRealtime);
    }

    /// The same with another clock, whose stamps are then the ones that can be converted.
    pub fn observe_by<C: Counter, R: RawClock>(&mut self, counter: &mut C, clock: &mut R) {
        if !self.pieces.is_due(counter.read().0) {
            return;
        }
        let mut best = Sandwich::narrowest(counter, clock, FEW);
        for _ in FEW..TRIES {
            if best.width_ns() / 2 <= self.narrowest_ns {
                break;
            }
            best = best.narrower(Sandwich::take(counter, clock));
        }
        if best.width_ns() == u64::MAX {
            // It went back in each of them.
            self.spoilt += 1;
            return;
        }
        self.narrowest_ns = self.narrowest_ns.min(best.width_ns());
        let half = best.width_ns() / 2;
        self.pieces.push(Point {
            steady: best.ticks.0,
            shown_ns: best.low_ns + half,
            // The middle is rounded to a whole nanosecond.
            half_ns: half as f64 + 1.0,
        });
    }

    /// The ticks at which the clock showed `realtime`, nanoseconds since 1970, and by how much they may
    /// be wrong. A time that the clock showed twice, having been set back, is refused.
    pub fn ticks_of(&self, realtime: Nanos) -> Result<(Ticks, Nanos), Unrelated> {
        self.ticks_within(realtime, Ticks(0), Ticks(u64::MAX))
    }

    /// The same of a time that is known to lie between two readings of the counter, which tells apart
    /// what a clock that was set back showed twice.
    pub fn ticks_within(
        &self,
        realtime: Nanos,
        from: Ticks,
        to: Ticks,
    ) -> Result<(Ticks, Nanos), Unrelated> {
        match self.pieces.find(realtime.0, (from.0, to.0)) {
            Ok(found) => Ok((Ticks(found.steady), Nanos(found.bound_ns.ceil() as u64))),
            Err(missing) => {
                if let Missing::Set(_) = missing {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                }
                Err(missing.into())
            }
        }
    }

    /// The widest bound of any time so far.
    #[must_use]
    pub fn bound(&self) -> Nanos {
        Nanos(self.pieces.widest_ns().ceil() as u64)
    }

    /// How often the clock was set.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.pieces.steps()
    }

    /// Times that were refused because the clock was set.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Observations that were lost because the clock went back in each of their readings.
    #[must_use]
    pub fn spoilt(&self) -> u64 {
        self.spoilt
    }

    /// Forgets what is needed for no time from `ticks` on. Without it, the last 65536 observations stay.
    pub fn forget_before(&mut self, ticks: Ticks) {
        self.pieces.forget_before(ticks.0);
    }
}

#[cfg(test)]
mod tests {
    use whylate_model::TicksDelta;

    use super::*;
    use crate::mock::{MockCounter, MockRawClock};

    const RATE: Hertz = Hertz(2.5e9);
    const EPOCH: u64 = 1_700_000_000_000_000_000;
    const PIECE: TicksDelta = TicksDelta(125_000_000);

    /// A wall clock that is slewed and set: what it shows is a function of true time since the start.
    struct Wall<F> {
        clock: MockRawClock,
        shows: F,
    }

    impl<F: FnMut(u64) -> u64> RawClock for Wall<F> {
        fn now_ns(&mut self) -> u64 {
            let now = self.clock.now_ns();
            (self.shows)(now)
        }

        fn wait(&mut self, duration: Nanos) {
            self.clock.wait(duration);
        }
    }

    /// Two seconds of observations of a wall clock that shows this.
    fn related(shows: impl Fn(u64) -> u64) -> Relation {
        let mut counter = MockCounter::new(RATE).with_jitter(TicksDelta(30), 5);
        let clock = counter
            .raw_clock()
            .with_cost(TicksDelta(60), TicksDelta(40))
            .with_outliers(5, TicksDelta(9_000))
            .with_seed(11);
        let mut wall = Wall { clock, shows };
        let mut relation = Relation::new(RATE);
        for _ in 0..40 {
            relation.observe_by(&mut counter, &mut wall);
            counter.advance(PIECE);
        }
        relation
    }

    /// The largest error at moments of all the run, beside the bound that was stated there; none may be
    /// refused.
    fn worst(relation: &Relation, shows: impl Fn(u64) -> u64) -> (f64, f64) {
        let mut worst = (0.0_f64, 0.0_f64);
        for true_ns in (1_000_000..1_900_000_000).step_by(777_777) {
            let (ticks, bound) = relation.ticks_of(Nanos(shows(true_ns))).unwrap();
            let error = (ticks.0 as f64 / 2.5 - true_ns as f64).abs();
            assert!(error <= bound.0 as f64, "{error} ns at {true_ns}, stated {bound}");
            worst = (worst.0.max(error), worst.1.max(bound.0 as f64));
        }
        worst
    }

    #[test]
    fn a_planted_offset_and_drift_are_recovered_within_the_bound() {
        for ppm in [0, 40, -300] {
            let shows = |ns: u64| (EPOCH + ns).wrapping_add_signed(ns as i64 * ppm / 1_000_000);
            let relation = related(shows);
            let (error, bound) = worst(&relation, shows);
            assert!(bound < 500.0 && error > 0.0, "{ppm} ppm: {error} of {bound}");
            assert_eq!((relation.steps(), relation.refused()), (0, 0));
            assert!(relation.bound().0 as f64 >= bound);
        }
    }

    #[test]
    fn a_planted_change_of_rate_is_recovered_within_the_bound_and_would_not_be_without_it() {
        // From 520 ms on, in the middle of a piece, 400 ppm fast, as fast as a slew by `adjtime` nearly.
        let shows = |ns: u64| EPOCH + ns + ns.saturating_sub(520_000_000) / 2_500;
        let relation = related(shows);
        let (error, bound) = worst(&relation, shows);
        assert_eq!(relation.steps(), 0);
        // The widths of the readings alone would not have covered it.
        assert!(error > 1_000.0, "{error} of {bound}");
        let calm = relation.ticks_of(Nanos(shows(1_500_000_000))).unwrap().1;
        assert!(calm.0 < 500, "{calm} where nothing changed");
    }

    #[test]
    fn a_clock_that_is_set_is_counted_and_what_it_stamped_about_then_is_refused() {
        for by in [5_000, 40_000, -40_000, 1_000_000_000, -1_000_000_000] {
            let shows =
                |ns: u64| (EPOCH + ns).wrapping_add_signed(if ns < 1_020_000_000 { 0 } else { by });
            let relation = related(shows);
            assert_eq!(relation.steps(), 1, "{by}");
            let mut refused = 0;
            for true_ns in (60_000_000..1_900_000_000).step_by(3_333_333) {
                let at = Ticks(true_ns * 5 / 2);
                let span = TicksDelta(2_500_000);
                let from = Ticks(at.0.saturating_sub(span.0));
                match relation.ticks_within(Nanos(shows(true_ns)), from, at + span) {
                    Ok((ticks, bound)) => {
                        let error = ticks.0.abs_diff(at.0) as f64 / 2.5;
                        assert!(
                            error <= bound.0 as f64,
                            "{by}: {error} ns of {bound} at {true_ns}"
                        );
                    }
                    Err(Unrelated::Stepped { by_ns }) => {
                        assert!(by_ns.abs_diff(by) < 1_000, "{by_ns} for {by}");
                        refused += 1;
                    }
                    Err(other) => panic!("{by} at {true_ns}: {other}"),
                }
            }
            // A piece of 50 ms, and not much more.
            assert!((14..=17).contains(&refused), "{refused} refused for {by}");
            assert_eq!(relation.refused(), refused);
        }
    }

    #[test]
    fn times_before_and_behind_are_refused_by_name() {
        let relation = related(|ns| EPOCH + ns);
        assert_eq!(relation.ticks_of(Nanos(EPOCH - 1)), Err(Unrelated::TooEarly));
        assert_eq!(relation.ticks_of(Nanos(EPOCH + 9_000_000_000)), Err(Unrelated::NotYet));
        assert_eq!(relation.refused(), 0);
        assert_eq!(Relation::new(RATE).ticks_of(Nanos(EPOCH)), Err(Unrelated::NotYet));
    }

    #[test]
    fn this_hosts_clock_lies_between_two_readings_of_the_counter() {
        let Some(mut counter) = crate::testing::hardware() else { return };
        let mut calibrator = crate::Calibrator::start(counter, crate::KernelRaw);
        let calibration = calibrator.quick().unwrap();
        let mut relation = Relation::new(calibration.hz);
        let pause = || std::thread::sleep(std::time::Duration::from_millis(15));
        let mut converted = 0;
        // Times at which the clock seems to have been set are refused: the next ones need not be.
        for _ in 0..400 {
            let mut told = Vec::new();
            for _ in 0..8 {
                relation.observe(&mut counter);
                pause();
                let before = counter.read_ordered().0;
                let shown = KernelRealtime.now_ns();
                told.push((before, shown, counter.read_ordered().0));
            }
            pause();
            relation.observe(&mut counter);
            for (before, shown, after) in told {
                let Ok((ticks, bound)) = relation.ticks_of(Nanos(shown)) else { continue };
                let slack = bound.to_ticks(calibration.hz);
                assert!(ticks + slack >= before && ticks <= after + slack, "{ticks:?} {bound}");
                converted += 1;
            }
            if converted > 0 {
                return;
            }
        }
        panic!("none of thousands of times can be converted: {} steps", relation.steps());
    }
}
