//! The incomplete beta and gamma functions: SciPy's values, a second library, and identities.

use proptest::prelude::*;
use whylate_stats::special::{beta, binomial, chi_squared_upper, gamma, normal_two_sided, poisson};

use crate::vectors::{assert_close, rows};

#[test]
fn incomplete_beta_is_scipy_s() {
    for row in rows(include_str!("../vectors/beta.csv")) {
        let (a, b, x): (f64, f64, f64) = (row.get(0), row.get(1), row.get(2));
        let tails = beta(a, b, x, 1.0 - x);
        let what = format!("I_{x}({a}, {b})");
        assert_close(&what, tails.lower, row.get(3), 1e-10);
        assert_close(&format!("1 - {what}"), tails.upper, row.get(4), 1e-10);
    }
}

#[test]
fn incomplete_gamma_is_scipy_s() {
    for row in rows(include_str!("../vectors/gamma.csv")) {
        let (a, x): (f64, f64) = (row.get(0), row.get(1));
        let tails = gamma(a, x);
        assert_close(&format!("P({a}, {x})"), tails.lower, row.get(2), 1e-10);
        assert_close(&format!("Q({a}, {x})"), tails.upper, row.get(3), 1e-10);
    }
}

#[test]
fn normal_and_chi_squared_tails_are_scipy_s() {
    for row in rows(include_str!("../vectors/tails.csv")) {
        let (name, statistic, degrees): (String, f64, u32) = (row.get(0), row.get(1), row.get(2));
        let tail = match name.as_str() {
            "normal" => normal_two_sided(statistic),
            _ => chi_squared_upper(statistic, degrees),
        };
        assert_close(&format!("{name} {statistic} {degrees}"), tail, row.get(3), 1e-12);
    }
}

/// The fraction is used below 1000 and the integral from there on: nothing may jump.
#[test]
fn both_methods_meet_where_they_change_over() {
    for z in [-4.0, -2.0, 0.0, 2.0, 4.0] {
        // Neighbouring a differ by 1e-6, so the functions differ by that times a density below 1.
        let at = |a: f64| {
            let (b, mean) = (50_000.0, 1000.0 / 51_000.0);
            let x = mean * (1.0 + z / 1000f64.sqrt());
            (beta(a, b, x, 1.0 - x).lower, gamma(a, 1000.0 + z * 1000f64.sqrt()).lower)
        };
        let (below, above) = (at(1000.0 - 1e-6), at(1000.0 + 1e-6));
        assert!((below.0 - above.0).abs() < 1e-7, "{z}: {below:?} {above:?}");
        assert!((below.1 - above.1).abs() < 1e-7, "{z}: {below:?} {above:?}");
    }
}

/// Neighbouring ranks differ by one term, at any size: P(X <= k) - P(X <= k-1) = P(X = k).
#[test]
fn cumulative_probabilities_step_by_one_term_at_any_size() {
    for (n, p) in [(100u64, 0.9), (10_000, 0.99), (1_000_000, 0.5), (1 << 40, 0.999)] {
        let q = 1.0 - p;
        let mean = n as f64 * p;
        for z in [-2.0, 0.0, 2.0] {
            let k = (mean + z * (mean * q).sqrt()) as u64;
            let term = |k: u64| binomial(n, k, p, q).lower - binomial(n, k - 1, p, q).lower;
            // P(X = k+1) / P(X = k) = (n-k) p / ((k+1) q)
            let ratio = (n - k) as f64 * p / ((k + 1) as f64 * q);
            assert_close(&format!("n {n} k {k}"), term(k + 1) / term(k), ratio, 1e-6);
        }
    }
}

proptest! {
    #[test]
    fn a_second_library_agrees_where_it_can(
        a in 0.5..60.0f64, b in 0.5..60.0f64, x in 0.001..0.999f64,
    ) {
        let tails = beta(a, b, x, 1.0 - x);
        prop_assert!((tails.lower - statrs::function::beta::beta_reg(a, b, x)).abs() < 1e-11);
        let (p, q) = (gamma(a, b).lower, gamma(a, b).upper);
        prop_assert!((p - statrs::function::gamma::gamma_lr(a, b)).abs() < 1e-11);
        prop_assert!((p + q - 1.0).abs() < 1e-15);
    }

    #[test]
    fn probabilities_are_probabilities_and_grow(
        n in 1u64..1_000_000_000_000, share in 0.0..1.0f64, p in 0.000_001..0.999_999f64,
    ) {
        let k = (share * n as f64) as u64;
        let (one, next) = (binomial(n, k, p, 1.0 - p), binomial(n, k + 1, p, 1.0 - p));
        for tails in [one, next] {
            prop_assert!((0.0..=1.0).contains(&tails.lower) && (0.0..=1.0).contains(&tails.upper));
            prop_assert!((tails.lower + tails.upper - 1.0).abs() < 1e-15);
        }
        prop_assert!(next.lower >= one.lower * (1.0 - 1e-9));
    }

    #[test]
    fn poisson_is_the_sum_of_its_terms(mean in 0.01..30.0f64, count in 0u64..40) {
        let mut term = (-mean).exp();
        let mut sum = term;
        for k in 1..=count {
            term *= mean / k as f64;
            sum += term;
        }
        prop_assert!((poisson(mean, count).lower - sum).abs() < 1e-12);
    }
}
