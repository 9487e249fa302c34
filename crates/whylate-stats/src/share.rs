//! The exact interval of a share: k of n, none and all included.

use crate::special;

/// What may lie outside on each side of a 95 % interval.
const TAIL: f64 = 0.025;

/// Halvings of the interval: beyond them two doubles have no middle.
const HALVINGS: u32 = 200;

/// The exact 95 % interval of a share (Clopper and Pearson 1934), for `k` of `n`.
///
/// ```text
/// low  : P(Bin(n, low)  >= k) = 0.025      high : P(Bin(n, high) <= k) = 0.025
/// ```
///
/// Both may be effective numbers, `k/F` of `n/F` (see [`crate::dependence`]), and then need not be
/// whole: the tails of the binomial are those of the beta distribution, which does not ask. (0, 1)
/// when nothing is known: `n` not a positive number, or `k` outside 0..=n.
#[must_use]
pub fn interval(k: f64, n: f64) -> (f64, f64) {
    if !(n.is_finite() && n > 0.0 && (0.0..=n).contains(&k)) {
        return (0.0, 1.0);
    }
    let low = if k > 0.0 { beta_quantile(k, n - k + 1.0, TAIL) } else { 0.0 };
    let high = if k < n { 1.0 - beta_quantile(n - k, k + 1.0, TAIL) } else { 1.0 };
    (low, high)
}

/// The x with `I_x(a, b) = tail`, by halving: slow and certain.
fn beta_quantile(a: f64, b: f64, tail: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for _ in 0..HALVINGS {
        // Tails span decades: halve the exponent as long as the ends are decades apart.
        let middle = if low > 0.0 && high / low > 4.0 {
            (low * high).sqrt()
        } else if low == 0.0 && high > f64::MIN_POSITIVE {
            high / 16.0
        } else {
            f64::midpoint(low, high)
        };
        if middle <= low || middle >= high || high - low < high * 1e-12 {
            break;
        }
        let below = special::beta(a, b, middle, 1.0 - middle).lower;
        *(if below > tail { &mut high } else { &mut low }) = middle;
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use statrs::distribution::{Beta, ContinuousCDF};

    #[test]
    fn intervals_are_those_of_the_beta_distribution() {
        for (k, n) in [(1.0, 10.0), (5.0, 10.0), (3.7, 812.4), (1.0, 1e7), (9_999_000.0, 1e7)] {
            let (low, high) = interval(k, n);
            let wanted = Beta::new(k, n - k + 1.0).unwrap().cdf(low);
            assert!((wanted / TAIL - 1.0).abs() < 1e-6, "low end of {k} of {n}: {wanted}");
            let wanted = 1.0 - Beta::new(k + 1.0, n - k).unwrap().cdf(high);
            assert!((wanted / TAIL - 1.0).abs() < 1e-6, "high end of {k} of {n}: {wanted}");
        }
    }

    #[test]
    fn none_and_all_are_bounded_on_one_side() {
        let (low, high) = interval(0.0, 100.0);
        assert!(low == 0.0 && (high - (1.0 - TAIL.powf(0.01))).abs() < 1e-9, "{low} {high}");
        let (low, high) = interval(100.0, 100.0);
        assert!((low - TAIL.powf(0.01)).abs() < 1e-9 && high >= 1.0, "{low} {high}");
    }

    #[test]
    fn nothing_known_is_any_share() {
        for (k, n) in [(0.0, 0.0), (2.0, 1.0), (f64::NAN, 3.0), (1.0, f64::INFINITY)] {
            assert_eq!(interval(k, n), (0.0, 1.0));
        }
    }

    #[test]
    fn planted_share_lies_inside_in_19_of_20_samples() {
        let mut rng = Rng::new(41);
        let (planted, trials) = (0.03, 1_000);
        let inside = (0..trials)
            .filter(|_| {
                let k = (0..500).filter(|_| rng.unit() < planted).count();
                let (low, high) = interval(k as f64, 500.0);
                (low..=high).contains(&planted)
            })
            .count();
        assert!(inside >= trials * 94 / 100, "{inside} of {trials}");
    }
}
