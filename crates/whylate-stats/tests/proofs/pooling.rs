//! What must hold of any histogram and any sample, whatever is in it.

use proptest::collection::vec;
use proptest::prelude::*;
use whylate_stats::Histogram;
use whylate_stats::bootstrap::{RESAMPLES, block_bootstrap, mean};
use whylate_stats::dependence::{
    Exceedances, effective_n, effective_n_of_bin, effective_n_of_series,
};
use whylate_stats::histogram::HIGHEST_NS;
use whylate_stats::quantile::{PERCENTS, Ranks, estimate, estimates, ranks};
use whylate_stats::weighted::{ccdf, time_ccdf, time_weighted_percentile};

/// Values over all magnitudes, with ties, zeros and the end of the range among them.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => (0u32..42, any::<u64>()).prop_map(|(bits, v)| (v & ((1 << bits) - 1)).min(HIGHEST_NS)),
        2 => 0u64..30,
        1 => Just(HIGHEST_NS),
    ]
}

fn values() -> impl Strategy<Value = Vec<u64>> {
    vec(value(), 1..400)
}

fn of(values: &[u64]) -> Histogram {
    values.iter().copied().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn merge_is_the_pooled_raw_samples(parts in vec(values(), 0..5)) {
        let mut merged = Histogram::new();
        for part in &parts {
            merged.add(&of(part));
        }
        prop_assert_eq!(merged, of(&parts.concat()));
    }

    #[test]
    fn every_value_is_kept_within_a_thousandth(value in value()) {
        let bin = of(&[value]).bin_of(value);
        prop_assert!(bin >= value && (bin - value) as f64 <= value as f64 / 1000.0);
    }

    #[test]
    fn order_statistics_are_the_sorted_samples(values in values(), share in 0.0..=1.0f64) {
        let (histogram, mut sorted) = (of(&values), values.clone());
        sorted.sort_unstable();
        let rank = ((share * values.len() as f64) as u64 + 1).min(values.len() as u64);
        let (got, exact) = (histogram.rank_value(rank).unwrap(), sorted[rank as usize - 1]);
        prop_assert!(got >= exact && (got - exact) as f64 <= exact as f64 / 1000.0);
    }

    #[test]
    fn minimum_median_mean_and_maximum_fit_together(values in values()) {
        let h = of(&values);
        let n = h.len() as f64;
        let [min, p50, max] = [h.min(), h.value_at(50.0), h.max()].map(|v| v.unwrap() as f64);
        prop_assert!(min <= p50 && p50 <= max);
        let mean = h.mean().unwrap();
        prop_assert!(min <= mean && mean <= max);
        // What a sample with this minimum, median and maximum can have as its mean: the bin of the
        // median names its highest value, which may be a thousandth too large.
        let median_low = p50 * 0.999;
        let below = (h.len() - h.count_at_least(p50 as u64)) as f64;
        let above = h.count_above(p50 as u64) as f64;
        let least = (below * min + (n - below) * median_low.max(min)) / n;
        let most = ((n - above) * p50 + above * max) / n;
        prop_assert!(least * 0.999_999 <= mean && mean <= most * 1.000_001, "{least} {mean} {most}");
    }

    #[test]
    fn quantiles_grow_with_the_percentage(
        values in values(), a in 0.0..=100.0f64, b in 0.0..=100.0f64,
    ) {
        let h = of(&values);
        prop_assert!(h.value_at(a.min(b)) <= h.value_at(a.max(b)));
        prop_assert_eq!((h.value_at(0.0), h.value_at(100.0)), (h.min(), h.max()));
    }

    #[test]
    fn intervals_contain_the_estimate_and_refusal_is_whole(
        values in values(), copies in 1u64..2000, worth in 0.0..1.2f64,
    ) {
        let mut h = Histogram::new();
        for &value in &values {
            h.record_n(value, copies);
        }
        let n_eff = worth * h.len() as f64;
        for e in estimates(&h, |_| n_eff) {
            prop_assert!(e.n_eff >= 1.0 && e.n_eff <= h.len() as f64);
            prop_assert_eq!(e.value.is_some(), e.high.is_some());
            prop_assert_eq!(e.is_supported(), e.high.is_some());
            if let (Some(value), Some(high)) = (e.value, e.high) {
                prop_assert!(e.low.is_none_or(|low| low <= value) && value <= high, "{:?}", e);
            }
        }
    }

    #[test]
    fn fewer_independent_samples_never_narrow_the_interval(
        n in 1u64..1_000_000_000, worth in 0.000_1..1.0f64, which in 0usize..7,
    ) {
        let p = PERCENTS[which] / 100.0;
        let m = ((n as f64 * worth) as u64).max(1);
        let (all, some) = (ranks(n, p), ranks(m, p));
        // Unsupported with all of them stays unsupported with some.
        prop_assert!(all.high.is_some() || some.high.is_none());
        prop_assert!(all.low.is_some() || some.low.is_none());
        for r in [(n, all), (m, some)] {
            prop_assert!(r.1.low.is_none_or(|low| low as f64 <= r.0 as f64 * p + 1.0));
            prop_assert!(r.1.high.is_none_or(|high| high as f64 >= r.0 as f64 * p));
        }
    }

    #[test]
    fn counts_and_sums_split_at_any_value(values in values(), at in value()) {
        let h = of(&values);
        let bin = h.bin_of(at);
        let above = values.iter().filter(|&&v| v > bin).count() as u64;
        let same = values.iter().filter(|&&v| h.bin_of(v) == bin).count() as u64;
        // At the exact ends a value is told from others of its bin; else the bin is one.
        let ends = [h.min(), h.max()].map(|end| h.bin_of(end.unwrap()));
        prop_assert!(h.count_above(at) == above || ends.contains(&bin));
        prop_assert!(h.count_at_least(at) == above + same || ends.contains(&bin));
        prop_assert!(h.count_above(at) <= h.count_at_least(at));
        let mut places = values.clone();
        places.push(at);
        places.sort_unstable();
        let each: Vec<u64> = places.iter().map(|&place| h.count_above(place)).collect();
        prop_assert_eq!(h.counts_above(&places), each);
        let exact: u128 = values.iter().filter(|&&v| v > bin).map(|&v| u128::from(v)).sum();
        if h.count_above(at) == above {
            let off = h.sum_above(at).abs_diff(exact) as f64;
            prop_assert!(off <= exact as f64 / 1000.0 + 1.0, "{} {}", h.sum_above(at), exact);
        }
        prop_assert!(h.sum_above(at) <= h.sum());
        prop_assert_eq!(h.sum(), values.iter().map(|&v| u128::from(v)).sum::<u128>());
    }

    #[test]
    fn shares_fall_from_one_to_one_sample(values in values()) {
        let h = of(&values);
        let points = ccdf(&h);
        prop_assert!(points[0].1 >= 1.0);
        prop_assert!(points.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 > w[1].1));
        prop_assert!(points[points.len() - 1].1 * h.len() as f64 > 0.999_999);
        prop_assert_eq!(points[points.len() - 1].0, h.max().unwrap());
    }

    #[test]
    fn time_shares_and_time_percentiles_tell_the_same(values in values(), slack in 1.0..9.0f64) {
        let h = of(&values);
        let denominator = (h.sum() as f64 * slack * 1.001).max(1.0);
        let points = time_ccdf(h.bins(), denominator);
        prop_assert!(points.windows(2).all(|w| w[0].1 >= w[1].1));
        for percent in PERCENTS {
            let at = time_weighted_percentile(h.bins(), denominator, percent).unwrap();
            // Gaps longer than it take no more than is allowed; it and longer ones take more.
            let longer = points.iter().find(|p| p.0 > at).map_or(0.0, |p| p.1);
            prop_assert!(longer <= (100.0 - percent) / 100.0 * 1.000_000_1);
            if at > 0 {
                let from = points.iter().find(|p| p.0 >= at).unwrap().1;
                prop_assert!(from >= (100.0 - percent) / 100.0 * 0.999_999_9);
            }
        }
    }

    #[test]
    fn effective_size_lies_between_one_and_n(
        counts in vec((0u64..50, 0u64..50), 0..40),
        series in vec(0u8..5, 1..300), threshold in 0u8..5,
    ) {
        let n = counts.iter().map(|c| c.1).sum::<u64>();
        let n_eff = effective_n(n, &counts);
        prop_assert!(n_eff <= n as f64 && (n_eff >= 1.0 || n == 0), "{}", n_eff);
        let series: Vec<f64> = series.into_iter().map(f64::from).collect();
        let n_eff = effective_n_of_series(&series, f64::from(threshold));
        prop_assert!((1.0..=series.len() as f64).contains(&n_eff), "{}", n_eff);
    }

    #[test]
    fn sums_of_exceedances_match_their_counts(parts in vec(values(), 1..8), which in 0usize..4) {
        let (mut all, mut sums) = (Histogram::new(), Exceedances::new());
        let parts: Vec<Histogram> = parts.iter().map(|part| of(part)).collect();
        for part in &parts {
            all.add(part);
            sums.add(part);
        }
        let value = all.bin_of(all.value_at(PERCENTS[which]).unwrap());
        // An interval's own extremes must not count apart from its bin.
        let from = |h: &Histogram, least: u64| {
            h.bins().filter(|b| h.bin_of(b.0) >= least).map(|b| b.1).sum()
        };
        let counts: Vec<(u64, u64, u64)> =
            parts.iter().map(|h| (from(h, value + 1), from(h, value), h.len())).collect();
        let direct = effective_n_of_bin(all.len(), &counts);
        let summed = sums.effective_n(&all, PERCENTS[which]);
        prop_assert!((direct / summed - 1.0).abs() < 1e-6, "{} {}", direct, summed);
    }

    #[test]
    fn bootstrap_of_constant_blocks_contains_their_mean(
        value in -1e9..1e9f64, blocks in 2usize..60, seed in any::<u64>(),
    ) {
        let blocks = vec![value; blocks];
        let interval = block_bootstrap(&blocks, mean, seed, 200);
        prop_assert!(interval.contains(mean(&blocks)));
        prop_assert!(interval.half_width() <= value.abs() * 1e-12);
    }

    #[test]
    fn bootstrap_interval_lies_inside_the_blocks(
        blocks in vec(-1e6..1e6f64, 2..50), seed in any::<u64>(),
    ) {
        let interval = block_bootstrap(&blocks, mean, seed, 100);
        let least = blocks.iter().copied().fold(f64::INFINITY, f64::min);
        let most = blocks.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        prop_assert!(interval.low <= interval.high);
        prop_assert!(least - 1e-6 <= interval.low && interval.high <= most + 1e-6);
    }
}

#[test]
fn percentile_without_support_is_refused_not_the_maximum_in_disguise() {
    let n: Histogram = (0..367).collect();
    let refused = estimate(&n, 99.0, 367.0);
    assert_eq!((refused.value, refused.high, refused.is_supported()), (None, None, false));
    // That much is known: it is not below this.
    assert!(refused.low.is_some());
    let enough: Histogram = (0..368).collect();
    let shown = estimate(&enough, 99.0, 368.0);
    assert_eq!((shown.value, shown.high), (Some(364), Some(367)));
    // The same samples in bursts are worth fewer.
    assert_eq!(estimate(&enough, 99.0, 300.0).value, None);
    assert_eq!(estimate(&enough, 99.0, f64::NAN).value, None);
    assert_eq!(estimate(&Histogram::new(), 99.0, 0.0).value, None);
}

#[test]
fn interval_of_dependent_samples_is_that_of_fewer_stretched_outwards() {
    // 100 independent values: ranks 40 and 61. Each stands for 10.05 of the 1005 samples.
    assert_eq!(ranks(100, 0.5), Ranks { low: Some(40), high: Some(61) });
    let h: Histogram = (1..=1_005).collect();
    let e = estimate(&h, 50.0, 100.9);
    assert_eq!((e.low, e.value, e.high), (Some(392), Some(503), Some(614)));
}

#[test]
fn what_shares_the_bin_of_a_value_is_not_above_it() {
    // 10 001 and 10 003 share a bin of eight.
    let h = of(&[5, 10_003, 20_000, 40_000]);
    assert_eq!((h.count_above(10_001), h.count_at_least(10_001)), (2, 3));
    assert_eq!((h.count_above(10_007), h.count_at_least(10_007)), (2, 3));
    assert_eq!((h.count_above(9_999), h.count_at_least(10_008)), (3, 2));
    assert_eq!((h.count_above(4), h.count_at_least(5)), (4, 4));
    assert_eq!((h.count_above(40_000), h.count_at_least(40_001)), (0, 0));
}

#[test]
fn rank_of_a_percentile_has_no_rounding_error() {
    // 99.9 / 100 * 1000 is 999.0000000000001 in binary.
    let thousand: Histogram = (1..=1_000).collect();
    assert_eq!(thousand.value_at(99.9), Some(999));
    let million: Histogram = (1..=2_000).collect();
    assert_eq!(million.value_at(99.95), Some(1_999));
}

#[test]
#[should_panic(expected = "99.9 is not a fraction")]
fn a_percentage_in_place_of_a_fraction_is_told() {
    let _ = ranks(1_000, 99.9);
}

#[test]
fn values_above_an_hour_are_counted_in_the_top_bin_and_told() {
    let mut h = of(&[5, HIGHEST_NS, HIGHEST_NS + 1, 86_400_000_000_000]);
    assert_eq!((h.len(), h.saturated(), h.max()), (4, 2, Some(86_400_000_000_000)));
    assert_eq!(h.count_above(HIGHEST_NS / 2), 3);
    assert_eq!(h.value_at(100.0), Some(86_400_000_000_000));
    h.clear();
    assert_eq!(h, Histogram::new());
    assert_eq!((h.min(), h.max(), h.mean(), h.value_at(50.0)), (None, None, None, None));
}

#[test]
fn bootstrap_default_keeps_noise_out_of_the_ends() {
    let blocks: Vec<f64> = (0..60).map(|i| f64::from(i * 7 % 60)).collect();
    let widths: Vec<f64> =
        (0..20).map(|seed| block_bootstrap(&blocks, mean, seed, RESAMPLES).half_width()).collect();
    let spread = widths.iter().copied().fold(0.0, f64::max)
        / widths.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(spread < 1.2, "{spread}");
}

#[test]
fn what_lies_above_nothing_at_all_is_the_sum_however_a_double_rounds_it() {
    let mut values = of(&[0]);
    values.record_n(577_390_037, 612_178_002);
    assert_eq!(values.sum_above(1_000), values.sum());
}
