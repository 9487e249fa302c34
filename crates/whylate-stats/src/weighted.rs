//! What share of events, and of time, lies at or above x.
//!
//! A percentile over iterations weighs a gap of 64 ms like an iteration of 10 ns and says nothing
//! about noise. The time-weighted view (PAM paper, Figure 8) asks instead: at a random instant,
//! how long is the gap that the thread is in? Each gap weighs its own length, and the share is one
//! of a *named* denominator: the time elapsed, or the time inside the measured pairs.

use crate::histogram::Histogram;

/// Share of samples at or above each occupied bin, as (highest value of the bin, share), from 1
/// down to no further than 1/n.
#[must_use]
pub fn ccdf(histogram: &Histogram) -> Vec<(u64, f64)> {
    let n = histogram.len();
    let mut left = n;
    let mut point = |(value, count)| {
        let share = left as f64 / n as f64;
        left -= count;
        (value, share)
    };
    histogram.bins().map(&mut point).collect()
}

/// Share of a denominator (ns) that is spent in gaps of at least each value, as (value, share).
///
/// `bins` are (length in ns, count) in ascending order, as [`Histogram::bins`] gives them; a length
/// stands for its bin's highest value, so a share may be up to 1/1000 of itself too large. Shares
/// stop at 1. Empty when the denominator is not a positive number.
pub fn time_ccdf(
    bins: impl IntoIterator<Item = (u64, u64)>,
    denominator_ns: f64,
) -> Vec<(u64, f64)> {
    if !is_positive(denominator_ns) {
        return Vec::new();
    }
    let bins: Vec<(u64, u64)> = bins.into_iter().filter(|&(_, count)| count > 0).collect();
    let mut time = 0u128;
    let mut points: Vec<(u64, f64)> = bins
        .iter()
        .rev()
        .map(|&(value, count)| {
            time += u128::from(value) * u128::from(count);
            (value, (time as f64 / denominator_ns).min(1.0))
        })
        .collect();
    points.reverse();
    points
}

/// The length of the gap that a random instant falls into, at this percentile of all instants: the
/// smallest x such that gaps longer than x take at most `1 - percent/100` of the denominator.
///
/// 0 when all gaps together take no more than that: at this percentile the thread was running.
/// None when the denominator is not a positive number or the percentage lies outside 0..=100.
pub fn time_weighted_percentile(
    bins: impl IntoIterator<Item = (u64, u64)>,
    denominator_ns: f64,
    percent: f64,
) -> Option<u64> {
    if !is_positive(denominator_ns) || !(0.0..=100.0).contains(&percent) {
        return None;
    }
    let allowed = (100.0 - percent) / 100.0 * denominator_ns;
    let bins: Vec<(u64, u64)> = bins.into_iter().filter(|&(_, count)| count > 0).collect();
    let mut longer = 0u128;
    for &(value, count) in bins.iter().rev() {
        longer += u128::from(value) * u128::from(count);
        if longer as f64 > allowed {
            return Some(value);
        }
    }
    Some(0)
}

fn is_positive(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 900 gaps of 1 us and one of 100 us in 10 ms.
    const BINS: [(u64, u64); 2] = [(1_000, 900), (100_000, 1)];
    const ELAPSED: f64 = 10_000_000.0;

    #[test]
    fn time_share_weighs_each_gap_by_its_length() {
        assert_eq!(time_ccdf(BINS, ELAPSED), [(1_000, 0.1), (100_000, 0.01)]);
        assert_eq!(time_ccdf(BINS, 0.0), []);
        assert_eq!(time_ccdf(BINS, f64::NAN), []);
    }

    #[test]
    fn time_percentile_is_the_gap_at_a_random_instant() {
        let at = |percent| time_weighted_percentile(BINS, ELAPSED, percent);
        assert_eq!(at(50.0), Some(0));
        assert_eq!(at(90.0), Some(0));
        assert_eq!(at(91.0), Some(1_000));
        assert_eq!(at(98.9), Some(1_000));
        assert_eq!(at(99.1), Some(100_000));
        assert_eq!(at(100.0), Some(100_000));
        assert_eq!(at(100.1), None);
        assert_eq!(time_weighted_percentile([], ELAPSED, 99.9), Some(0));
        assert_eq!(time_weighted_percentile(BINS, 0.0, 99.9), None);
    }

    #[test]
    fn ccdf_begins_at_one_and_ends_at_one_sample() {
        let histogram: Histogram = (1..=4).collect();
        assert_eq!(ccdf(&histogram), [(1, 1.0), (2, 0.75), (3, 0.5), (4, 0.25)]);
        assert_eq!(ccdf(&Histogram::new()), []);
    }
}
