//! Rates of rare events: exact intervals, none seen included, and are two rates different.

use crate::{bootstrap, special};

/// What may lie outside on each side of a 95 % interval.
const TAIL: f64 = 0.025;

/// What may lie above the bound when nothing was seen: there is no lower side.
const ONE_TAIL: f64 = 0.05;

/// The exact 95 % interval of a rate, events per unit of `time` (Garwood 1936).
///
/// ```text
/// low  : P(Poisson(low T)  >= count) = 0.025      high : P(Poisson(high T) <= count) = 0.025
/// ```
///
/// Nothing seen: (0, 2.996/T), one-sided, since exp(-2.996) = 0.05: the "rule of three". Nothing is
/// known when `time` is not a positive number: (0, infinity).
#[must_use]
pub fn poisson_interval(count: u64, time: f64) -> (f64, f64) {
    if !(time.is_finite() && time > 0.0) {
        return (0.0, f64::INFINITY);
    }
    if count == 0 {
        return (0.0, -ONE_TAIL.ln() / time);
    }
    let low = mean_with(count as f64, |mean| special::poisson(mean, count - 1).upper - TAIL);
    let high = mean_with(count as f64, |mean| TAIL - special::poisson(mean, count).lower);
    (low / time, high / time)
}

/// The 95 % interval of a rate whose events may come in bursts: `count` in `time`, of which
/// `by_interval` are those of equal intervals of time in order.
///
/// Block bootstrap of the mean over the intervals ([`bootstrap::of_mean`]), and to each side at
/// least as wide as [`poisson_interval`]: intervals that happen to be more even than chance allows
/// are no evidence of regularity. That one it is, too, when no event was seen, and when there are
/// fewer than two intervals: nothing is known of bursts then.
#[must_use]
pub fn clustered_interval(count: u64, time: f64, by_interval: &[u64], seed: u64) -> (f64, f64) {
    let (low, high) = poisson_interval(count, time);
    let counts: Vec<f64> = by_interval.iter().map(|count| *count as f64).collect();
    let mean = bootstrap::mean(&counts);
    let clustered = bootstrap::of_mean(&counts, seed);
    if count == 0 || !clustered.is_bounded() || mean <= 0.0 || !high.is_finite() {
        return (low, high);
    }
    // What lies beyond the last whole interval is in the rate, and takes its spread from the rest.
    let rate = count as f64 / time;
    let end = |of_mean: f64| (rate * of_mean / mean).max(0.0);
    (low.min(end(clustered.low)), high.max(end(clustered.high)))
}

/// Rule R4: the two-sided p-value of "both rates are equal", given counts over times.
///
/// Given the sum of the counts, the first one is binomial with share `time_a / (time_a + time_b)`
/// (Przyborowski and Wilenski 1940); the smaller exact tail, doubled. 1 when there are no events or
/// a time is not a positive number: nothing speaks against equality. Events in bursts are not
/// independent and make p too small: count bursts, or compare intervals by [`crate::bootstrap`].
#[must_use]
pub fn rates_differ(count_a: u64, time_a: f64, count_b: u64, time_b: f64) -> f64 {
    let usable = |time: f64| time.is_finite() && time > 0.0;
    let both = count_a.saturating_add(count_b);
    if both == 0 || !usable(time_a) || !usable(time_b) {
        return 1.0;
    }
    let (p, q) = (time_a / (time_a + time_b), time_b / (time_a + time_b));
    let at_most = special::binomial(both, count_a, p, q).lower;
    let at_least = match count_a.checked_sub(1) {
        Some(below) => special::binomial(both, below, p, q).upper,
        None => 1.0,
    };
    (2.0 * at_most.min(at_least)).min(1.0)
}

/// The mean, near `count`, at which an increasing function of it crosses 0.
fn mean_with(count: f64, above: impl Fn(f64) -> f64) -> f64 {
    // The ends lie within 2 standard deviations; 6, and 10 events, enclose them for any count.
    let reach = 6.0 * count.sqrt() + 10.0;
    let (mut low, mut high) = ((count - reach).max(0.0), count + reach);
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return middle;
        }
        *(if above(middle) > 0.0 { &mut high } else { &mut low }) = middle;
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these results are exact")]
mod tests {
    use super::*;

    #[test]
    fn no_event_in_a_minute_bounds_the_rate_by_three_over_sixty() {
        let (low, high) = poisson_interval(0, 60.0);
        assert_eq!(low, 0.0);
        assert!(high < 3.0 / 60.0 && high > 2.99 / 60.0, "{high}");
    }

    #[test]
    fn bursts_widen_the_interval_and_evenness_does_not_narrow_it() {
        let bursts: Vec<u64> = (0..60).map(|n| if n % 10 == 3 { 500 } else { 0 }).collect();
        let (low, high) = clustered_interval(3_000, 60.0, &bursts, 1);
        let (poisson_low, poisson_high) = poisson_interval(3_000, 60.0);
        assert!(low < 25.0 && high > 80.0, "{low}..{high}");
        assert!(
            low >= 0.0
                && (poisson_low, poisson_high) == clustered_interval(3_000, 60.0, &[50; 60], 1)
        );
        assert_eq!(clustered_interval(0, 60.0, &[0; 60], 1), poisson_interval(0, 60.0));
        assert_eq!(clustered_interval(7, 60.0, &[7], 1), poisson_interval(7, 60.0));
    }

    #[test]
    fn without_time_nothing_is_known() {
        for time in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(poisson_interval(5, time), (0.0, f64::INFINITY));
            assert_eq!(rates_differ(5, time, 5, 1.0), 1.0);
        }
    }

    #[test]
    fn equal_rates_are_not_told_apart_and_unequal_ones_are() {
        assert_eq!(rates_differ(10, 1.0, 10, 1.0), 1.0);
        assert!(rates_differ(10, 1.0, 100, 10.0) > 0.5);
        assert!(rates_differ(10, 1.0, 10, 10.0) < 1e-4);
        assert!(rates_differ(0, 10.0, 3, 10.0) > 0.2);
        assert!(rates_differ(0, 10.0, 30, 10.0) < 1e-8);
        assert_eq!(rates_differ(0, 1.0, 0, 1.0), 1.0);
    }
}
