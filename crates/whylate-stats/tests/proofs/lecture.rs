//! The two tables of time-stamp counter deltas in the measurement lecture, and what METHOD makes
//! of them: the PAM paper's Table 1 prints 11 ns and 9 ns where the data say 10 and 10.

use whylate_stats::class::{Class, class};
use whylate_stats::quantile::estimate;
use whylate_stats::weighted::{ccdf, time_ccdf, time_weighted_percentile};
use whylate_stats::{Histogram, snr};

use crate::vectors::rows;

const USER: &str = include_str!("../vectors/tsc_user.csv");
const KERNEL: &str = include_str!("../vectors/tsc_kernel.csv");
const HOUR_NS: f64 = 3.6e12;

fn table(file: &str) -> Histogram {
    let mut histogram = Histogram::new();
    for row in rows(file) {
        histogram.record_n(row.get(0), row.get(1));
    }
    histogram
}

#[test]
fn user_space_p999_is_10_ns() {
    let user = table(USER);
    assert_eq!(user.len(), 91_429_511_238);
    assert_eq!(user.value_at(50.0), Some(10));
    assert_eq!(user.value_at(99.9), Some(10));
    assert_eq!(user.value_at(99.999), Some(11));
    assert_eq!(user.max(), Some(10_869));
}

#[test]
fn kernel_p50_is_9_ns_and_p999_is_10_ns() {
    let kernel = table(KERNEL);
    assert_eq!(kernel.value_at(50.0), Some(9));
    assert_eq!(kernel.value_at(99.9), Some(10));
    assert_eq!((kernel.min(), kernel.max()), (Some(9), Some(1_982)));
}

#[test]
fn with_91_billion_samples_every_percentile_is_supported_and_sharp() {
    let user = table(USER);
    for percent in [50.0, 99.0, 99.9, 99.99] {
        let estimate = estimate(&user, percent, user.len() as f64);
        assert_eq!((estimate.low, estimate.high), (estimate.value, estimate.value), "{percent}");
    }
}

#[test]
fn one_event_is_the_end_of_the_ccdf() {
    let user = table(USER);
    let points = ccdf(&user);
    assert_eq!(points.len(), 7);
    let (value, share) = points[6];
    assert_eq!(value, 10_869);
    assert!((share * user.len() as f64 - 1.0).abs() < 1e-9);
}

#[test]
fn time_shares_depend_on_the_denominator_and_name_it() {
    let user = table(USER);
    let of_the_hour = time_ccdf(user.bins(), HOUR_NS);
    let of_the_pairs = time_ccdf(user.bins(), user.sum() as f64);
    let above_1_us = |points: &[(u64, f64)]| {
        points.iter().find(|(value, _)| *value >= 1_097).map(|(_, share)| *share).unwrap()
    };
    // 10 768 times 1 097 ns and once 10 869 ns: 11.8 ms.
    assert!((above_1_us(&of_the_hour) - 11.823e6 / HOUR_NS).abs() < 1e-9);
    assert!((above_1_us(&of_the_pairs) - 11.823e6 / user.sum() as f64).abs() < 1e-8);
    assert!(of_the_pairs[0].1 > 0.999);
}

#[test]
fn iterations_say_good_and_so_does_time_on_this_quiet_host() {
    let user = table(USER);
    let by_time = time_weighted_percentile(user.bins(), user.sum() as f64, 99.9).unwrap();
    assert_eq!(class(user.value_at(99.9).unwrap()), Class::Good);
    assert_eq!(class(by_time), Class::Good);
    // 57 ms of 914 s lie above 10 ns.
    assert_eq!(by_time, 10);
}

#[test]
fn almost_five_percent_of_an_hour_cannot_be_364_events_of_at_most_64_ms() {
    let events = [(64_000_000, 364)];
    let of_the_hour = time_ccdf(events, HOUR_NS)[0].1;
    assert!((of_the_hour - 0.0065).abs() < 0.0001, "{of_the_hour}");
    // Against the time inside the pairs, 22 G of 12 ns, it can.
    assert!(time_ccdf(events, 22e9 * 12.0)[0].1 > 0.05);
}

#[test]
fn ties_lift_the_ratio_by_count_and_time_tells_more() {
    let user = table(USER);
    let above = 404_700 + 268_521 + 268_291 + 267_465 + 10_768 + 1;
    let count = snr::by_count(&user).unwrap();
    assert!((count - 91_428_291_492.0 / f64::from(above)).abs() < 1e-6);
    assert!(snr::by_time(&user).unwrap() < count);
}
