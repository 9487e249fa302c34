//! Student's t: how far a mean of few values may lie from the truth.
//!
//! Runs are few (3, 5, 10), so what they scatter must not be taken as if it were known: 2.78 standard
//! errors to each side for five runs, where a normal distribution would say 1.96.

use crate::bootstrap::Interval;
use crate::special;

/// What may lie outside on both sides together.
const OUTSIDE: f64 = 0.05;

/// Probability that a t value with so many degrees of freedom lies at least `|t|` from 0.
#[must_use]
pub fn two_sided(t: f64, degrees: f64) -> f64 {
    if t == 0.0 {
        return 1.0;
    }
    let square = t * t;
    let all = degrees + square;
    special::beta(degrees / 2.0, 0.5, degrees / all, square / all).lower
}

/// The t beyond which 5 % lie, half on each side. Infinite without a degree of freedom.
#[must_use]
pub fn critical(degrees: f64) -> f64 {
    critical_of(degrees, OUTSIDE)
}

/// The t beyond which this share lies, half on each side. Infinite without a degree of freedom, or where
/// nothing may lie outside.
#[must_use]
pub fn critical_of(degrees: f64, outside: f64) -> f64 {
    if degrees.is_nan() || degrees <= 0.0 || outside.is_nan() || outside <= 0.0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, 2.0);
    while two_sided(high, degrees) > outside {
        high *= 2.0;
    }
    // 60 halvings leave nothing of f64's digits.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        *(if two_sided(middle, degrees) > outside { &mut low } else { &mut high }) = middle;
    }
    high
}

/// The variance of a mean, and the degrees of freedom that it was estimated with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Variance of the mean (the squared standard error).
    pub variance: f64,
    /// Degrees of freedom.
    pub degrees: f64,
}

impl Spread {
    /// Of the mean of independent values; none with fewer than two.
    #[must_use]
    pub fn of_mean(values: &[f64]) -> Option<Self> {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        (values.len() > 1).then(|| Self { variance: squares / (n - 1.0) / n, degrees: n - 1.0 })
    }

    /// Of the difference of two means (Welch 1947, Satterthwaite 1946).
    #[must_use]
    pub fn of_difference(self, other: Self) -> Self {
        let variance = self.variance + other.variance;
        let parts = self.variance * self.variance / self.degrees
            + other.variance * other.variance / other.degrees;
        let degrees =
            if parts > 0.0 { variance * variance / parts } else { self.degrees + other.degrees };
        Self { variance, degrees }
    }

    /// The 95 % interval around a mean with this spread.
    #[must_use]
    pub fn around(self, mean: f64) -> Interval {
        self.around_among(mean, 1)
    }

    /// The interval around one of so many means: all of them together hold in 95 % (Bonferroni).
    #[must_use]
    pub fn around_among(self, mean: f64, among: usize) -> Interval {
        let half = match self.variance {
            0.0 => 0.0,
            variance => critical_of(self.degrees, OUTSIDE / among.max(1) as f64) * variance.sqrt(),
        };
        Interval { low: mean - half, high: mean + half }
    }

    /// The p-value of "the mean is `expected`".
    #[must_use]
    pub fn p_value(self, mean: f64, expected: f64) -> f64 {
        let off = mean - expected;
        if off == 0.0 {
            return 1.0;
        }
        if self.variance <= 0.0 {
            return 0.0;
        }
        two_sided(off / self.variance.sqrt(), self.degrees)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn critical_values_are_those_of_every_table() {
        for (degrees, t) in
            [(1.0, 12.706_205), (4.0, 2.776_445), (9.0, 2.262_157), (1e6, 1.959_966)]
        {
            assert!((critical(degrees) - t).abs() < 1e-5, "{degrees}: {}", critical(degrees));
        }
        assert!(critical(0.0).is_infinite() && critical_of(2.0, 0.0).is_infinite());
        assert!((critical_of(2.0, 0.01) - 9.924_843).abs() < 1e-5, "{}", critical_of(2.0, 0.01));
    }

    #[test]
    fn equal_values_have_no_spread() {
        let spread = Spread::of_mean(&[7.0; 5]).unwrap();
        assert_eq!(spread.around(7.0), Interval { low: 7.0, high: 7.0 });
        assert_eq!(Spread::of_mean(&[7.0]), None);
    }
}
