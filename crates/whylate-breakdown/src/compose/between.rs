//! Whether a tap's times lie between the kernel's stamps of the same message.
//!
//! The sender's stamp is made when the driver is given a frame, the receiver's when its stack takes it
//! from one. What lies between both ends is passed after the one and before the other, by whatever way.
//! A request agrees if its tap times lie so against every stamp that came, and one of which nothing can
//! be compared is counted as that.

use whylate_model::breakdown::{Leg, Point, Source, Station};
use whylate_model::tap::{TapBetween, TapSide};
use whylate_model::{Hertz, Nanos, Ticks};

use super::Bounds;
use crate::Met;

/// The stamps that a tap is set against: on which way, and where on it.
const SIDES: [(Leg, Station); 4] = [
    (Leg::Request, Station::Driver),
    (Leg::Request, Station::Arrived),
    (Leg::Reply, Station::Driver),
    (Leg::Reply, Station::Arrived),
];

#[derive(Debug, Clone, Default)]
pub(super) struct Between {
    sides: [Side; SIDES.len()],
    agree: u64,
    disagree: u64,
    not_compared: u64,
    /// A tap's time and a stamp came, of whatever request.
    tapped: bool,
    stamped: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Side {
    compared: u64,
    agree: u64,
    largest: Nanos,
}

impl Between {
    /// Takes a request with all that was told of it.
    pub(super) fn take(&mut self, met: &Met, rate: Hertz, bounds: &Bounds) {
        let within = within(bounds);
        let (mut compared, mut wrong) = (false, false);
        for ((leg, station), side) in SIDES.into_iter().zip(&mut self.sides) {
            let tap = told(met, Point { leg, station: Station::Tap }, Source::Tap);
            let stamp = told(met, Point { leg, station }, Source::Software);
            self.tapped |= tap.is_some();
            self.stamped |= stamp.is_some();
            let (Some(tap), Some(stamp)) = (tap, stamp) else { continue };
            let outside = if is_before(station) { stamp.since(tap) } else { tap.since(stamp) };
            let outside = outside.to_nanos(rate);
            let agrees = outside <= within;
            side.compared += 1;
            side.agree += u64::from(agrees);
            side.largest = side.largest.max(outside);
            compared = true;
            wrong |= !agrees;
        }
        match (compared, wrong) {
            (false, _) => self.not_compared += 1,
            (true, false) => self.agree += 1,
            (true, true) => self.disagree += 1,
        }
    }

    /// What came of it; none where a tap, or stamps, told nothing.
    pub(super) fn finish(&self, bounds: &Bounds) -> Option<TapBetween> {
        let sides = SIDES.into_iter().zip(&self.sides);
        let sides = sides.map(|((leg, stamp), side)| TapSide {
            leg,
            stamp,
            compared: side.compared,
            agree: side.agree,
            largest: side.largest,
        });
        (self.tapped && self.stamped).then(|| TapBetween {
            agree: self.agree,
            disagree: self.disagree,
            not_compared: self.not_compared,
            largest: self.sides.iter().map(|side| side.largest).max().unwrap_or_default(),
            within: within(bounds),
            sides: sides.collect(),
        })
    }
}

/// A tap and a stamp that differ by no more may be of the same time.
fn within(bounds: &Bounds) -> Nanos {
    bounds.apart(Source::Software, Source::Tap)
}

/// Is a stamp of there made before the tap is passed?
fn is_before(station: Station) -> bool {
    station < Station::Tap
}

/// What a source says of a point, used or beside the one that is.
fn told(met: &Met, point: Point, source: Source) -> Option<Ticks> {
    let used = met.instants.get(point).filter(|(_, by)| *by == source).map(|(at, _)| at);
    let beside = || met.beside.iter().find(|(of, _, by)| (*of, *by) == (point, source));
    used.or_else(|| beside().map(|(_, at, _)| *at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Instants;

    /// A tick is a nanosecond.
    const RATE: Hertz = Hertz(1e9);
    /// From the sender's stamp to the tap, and from there to the receiver's.
    const BEFORE: u64 = 100;
    const BEHIND: u64 = 200;
    /// Two steps of a nanosecond and two bounds of twenty.
    const WITHIN: u64 = 42;

    fn bounds() -> Bounds {
        Bounds::default().with(Source::Software, Nanos(1), Nanos(20)).with(
            Source::Tap,
            Nanos(1),
            Nanos(20),
        )
    }

    /// A request whose two ways are stamped and tapped, by a tap whose clock is so far ahead.
    fn request(number: u64, ahead: i64) -> Met {
        let mut instants = Instants::default();
        for (leg, begin) in [(Leg::Request, 10_000_u64), (Leg::Reply, 20_000)] {
            let tap = (begin + BEFORE).saturating_add_signed(ahead);
            for (station, at, source) in [
                (Station::Driver, begin, Source::Software),
                (Station::Tap, tap, Source::Tap),
                (Station::Arrived, begin + BEFORE + BEHIND, Source::Software),
            ] {
                instants.set(Point { leg, station }, Ticks(at), source);
            }
        }
        Met { number, instants, beside: Vec::new(), twice: Vec::new() }
    }

    fn judged(requests: &[Met]) -> Option<TapBetween> {
        let mut between = Between::default();
        for met in requests {
            between.take(met, RATE, &bounds());
        }
        between.finish(&bounds())
    }

    #[test]
    fn a_tap_that_is_passed_between_the_stamps_agrees_with_every_one_of_them() {
        let requests: Vec<Met> = (0..50).map(|number| request(number, number as i64)).collect();
        let found = judged(&requests).expect("a tap and stamps");
        assert_eq!((found.agree, found.disagree, found.not_compared), (50, 0, 0));
        assert_eq!((found.largest, found.within), (Nanos(0), Nanos(WITHIN)));
        let sides: Vec<_> = found.sides.iter().map(|side| (side.leg, side.stamp)).collect();
        assert_eq!(sides, SIDES);
        assert!(found.sides.iter().all(|side| (side.compared, side.agree) == (50, 50)));
    }

    #[test]
    fn a_taps_clock_that_is_off_by_more_than_the_bounds_allow_is_told_and_by_how_much() {
        let most = |room: u64| i64::try_from(room + WITHIN).unwrap();
        for (ahead, side, larger) in [(-most(BEFORE), 0, -1), (most(BEHIND), 1, 1)] {
            let at_most = judged(&[request(0, ahead)]).expect("a tap and stamps");
            assert_eq!((at_most.agree, at_most.disagree), (1, 0), "{ahead}");
            assert_eq!(at_most.largest, Nanos(WITHIN), "{ahead}");
            let more = [request(0, ahead), request(1, ahead + larger), request(2, 0)];
            let more = judged(&more).expect("a tap and stamps");
            assert_eq!((more.agree, more.disagree, more.not_compared), (2, 1, 0), "{ahead}");
            assert_eq!(more.largest, Nanos(WITHIN + 1), "{ahead}");
            // Both ways are wrong on this side, and right on the other.
            let agree: Vec<u64> = more.sides.iter().map(|side| side.agree).collect();
            let mut wanted = [3; SIDES.len()];
            (wanted[side], wanted[side + 2]) = (2, 2);
            assert_eq!(agree, wanted, "{ahead}");
        }
    }

    #[test]
    fn what_lacks_the_tap_or_every_stamp_beside_it_is_not_compared_and_counts_close() {
        let tap = |leg| Point { leg, station: Station::Tap };
        let (mut untapped, mut unstamped, mut half) = (request(0, 0), request(1, 0), request(2, 0));
        for leg in [Leg::Request, Leg::Reply] {
            untapped.instants.forget(tap(leg));
            unstamped.instants.forget(Point { leg, station: Station::Driver });
            unstamped.instants.forget(Point { leg, station: Station::Arrived });
        }
        half.instants.forget(tap(Leg::Reply));
        let found = judged(&[untapped.clone(), unstamped.clone(), half]).expect("both came");
        assert_eq!((found.agree, found.disagree, found.not_compared), (1, 0, 2));
        let compared: Vec<u64> = found.sides.iter().map(|side| side.compared).collect();
        assert_eq!(compared, [1, 1, 0, 0]);
        assert_eq!(judged(&[untapped]), None, "no tap");
        assert_eq!(judged(&[unstamped]), None, "no stamps");
    }

    #[test]
    fn a_stamp_beside_a_tracepoint_is_set_against_the_tap_and_the_tracepoint_is_not() {
        let mut met = request(0, 0);
        let driver = Point::there(Station::Driver);
        let (stamp, source) = met.instants.get(driver).expect("it was set");
        met.instants.forget(driver);
        // A tracepoint behind the tap: it is no stamp.
        met.instants.set(driver, Ticks(10_000 + BEFORE + 90), Source::Trace);
        met.beside.push((driver, stamp, source));
        let found = judged(&[met]).expect("a tap and stamps");
        assert_eq!((found.agree, found.sides[0].compared), (1, 1));
    }
}
