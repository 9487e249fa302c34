//! How many times one side is the other, over pairs that were measured next to each other.

use crate::bootstrap::{self, Interval};

/// A ratio over pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Geometric mean of the pairs' ratios.
    pub mean: f64,
    /// Its 95 % interval, by a studentised bootstrap of the logarithms over the pairs.
    pub interval: Interval,
    /// Pairs.
    pub pairs: usize,
}

impl Ratio {
    /// Second over first of each pair. Ratios are compared by factors, so that which side is first
    /// does not matter. None without two pairs, or with a value that is not above zero.
    #[must_use]
    pub fn of_pairs(pairs: &[(f64, f64)], seed: u64) -> Option<Self> {
        let sound = |value: f64| value.is_finite() && value > 0.0;
        if pairs.len() < 2 || !pairs.iter().all(|(a, b)| sound(*a) && sound(*b)) {
            return None;
        }
        let logs: Vec<f64> = pairs.iter().map(|(a, b)| (b / a).ln()).collect();
        let Interval { low, high } = bootstrap::of_mean(&logs, seed);
        Some(Self {
            mean: bootstrap::mean(&logs).exp(),
            interval: Interval { low: low.exp(), high: high.exp() },
            pairs: pairs.len(),
        })
    }

    /// Half of the interval's width.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        self.interval.half_width()
    }

    /// Does the interval have a value in common with this range?
    #[must_use]
    pub fn overlaps(&self, low: f64, high: f64) -> bool {
        self.interval.low <= high && self.interval.high >= low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Pairs whose second side is `factor` times the first, give or take `noise` of it, while both
    /// drift by a factor of four.
    fn planted(factor: f64, noise: f64, rng: &mut Rng) -> Vec<(f64, f64)> {
        let pair = |index: u32| {
            let first = 5_000.0 * (1.0 + 3.0 * f64::from(index) / 16.0);
            (first, first * factor * (1.0 + noise * (rng.unit() - 0.5)))
        };
        (0..16).map(pair).collect()
    }

    #[test]
    fn a_planted_factor_is_in_the_interval_whatever_both_sides_drift() {
        let mut rng = Rng::new(1);
        let held = (0..200)
            .filter(|seed| {
                let found = Ratio::of_pairs(&planted(1.3, 0.1, &mut rng), *seed).unwrap();
                found.half_width() < 0.05 && found.interval.contains(1.3)
            })
            .count();
        assert!(held >= 180, "{held} of 200");
        let same = Ratio::of_pairs(&planted(1.0, 0.02, &mut rng), 1).unwrap();
        assert!(same.half_width() < 0.01 && same.overlaps(0.9, 1.1) && !same.overlaps(1.1, 2.0));
    }

    #[test]
    fn the_other_way_round_it_is_the_inverse() {
        let pairs = [(2.0, 3.0), (4.0, 7.0), (5.0, 6.0), (9.0, 14.0)];
        let back: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (*b, *a)).collect();
        let (there, back) =
            (Ratio::of_pairs(&pairs, 3).unwrap(), Ratio::of_pairs(&back, 3).unwrap());
        assert!((there.mean * back.mean - 1.0).abs() < 1e-12);
    }

    #[test]
    fn one_pair_and_what_is_not_above_zero_have_no_ratio() {
        for pairs in [&[][..], &[(1.0, 2.0)], &[(1.0, 2.0), (0.0, 1.0)], &[(1.0, f64::NAN); 3]] {
            assert_eq!(Ratio::of_pairs(pairs, 1), None, "{pairs:?}");
        }
    }
}
