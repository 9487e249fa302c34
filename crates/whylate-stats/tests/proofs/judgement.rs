//! What judges instruments and boxes: error curves, limits of trust, bounds, slopes. The truth is planted.

use proptest::collection::vec;
use proptest::prelude::*;
use whylate_stats::Histogram;
use whylate_stats::bounds::{BoundsAt, Side, bounds};
use whylate_stats::dependence::Exceedances;
use whylate_stats::difference::Differences;
use whylate_stats::error_curve::{compensated, error_curve};
use whylate_stats::order::{Order, SignedHistogram, Sorted};
use whylate_stats::quantile::PERCENTS;
use whylate_stats::rng::Rng;
use whylate_stats::sample::Sample;
use whylate_stats::slope::{least_squares, theil_sen};
use whylate_stats::trust_limit::{EndedBy, trust_limit};

const INDEPENDENT: fn(f64) -> f64 = |_| f64::INFINITY;

/// How the time in the box and the client's own share hang together: from one uniform number to the
/// other.
#[derive(Debug, Clone, Copy)]
enum Together {
    Not,
    Rising,
    Falling,
    /// One half of the packets rising, the other independent.
    Halves,
}

impl Together {
    const ALL: [Self; 4] = [Self::Not, Self::Rising, Self::Falling, Self::Halves];

    fn other(self, u: f64, rng: &mut Rng) -> f64 {
        let fresh = rng.unit();
        match self {
            Self::Rising => u,
            Self::Falling => 1.0 - u,
            Self::Halves if rng.unit() < 0.5 => u,
            Self::Not | Self::Halves => fresh,
        }
    }
}

/// Quantile functions, ns at a fraction.
#[derive(Debug, Clone, Copy)]
struct Law {
    base: f64,
    scale: f64,
    /// Exponent of a Pareto tail; none for an exponential one.
    tail: Option<f64>,
}

impl Law {
    fn at(self, u: f64) -> f64 {
        let rest = (1.0 - u).max(1e-12);
        self.base
            + self.scale
                * match self.tail {
                    None => -rest.ln(),
                    Some(index) => rest.powf(-1.0 / index) - 1.0,
                }
    }
}

const BOX: [Law; 2] = [
    Law { base: 4_000.0, scale: 1_500.0, tail: None },
    Law { base: 4_000.0, scale: 1_500.0, tail: Some(1.2) },
];
const REST: [Law; 2] = [
    Law { base: 2_000.0, scale: 500.0, tail: None },
    Law { base: 2_000.0, scale: 500.0, tail: Some(1.2) },
];
const OF_BOUNDS: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

fn through(time: Law, rest: Law, together: Together, n: usize, rng: &mut Rng) -> Vec<i64> {
    let one = |_| {
        let u = rng.unit();
        (time.at(u) + rest.at(together.other(u, rng))).round() as i64
    };
    (0..n).map(one).collect()
}

fn alone(rest: Law, n: usize, rng: &mut Rng) -> Vec<i64> {
    (0..n).map(|_| rest.at(rng.unit()).round() as i64).collect()
}

/// Do the bounds hold the true quantile? Values were rounded to whole nanoseconds.
fn holds(at: &BoundsAt, time: Law) -> bool {
    let truth = time.at(at.percent / 100.0);
    at.low_ns.is_none_or(|low| low <= truth + 1.0)
        && at.high_ns.is_none_or(|high| high >= truth - 1.0)
}

#[test]
fn bounds_hold_the_truth_in_100_of_100_trials_however_parts_depend_on_each_other() {
    for together in Together::ALL {
        for (time, rest) in BOX.into_iter().flat_map(|time| REST.map(|rest| (time, rest))) {
            let held = (0..100).filter(|&number| {
                let mut rng = Rng::stream(41, number);
                let measured = Sorted::new(through(time, rest, together, 20_000, &mut rng));
                let error = Sorted::new(alone(rest, 20_000, &mut rng));
                let (m, e) = (Side::independent(&measured), Side::independent(&error));
                let found = bounds(m, rest.base, e, &OF_BOUNDS, 0.95);
                let said = |at: &BoundsAt| {
                    at.high_ns.is_some() && (at.percent > 99.5 || at.low_ns.is_some())
                };
                assert!(found.iter().all(said), "{together:?}: {found:?}");
                found.iter().all(|at| holds(at, time))
            });
            assert_eq!(held.count(), 100, "{together:?} {time:?} {rest:?}");
        }
    }
}

#[test]
fn bounds_from_histograms_hold_the_truth_too_and_lie_close_to_it() {
    let (time, rest) = (BOX[0], REST[0]);
    let mut rng = Rng::new(5);
    let (mut measured, mut error) = (Histogram::new(), SignedHistogram::new());
    for value in through(time, rest, Together::Not, 200_000, &mut rng) {
        measured.record(value.unsigned_abs());
    }
    for value in alone(rest, 200_000, &mut rng) {
        error.record(value);
    }
    let (m, e) = (Side::independent(&measured), Side::independent(&error));
    let found = bounds(m, rest.base, e, &OF_BOUNDS, 0.95);
    assert!(found.iter().all(|at| holds(at, time)), "{found:?}");
    // All that E scatters by may lie between the two, and little more.
    for at in &found {
        let (low, high) = (at.low_ns.unwrap(), at.high_ns.unwrap());
        assert!(high - low < 10_000.0 && at.b.is_some(), "{at:?}");
    }
    assert!(found[0].high_ns.unwrap() - found[0].low_ns.unwrap() < 2_000.0, "{found:?}");
}

#[test]
fn a_least_error_that_is_too_large_breaks_the_bounds_so_that_the_proof_can_fail() {
    let (time, rest) = (BOX[0], REST[0]);
    let mut rng = Rng::new(6);
    let measured = Sorted::new(through(time, rest, Together::Not, 20_000, &mut rng));
    let error = Sorted::new(alone(rest, 20_000, &mut rng));
    let found = |least: f64| {
        bounds(Side::independent(&measured), least, Side::independent(&error), &OF_BOUNDS, 0.95)
    };
    assert!(found(rest.base).iter().all(|at| holds(at, time)));
    assert!(!found(rest.base + 1_500.0).iter().all(|at| holds(at, time)));
}

/// The true error at a fraction where truth and error are both exponential with mean 1 us, the truth
/// above 10 us.
fn true_error(together: Together, p: f64) -> f64 {
    let alone = -(1.0 - p).ln();
    let sum = match together {
        Together::Rising => 2.0 * alone,
        // u (1 - u) below e^-x.
        Together::Falling => (4.0 / (1.0 - p * p)).ln(),
        // Erlang: P(X + Y <= x) = 1 - e^-x (1 + x).
        Together::Not | Together::Halves => {
            let (mut low, mut high) = (0.0f64, 100.0f64);
            for _ in 0..80 {
                let x = f64::midpoint(low, high);
                let below = 1.0 - (-x).exp() * (1.0 + x);
                *(if below < p { &mut low } else { &mut high }) = x;
            }
            low
        }
    };
    1_000.0 * (sum - alone)
}

#[test]
fn intervals_of_the_error_hold_the_true_one_however_it_depends_on_the_truth() {
    let truth = Law { base: 10_000.0, scale: 1_000.0, tail: None };
    let error = Law { base: 0.0, scale: 1_000.0, tail: None };
    for together in [Together::Not, Together::Rising, Together::Falling] {
        for percent in [50.0, 99.0] {
            let held = (0..400).filter(|&number| {
                let mut rng = Rng::stream(91, number);
                let (mut m, mut t) = (Vec::new(), Vec::new());
                for _ in 0..2_000 {
                    let u = rng.unit();
                    let true_value = truth.at(u);
                    t.push(true_value.round() as i64);
                    m.push((true_value + error.at(together.other(u, &mut rng))).round() as i64);
                }
                let (m, t) = (Sorted::new(m), Sorted::new(t));
                let at = error_curve(&m, &t, &[percent], INDEPENDENT)[0];
                let wanted = true_error(together, percent / 100.0);
                at.low_ns.unwrap() - 1.0 <= wanted && wanted <= at.high_ns.unwrap() + 1.0
            });
            // 95 % are promised; the two limits of two quantiles make it more.
            let held = held.count();
            assert!(held >= 380, "{together:?} p{percent}: {held} of 400");
        }
    }
}

#[test]
fn errors_that_come_in_bursts_need_the_effective_size() {
    // One second in five is slow for all its messages: p90 of the error lies in the middle of those.
    const TRUTH: u64 = 10_000;
    let wanted = 20_500.0;
    let held = |use_n_eff: bool| {
        let trial = |&number: &u64| {
            let mut rng = Rng::stream(57, number);
            let (mut measured, mut sums) = (Histogram::new(), Exceedances::new());
            let mut interval = Histogram::new();
            for _ in 0..100 {
                let slow = if rng.unit() < 0.2 { 20_000 } else { 0 };
                (0..50).for_each(|_| interval.record(TRUTH + slow + rng.below(1_000)));
                measured.add(&interval);
                sums.add(&interval);
                interval.clear();
            }
            let mut truth = Histogram::new();
            truth.record_n(TRUTH, measured.len());
            let worth = |percent: f64| {
                if use_n_eff { sums.effective_n(&measured, percent) } else { f64::INFINITY }
            };
            let at = error_curve(&measured, &truth, &[90.0], worth)[0];
            at.low_ns.unwrap() <= wanted && wanted <= at.high_ns.unwrap()
        };
        (0..150).filter(trial).count()
    };
    let (with, without) = (held(true), held(false));
    assert!(with >= 137 && without < 100, "{with} and {without} of 150");
}

/// What a client measures through a line of 10 us: 300 ns and noise on top, and now and then 50 us.
fn client(n: u64, tail_every: Option<u64>) -> (Histogram, Histogram) {
    let mut rng = Rng::new(17);
    let (mut measured, mut truth) = (Histogram::new(), Histogram::new());
    for number in 0..n {
        let t = 10_000 + rng.below(40);
        let late = tail_every.is_some_and(|every| number % every == every / 2);
        truth.record(t);
        measured.record(t + 300 + rng.below(200) + if late { 50_000 } else { 0 });
    }
    (measured, truth)
}

#[test]
fn a_tail_of_1_in_10_000_moves_the_limit_below_p99_99() {
    const N: u64 = 500_000;
    let limit = |tail_every: Option<u64>| {
        let (measured, truth) = client(N, tail_every);
        trust_limit(&error_curve(&measured, &truth, &PERCENTS, INDEPENDENT), 1_000.0)
    };
    let clean = limit(None);
    assert_eq!((clean.percent, clean.ended_by), (Some(99.999), EndedBy::Sample), "{clean:?}");
    let planted = limit(Some(10_000));
    assert_eq!((planted.percent, planted.fails_at), (Some(99.9), Some(99.99)), "{planted:?}");
    assert!(matches!(planted.ended_by, EndedBy::Interval | EndedBy::Error), "{planted:?}");
    // Twenty times as often it is the error itself, and one decade earlier.
    let often = limit(Some(500));
    assert_eq!((often.percent, often.ended_by), (Some(99.0), EndedBy::Error), "{often:?}");
}

#[test]
fn a_constant_is_compensated_and_a_tail_is_not() {
    let (measured, truth) = client(500_000, Some(10_000));
    let late: Histogram = measured
        .bins()
        .flat_map(|(value, count)| std::iter::repeat_n(value + 5_000, count as usize))
        .collect();
    let curve = error_curve(&late, &truth, &PERCENTS, INDEPENDENT);
    let raw = trust_limit(&curve, 1_000.0);
    assert_eq!((raw.percent, raw.ended_by), (None, EndedBy::Error), "{raw:?}");
    let better = trust_limit(&compensated(&curve, 5_000.0), 1_000.0);
    assert_eq!(better.percent, Some(99.9), "{better:?}");
}

#[test]
fn a_bias_of_500_ns_is_found_in_interleaved_runs_and_none_where_none_was_planted() {
    const PARTS: u64 = 30;
    let side = |bias: f64, rng: &mut Rng| {
        let intervals: Vec<Histogram> = (0..PARTS)
            .map(|part| {
                // What drifts, drifts for both: they take turns.
                let drift = 150.0 * (part as f64 / 4.0).sin();
                let value = |_| {
                    let noise = (0..4).map(|_| rng.unit()).sum::<f64>() - 2.0;
                    (12_000.0 + drift + bias + 400.0 * noise).round() as u64
                };
                (0..400).map(value).collect()
            })
            .collect();
        let mut sample = Sample::new();
        sample.push_intervals(&intervals);
        sample
    };
    let mut held = 0;
    for number in 0..50 {
        let mut rng = Rng::stream(23, number);
        let (without, with) = (side(0.0, &mut rng), side(500.0, &mut rng));
        let found = Differences::new(&without, &with, &[50.0], number, 200);
        let interval = found.quantile(50.0, 1.0).intervals.unwrap().headline();
        assert!(interval.low > 0.0, "trial {number}: {interval:?}");
        held += usize::from(interval.low <= 500.0 && 500.0 <= interval.high);
    }
    assert!(held >= 46, "{held} of 50");
    let mut rng = Rng::new(3);
    let (one, other) = (side(0.0, &mut rng), side(0.0, &mut rng));
    let none = Differences::new(&one, &other, &[50.0], 3, 200).quantile(50.0, 1.0);
    let none = none.intervals.unwrap().headline();
    assert!(none.low <= 0.0 && 0.0 <= none.high, "{none:?}");
}

#[test]
fn samples_that_are_too_small_are_refused() {
    let few = Sorted::new((0..300).collect());
    let none = Sorted::default();
    let curve = error_curve(&few, &few, &[50.0, 99.9], INDEPENDENT);
    assert!(
        curve[0].error_ns.is_some() && curve[1].error_ns.is_none() && curve[1].high_ns.is_none()
    );
    let limit = trust_limit(&curve, 1_000.0);
    assert_eq!(
        (limit.percent, limit.ended_by, limit.fails_at),
        (Some(50.0), EndedBy::Sample, Some(99.9))
    );
    // Dependent ones are worth fewer.
    assert!(error_curve(&few, &few, &[50.0], |_| 4.0)[0].error_ns.is_none());
    assert!(error_curve(&few, &none, &[50.0], INDEPENDENT)[0].error_ns.is_none());
    let (side, empty) = (Side::independent(&few), Side::independent(&none));
    let at = bounds(side, 0.0, Side::independent(&few), &[50.0, 99.9], 0.95);
    assert!(at[0].low_ns.is_some() && at[0].high_ns.is_some(), "{at:?}");
    assert_eq!(at[1].high_ns, None, "{at:?}");
    let at = bounds(Side::independent(&few), 0.0, empty, &[50.0], 0.95);
    assert!(at[0].low_ns.is_none() && at[0].high_ns.is_some(), "{at:?}");
    let few_worth = |_: f64| 3.0;
    let at = bounds(
        Side { values: &few, n_eff: &few_worth, runs: None },
        0.0,
        Side::independent(&few),
        &[50.0],
        0.95,
    );
    assert!(at[0].low_ns.is_none() && at[0].high_ns.is_none(), "{at:?}");
}

#[test]
fn the_slope_interval_of_few_points_holds_the_true_slope_as_often_as_it_says() {
    let sizes = [64.0, 128.0, 256.0, 512.0, 1_024.0, 1_518.0];
    for heavy in [false, true] {
        let held = (0..1_000).filter(|&number| {
            let mut rng = Rng::stream(8, number);
            let point = |x: &f64| {
                let u = rng.unit() - 0.5;
                // A Cauchy distribution has no variance to rely on.
                let noise = if heavy { (std::f64::consts::PI * u).tan() } else { u };
                (*x, 3_000.0 + 8.0 * x + 20.0 * noise)
            };
            let points: Vec<(f64, f64)> = sizes.iter().map(point).collect();
            let slope = theil_sen(&points).unwrap();
            (slope.low.unwrap()..=slope.high.unwrap()).contains(&8.0)
        });
        let held = held.count();
        assert!(held >= 940, "heavy {heavy}: {held} of 1000");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn values_of_both_signs_keep_their_order(values in vec(-2_000_000_000i64..2_000_000_000, 1..300)) {
        let mut signed = SignedHistogram::new();
        for value in &values {
            signed.record(*value);
        }
        let sorted = Sorted::new(values);
        prop_assert_eq!(signed.count(), sorted.count());
        prop_assert_eq!(signed.min(), sorted.values().first().copied());
        prop_assert_eq!(signed.max(), sorted.values().last().copied());
        for (rank, value) in (1u64..).zip(sorted.values()) {
            let (found, exact) = (signed.at_rank(rank).unwrap(), *value as f64);
            prop_assert!(found.low <= exact && exact <= found.high, "{found:?} {exact}");
            prop_assert!(found.high - found.low <= exact.abs() / 1_000.0 + 1e-9, "{found:?} {exact}");
        }
        prop_assert_eq!(signed.at_rank(0), None);
        prop_assert_eq!(signed.at_rank(signed.count() + 1), None);
    }

    #[test]
    fn a_constant_error_is_found_exactly_and_compensated_away(
        values in vec(0i64..1_000_000, 8..200), constant in -5_000i64..5_000,
    ) {
        let measured = Sorted::new(values.iter().map(|value| value + constant).collect());
        let truth = Sorted::new(values);
        let curve = error_curve(&measured, &truth, &[50.0], INDEPENDENT);
        prop_assert_eq!(curve[0].error_ns, Some(constant as f64));
        let (low, high) = (curve[0].low_ns.unwrap(), curve[0].high_ns.unwrap());
        prop_assert!(low <= constant as f64 && constant as f64 <= high);
        let none = compensated(&curve, constant as f64)[0];
        prop_assert_eq!(none.error_ns, Some(0.0));
        prop_assert!((none.low_ns.unwrap() - (low - constant as f64)).abs() < 1e-9);
    }

    #[test]
    fn a_larger_tolerance_never_lowers_the_limit(
        values in vec(0i64..100_000, 60..300), late in vec(0i64..3_000, 60..300), tolerance in 0f64..3_000.0,
    ) {
        let both = values.iter().zip(&late);
        let measured = Sorted::new(both.map(|(value, late)| value + late).collect());
        let truth = Sorted::new(values.iter().take(measured.values().len()).copied().collect());
        let curve = error_curve(&measured, &truth, &PERCENTS, INDEPENDENT);
        let (small, large) = (trust_limit(&curve, tolerance), trust_limit(&curve, 2.0 * tolerance));
        prop_assert!(small.percent.unwrap_or(0.0) <= large.percent.unwrap_or(0.0));
        let trusted = |percent: f64| small.percent.is_some_and(|limit| percent <= limit);
        for at in curve.iter().filter(|at| trusted(at.percent)) {
            prop_assert!(at.low_ns.unwrap() >= -tolerance && at.high_ns.unwrap() <= tolerance);
        }
    }

    #[test]
    fn a_line_is_found_and_what_is_added_to_a_slope_comes_out_of_it(
        ys in vec(-1e3f64..1e3, 5..20), slope in -10f64..10.0, at in -1e3f64..1e3,
    ) {
        let line: Vec<(f64, f64)> = (0..8).map(|x| (f64::from(x), at + slope * f64::from(x))).collect();
        for found in [least_squares(&line).unwrap(), theil_sen(&line).unwrap()] {
            prop_assert!((found.value - slope).abs() < 1e-9 && (found.intercept - at).abs() < 1e-6);
            prop_assert!(found.low.unwrap() <= slope + 1e-9 && found.high.unwrap() >= slope - 1e-9);
        }
        let points = |tilt: f64| -> Vec<(f64, f64)> {
            (0u32..).zip(&ys).map(|(x, y)| (f64::from(x), y + tilt * f64::from(x))).collect()
        };
        for method in [least_squares, theil_sen] {
            let (flat, tilted) = (method(&points(0.0)).unwrap(), method(&points(slope)).unwrap());
            prop_assert!((tilted.value - flat.value - slope).abs() < 1e-6);
            prop_assert!(flat.low.unwrap() <= flat.value && flat.value <= flat.high.unwrap());
        }
    }
}
