//! Coordinated omission: the activations that a late thread never had.
//!
//! A thread that wakes late by more than its period has passed over activations. Each of them
//! would have been late too, by its own distance to the instant at which the thread ran again: a
//! ramp that falls by one period per activation. This file yields that ramp.

use whylate_model::Nanos;

/// Activations whose lateness differs by less than this share are handed over together: far below
/// the 1/1000 of a histogram's bins, and a stall of a day at a period of 10 us takes thousands of
/// steps instead of billions.
const SHARE_ALIKE: u64 = 1 << 13;

/// The lateness of `count` activations in a row, each one `period` later in the schedule than the
/// one before, the first of them late by `first`: calls `record(lateness, how many)`.
///
/// Exact while the period is more than 1/8192 of the lateness; beyond that, neighbours share the
/// rounded mean of their lateness, so the sum stays exact to half a nanosecond each. A lateness
/// that would be negative counts as 0.
pub fn ramp(first: Nanos, period: Nanos, count: u64, mut record: impl FnMut(Nanos, u64)) {
    let mut lateness = first.0;
    let mut left = count;
    while left > 0 {
        if lateness < period.0 {
            // The last that is late at all; what follows lies after the wake-up.
            record(Nanos(lateness), 1);
            if left > 1 {
                record(Nanos(0), left - 1);
            }
            return;
        }
        let alike = (lateness / SHARE_ALIKE / period.0.max(1)).clamp(1, left);
        // No overflow: (alike - 1) * period <= lateness / 8192.
        let spread = (alike - 1) * period.0;
        record(Nanos(lateness - spread / 2), alike);
        lateness = lateness.saturating_sub(spread + period.0);
        left -= alike;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(first: u64, period: u64, count: u64) -> Vec<(u64, u64)> {
        let mut out = Vec::new();
        ramp(Nanos(first), Nanos(period), count, |value, n| out.push((value.0, n)));
        out
    }

    #[test]
    fn every_skipped_activation_is_counted_at_its_own_lateness() {
        assert_eq!(all(3_500, 1_000, 4), [(3_500, 1), (2_500, 1), (1_500, 1), (500, 1)]);
    }

    #[test]
    fn activations_after_the_wake_up_count_as_not_late() {
        assert_eq!(all(1_500, 1_000, 5), [(1_500, 1), (500, 1), (0, 3)]);
        assert_eq!(all(0, 1_000, 1), [(0, 1)]);
        assert_eq!(all(9, 1_000, 0), []);
    }

    #[test]
    fn a_stall_of_a_day_keeps_its_count_and_its_sum_in_few_steps() {
        let (period, count) = (10_000, 8_640_000_000_u64);
        let first = period * count;
        let steps = all(first, period, count);
        let n: u64 = steps.iter().map(|&(_, n)| n).sum();
        let sum: u128 = steps.iter().map(|&(v, n)| u128::from(v) * u128::from(n)).sum();
        let truth = u128::from(period) * u128::from(count) * u128::from(count + 1) / 2;
        assert_eq!(n, count);
        assert!(sum.abs_diff(truth) <= u128::from(count), "{sum} {truth}");
        assert!(steps.len() < 200_000, "{}", steps.len());
        assert!(steps.is_sorted_by(|a, b| a.0 > b.0), "the ramp falls");
    }

    #[test]
    fn a_long_ramp_lies_within_a_thousandth_of_the_true_one() {
        let (period, count) = (3, 100_000_u64);
        let mut index = 0;
        for (value, n) in all(period * count, period, count) {
            for _ in 0..n {
                let truth = period * (count - index);
                assert!(value.abs_diff(truth) * 4_096 <= truth, "{index}: {value} {truth}");
                index += 1;
            }
        }
        assert_eq!(index, count);
    }
}
