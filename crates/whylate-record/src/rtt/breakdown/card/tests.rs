//! A planted card: its clock's offset, drift and jumps are known, and so is when each stamp was made.

use whylate_clock::{MockCounter, RawClock};
use whylate_model::TicksDelta;
use whylate_sys::{Errno, SysError};

use super::*;
use whylate_clock::card::CardSandwich;
use whylate_clock::mock::MockRawClock;

const RATE: Hertz = Hertz(2.5e9);
const EPOCH: u64 = 1_700_000_000_000_000_000;
/// 30 ms.
const STEP: TicksDelta = TicksDelta(75_000_000);
const ROUNDS: u64 = 60;

/// The system's clock.
struct System(MockRawClock);

impl RawClock for System {
    fn now_ns(&mut self) -> u64 {
        EPOCH + self.0.now_ns()
    }
    fn wait(&mut self, duration: Nanos) {
        self.0.wait(duration);
    }
}

/// A card's clock, which is read in 1.5 us; it refuses from a moment on.
struct Planted<F> {
    clock: MockRawClock,
    shows: F,
    until_ns: u64,
}

impl<F: FnMut(u64) -> u64> CardClock for Planted<F> {
    fn sandwich(&mut self) -> Result<CardSandwich, SysError> {
        let low = self.clock.now_ns();
        if low > self.until_ns {
            return Err(SysError::Call {
                call: "ioctl",
                what: "read a clock".to_owned(),
                errno: Errno::NODEV,
                advice: String::new(),
            });
        }
        self.clock.wait(Nanos(900));
        let card = (self.shows)(self.clock.now_ns());
        self.clock.wait(Nanos(600));
        let high = self.clock.now_ns() + 1;
        Ok(CardSandwich { card: Nanos(card), low: Nanos(EPOCH + low), high: Nanos(EPOCH + high) })
    }
}

/// What became of one stamp a round.
struct Came {
    /// When each was made, by its number, and where it was placed.
    made_ns: Vec<u64>,
    placed: Vec<(u64, Ticks)>,
    bound: Nanos,
    warnings: Vec<Warning>,
}

impl Came {
    /// The largest error of what was placed.
    fn worst_ns(&self) -> f64 {
        let error = |(number, at): &(u64, Ticks)| {
            (at.0 as f64 / 2.5 - self.made_ns[*number as usize] as f64).abs()
        };
        self.placed.iter().map(error).fold(0.0, f64::max)
    }

    fn unplaced(&self) -> usize {
        self.made_ns.len() - self.placed.len()
    }
}

/// What the card stamps in this round: every other time what it sends, and what it receives.
fn kind_of(number: u64) -> (StampKind, Point) {
    if number.is_multiple_of(2) {
        (StampKind::Hardware, Point::there(Station::WireOut))
    } else {
        (StampKind::ReceivedHardware, Point::back(Station::WireIn))
    }
}

/// Nearly two seconds with a card whose clock shows this.
fn stamped(shows: impl Fn(u64) -> u64, until_ns: u64) -> Came {
    let mut counter = MockCounter::new(RATE);
    let mut wall = System(counter.raw_clock());
    let mut system = Relation::new(RATE);
    let mut card = Card::new(Planted { clock: counter.raw_clock(), shows: &shows, until_ns });
    let (mut made_ns, mut placed) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS + 4 {
        counter.advance(STEP);
        // Stamps before the first reading would be nobody's, and those behind the last one, too.
        if (2..ROUNDS).contains(&round) {
            let ns = (counter.last().0 as f64 / 2.5) as u64;
            let number = made_ns.len() as u64;
            card.wait(number, point(kind_of(number).0).unwrap(), Nanos(shows(ns)));
            made_ns.push(ns);
        }
        system.observe_by(&mut counter, &mut wall);
        card.place(&system, &mut |number, point, at| {
            assert_eq!(point, kind_of(number).1);
            placed.push((number, at));
        });
        card.read(counter.last(), RATE);
    }
    let bound = card.bound(&system);
    Came { made_ns, placed, bound, warnings: card.end("rtt") }
}

#[test]
fn stamps_of_a_card_with_planted_offset_and_drift_are_placed_within_the_stated_bound() {
    for ppm in [0, 30, -80] {
        let beside = 37_000_123_456;
        let shows =
            |ns: u64| (EPOCH + beside + ns).wrapping_add_signed(ns as i64 * ppm / 1_000_000);
        let came = stamped(shows, u64::MAX);
        assert_eq!(came.unplaced(), 0, "{ppm} ppm");
        assert_eq!(came.warnings, [], "{ppm} ppm");
        let worst = came.worst_ns();
        assert!(worst <= came.bound.0 as f64, "{worst} ns of {} at {ppm} ppm", came.bound);
        // What a reading of 1.5 us can tell, and no more.
        assert!((750..12_000).contains(&came.bound.0), "{} at {ppm} ppm", came.bound);
    }
}

#[test]
fn a_card_whose_clock_jumps_is_told_and_what_it_stamped_then_is_dropped_and_counted() {
    for by in [37_000_000_000_i64, -37_000_000_000, -200_000_000] {
        let shows =
            |ns: u64| (EPOCH + ns).wrapping_add_signed(if ns < 1_015_000_000 { 0 } else { by });
        let came = stamped(shows, u64::MAX);
        // Of what is placed nothing is placed where the clock showed the same before.
        let worst = came.worst_ns();
        assert!(worst <= came.bound.0 as f64, "{worst} ns of {} after {by}", came.bound);
        let dropped = came.unplaced();
        assert!((1..=12).contains(&dropped), "{dropped} of {}", came.made_ns.len());
        let [Warning::PartLeftOut { part, reason }] = &came.warnings[..] else {
            panic!("{:?}", came.warnings)
        };
        assert_eq!(*part, format!("{dropped} stamps by the card of rtt"));
        assert!(reason.contains("set 1 times"), "{reason}");
    }
}

#[test]
fn a_card_that_cannot_be_read_any_more_is_told_and_what_it_stamped_behind_is_counted() {
    let came = stamped(|ns| EPOCH + ns, 900_000_000);
    assert!(came.worst_ns() <= came.bound.0 as f64, "{}", came.worst_ns());
    assert!((25..40).contains(&came.unplaced()), "{}", came.unplaced());
    let told: Vec<&str> = came
        .warnings
        .iter()
        .map(|warning| match warning {
            Warning::PartLeftOut { part, .. } => part.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    let unplaced = format!("{} stamps by the card of rtt", came.unplaced());
    assert!(told.contains(&unplaced.as_str()), "{told:?}");
    assert!(
        told.iter().any(|part| part.ends_with("readings of the card's clock of rtt")),
        "{told:?}"
    );
}

#[test]
fn a_card_without_a_clock_is_not_present_and_one_for_ptp_alone_says_what_it_stamps() {
    let can = |clock, hardware_sent, hardware_received| Stampable {
        interface: "eth0".to_owned(),
        software_sent: true,
        software_received: true,
        hardware_sent,
        hardware_received,
        clock,
        sending: Vec::new(),
        filters: Vec::new(),
    };
    let none = Stamped::of(&can(None, false, Receives::Nothing)).unwrap_err();
    assert_eq!(none, "hardware: not present: eth0 has no clock of its own");
    let ptp = Stamped::of(&can(Some(2), false, Receives::PtpOnly)).unwrap_err();
    assert!(ptp.contains("/dev/ptp2") && ptp.contains("PTP alone"), "{ptp}");
    let sent = Stamped::of(&can(Some(0), true, Receives::PtpOnly));
    assert_eq!(sent, Ok(Stamped { sent: true, received: false, clock: 0 }));
    let missing: Vec<_> = sent.unwrap().missing().collect();
    assert!(matches!(&missing[..], [(StampKind::ReceivedHardware, why)] if why.contains("PTP")));
    let both = Stamped::of(&can(Some(1), true, Receives::Everything));
    assert_eq!(both, Ok(Stamped { sent: true, received: true, clock: 1 }));
    assert_eq!(both.unwrap().missing().count(), 0);
    let points = StampKind::ALL.map(point);
    assert_eq!(points.iter().flatten().count(), 2, "{points:?}");
}
