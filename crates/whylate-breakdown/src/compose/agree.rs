//! Two sources of the same point, and of the same part, beside each other.
//!
//! Two sources agree where their times differ by no more than resolutions and bounds of both allow,
//! whichever is earlier. Each reads at a place of its own, and the kernel does something between the two:
//! it makes the stamp, for one. Which place comes first is known, and how many stand in that order is
//! counted beside it: the second one is neither on the wrong side of the first, nor beyond the neighbouring
//! point that is told on the counter, so that a clock that is off is found whichever way it is off. A part is told by both where both tell both of its points: what lies between their
//! places at the one point, and a clock that is off, are in the part as they change from one to the other.

use std::cmp::Ordering;

use whylate_model::breakdown::{self, Agreement, Part, PartAgreement, Point, Source, Station};
use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};
use whylate_stats::Histogram;

use super::Bounds;

/// Pairs of sources that are compared; there are not more points that two sources tell.
const MOST_PAIRS: usize = 48;
/// Parts that are compared: where some points are missing, there are others.
const MOST_PARTS: usize = 48;

/// A point that two sources tell of one request. In order, points of the same two follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Both {
    pub(super) used: Source,
    pub(super) beside: Source,
    pub(super) point: Point,
    pub(super) used_at: Ticks,
    pub(super) beside_at: Ticks,
    /// The neighbouring points that are told on the counter, before and after it.
    pub(super) neighbours: [Option<Ticks>; 2],
    /// It is found that both are the same, or each at its place.
    in_order: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Agreements {
    all: Vec<Compared>,
    parts: Vec<ComparedPart>,
}

#[derive(Debug, Clone)]
struct Compared {
    point: Point,
    used: Source,
    beside: Source,
    within: Nanos,
    differences: Differences,
}

#[derive(Debug, Clone)]
struct ComparedPart {
    part: Part,
    used: Source,
    beside: Source,
    within: Nanos,
    differences: Differences,
}

/// How much less the second one was, and how much more.
#[derive(Debug, Clone)]
struct Differences {
    requests: u64,
    agree: u64,
    in_order: u64,
    least_ns: i64,
    most_ns: i64,
    less: Histogram,
    more: Histogram,
}

impl Agreements {
    /// Adds the points that two sources tell of one request, and the parts between them.
    pub(super) fn add(&mut self, mut told: Vec<Both>, (rate, bounds): (Hertz, &Bounds)) {
        for both in &mut told {
            self.point(both, rate, bounds);
        }
        told.sort_unstable();
        for pair in told.windows(2) {
            let [from, to] = pair else { continue };
            let same = (from.used, from.beside) == (to.used, to.beside);
            if same && from.point != to.point {
                self.part(from, to, rate, bounds);
            }
        }
    }

    fn point(&mut self, both: &mut Both, rate: Hertz, bounds: &Bounds) {
        let Both { used, beside, point, .. } = *both;
        both.in_order = both.outside(rate) <= bounds.apart(used, beside);
        let of = |compared: &Compared| {
            (compared.point, compared.used, compared.beside) == (point, used, beside)
        };
        let place = match self.all.iter().position(of) {
            Some(place) => place,
            None if self.all.len() < MOST_PAIRS => {
                let (within, differences) = (bounds.apart(used, beside), Differences::new());
                self.all.push(Compared { point, used, beside, within, differences });
                self.all.len() - 1
            }
            None => return,
        };
        let later = both.beside_at.since(both.used_at).to_nanos(rate);
        let earlier = both.used_at.since(both.beside_at).to_nanos(rate);
        let of = &mut self.all[place];
        of.differences.add((earlier, later), of.within, both.in_order);
    }

    fn part(&mut self, from: &Both, to: &Both, rate: Hertz, bounds: &Bounds) {
        let (used, beside) = (from.used, from.beside);
        let part = Part { from: from.point, to: to.point };
        let of = |compared: &ComparedPart| {
            (compared.part, compared.used, compared.beside) == (part, used, beside)
        };
        let place = match self.parts.iter().position(of) {
            Some(place) => place,
            None if self.parts.len() < MOST_PARTS => {
                let (within, differences) = (of_part(bounds, used, beside), Differences::new());
                self.parts.push(ComparedPart { part, used, beside, within, differences });
                self.parts.len() - 1
            }
            None => return,
        };
        let longer = behind(to).saturating_sub(behind(from));
        let time = |ticks: i64| TicksDelta(ticks.max(0).unsigned_abs()).to_nanos(rate);
        let (less, more) = (time(longer.saturating_neg()), time(longer));
        let of = &mut self.parts[place];
        of.differences.add((less, more), of.within, from.in_order && to.in_order);
    }

    /// Sources are so sure by now: it counts from here on, and is what is said of all in the end.
    pub(super) fn sure(&mut self, bounds: &Bounds) {
        for of in &mut self.all {
            of.within = bounds.apart(of.used, of.beside);
        }
        for of in &mut self.parts {
            of.within = of_part(bounds, of.used, of.beside);
        }
    }

    /// Points and parts, each in the order of the way.
    pub(super) fn finish(self) -> (Vec<Agreement>, Vec<PartAgreement>) {
        let mut all: Vec<Agreement> = self.all.into_iter().map(Compared::finish).collect();
        all.sort_by_key(|of| (of.point, of.told.used, of.told.beside));
        let mut parts: Vec<PartAgreement> =
            self.parts.into_iter().map(ComparedPart::finish).collect();
        parts.sort_by_key(|of| (of.part.from, of.part.to, of.told.used, of.told.beside));
        (all, parts)
    }
}

/// By how much the second source is behind the first at a point, in ticks.
fn behind(of: &Both) -> i64 {
    let ticks = |delta: TicksDelta| i64::try_from(delta.0).unwrap_or(i64::MAX);
    ticks(of.beside_at.since(of.used_at)).saturating_sub(ticks(of.used_at.since(of.beside_at)))
}

/// Both points of a part are as unsure as each other.
fn of_part(bounds: &Bounds, one: Source, other: Source) -> Nanos {
    Nanos(bounds.apart(one, other).0.saturating_mul(2))
}

/// How the place of the one stands to that of the other; none where that is not known.
fn order(station: Station, one: Source, other: Source) -> Option<Ordering> {
    let place = |source| match (station, source) {
        // A reading is taken before the call that sends, and after the one that receives.
        (Station::Sent, Source::Own | Source::Told)
        | (Station::Queued | Station::Arrived, Source::Software)
        | (Station::Driver | Station::Read, Source::Trace) => Some(0),
        (Station::Sent | Station::Queued | Station::Arrived, Source::Trace)
        | (Station::Driver, Source::Software)
        | (Station::Read, Source::Own | Source::Told) => Some(1),
        _ => None,
    };
    Some(place(one)?.cmp(&place(other)?))
}

impl Both {
    /// Of a point of a request; it is not judged yet.
    pub(super) fn new(
        point: Point,
        (used, used_at): (Source, Ticks),
        (beside, beside_at): (Source, Ticks),
        neighbours: [Option<Ticks>; 2],
    ) -> Self {
        Self { used, beside, point, used_at, beside_at, neighbours, in_order: false }
    }

    /// By how much the second one is not at its place: on the wrong side of the first, or beyond the
    /// neighbouring point. Where their order is not known, by how much the two differ.
    fn outside(&self, rate: Hertz) -> Nanos {
        let Self { used_at: used, beside_at: beside, neighbours: [before, after], .. } = *self;
        let [earlier, later] = [used.since(beside), beside.since(used)];
        let outside = match order(self.point.station, self.used, self.beside) {
            Some(Ordering::Less) => {
                earlier.max(after.map_or(TicksDelta(0), |after| beside.since(after)))
            }
            Some(Ordering::Greater) => {
                later.max(before.map_or(TicksDelta(0), |before| before.since(beside)))
            }
            Some(Ordering::Equal) | None => earlier.max(later),
        };
        outside.to_nanos(rate)
    }
}

impl Compared {
    fn finish(self) -> Agreement {
        let Self { point, used, beside, within, differences } = self;
        Agreement { point, told: differences.finish((used, beside), within) }
    }
}

impl ComparedPart {
    fn finish(self) -> PartAgreement {
        let Self { part, used, beside, within, differences } = self;
        PartAgreement { part, told: differences.finish((used, beside), within) }
    }
}

impl Differences {
    fn new() -> Self {
        Self {
            requests: 0,
            agree: 0,
            in_order: 0,
            least_ns: i64::MAX,
            most_ns: i64::MIN,
            less: Histogram::new(),
            more: Histogram::new(),
        }
    }

    /// One of both is 0. They agree where neither is more than `within`.
    fn add(&mut self, (less, more): (Nanos, Nanos), within: Nanos, in_order: bool) {
        let signed = |time: Nanos| i64::try_from(time.0).unwrap_or(i64::MAX);
        let difference = signed(more) - signed(less);
        if less > Nanos(0) {
            self.less.record(less.0);
        } else {
            self.more.record(more.0);
        }
        self.requests += 1;
        let agree = less.max(more) <= within;
        self.agree += u64::from(agree);
        self.in_order += u64::from(agree || in_order);
        self.least_ns = self.least_ns.min(difference);
        self.most_ns = self.most_ns.max(difference);
    }

    fn finish(self, (used, beside): (Source, Source), within: Nanos) -> breakdown::Differences {
        breakdown::Differences {
            used,
            beside,
            requests: self.requests,
            least_ns: self.least_ns,
            median_ns: self.median_ns(),
            most_ns: self.most_ns,
            within,
            agree: self.agree,
            in_order: self.in_order,
        }
    }

    fn median_ns(&self) -> i64 {
        let less = self.less.len();
        let rank = (less + self.more.len()).div_ceil(2);
        // The most negative comes first.
        let median = if rank <= less {
            self.less.rank_value(less - rank + 1).map(|ns| -(ns as i64))
        } else {
            self.more.rank_value(rank - less).map(|ns| ns as i64)
        };
        median.unwrap_or(0)
    }
}
