//! The clock of a network card against the system's, and through it against the counter.
//!
//! Stamps of a card are by its own clock, which somebody may discipline (`ptp4l`, `phc2sys`) or nobody:
//! it may be days away from the system's and run tens of ppm beside it. A [`CardRelation`] is fed readings
//! of both, together with a [`Relation`] of the system's clock, and gives for a card's stamp the ticks and
//! the bound of both steps together. A card whose clock was set in between is refused for that stretch, as
//! the system's is.
//!
//! The card's own resolution (8 ns and more) is not in the bound; nor is what a driver that reads its
//! clock in two halves may be wrong by.

use whylate_model::{Nanos, Ticks};
use whylate_sys::SysError;
use whylate_sys::ptp::{Cross, PtpClock};

use crate::pieces::{Pieces, Point};
use crate::relation::{Relation, Unrelated};

/// How far a card's clock and the system's may run apart: 500 ppm of the system's, 100 of a free-running
/// quartz, and what a daemon slews the card by.
const LIMIT: f64 = 1e-3;

/// The card's clock between two readings of the system's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CardSandwich {
    /// The card's clock.
    pub card: Nanos,
    /// `CLOCK_REALTIME` before.
    pub low: Nanos,
    /// And after; the same where the hardware reads both at once.
    pub high: Nanos,
}

/// A clock of a card that can be read beside the system's.
pub trait CardClock {
    /// Reads both, the narrowest of some.
    fn sandwich(&mut self) -> Result<CardSandwich, SysError>;
}

impl CardClock for PtpClock {
    fn sandwich(&mut self) -> Result<CardSandwich, SysError> {
        let Cross { card_ns, low_ns, high_ns } = self.cross()?;
        Ok(CardSandwich { card: Nanos(card_ns), low: Nanos(low_ns), high: Nanos(high_ns) })
    }
}

/// A card's clock against the system's.
#[derive(Debug)]
pub struct CardRelation {
    pieces: Pieces,
    refusals: u64,
    spoilt: u64,
}

impl Default for CardRelation {
    fn default() -> Self {
        Self::new()
    }
}

impl CardRelation {
    /// Nothing is known yet.
    #[must_use]
    pub fn new() -> Self {
        Self { pieces: Pieces::new(1.0, LIMIT), refusals: 0, spoilt: 0 }
    }

    /// Reads both clocks; to be called as often as [`Relation::observe`].
    ///
    /// # Errors
    /// What the card's clock answered; what was known stays.
    pub fn observe(&mut self, clock: &mut impl CardClock) -> Result<(), SysError> {
        let read = clock.sandwich().inspect_err(|_| self.refusals += 1)?;
        let Some(width) = read.high.0.checked_sub(read.low.0) else {
            // The system's clock was set back inside of it.
            self.spoilt += 1;
            return Ok(());
        };
        let steady = read.low.0 + width / 2;
        if self.pieces.last().is_some_and(|last| steady < last.steady) {
            // The system's clock was set back: what was known of the card is by the old one.
            self.pieces.restart();
        }
        let half_ns = width as f64 / 2.0 + 1.0;
        self.pieces.push(Point { steady, shown_ns: read.card.0, half_ns });
        Ok(())
    }

    /// The system's clock when the card's showed `card`, and by how much it may be wrong.
    pub fn system_of(&self, card: Nanos) -> Result<(Nanos, Nanos), Unrelated> {
        let found = self.pieces.find(card.0, (0, u64::MAX))?;
        Ok((Nanos(found.steady), Nanos(found.bound_ns.ceil() as u64)))
    }

    /// The ticks when the card's clock showed `card`, and by how much they may be wrong.
    pub fn ticks_of(&self, card: Nanos, system: &Relation) -> Result<(Ticks, Nanos), Unrelated> {
        let (realtime, of_card) = self.system_of(card)?;
        let (ticks, of_system) = system.ticks_of(realtime)?;
        Ok((ticks, Nanos(of_card.0 + of_system.0)))
    }

    /// The widest bound of any of its times so far, against the system's clock.
    #[must_use]
    pub fn bound(&self) -> Nanos {
        Nanos(self.pieces.widest_ns().ceil() as u64)
    }

    /// How often one of the two clocks was set.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.pieces.steps()
    }

    /// How often the card's clock could not be read.
    #[must_use]
    pub fn refusals(&self) -> u64 {
        self.refusals
    }

    /// Readings that were lost because the system's clock was set back inside of them.
    #[must_use]
    pub fn spoilt(&self) -> u64 {
        self.spoilt
    }

    /// Forgets what is needed for no time of the system's clock from `realtime` on.
    pub fn forget_before(&mut self, realtime: Nanos) {
        self.pieces.forget_before(realtime.0);
    }
}

#[cfg(test)]
mod tests {
    use whylate_model::{Hertz, TicksDelta};
    use whylate_stats::rng::Rng;
    use whylate_sys::Errno;

    use super::*;
    use crate::mock::{MockCounter, MockRawClock};
    use crate::{Counter, RawClock};

    const RATE: Hertz = Hertz(2.5e9);
    const EPOCH: u64 = 1_700_000_000_000_000_000;
    /// The card is on atomic time, as cards that PTP disciplines are, and a little beside.
    const BESIDE: u64 = 37_000_123_456;

    /// A system's clock that runs 20 ppm fast.
    struct System(MockRawClock);

    fn system(ns: u64) -> u64 {
        EPOCH + ns + ns / 50_000
    }

    impl RawClock for System {
        fn now_ns(&mut self) -> u64 {
            system(self.0.now_ns())
        }
        fn wait(&mut self, duration: Nanos) {
            self.0.wait(duration);
        }
    }

    /// A card that is read in about 2 us, somewhere within.
    struct Card<F> {
        clock: MockRawClock,
        shows: F,
        random: Rng,
        refuses: bool,
    }

    impl<F: FnMut(u64) -> u64> CardClock for Card<F> {
        fn sandwich(&mut self) -> Result<CardSandwich, SysError> {
            if self.refuses {
                return Err(SysError::Call {
                    call: "ioctl",
                    what: "read a clock".to_owned(),
                    errno: Errno::NODEV,
                    advice: String::new(),
                });
            }
            let low = self.clock.now_ns();
            self.clock.wait(Nanos(self.random.below(1_000)));
            let card = (self.shows)(self.clock.now_ns());
            self.clock.wait(Nanos(self.random.below(1_000)));
            let high = self.clock.now_ns() + 1;
            Ok(CardSandwich {
                card: Nanos(card),
                low: Nanos(system(low)),
                high: Nanos(system(high) + 1),
            })
        }
    }

    /// Two seconds of both clocks.
    fn related(shows: impl FnMut(u64) -> u64) -> (CardRelation, Relation) {
        let mut counter = MockCounter::new(RATE);
        let mut wall = System(counter.raw_clock());
        let (clock, random) = (counter.raw_clock(), Rng::new(3));
        let mut card = Card { clock, shows, random, refuses: false };
        let (mut of_card, mut of_system) = (CardRelation::new(), Relation::new(RATE));
        for _ in 0..40 {
            of_system.observe_by(&mut counter, &mut wall);
            of_card.observe(&mut card).unwrap();
            counter.advance(TicksDelta(125_000_000));
        }
        // The card is read a little behind the system's clock: that has to know the end, too.
        of_system.observe_by(&mut counter, &mut wall);
        (of_card, of_system)
    }

    #[test]
    fn a_cards_planted_offset_and_drift_are_recovered_within_the_stated_bound() {
        for ppm in [0, 30, -80] {
            let shows =
                |ns: u64| (EPOCH + BESIDE + ns).wrapping_add_signed(ns as i64 * ppm / 1_000_000);
            let (card, system) = related(shows);
            assert_eq!((card.steps(), system.steps()), (0, 0), "{ppm} ppm");
            let mut worst = 0.0_f64;
            for true_ns in (1_000_000..1_900_000_000).step_by(7_777_777) {
                let (ticks, bound) = card.ticks_of(Nanos(shows(true_ns)), &system).unwrap();
                let error = (ticks.0 as f64 / 2.5 - true_ns as f64).abs();
                assert!(error <= bound.0 as f64, "{error} ns of {bound} at {true_ns}, {ppm} ppm");
                assert!(bound.0 < 12_000, "{bound} for a card that is read in 2 us");
                worst = worst.max(error);
            }
            // A reading that takes 2 us does not tell better, and the bound says so.
            assert!(worst > 10.0, "{worst}");
            assert!(card.bound().0 > 0);
        }
    }

    #[test]
    fn a_card_whose_clock_is_set_is_counted_and_refused_about_then() {
        let by = 37_000_000_000;
        let shows = |ns: u64| EPOCH + ns + if ns < 1_020_000_000 { 0 } else { by };
        let (card, system) = related(shows);
        assert_eq!(card.steps(), 1);
        let near = card.ticks_of(Nanos(shows(1_010_000_000)), &system);
        let Err(Unrelated::Stepped { by_ns }) = near else { panic!("{near:?}") };
        assert!(by_ns.abs_diff(by as i64) < 100_000, "{by_ns}");
        for true_ns in [500_000_000, 1_500_000_000] {
            let (ticks, bound) = card.ticks_of(Nanos(shows(true_ns)), &system).unwrap();
            let error = (ticks.0 as f64 / 2.5 - true_ns as f64).abs();
            assert!(error <= bound.0 as f64, "{error} of {bound}");
        }
    }

    #[test]
    fn a_system_that_is_set_back_makes_what_was_known_of_the_card_void() {
        struct Told(Vec<CardSandwich>);
        impl CardClock for Told {
            fn sandwich(&mut self) -> Result<CardSandwich, SysError> {
                Ok(self.0.remove(0))
            }
        }
        let at = |card: u64, system: u64| CardSandwich {
            card: Nanos(card),
            low: Nanos(system),
            high: Nanos(system + 500),
        };
        let piece = 50_000_000;
        let first = (1..5).map(|n| at(n * piece, 900 * piece + n * piece));
        let then = (5..9).map(|n| at(n * piece, 700 * piece + n * piece));
        let backward = CardSandwich { card: Nanos(0), low: Nanos(2), high: Nanos(1) };
        let mut told = Told(first.chain(then).chain([backward]).collect());
        let mut card = CardRelation::new();
        for _ in 0..9 {
            card.observe(&mut told).unwrap();
        }
        assert_eq!((card.steps(), card.spoilt()), (1, 1));
        assert_eq!(card.system_of(Nanos(2 * piece + 5)), Err(Unrelated::TooEarly));
        let (system, bound) = card.system_of(Nanos(6 * piece + 5)).unwrap();
        assert!(system.0.abs_diff(706 * piece + 255) <= bound.0, "{system} {bound}");
    }

    #[test]
    fn a_card_that_cannot_be_read_is_told_and_what_was_known_stays() {
        let mut counter = MockCounter::new(RATE);
        let mut card = Card {
            clock: counter.raw_clock(),
            shows: |ns: u64| EPOCH + ns,
            random: Rng::new(1),
            refuses: false,
        };
        let mut relation = CardRelation::default();
        for _ in 0..5 {
            relation.observe(&mut card).unwrap();
            counter.advance(TicksDelta(125_000_000));
        }
        card.refuses = true;
        assert_eq!(relation.observe(&mut card).unwrap_err().errno(), Some(Errno::NODEV));
        assert_eq!(relation.refusals(), 1);
        assert!(relation.system_of(Nanos(EPOCH + 60_000_000)).is_ok());
        assert!(counter.read() > Ticks(0));
    }
}
