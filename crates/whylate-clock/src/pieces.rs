//! One clock against another over a run, piece by piece.
//!
//! Both are read together now and then. Between two such observations the one is taken to run evenly
//! against the other. How wrong that may be is known: by the width of the observations, and by all that
//! the clock did otherwise in this piece than in those before and behind it, which covers a change of its
//! rate anywhere in the piece. A clock that ran in a piece neither like before nor like behind nor in
//! between did not change its rate but was set, and no moment inside such a piece is converted.
//!
//! What it cannot see: a clock that is moved and moved back between two observations.

use std::collections::VecDeque;

/// Observations that are kept at most: at one in 50 ms those of nearly an hour.
const MOST: usize = 1 << 16;
/// Two observations closer than this say nothing of a rate.
const APART_NS: f64 = 10e6;
/// A clock that stands less than this beside its rate was not set: the bound is that much wider.
const STEP_NS: f64 = 1_000.0;

/// Both clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    /// The steady clock, in its own units.
    pub(crate) steady: u64,
    /// The clock that is related to it, in nanoseconds.
    pub(crate) shown_ns: u64,
    /// What they may be wrong by, against each other.
    pub(crate) half_ns: f64,
}

/// How the clock ran since the observation before.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Run {
    /// There is none before.
    First,
    /// Evenly, by the share `fast` faster than the steady one, give or take `unsure`.
    Even { fast: f64, unsure: f64 },
    /// It was set, by so many nanoseconds.
    Set(i64),
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    point: Point,
    run: Run,
}

/// Why there is no relation at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    TooEarly,
    NotYet,
    Set(i64),
}

/// A moment by the steady clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Found {
    pub(crate) steady: u64,
    pub(crate) bound_ns: f64,
}

/// The relation.
#[derive(Debug)]
pub(crate) struct Pieces {
    /// Nanoseconds of a unit of the steady clock.
    unit_ns: f64,
    /// The rates differ by this share at most, or the clock was set.
    limit: f64,
    seen: VecDeque<Seen>,
    /// The number of the first of them, counted from the first ever.
    first: u64,
    /// Numbers of the observations with which an age began, in which what the clock shows only grows.
    ages: VecDeque<u64>,
    steps: u64,
    /// The widest bound among the pieces that were forgotten.
    widest_ns: f64,
}

impl Pieces {
    pub(crate) fn new(unit_ns: f64, limit: f64) -> Self {
        let (seen, ages) = (VecDeque::new(), VecDeque::new());
        Self { unit_ns, limit, seen, first: 0, ages, steps: 0, widest_ns: 0.0 }
    }

    /// How often the clock was set.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    pub(crate) fn last(&self) -> Option<Point> {
        self.seen.back().map(|last| last.point)
    }

    /// Is a moment far enough from the last observation for another one?
    pub(crate) fn is_due(&self, steady: u64) -> bool {
        self.last().is_none_or(|last| self.ns(last.steady, steady) >= APART_NS)
    }

    /// Takes an observation. One that is too close to the one before, or before it, is left out.
    pub(crate) fn push(&mut self, point: Point) {
        if !self.is_due(point.steady) {
            return;
        }
        let run = self.last().map_or(Run::First, |last| self.between(last, point));
        if !matches!(run, Run::Even { .. }) {
            self.ages.push_back(self.first + self.seen.len() as u64);
        }
        self.steps += u64::from(matches!(run, Run::Set(_)));
        self.seen.push_back(Seen { point, run });
        self.judge_the_last_but_one();
        if self.seen.len() > MOST {
            self.forget_first();
        }
    }

    /// Begins anew: the steady clock itself was set.
    pub(crate) fn restart(&mut self) {
        self.first += self.seen.len() as u64;
        self.seen.clear();
        self.ages.clear();
        self.steps += 1;
    }

    /// Forgets what is not needed for moments from `steady` on.
    pub(crate) fn forget_before(&mut self, steady: u64) {
        // The piece in which it lies stays, and the one before, by which that one is judged.
        while self.seen.get(2).is_some_and(|third| third.point.steady <= steady) {
            self.forget_first();
        }
    }

    /// When the clock showed `shown_ns`, by the steady one. Where it showed that more than once, being
    /// set back in between, the moment lies `within` these two; where it may still be several, none.
    pub(crate) fn find(&self, shown_ns: u64, within: (u64, u64)) -> Result<Found, Missing> {
        let mut found: Option<Result<Found, Missing>> = None;
        for (number, &begin) in self.ages.iter().enumerate() {
            let from = begin.saturating_sub(self.first) as usize;
            let next = self.ages.get(number + 1);
            let to = next.map_or(self.seen.len(), |&next| (next - self.first) as usize);
            if let Some(by) = self.set_about(from, shown_ns, within) {
                return Err(Missing::Set(by));
            }
            let place = self.first_above(from, to, shown_ns);
            if place == from || place == to || !self.overlaps(place, within) {
                continue;
            }
            if found.is_some() {
                return Err(Missing::Set(self.last_set()));
            }
            found = Some(self.convert(place, shown_ns));
        }
        found.unwrap_or_else(|| Err(self.outside(shown_ns, within)))
    }

    /// The widest bound of any moment so far that can be converted.
    pub(crate) fn widest_ns(&self) -> f64 {
        let all = (1..self.seen.len()).filter_map(|place| self.bound_ns(place).ok());
        all.fold(self.widest_ns, f64::max)
    }

    /// Nanoseconds from one moment of the steady clock to another; negative where that was earlier.
    fn ns(&self, from: u64, to: u64) -> f64 {
        let distance = from.abs_diff(to) as f64 * self.unit_ns;
        if to < from { -distance } else { distance }
    }

    /// How the clock ran from one observation to the next.
    fn between(&self, from: Point, to: Point) -> Run {
        let passed = self.ns(from.steady, to.steady);
        let shown = shown_between(from, to);
        let (beside, half) = (shown - passed, from.half_ns + to.half_ns);
        // What it shows has to grow: a piece is divided by that.
        if beside.abs() > self.limit * passed + half || shown < 1.0 {
            return Run::Set(beside.round() as i64);
        }
        Run::Even { fast: beside / passed, unsure: half / passed }
    }

    /// With what followed it a piece can be judged: was the clock set by less than the limit tells?
    fn judge_the_last_but_one(&mut self) {
        let Some(place) = self.seen.len().checked_sub(2).filter(|&place| place > 0) else { return };
        let runs = [place - 1, place, place + 1].map(|at| self.seen[at].run);
        let [
            Run::Even { fast: before, unsure: unsure_before },
            Run::Even { fast, unsure },
            Run::Even { fast: behind, unsure: unsure_behind },
        ] = runs
        else {
            return;
        };
        let least = (before - unsure_before).min(behind - unsure_behind) - unsure;
        let most = (before + unsure_before).max(behind + unsure_behind) + unsure;
        let passed = self.length_ns(place);
        let excess = (least - fast).max(fast - most) * passed;
        if excess > STEP_NS {
            let by = (fast - before.midpoint(behind)) * passed;
            self.seen[place].run = Run::Set(by.round() as i64);
            self.steps += 1;
        }
    }

    /// How wrong a moment may be that lies in the piece that ends with this observation.
    fn bound_ns(&self, place: usize) -> Result<f64, Missing> {
        let (before, this, behind) =
            (self.seen[place - 1], self.seen[place], self.seen.get(place + 1));
        let (fast, unsure) = match this.run {
            Run::Even { fast, unsure } => (fast, unsure),
            Run::Set(by) => return Err(Missing::Set(by)),
            Run::First => return Err(Missing::TooEarly),
        };
        let apart = |other: Run| match other {
            Run::Even { fast: other, unsure: more } => Some((fast - other).abs() + unsure + more),
            Run::First | Run::Set(_) => None,
        };
        let known = [apart(before.run), behind.and_then(|behind| apart(behind.run))];
        // Without a neighbour there is what any clock may do.
        let otherwise = known.into_iter().flatten().reduce(f64::max);
        let otherwise_ns =
            otherwise.unwrap_or(self.limit + fast.abs() + unsure) * self.length_ns(place);
        // What comes may show that the clock was set here, unless it ran on as before.
        let beside = match before.run {
            Run::Even { fast: other, unsure: more } => (fast - other).abs() - unsure - more,
            Run::First | Run::Set(_) => f64::INFINITY,
        };
        if behind.is_none() && beside * self.length_ns(place) > STEP_NS {
            return Err(Missing::NotYet);
        }
        Ok(before.point.half_ns.max(this.point.half_ns) + otherwise_ns + 1.0)
    }

    fn length_ns(&self, place: usize) -> f64 {
        self.ns(self.seen[place - 1].point.steady, self.seen[place].point.steady)
    }

    fn convert(&self, place: usize, shown_ns: u64) -> Result<Found, Missing> {
        let bound_ns = self.bound_ns(place)?;
        let (from, to) = (self.seen[place - 1].point, self.seen[place].point);
        let share = (shown_ns - from.shown_ns) as f64 / (to.shown_ns - from.shown_ns) as f64;
        let units = share * (to.steady - from.steady) as f64;
        Ok(Found { steady: from.steady + units.round() as u64, bound_ns })
    }

    /// The first observation from `from` on, up to `to`, at which the clock showed more.
    fn first_above(&self, from: usize, to: usize, shown_ns: u64) -> usize {
        let (mut low, mut high) = (from, to);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.seen[middle].point.shown_ns <= shown_ns {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Does the piece that ends with this observation have a part in common with these moments?
    fn overlaps(&self, place: usize, (from, to): (u64, u64)) -> bool {
        let (begin, end) = (self.seen[place - 1].point.steady, self.seen[place].point.steady);
        begin <= to && from <= end
    }

    /// By how much the clock was set in the piece that leads to this age, where it may have shown
    /// `shown_ns` in that piece, before or after.
    fn set_about(&self, place: usize, shown_ns: u64, within: (u64, u64)) -> Option<i64> {
        let Run::Set(by) = self.seen.get(place).filter(|_| place > 0)?.run else { return None };
        if !self.overlaps(place, within) {
            return None;
        }
        let (before, after) = (self.seen[place - 1].point, self.seen[place].point);
        let room = (self.length_ns(place) * (1.0 + self.limit) + before.half_ns + after.half_ns)
            .ceil() as u64;
        let old = before.shown_ns..=before.shown_ns.saturating_add(room);
        let new = after.shown_ns.saturating_sub(room)..=after.shown_ns;
        (old.contains(&shown_ns) || new.contains(&shown_ns)).then_some(by)
    }

    fn last_set(&self) -> i64 {
        let set = |one: &Seen| if let Run::Set(by) = one.run { Some(by) } else { None };
        self.seen.iter().rev().find_map(set).unwrap_or_default()
    }

    /// Why no piece has it.
    fn outside(&self, shown_ns: u64, within: (u64, u64)) -> Missing {
        let (Some(first), Some(last)) = (self.seen.front(), self.seen.back()) else {
            return Missing::NotYet;
        };
        if within.1 < first.point.steady {
            return Missing::TooEarly;
        }
        if shown_ns >= last.point.shown_ns && within.1 > last.point.steady {
            return Missing::NotYet;
        }
        if self.ages.len() == 1 && shown_ns < first.point.shown_ns {
            return Missing::TooEarly;
        }
        let set = self.last_set();
        if set == 0 { Missing::TooEarly } else { Missing::Set(set) }
    }

    fn forget_first(&mut self) {
        if self.seen.len() > 1
            && let Ok(bound) = self.bound_ns(1)
        {
            self.widest_ns = self.widest_ns.max(bound);
        }
        if self.seen.pop_front().is_none() {
            return;
        }
        self.first += 1;
        // An age goes with its last observation.
        if self.ages.get(1).is_some_and(|&next| next <= self.first) {
            self.ages.pop_front();
        }
    }
}

/// Nanoseconds that the clock went on; negative where it went back.
fn shown_between(from: Point, to: Point) -> f64 {
    let distance = from.shown_ns.abs_diff(to.shown_ns) as f64;
    if to.shown_ns < from.shown_ns { -distance } else { distance }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVER: (u64, u64) = (0, u64::MAX);
    const PIECE: u64 = 50_000_000;
    /// What the clock showed when the steady one began.
    const BEGIN: u64 = 100 * PIECE;

    /// Observations every 50 ms, each of which says by how many nanoseconds the clock stands beside the
    /// steady one, and is right.
    fn pieces(beside: &[i64]) -> Pieces {
        let mut pieces = Pieces::new(1.0, 5.1e-4);
        for (steady, beside) in (1..).map(|number| number * PIECE).zip(beside) {
            let shown_ns = (BEGIN + steady).wrapping_add_signed(*beside);
            pieces.push(Point { steady, shown_ns, half_ns: 20.0 });
        }
        pieces
    }

    fn at(steady: u64, beside: i64) -> u64 {
        (BEGIN + steady).wrapping_add_signed(beside)
    }

    #[test]
    fn a_moment_is_found_within_its_bound_and_those_outside_are_refused_by_name() {
        let pieces = pieces(&[0; 6]);
        let found = pieces.find(at(PIECE * 2 + 777, 0), EVER).unwrap();
        assert_eq!(found.steady, PIECE * 2 + 777);
        assert!((20.0..=120.0).contains(&found.bound_ns), "{found:?}");
        assert_eq!(pieces.find(at(PIECE - 1, 0), EVER), Err(Missing::TooEarly));
        assert_eq!(pieces.find(at(PIECE * 6, 0), EVER), Err(Missing::NotYet));
        assert_eq!(Pieces::new(1.0, 5e-4).find(7, EVER), Err(Missing::NotYet));
    }

    #[test]
    fn a_change_of_rate_in_a_piece_is_covered_by_its_bound() {
        // From the middle of the third piece on it runs 100 ppm fast: 2.5 us in that piece, then 5 us.
        let pieces = pieces(&[0, 0, 0, 2_500, 7_500, 12_500]);
        assert_eq!(pieces.steps(), 0);
        // In the middle of that piece it stands beside by nothing yet: the straight line is 1.25 us off.
        let middle = PIECE * 3 + PIECE / 2;
        let found = pieces.find(at(middle, 0), EVER).unwrap();
        let off = found.steady.abs_diff(middle) as f64;
        assert!(off > 1_200.0 && off <= found.bound_ns, "{off} of {found:?}");
        let calm = pieces.find(at(PIECE + 1, 0), EVER).unwrap();
        assert!(calm.bound_ns < 150.0, "{calm:?}");
    }

    #[test]
    fn a_clock_that_is_set_is_seen_above_a_microsecond_and_nothing_between_is_converted() {
        for by in [2_000, -2_000, 20_000, 3_000_000, 1_000_000_000, -1_000_000_000] {
            let pieces = pieces(&[0, 0, 0, by, by, by, by]);
            assert_eq!(pieces.steps(), 1, "{by}");
            // Both what it showed before it was set, and after.
            for shown in [at(PIECE * 3 + 1_000_000, 0), at(PIECE * 4 - 1_000_000, by)] {
                let refused = pieces.find(shown, (PIECE * 3, PIECE * 4)).unwrap_err();
                let Missing::Set(told) = refused else { panic!("{by}: {refused:?}") };
                assert!(told.abs_diff(by) < 100, "{told} for {by}");
            }
            for (steady, beside) in [(PIECE * 2 + 5, 0), (PIECE * 5 + 5, by)] {
                let within = (steady - 1_000_000, steady + 1_000_000);
                let found = pieces.find(at(steady, beside), within).unwrap();
                assert!(found.steady.abs_diff(steady) as f64 <= found.bound_ns, "{by} {found:?}");
            }
        }
    }

    #[test]
    fn what_the_clock_showed_twice_is_converted_only_where_the_caller_can_tell_the_moments_apart() {
        let back = -(2 * PIECE as i64);
        let pieces = pieces(&[0, 0, 0, 0, back, back, back, back, back]);
        let shown = at(PIECE * 3 + 7, 0);
        assert!(matches!(pieces.find(shown, EVER), Err(Missing::Set(_))));
        let early = pieces.find(shown, (PIECE * 3, PIECE * 3 + 100)).unwrap();
        assert_eq!(early.steady, PIECE * 3 + 7);
        let late = pieces.find(shown, (PIECE * 5 + 1, PIECE * 5 + 100)).unwrap();
        assert_eq!(late.steady, PIECE * 5 + 7);
    }

    #[test]
    fn the_last_piece_waits_for_the_next_one_where_the_clock_may_have_been_set_in_it() {
        let mut pieces = pieces(&[0, 0, 0, 5_000]);
        let shown = at(PIECE * 3 + 5, 0);
        assert_eq!(pieces.find(shown, EVER), Err(Missing::NotYet));
        pieces.push(Point { steady: PIECE * 5, shown_ns: at(PIECE * 5, 5_000), half_ns: 20.0 });
        assert!(matches!(pieces.find(shown, EVER), Err(Missing::Set(5_000))));
    }

    #[test]
    fn memory_is_bounded_and_what_was_forgotten_is_too_early() {
        let mut pieces = pieces(&[0; 100]);
        pieces.forget_before(PIECE * 50 + 7);
        assert!(pieces.seen.len() <= 53, "{}", pieces.seen.len());
        assert!(pieces.find(at(PIECE * 50 + 7, 0), EVER).is_ok());
        assert_eq!(pieces.find(at(PIECE * 20, 0), EVER), Err(Missing::TooEarly));
        assert!(pieces.widest_ns() >= 20.0);
        // A clock that is set over and over fills no memory either.
        for number in 101..101 + 2 * MOST as u64 {
            let shown_ns = at(PIECE * number, (number % 2) as i64 * 1_000_000_000);
            pieces.push(Point { steady: PIECE * number, shown_ns, half_ns: 20.0 });
        }
        assert!(pieces.seen.len() <= MOST && pieces.ages.len() <= MOST + 1);
        pieces.restart();
        assert_eq!((pieces.seen.len(), pieces.ages.len()), (0, 0));
    }

    #[test]
    fn observations_too_close_or_in_the_past_are_left_out() {
        let mut pieces = pieces(&[0, 0]);
        for steady in [PIECE * 2 + 1, PIECE] {
            pieces.push(Point { steady, shown_ns: at(steady, 0), half_ns: 20.0 });
        }
        assert_eq!(pieces.seen.len(), 2);
    }
}
