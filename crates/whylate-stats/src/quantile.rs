//! Quantiles with exact intervals, and the refusal of those a sample cannot show.
//!
//! For a sample of n independent values and a fraction p, the number of values below the true
//! quantile is binomial. So the order statistics with the 1-based ranks
//!
//! ```text
//! l = max{ i : P(Bin(n,p) <= i-1) <= 0.025 }      u = min{ i : P(Bin(n,p) <= i-1) >= 0.975 }
//! ```
//!
//! enclose it with at least 95 % confidence, whatever the distribution (Hahn and Meeker,
//! "Statistical Intervals"; Le Boudec, "Performance Evaluation", chapter 2). `u > n` means that no
//! value of the sample bounds the quantile from above: it is *unsupported*, and printing the
//! largest value in its place would be a maximum in disguise. Below l = 1 the same holds downwards.
//!
//! Dependent samples are worth fewer: ranks are computed for the effective sample size (see
//! [`crate::dependence`]) and then stretched over the n there are, outwards.

use crate::histogram::Histogram;
use crate::special;

/// The percentiles of every table, in the one order.
pub const PERCENTS: [f64; 7] = [50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999];

/// Confidence of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// What may lie outside on each side.
const TAIL: f64 = 0.025;

/// Fractions are decimal: this many steps make 1. (99.9 / 100 is not 0.999 in binary, and
/// `ceil(0.999 * 1000)` must be 999.)
const STEPS: u64 = 10_000_000_000;

/// Ranks, from 1, of the order statistics that enclose a quantile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ranks {
    /// Lower end; none when no value of the sample bounds the quantile from below.
    pub low: Option<u64>,
    /// Upper end; none when no value of the sample bounds it from above.
    pub high: Option<u64>,
}

/// One quantile of a histogram, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Which, in percent.
    pub percent: f64,
    /// The order statistic of rank `ceil(p n)`. None when the sample does not support the
    /// percentile, of which only the lower end is printed then.
    pub value: Option<u64>,
    /// Lower end of the 95 % interval; none when unsupported.
    pub low: Option<u64>,
    /// Upper end of the 95 % interval; none when unsupported.
    pub high: Option<u64>,
    /// Samples.
    pub n: u64,
    /// Independent samples they are worth.
    pub n_eff: f64,
}

impl Estimate {
    /// Can the sample show this percentile?
    #[must_use]
    pub fn is_supported(&self) -> bool {
        self.value.is_some()
    }
}

/// The ranks that enclose the `p`-quantile of `n` independent samples with 95 % confidence.
///
/// `p` is a fraction (0.999), read to ten decimals. Microseconds for any `n`.
///
/// # Panics
/// When `p` is not inside 0..1: 99.9 is a percentage, not a fraction.
#[must_use]
pub fn ranks(n: u64, p: f64) -> Ranks {
    ranks_with(n, p, TAIL)
}

/// The same where each end may fail with the probability `tail`.
///
/// # Panics
/// When `p` is not inside 0..1, or `tail` not inside 0..0.5.
#[must_use]
pub fn ranks_with(n: u64, p: f64, tail: f64) -> Ranks {
    assert!(tail > 0.0 && tail < 0.5, "{tail} is no share that may lie outside on one side");
    let fraction = Fraction::new(p);
    if n == 0 {
        return Ranks { low: None, high: None };
    }
    let tails = |rank: u64| special::binomial(n, rank - 1, fraction.p, fraction.q);
    // Ranks with at most the tail below them: a prefix of 1..=n, whose last one is wanted.
    let low = last_of_prefix(n, |rank| tails(rank).lower <= tail);
    // Ranks with less than 1 - tail below them, that is more than it above: one past them.
    let short = last_of_prefix(n, |rank| tails(rank).upper > tail);
    Ranks { low: (low > 0).then_some(low), high: (short < n).then_some(short + 1) }
}

/// The ranks among `n` values that are worth `independent` ones (1 to n), stretched outwards.
pub(crate) fn ranks_stretched(n: u64, independent: u64, p: f64, tail: f64) -> Ranks {
    let ranks = ranks_with(independent, p, tail);
    // The i-th of m independent values stands for the ranks ((i-1) n/m, i n/m] of the n.
    let stretch = |rank: u64| u128::from(rank) * u128::from(n);
    let m = u128::from(independent);
    Ranks {
        low: ranks.low.map(|l| (stretch(l - 1) / m) as u64 + 1),
        high: ranks.high.map(|u| stretch(u).div_ceil(m) as u64),
    }
}

/// The smallest sample with a two-sided 95 % interval for the `p`-quantile: 368 for 0.99, 3 688 for
/// 0.999.
///
/// By `p^n <= 0.025` (not all samples below the quantile) and `q^n <= 0.025` (not all above).
///
/// # Panics
/// When `p` is not inside 0..1.
#[must_use]
pub fn smallest_n(p: f64) -> u64 {
    let Fraction { p, q } = Fraction::new(p);
    // ln of the larger of p and q, from the smaller.
    let ln_larger = (-p.min(q)).ln_1p();
    (TAIL.ln() / ln_larger).ceil() as u64
}

/// One percentile of a histogram with its interval, or its refusal.
///
/// `n_eff` is clamped to 1..=n and rounded down.
///
/// # Panics
/// When `percent` is not inside 0..100.
#[must_use]
pub fn estimate(histogram: &Histogram, percent: f64, n_eff: f64) -> Estimate {
    let n = histogram.len();
    if n == 0 {
        return Estimate { percent, value: None, low: None, high: None, n, n_eff: 0.0 };
    }
    let independent = if n_eff.is_nan() { 1 } else { (n_eff as u64).clamp(1, n) };
    let Ranks { low, high } = ranks_stretched(n, independent, percent / 100.0, TAIL);
    let value = high.and_then(|_| histogram.value_at(percent));
    Estimate {
        percent,
        value,
        low: low.and_then(|rank| histogram.rank_value(rank)),
        high: high.and_then(|rank| histogram.rank_value(rank)),
        n,
        n_eff: if n_eff.is_nan() { 1.0 } else { n_eff.clamp(1.0, n as f64) },
    }
}

/// All of [`PERCENTS`]; `n_eff` is asked for each.
#[must_use]
pub fn estimates(histogram: &Histogram, mut n_eff: impl FnMut(f64) -> f64) -> [Estimate; 7] {
    PERCENTS.map(|percent| estimate(histogram, percent, n_eff(percent)))
}

/// The rank `ceil(percent/100 * n)`, at least 1, without rounding errors. None for n = 0 or a
/// percentage outside 0..=100.
pub(crate) fn rank(n: u64, percent: f64) -> Option<u64> {
    if n == 0 || !(0.0..=100.0).contains(&percent) {
        return None;
    }
    let steps = (percent / 100.0 * STEPS as f64).round() as u128;
    Some(((steps * u128::from(n)).div_ceil(u128::from(STEPS)) as u64).max(1))
}

/// A fraction and its complement, both to the last digit.
struct Fraction {
    p: f64,
    q: f64,
}

impl Fraction {
    fn new(p: f64) -> Self {
        let steps = (p * STEPS as f64).round();
        let inside = steps >= 1.0 && steps < STEPS as f64;
        assert!(inside, "{p} is not a fraction inside 0..1; 99.9 % is 0.999");
        Self { p: steps / STEPS as f64, q: (STEPS as f64 - steps) / STEPS as f64 }
    }
}

/// The largest of 1..=n for which `holds`, which is true up to some point and false after; 0 when
/// it never is.
fn last_of_prefix(n: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut yes, mut no) = (0, n);
    if holds(n) {
        return n;
    }
    while no - yes > 1 {
        let middle = yes + (no - yes) / 2;
        *(if holds(middle) { &mut yes } else { &mut no }) = middle;
    }
    yes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretched_ranks_cover_what_the_ranks_among_independent_values_stand_for() {
        for (n, independent) in [(1_000, 100), (1_003, 100), (997, 996), (500, 500)] {
            let among = ranks_with(independent, 0.5, TAIL);
            let of = |rank: u64| u128::from(rank) * u128::from(n);
            let reaches = |rank: &u64| u128::from(*rank) * u128::from(independent);
            let low = (1..=n).find(|rank| reaches(rank) > of(among.low.unwrap() - 1));
            let high = (1..=n).find(|rank| reaches(rank) >= of(among.high.unwrap()));
            let found = ranks_stretched(n, independent, 0.5, TAIL);
            assert_eq!((found.low, found.high), (low, high), "{n} {independent}");
        }
    }
}
