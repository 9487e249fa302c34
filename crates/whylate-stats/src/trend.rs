//! Do samples rise from group to group?
//!
//! The test of Jonckheere (1954) and Terpstra (1952) against ordered alternatives: of all pairs of
//! values from two groups it counts those that rise and those that fall. It asks for an order of the
//! groups and for nothing of their shape, and it needs no group to be larger than the one before by a
//! given amount. Values must be independent of each other.

use std::cmp::Ordering;

use crate::special;

/// What the test found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Pairs that rise less pairs that fall, over all groups in their order.
    pub rising: f64,
    /// Variance of that where the groups do not differ, ties accounted for.
    pub variance: f64,
    /// `rising` in standard deviations: above zero it rises.
    pub z: f64,
    /// Probability of a `z` at least as far from zero, on either side, where the groups do not differ
    /// (by the normal distribution: good from about five values a group).
    pub p_value: f64,
}

/// The trend over groups in this order. None with fewer than two groups that hold something, with a
/// value that is not a number, or where all values are the same.
#[must_use]
pub fn jonckheere_terpstra(groups: &[Vec<f64>]) -> Option<Trend> {
    let groups: Vec<&Vec<f64>> = groups.iter().filter(|group| !group.is_empty()).collect();
    let mut all: Vec<f64> = groups.iter().flat_map(|group| group.iter().copied()).collect();
    if groups.len() < 2 || all.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut rising = 0.0;
    for (index, group) in groups.iter().enumerate() {
        for later in groups.iter().skip(index + 1).flat_map(|later| later.iter()) {
            for value in *group {
                rising += f64::from(i8::from(later > value) - i8::from(later < value));
            }
        }
    }
    all.sort_unstable_by(f64::total_cmp);
    let sizes: Vec<f64> = groups.iter().map(|group| group.len() as f64).collect();
    // Zeros of either sign are one value.
    let same = |a: &f64, b: &f64| a.partial_cmp(b).is_some_and(Ordering::is_eq);
    let ties: Vec<f64> = all.chunk_by(same).map(|equal| equal.len() as f64).collect();
    if ties.len() < 2 {
        return None;
    }
    let variance = variance(all.len() as f64, &sizes, &ties);
    let z = rising / variance.sqrt();
    Some(Trend { rising, variance, z, p_value: special::normal_two_sided(z) })
}

/// Variance of Kendall's S over `n` values in groups of these sizes with ties of these lengths.
fn variance(n: f64, sizes: &[f64], ties: &[f64]) -> f64 {
    let fives = |of: f64| of * (of - 1.0) * (2.0 * of + 5.0);
    let twos = |of: f64| of * (of - 1.0);
    let threes = |of: f64| of * (of - 1.0) * (of - 2.0);
    let sum = |of: &[f64], term: fn(f64) -> f64| of.iter().map(|value| term(*value)).sum::<f64>();
    let main = (fives(n) - sum(sizes, fives) - sum(ties, fives)) / 18.0;
    let both = sum(sizes, twos) * sum(ties, twos) / (2.0 * twos(n));
    let third = match threes(n) {
        0.0 => 0.0,
        all => sum(sizes, threes) * sum(ties, threes) / (9.0 * all),
    };
    main + both + third
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_example_of_hollander_and_wolfe_is_exact() {
        // "Nonparametric Statistical Methods", table 6.6: output after no, rough and accurate
        // information. J = 79 of 108 pairs, and without its ties a variance of 153: z = 2.02.
        let groups = [
            vec![40.0, 35.0, 38.0, 43.0, 44.0, 41.0],
            vec![38.0, 40.0, 47.0, 44.0, 40.0, 42.0],
            vec![48.0, 40.0, 45.0, 43.0, 46.0, 44.0],
        ];
        let found = jonckheere_terpstra(&groups).unwrap();
        let j = f64::midpoint(108.0, found.rising);
        assert!((j - 79.0).abs() < 1e-12, "{found:?}");
        assert!((variance(18.0, &[6.0; 3], &[1.0; 18]) - 4.0 * 153.0).abs() < 1e-9);
        assert!((found.rising / 612.0_f64.sqrt() - 2.02).abs() < 0.005);
        // Ties narrow it: 4 x 150.286.
        assert!((found.variance - 4.0 * 150.286).abs() < 0.01, "{found:?}");
        let back: Vec<Vec<f64>> = groups.into_iter().rev().collect();
        let falls = jonckheere_terpstra(&back).unwrap();
        assert!((falls.z + found.z).abs() < 1e-12 && (falls.p_value - found.p_value).abs() < 1e-12);
    }

    #[test]
    fn groups_that_do_not_differ_are_found_to_in_one_of_twenty_cases() {
        let mut rng = Rng::new(9);
        let shown = (0..1_000)
            .filter(|_| {
                let mut group = || (0..15).map(|_| rng.exponential(1.0)).collect::<Vec<f64>>();
                let groups = [group(), group(), group(), group()];
                jonckheere_terpstra(&groups).unwrap().p_value < 0.05
            })
            .count();
        assert!((30..=70).contains(&shown), "{shown} of 1000");
    }

    #[test]
    fn one_group_equal_values_and_nonsense_have_no_trend() {
        let one = vec![1.0, 2.0];
        for groups in [
            vec![],
            vec![one.clone()],
            vec![one.clone(), vec![]],
            vec![vec![3.0; 4], vec![3.0; 4]],
            vec![one, vec![f64::NAN]],
        ] {
            assert_eq!(jonckheere_terpstra(&groups), None, "{groups:?}");
        }
        let two = jonckheere_terpstra(&[vec![1.0], vec![2.0]]).unwrap();
        assert!((two.rising - 1.0).abs() < 1e-12 && two.p_value > 0.3, "{two:?}");
    }
}
