//! What adding up makes of planted gap measurements and of recordings of which a part does not count.
//!
//! Whole sums of directories are tests of the whole tool.

use whylate_model::Hertz;

use super::*;
use crate::timeline::tests::recorded;

/// A measurement whose ticks are nanoseconds.
fn measured(cpu: u32, elapsed: u64) -> GapSummary {
    GapSummary {
        cpu: CpuId(cpu),
        loop_kind: LoopKind::Pair,
        start: Ticks(500),
        end: Ticks(500 + elapsed),
        iterations: 10,
        threshold: TicksDelta(100),
        period_ticks: 5.0,
        period_spread_ticks: (4.0, 6.0),
        blocks: 2,
        gaps: 3,
        dropped: 1,
        migrations: 2,
        gap_ticks: TicksDelta(300_000),
        recording_ticks: TicksDelta(30_000),
        unseen_ticks: TicksDelta(7_000),
        closure: Closure::Holds,
        noise_below_threshold: 0.01,
        lost_share: 0.25,
        ..recorded().gaps[0].clone()
    }
}

fn share(threshold: u64, left_out: u64) -> Share {
    Share {
        series: "gap-cpu1".to_owned(),
        recorded_as: "gap-cpu1".to_owned(),
        n: 10,
        left_out,
        p50: None,
        p99: None,
        p999: None,
        max: Some(Nanos(9)),
        elapsed: Some(Nanos(1_000)),
        lost_share: Some(0.5),
        lost_share_interval: Some((0.4, 0.7)),
        threshold: Some(Nanos(threshold)),
        period_ns: Some(10.0),
        rates: Vec::new(),
        quantiles: Vec::new(),
        trust: None,
    }
}

#[test]
fn gap_measurements_add_up_field_by_field_and_means_go_by_their_weight() {
    let hz = Hertz(1e9);
    let mut sum = GapSum::of(&measured(3, 1_000_000), hz);
    let other = GapSummary {
        iterations: 30,
        threshold: TicksDelta(10_000),
        period_ticks: 9.0,
        period_spread_ticks: (3.0, 8.0),
        blocks: 5,
        gaps: 7,
        dropped: 4,
        migrations: 1,
        gap_ticks: TicksDelta(500_000),
        recording_ticks: TicksDelta(40_000),
        unseen_ticks: TicksDelta(3_000),
        closure: Closure::SumsOnly,
        noise_below_threshold: 0.02,
        lost_share: 0.05,
        ..measured(1, 3_000_000)
    };
    sum.add(GapSum::of(&other, hz));
    let mut lengths = Histogram::new();
    lengths.record_n(1_000, 5);
    lengths.record_n(20_000, 4);
    let shares = [share(100, 3), share(10_000, 4)];
    let (found, spreads) =
        sum.finish("gap-cpu1".to_owned(), &lengths, &shares.iter().collect::<Vec<_>>());
    assert_eq!((found.cpu, found.loop_kind), (CpuId(1), LoopKind::Pair));
    assert_eq!((found.start, found.end), (Ticks(0), Ticks(4_000_000)));
    assert_eq!((found.iterations, found.blocks, found.gaps), (40, 7, 10));
    assert_eq!((found.dropped, found.migrations), (5, 3));
    assert_eq!(found.threshold, TicksDelta(10_000));
    assert_eq!(found.period_spread_ticks, (3.0, 8.0));
    assert_eq!(found.gap_ticks, TicksDelta(800_000));
    assert_eq!(
        (found.recording_ticks, found.unseen_ticks),
        (TicksDelta(70_000), TicksDelta(10_000))
    );
    assert_eq!((found.closure, found.lost), (Closure::SumsOnly, Nanos(400_000)));
    for (number, expected) in [
        (found.period_ticks, (5.0 * 10.0 + 9.0 * 30.0) / 40.0),
        (found.noise_below_threshold, 0.0175),
        (found.lost_share, 0.1),
    ] {
        assert!((number - expected).abs() < 1e-12, "{number} {expected}");
    }
    // Gaps below the larger threshold are known of one of both only.
    let rates: Vec<(u64, u64)> = found.rates.iter().map(|of| (of.at_least.0, of.count)).collect();
    assert_eq!(rates, [(10_000, 4), (50_000, 0), (100_000, 0), (1_000_000, 0)]);
    assert!((found.rates[0].per_second - 1_000.0).abs() < 1e-9);
    let time = lengths.sum_above(9_999) as f64;
    let first = found.time_shares[0];
    assert_eq!((first.at_least, found.time_shares.len()), (Nanos(10_000), 3));
    assert!((first.of_elapsed - time / 4e6).abs() < 1e-12, "{first:?}");
    assert!((first.of_inside - time / 3.92e6).abs() < 1e-12, "{first:?}");
    assert_eq!(
        found.threshold_rule,
        "the largest of 2 recordings, from 100ns on; 7 stalls below it left out, and causes of the recordings they are of are counted by whole stalls"
    );
    assert_eq!(spreads.len(), 1 + found.rates.len());
    let one = [share(100, 0)];
    assert_eq!(threshold_rule(Nanos(100), &one.iter().collect::<Vec<_>>()), "100ns");
}

#[test]
fn of_two_closures_the_worse_is_that_of_the_sum_with_its_first_reason() {
    let broken = |why: &str| Closure::Broken(why.to_owned());
    for (a, b, sum) in [
        (Closure::Holds, Closure::Holds, Closure::Holds),
        (Closure::Holds, Closure::SumsOnly, Closure::SumsOnly),
        (Closure::SumsOnly, Closure::Holds, Closure::SumsOnly),
        (Closure::SumsOnly, broken("b"), broken("b")),
        (broken("a"), Closure::Holds, broken("a")),
        (broken("a"), broken("b"), broken("a")),
    ] {
        assert_eq!(worse(a, b), sum);
    }
}

#[test]
fn an_interval_from_nothing_to_all_says_nothing() {
    for (interval, says) in
        [((0.0, 1.0), false), ((0.0, 0.9), true), ((0.1, 1.0), true), ((0.1, 0.9), true)]
    {
        assert_eq!(says_something(&interval), says, "{interval:?}");
    }
}

fn quantile(percent: f64, value: u64, n_eff: f64) -> Quantile {
    Quantile { percent, value: Some(Nanos(value)), low: None, high: None, n_eff }
}

#[test]
fn what_is_left_out_of_a_recording_is_taken_off_its_share_and_becomes_noise() {
    let read = Read {
        n: 6,
        max: Some(Nanos(77)),
        quantiles: [(50.0, 20), (99.0, 30), (99.9, 40)]
            .map(|(of, at)| quantile(of, at, 8.0))
            .into(),
        left_out: 4,
        left_out_ns: 140,
    };
    let mut of = share(100, 1);
    of.quantiles = vec![quantile(50.0, 1, 5.0), quantile(99.0, 2, 20.0), quantile(99.9, 3, 5.0)];
    let mut gaps = GapSum::of(&measured(1, 1_000_000), Hertz(1e9));
    (gaps.gaps, gaps.gap, gaps.lost_ns, gaps.noise_ns) = (9, Nanos(1_000), 500.0, 7.0);
    read.correct(&mut of, Some(&mut gaps));
    assert_eq!((of.n, of.max, of.left_out), (6, Some(Nanos(77)), 5));
    assert_eq!((of.p50, of.p99, of.p999), (Some(Nanos(20)), Some(Nanos(30)), Some(Nanos(40))));
    // They are worth as much of their number as they were: half of six, all of eight, half of six.
    let worth: Vec<f64> = of.quantiles.iter().map(|of| of.n_eff).collect();
    assert_eq!(worth, [3.0, 8.0, 3.0]);
    // 140 ns less four periods of 10 were lost in them, of 1000.
    let near = |number: f64, expected: f64| assert!((number - expected).abs() < 1e-12, "{number}");
    near(of.lost_share.unwrap(), 0.4);
    let (low, high) = of.lost_share_interval.unwrap();
    near(low, 0.3);
    near(high, 0.6);
    assert_eq!((gaps.gaps, gaps.gap), (5, Nanos(860)));
    near(gaps.lost_ns, 400.0);
    near(gaps.noise_ns, 107.0);
}

#[test]
fn a_recording_of_which_all_counts_keeps_what_it_says_of_itself() {
    let read = Read {
        n: 6,
        max: Some(Nanos(77)),
        quantiles: vec![quantile(50.0, 20, 8.0)],
        left_out: 0,
        left_out_ns: 0,
    };
    let mut of = share(100, 0);
    of.quantiles = vec![quantile(50.0, 1, 5.0)];
    let before = of.clone();
    read.correct(&mut of, None);
    assert_eq!(of, before);
    // One that does not say it learns it, and nothing is taken off.
    of.quantiles.clear();
    read.correct(&mut of, None);
    assert_eq!((of.n, of.p50, of.p99), (6, Some(Nanos(20)), None));
    assert_eq!((of.quantiles.clone(), of.lost_share), (read.quantiles.clone(), Some(0.5)));
}

#[test]
fn a_series_of_a_sum_has_the_coarsest_resolution_all_losses_and_every_clock() {
    let series = |clock: &str, resolution_ns: f64, lost: u64, row: Option<&str>| Series {
        clock: clock.to_owned(),
        resolution_ns,
        lost,
        paper_row: row.map(str::to_owned),
        censored: Some(Censored { count: lost, above: Nanos(50) }),
        ..recorded().series[0].clone()
    };
    let first = series("tsc", 10.0, 3, Some("1c"));
    let mut sum = Sum::new(&first, first.name.clone());
    assert_eq!(sum.identity.label, first.label);
    sum.describe(&first);
    sum.describe(&series("raw", 8.0, 4, Some("1c")));
    sum.describe(&series("tsc", 9.0, 5, Some("1c")));
    let of = &sum.identity;
    assert_eq!(
        (of.clock.as_str(), of.lost, of.paper_row.as_deref()),
        ("raw and tsc", 12, Some("1c"))
    );
    assert!((of.resolution_ns - 10.0).abs() < 1e-12);
    assert_eq!(sum.censored, Some(Censored { count: 12, above: Nanos(50) }));
    sum.describe(&series("tsc", 9.0, 0, None));
    assert_eq!(sum.identity.paper_row, None);
    let across = Sum::new(&first, "gap".to_owned());
    assert_eq!(across.identity.label, "gaps, all CPUs");
}

#[test]
fn parts_of_a_recording_that_lie_apart_in_a_log_are_counted_together_without_their_percentiles() {
    let first = recorded().series[0].clone();
    let mut sum = Sum::new(&first, first.name.clone());
    for (origin, value, left_out) in [(0, 1_000, 1), (0, 2_000, 2), (1, 9_000, 0), (0, 1_500, 4)] {
        let values: Histogram = std::iter::repeat_n(value, 100).collect();
        let reading = sum.reading_of(origin);
        reading.values.add(&values);
        reading.dependence.add(&values);
        reading.left_out += left_out;
        reading.left_out_ns += u128::from(left_out) * 10;
    }
    sum.close();
    let of = |origin: u32| {
        let read = &sum.read[&origin];
        (read.n, read.max, read.quantiles.is_empty(), read.left_out, read.left_out_ns)
    };
    assert_eq!(of(0), (300, Some(Nanos(2_000)), true, 7, 70));
    assert_eq!(of(1), (100, Some(Nanos(9_000)), false, 0, 0));
}
