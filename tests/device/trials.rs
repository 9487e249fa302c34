//! Trials of a box's bounds against what the box itself wrote down. A trial is one size and one way of one
//! run: a flow of its own, measured in windows of its own, with a log of its own.
//!
//! Bounds of all percentiles of a trial are claimed together, so a trial is held only where each of them that
//! can be judged holds the log's quantile: of one trial no percentile counts as another one. Where the tool
//! says that it has no bounds, nothing is claimed, and that is counted apart. A bound from below that is zero
//! holds by itself: trials with one above it are judged by themselves as well.

use whylate_model::device::{Device, DeviceAtSize};
use whylate_model::flow::Direction;

/// Percentiles of which a trial is judged.
const PERCENTS: [f64; 3] = [50.0, 90.0, 99.0];
/// What bounds with a confidence of 95 % miss at most, in the mean of many trials.
const MISSED: f64 = 0.05;
/// More misses than that many trials have with a probability below this are no chance.
const CHANCE: f64 = 0.01;
/// A bound from below that is zero holds of whatever: of a hundred trials so many need one above it.
const FEWEST_TWO_SIDED: u64 = 30;

/// What came of some trials.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trials {
    /// Of all that claimed something: how many, and how many of these are held.
    all: (u64, u64),
    /// Of those with a bound from below above zero as well.
    two_sided: (u64, u64),
    /// Those that claimed nothing, with the reason of each.
    unclaimed: Vec<String>,
    /// What was missed, in full.
    missed: Vec<String>,
}

/// One trial in words.
fn told(at: &DeviceAtSize) -> String {
    let way = if at.direction == Direction::Back { "back" } else { "there" };
    let log = at.residence.as_ref().map(|log| &log.quantiles);
    format!(
        "{} bytes {way}, {} runs, {} frames: bounds {:?}, its log {log:?}",
        at.frame_bytes, at.runs, at.n, at.bounds
    )
}

impl Trials {
    /// Adds those of one run.
    pub(crate) fn take(&mut self, of: &Device) {
        of.sizes.iter().for_each(|at| self.take_one(at));
    }

    fn take_one(&mut self, at: &DeviceAtSize) {
        let judged: Vec<bool> = PERCENTS.iter().filter_map(|p| at.contained(*p)).collect();
        if judged.is_empty() {
            let why = at.no_bounds.as_deref().unwrap_or("runs differ too much for a bound");
            self.unclaimed.push(format!("{} bytes: {why}", at.frame_bytes));
            return;
        }
        let is_judged = |percent: f64| PERCENTS.iter().any(|p| (p - percent).abs() < 1e-9);
        let both = |low: Option<f64>, high: Option<f64>| low > Some(0.0) && high.is_some();
        let is_two_sided =
            at.bounds.iter().any(|of| is_judged(of.percent) && both(of.low_ns, of.high_ns));
        let is_held = judged.iter().all(|inside| *inside);
        count(&mut self.all, is_held);
        if is_two_sided {
            count(&mut self.two_sided, is_held);
        }
        if !is_held {
            self.missed.push(told(at));
        }
    }

    /// Adds those of other runs.
    pub(crate) fn add(&mut self, other: Self) {
        for (mine, theirs) in [(&mut self.all, other.all), (&mut self.two_sided, other.two_sided)] {
            mine.0 += theirs.0;
            mine.1 += theirs.1;
        }
        self.unclaimed.extend(other.unclaimed);
        self.missed.extend(other.missed);
    }

    /// Trials that claimed something.
    pub(crate) fn claimed(&self) -> u64 {
        self.all.0
    }

    /// What came of them, in one line.
    pub(crate) fn words(&self) -> String {
        let share = |(of, held): (u64, u64)| format!("{held} of {of}");
        format!(
            "{} trials hold what the box itself wrote down, {} of those with a bound from below above \
             zero; {} claim nothing",
            share(self.all),
            share(self.two_sided),
            self.unclaimed.len()
        )
    }

    /// Why these are not 95 of 100 and more; at least so many have to claim something.
    pub(crate) fn at_least_95_of_100(&self, least: u64) -> Result<(), String> {
        self.enough(least)?;
        self.enough_two_sided(FEWEST_TWO_SIDED)?;
        for (of, held) in [self.all, self.two_sided] {
            // Of few that are two-sided, what chance allows is more than one of twenty.
            if (of - held) as f64 > MISSED * of as f64 && !is_chance(of, of - held) {
                return Err(self.whole());
            }
        }
        let (of, held) = self.all;
        if (held as f64) < (1.0 - MISSED) * of as f64 { Err(self.whole()) } else { Ok(()) }
    }

    /// Why more of these miss than chance allows where one of twenty may; at least so many have to claim
    /// something.
    pub(crate) fn no_more_missed_than_chance_has_it(&self, least: u64) -> Result<(), String> {
        self.enough(least)?;
        let misses = [self.all, self.two_sided].map(|(of, held)| is_chance(of, of - held));
        if misses.iter().all(|is| *is) { Ok(()) } else { Err(self.whole()) }
    }

    /// Why fewer than these have a bound from below above zero.
    pub(crate) fn enough_two_sided(&self, least: u64) -> Result<(), String> {
        if self.two_sided.0 >= least {
            return Ok(());
        }
        Err(format!("{least} have to be bounded from below above zero: {}", self.whole()))
    }

    fn enough(&self, least: u64) -> Result<(), String> {
        let few = self.claimed() < least;
        if few { Err(format!("{least} have to claim something: {}", self.whole())) } else { Ok(()) }
    }

    fn whole(&self) -> String {
        format!("{}; missed: {:#?}; unclaimed: {:#?}", self.words(), self.missed, self.unclaimed)
    }
}

fn count((of, held): &mut (u64, u64), is_held: bool) {
    *of += 1;
    *held += u64::from(is_held);
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
    let trials = |all: (u64, u64), two_sided: (u64, u64), unclaimed: usize| Trials {
        all,
        two_sided,
        unclaimed: vec![String::new(); unclaimed],
        missed: Vec::new(),
    };
    assert!(trials((100, 95), (40, 38), 4).at_least_95_of_100(100).is_ok());
    assert!(trials((100, 94), (40, 40), 4).at_least_95_of_100(100).is_err());
    assert!(trials((99, 99), (40, 40), 5).at_least_95_of_100(100).is_err(), "too few claim");
    assert!(trials((100, 100), (29, 29), 0).at_least_95_of_100(100).is_err(), "too few two-sided");
    assert!(trials((100, 100), (30, 30), 0).at_least_95_of_100(100).is_ok());
    assert!(trials((8, 8), (2, 2), 0).enough_two_sided(3).is_err());
    // One-sided bounds that hold by themselves do not make up for two-sided ones that miss.
    assert!(trials((200, 190), (20, 10), 0).at_least_95_of_100(100).is_err());
    assert!(trials((20, 16), (5, 4), 0).no_more_missed_than_chance_has_it(15).is_ok());
    assert!(trials((20, 15), (5, 5), 0).no_more_missed_than_chance_has_it(15).is_err());
    assert!(trials((20, 18), (3, 0), 0).no_more_missed_than_chance_has_it(15).is_err());
}
