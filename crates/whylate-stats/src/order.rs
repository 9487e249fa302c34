//! Values in order, whoever keeps them: a [`Histogram`], its signed sister, or a sorted list.
//!
//! What is asked of them is where the value of a rank lies. A histogram knows the bin, so the answer
//! is a range; an interval built on it reaches from the lower edge of one bin to the upper edge of
//! another, and binning never makes it too narrow. A [`Sorted`] list is exact.

use crate::histogram::Histogram;
use crate::quantile;

/// Where a value lies; both ends are the same where it is known exactly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Between {
    /// Not below this.
    pub low: f64,
    /// Not above this. A bin is named by this end.
    pub high: f64,
}

/// Values that can be asked for by rank.
pub trait Order {
    /// How many there are.
    fn count(&self) -> u64;

    /// The value of a rank counted from 1. None outside 1..=count.
    fn at_rank(&self, rank_1_based: u64) -> Option<Between>;
}

/// A quantile and its limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The order statistic of rank `ceil(p n)`, by its bin's name; none where there is no upper limit.
    pub value: Option<f64>,
    /// With all but `tail` confidence it is not below this; none where no value bounds it from below.
    pub low: Option<f64>,
    /// With all but `tail` confidence it is not above this; none where no value bounds it from above.
    pub high: Option<f64>,
    /// Independent samples behind that.
    pub n_eff: f64,
}

/// A quantile with limits that each fail with at most the probability `tail`.
///
/// `n_eff` is clamped to 1..=n and rounded down; ranks are stretched outwards as in
/// [`quantile::estimate`].
///
/// # Panics
/// When `percent` is not inside 0..100, or `tail` not inside 0..0.5.
#[must_use]
pub fn limits(values: &(impl Order + ?Sized), percent: f64, n_eff: f64, tail: f64) -> Limits {
    let n = values.count();
    if n == 0 {
        return Limits { value: None, low: None, high: None, n_eff: 0.0 };
    }
    let independent = if n_eff.is_nan() { 1 } else { (n_eff as u64).clamp(1, n) };
    let ranks = quantile::ranks_stretched(n, independent, percent / 100.0, tail);
    let at = |rank: Option<u64>| rank.and_then(|rank| values.at_rank(rank));
    let own = quantile::rank(n, percent).and_then(|rank| values.at_rank(rank));
    // A rank among what never came has no value.
    let known = |value: Option<f64>| value.filter(|value| value.is_finite());
    Limits {
        value: known(ranks.high.and(own).map(|own| own.high)),
        low: known(at(ranks.low).map(|between| between.low)),
        high: known(at(ranks.high).map(|between| between.high)),
        n_eff: if n_eff.is_nan() { 1.0 } else { n_eff.clamp(1.0, n as f64) },
    }
}

/// Where what never came lies.
const NEVER: Between = Between { low: f64::INFINITY, high: f64::INFINITY };

/// Values beside which some were never seen. Where an upper limit is asked for they lie above all, where a
/// lower one is, below all: so neither is better than what was lost allows.
#[derive(Debug, Clone, Copy)]
pub struct WithLost<'a> {
    values: &'a Histogram,
    below: u64,
    above: u64,
}

impl<'a> WithLost<'a> {
    /// So many more lie above all values.
    #[must_use]
    pub fn above(values: &'a Histogram, lost: u64) -> Self {
        Self { values, below: 0, above: lost }
    }

    /// So many more lie below all values.
    #[must_use]
    pub fn below(values: &'a Histogram, lost: u64) -> Self {
        Self { values, below: lost, above: 0 }
    }
}

impl Order for WithLost<'_> {
    fn count(&self) -> u64 {
        self.below + self.values.len() + self.above
    }

    fn at_rank(&self, rank_1_based: u64) -> Option<Between> {
        if rank_1_based == 0 || rank_1_based > self.count() {
            return None;
        }
        if rank_1_based <= self.below {
            return Some(Between { low: f64::NEG_INFINITY, high: f64::NEG_INFINITY });
        }
        self.values.at_rank(rank_1_based - self.below).or(Some(NEVER))
    }
}

impl Order for Histogram {
    fn count(&self) -> u64 {
        self.len()
    }

    fn at_rank(&self, rank_1_based: u64) -> Option<Between> {
        let (low, high) = self.rank_span(rank_1_based)?;
        Some(Between { low: low as f64, high: high as f64 })
    }
}

/// Exact values, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sorted(Vec<i64>);

impl Sorted {
    /// Puts values into order; eight bytes for each are kept.
    #[must_use]
    pub fn new(mut values: Vec<i64>) -> Self {
        values.sort_unstable();
        Self(values)
    }

    /// The values in order.
    #[must_use]
    pub fn values(&self) -> &[i64] {
        &self.0
    }
}

impl Order for Sorted {
    fn count(&self) -> u64 {
        self.0.len() as u64
    }

    fn at_rank(&self, rank_1_based: u64) -> Option<Between> {
        let index = usize::try_from(rank_1_based.checked_sub(1)?).ok()?;
        let value = *self.0.get(index)? as f64;
        Some(Between { low: value, high: value })
    }
}

/// Counts of values that may be negative, in a fixed memory: one histogram for each sign.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SignedHistogram {
    /// The negative ones, by what they are below zero.
    below: Histogram,
    /// Zero and the positive ones.
    above: Histogram,
    /// What never came: above all others, by nobody knows how much.
    lost: u64,
}

impl SignedHistogram {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a value.
    pub fn record(&mut self, value_ns: i64) {
        let side = if value_ns < 0 { &mut self.below } else { &mut self.above };
        side.record(value_ns.unsigned_abs());
    }

    /// Counts what never came: each lies above all values, and at its rank there is none.
    pub fn record_lost(&mut self, count: u64) {
        self.lost += count;
    }

    /// Adds the values of another one.
    pub fn add(&mut self, other: &Self) {
        self.lost += other.lost;
        self.below.add(&other.below);
        self.above.add(&other.above);
    }

    /// Exact smallest value; none without values. Below `i64::MIN` there is nothing.
    #[must_use]
    pub fn min(&self) -> Option<i64> {
        let lowest = self.below.max().map(|below| 0i64.saturating_sub_unsigned(below));
        lowest.or_else(|| self.above.min().map(|value| i64::try_from(value).unwrap_or(i64::MAX)))
    }

    /// Exact largest value; none without values.
    #[must_use]
    pub fn max(&self) -> Option<i64> {
        let highest = self.above.max().map(|value| i64::try_from(value).unwrap_or(i64::MAX));
        highest.or_else(|| self.below.min().map(|below| 0i64.saturating_sub_unsigned(below)))
    }
}

impl Order for SignedHistogram {
    fn count(&self) -> u64 {
        self.below.len() + self.above.len() + self.lost
    }

    fn at_rank(&self, rank_1_based: u64) -> Option<Between> {
        let negative = self.below.len();
        if rank_1_based > negative + self.above.len() {
            return (rank_1_based <= self.count()).then_some(NEVER);
        }
        if rank_1_based > negative {
            return self.above.at_rank(rank_1_based - negative);
        }
        // The lowest of all is the largest of those below zero.
        let mirrored = self.below.at_rank((negative + 1).checked_sub(rank_1_based)?)?;
        Some(Between { low: -mirrored.high, high: -mirrored.low })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A percentile of this, each value worth one.
    fn at(values: &(impl Order + ?Sized), percent: f64) -> Limits {
        limits(values, percent, f64::INFINITY, 0.025)
    }

    #[test]
    fn what_never_came_lies_above_all_and_no_quantile_that_reaches_it_has_a_value() {
        let mut values = SignedHistogram::new();
        (-500..400).for_each(|value| values.record(value));
        let whole = at(&values, 95.0);
        assert!(whole.value.is_some() && whole.high.is_some(), "{whole:?}");
        values.record_lost(100);
        assert_eq!((values.count(), values.max()), (1_000, Some(399)));
        assert_eq!(values.at_rank(900).map(|of| of.high), Some(399.0));
        assert_eq!(values.at_rank(901), Some(NEVER));
        assert_eq!(values.at_rank(1_001), None);
        // A tenth was lost: the median is that of a thousand, and beyond p90 there is nothing.
        assert_eq!(at(&values, 50.0).value, Some(-1.0));
        let beyond = at(&values, 95.0);
        assert_eq!((beyond.value, beyond.high), (None, None));
        // The limit reaches what was lost though the quantile itself does not.
        let near = at(&values, 89.5);
        assert!(near.value.is_some() && near.low.is_some() && near.high.is_none(), "{near:?}");
        let mut sum = SignedHistogram::new();
        sum.add(&values);
        assert_eq!(sum, values);
    }

    #[test]
    fn lost_values_are_on_the_side_that_makes_a_limit_worse() {
        let values: Histogram = (1..=900).collect();
        let (above, below) = (WithLost::above(&values, 100), WithLost::below(&values, 100));
        assert_eq!((above.count(), below.count()), (1_000, 1_000));
        assert_eq!((at(&above, 50.0).value, at(&below, 50.0).value), (Some(500.0), Some(400.0)));
        assert_eq!(at(&above, 95.0).high, None);
        assert_eq!((at(&below, 5.0).low, at(&below, 5.0).value), (None, None));
        assert_eq!(below.at_rank(1_000).map(|of| of.high), Some(900.0));
        assert_eq!((above.at_rank(0), above.at_rank(1_001)), (None, None));
        let none = WithLost::above(&values, 0);
        assert_eq!(at(&none, 90.0), at(&values, 90.0));
    }
}
