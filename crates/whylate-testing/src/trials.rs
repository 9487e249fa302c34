//! Trials of a box's bounds against what the box itself wrote down. A trial is one size and one way of one
//! run: a flow of its own, measured in windows of its own, with a log of its own.
//!
//! Bounds of all percentiles of a trial are claimed together, so a trial is held only where each of them that
//! can be judged holds the log's quantile: of one trial no percentile counts as another one. Where the tool
//! says that it has no bounds, nothing is claimed, and that is counted apart. A bound from below that is zero
//! holds by itself: trials with one above it are counted by themselves as well.

use whylate_model::device::{BoundsAtPercent, Device};

/// Percentiles of which a trial is judged.
const PERCENTS: [f64; 3] = [50.0, 90.0, 99.0];
/// What bounds with a confidence of 95 % miss at most, in the mean of many trials.
const MISSED: f64 = 0.05;
/// More misses than that many trials have with a probability below this are no chance.
const CHANCE: f64 = 0.01;

/// What came of some trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trials {
    /// Of all that claimed something.
    pub claimed: Held,
    /// Of those with a bound from below above zero as well.
    pub two_sided: Held,
    /// Those that claimed nothing.
    pub unclaimed: u64,
}

/// How many of some trials are held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    pub held: u64,
    pub of: u64,
}

impl Trials {
    /// Adds those of one run.
    pub fn take(&mut self, of: &Device) {
        for at in &of.sizes {
            self.take_one(&at.bounds, |percent| at.contained(percent));
        }
    }

    /// One with these bounds, of which each that can be judged holds the log's quantile or does not.
    fn take_one(&mut self, bounds: &[BoundsAtPercent], contained: impl Fn(f64) -> Option<bool>) {
        let judged: Vec<bool> = PERCENTS.iter().filter_map(|p| contained(*p)).collect();
        if judged.is_empty() {
            self.unclaimed += 1;
            return;
        }
        let is_judged = |percent: f64| PERCENTS.iter().any(|p| (p - percent).abs() < 1e-9);
        let both = |of: &&BoundsAtPercent| of.low_ns > Some(0.0) && of.high_ns.is_some();
        let is_two_sided = bounds.iter().filter(both).any(|of| is_judged(of.percent));
        let is_held = judged.iter().all(|inside| *inside);
        self.claimed.count(is_held);
        if is_two_sided {
            self.two_sided.count(is_held);
        }
    }

    /// Adds those of other runs.
    pub fn add(&mut self, other: Self) {
        self.claimed.add(other.claimed);
        self.two_sided.add(other.two_sided);
        self.unclaimed += other.unclaimed;
    }

    /// Do no more of these miss than chance allows where one of twenty may, and no more of the two-sided?
    pub fn miss_by_chance_alone(&self) -> bool {
        [self.claimed, self.two_sided].iter().all(|all| is_chance(all.of, all.of - all.held))
    }
}

impl Held {
    fn count(&mut self, is_held: bool) {
        self.of += 1;
        self.held += u64::from(is_held);
    }

    fn add(&mut self, other: Self) {
        self.of += other.of;
        self.held += other.held;
    }
}

/// May so many of these trials, and more, miss by chance?
fn is_chance(of: u64, missed: u64) -> bool {
    at_least(of, missed) >= CHANCE
}

/// The probability that so many and more of these trials miss, where each does with [`MISSED`].
fn at_least(of: u64, missed: u64) -> f64 {
    let (mut term, mut below) = ((1.0 - MISSED).powi(of as i32), 0.0);
    for number in 0..missed.min(of + 1) {
        below += term;
        term *= (of - number) as f64 / (number + 1) as f64 * MISSED / (1.0 - MISSED);
    }
    (1.0 - below).max(0.0)
}

#[test]
fn more_misses_than_a_binomial_of_one_in_twenty_has_at_one_percent_are_no_chance() {
    // By hand: of 20 none misses with 0.95^20 = 0.3585, and one with 20 * 0.05 * 0.95^19 = 0.3774.
    assert!((at_least(20, 1) - 0.641_514).abs() < 1e-5, "{}", at_least(20, 1));
    assert!((at_least(20, 2) - 0.264_160).abs() < 1e-5, "{}", at_least(20, 2));
    assert!(is_chance(20, 0) && is_chance(20, 4) && !is_chance(20, 5));
    assert!(is_chance(100, 11) && !is_chance(100, 12));
    assert!(is_chance(0, 0));
}

#[test]
fn a_trial_is_held_only_where_every_quantile_lies_inside_and_two_sided_ones_are_counted_apart() {
    let bounds =
        |percent: f64, low: f64| BoundsAtPercent { percent, low_ns: Some(low), high_ns: Some(9.0) };
    let mut all = Trials::default();
    let mut take = |low: f64, contained: [Option<bool>; 3]| {
        let of = |percent: f64| {
            let at = PERCENTS.iter().position(|p| (p - percent).abs() < 1e-9)?;
            contained[at]
        };
        all.take_one(&PERCENTS.map(|percent| bounds(percent, low)), of);
        all
    };
    take(0.0, [Some(true); 3]);
    // One of three outside, and one that cannot be judged beside two inside.
    take(0.0, [Some(true), Some(false), Some(true)]);
    take(1.0, [Some(true), Some(true), None]);
    take(1.0, [Some(false), Some(true), None]);
    let told = take(1.0, [None; 3]);
    let held = |held: u64, of: u64| Held { held, of };
    assert_eq!(told, Trials { claimed: held(2, 4), two_sided: held(1, 2), unclaimed: 1 });
    // A bound from both sides at a percentile of which nobody is judged makes no trial two-sided.
    let mut other = Trials::default();
    other.take_one(&[bounds(99.9, 1.0), bounds(50.0, 0.0)], |_| Some(true));
    assert_eq!(other, Trials { claimed: held(1, 1), ..Trials::default() });
    other.add(told);
    assert_eq!(other, Trials { claimed: held(3, 5), two_sided: held(1, 2), unclaimed: 1 });
}

#[test]
fn trials_with_bounds_that_hold_by_themselves_do_not_make_up_for_those_that_miss() {
    let by_chance = |claimed: (u64, u64), two_sided: (u64, u64)| {
        let held = |(of, held): (u64, u64)| Held { held, of };
        let trials = Trials { claimed: held(claimed), two_sided: held(two_sided), unclaimed: 0 };
        trials.miss_by_chance_alone()
    };
    assert!(by_chance((20, 16), (5, 4)));
    assert!(!by_chance((20, 15), (5, 5)));
    assert!(!by_chance((20, 18), (3, 0)));
    assert!(!by_chance((200, 190), (20, 10)));
}
