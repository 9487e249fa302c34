//! Comparing two samples: against SciPy, and by simulation with planted differences, planted bursts
//! and planted differences between runs.

use whylate_stats::Histogram;
use whylate_stats::difference::{Differences, of_means};
use whylate_stats::rank_test::{Basis, mann_whitney, rank_test};
use whylate_stats::rng::Rng;
use whylate_stats::sample::{Blocks, Sample, counts};
use whylate_stats::student::{critical, two_sided};

use crate::vectors::{assert_close, rows};

#[test]
fn mann_whitney_is_scipy_s_with_ties_and_continuity() {
    let counts = |text: &str| -> Vec<(u64, u64)> {
        let bin = |word: &str| {
            let (value, count) = word.split_once('x').unwrap();
            (value.parse().unwrap(), count.parse().unwrap())
        };
        text.split(' ').map(bin).collect()
    };
    let mut checked = 0;
    for row in rows(include_str!("../vectors/mann_whitney.csv")) {
        let test = mann_whitney(&counts(row.text(0)), &counts(row.text(1))).unwrap();
        assert_close("U", test.u, row.get(2), 1e-12);
        assert_close("p", test.p_value, row.get(3), 1e-9);
        checked += 1;
    }
    assert_eq!(checked, 11);
}

#[test]
fn student_s_t_is_scipy_s() {
    for row in rows(include_str!("../vectors/student.csv")) {
        let degrees = row.get(0);
        assert_close("critical t", critical(degrees), row.get(1), 1e-9);
        assert_close("p", two_sided(row.get(2), degrees), row.get(3), 1e-9);
    }
}

/// A run whose level wanders from second to second (autocorrelated over about `memory` seconds).
fn wandering(rng: &mut Rng, seconds: u32, memory: f64, level: f64) -> (Blocks, Histogram) {
    let keep = (-1.0 / memory).exp();
    let (mut run, mut all, mut interval) = (Blocks::new(1), Histogram::new(), Histogram::new());
    let mut state = 0.0;
    for second in 0..seconds {
        // Two uniform numbers are normal enough for a level.
        state = keep * state + (1.0 - keep * keep).sqrt() * (rng.unit() + rng.unit() - 1.0);
        let floor = level * (1.0 + 0.6 * state);
        interval.clear();
        interval.extend((0..60).map(|_| (floor + rng.exponential(level)) as u64));
        run.add(f64::from(second), 1.0, &counts(&interval));
        all.add(&interval);
    }
    (run, all)
}

fn one_run((run, values): (Blocks, Histogram)) -> Sample {
    let mut sample = Sample::new();
    sample.push(run, &values);
    sample
}

fn of_intervals(intervals: &[Histogram]) -> Sample {
    let mut sample = Sample::new();
    sample.push_intervals(intervals);
    sample
}

struct Alarms {
    classical: f64,
    rank: f64,
    median: f64,
    p99: f64,
}

/// How often each test says "different" at 5 %.
fn alarms(trials: u64, seed: u64, mut pair: impl FnMut(&mut Rng) -> (Sample, Sample)) -> Alarms {
    let mut counts = [0u64; 4];
    for number in 0..trials {
        let mut rng = Rng::stream(seed, number);
        let (before, after) = pair(&mut rng);
        let test = rank_test(&before, &after).expect("both sides have samples");
        let differences = Differences::new(&before, &after, &[50.0, 99.0], number, 200);
        let differs = |percent| {
            let found = differences.quantile(percent, 1.0).intervals;
            !found.expect("n supports the percentile").headline().contains(0.0)
        };
        let alarm =
            [test.p_value_if_independent < 0.05, test.p_value < 0.05, differs(50.0), differs(99.0)];
        for (count, alarm) in counts.iter_mut().zip(alarm) {
            *count += u64::from(alarm);
        }
    }
    let [classical, rank, median, p99] = counts.map(|count| count as f64 / trials as f64);
    Alarms { classical, rank, median, p99 }
}

#[test]
fn autocorrelated_equals_raise_no_more_alarms_than_stated() {
    let quiet = alarms(240, 5, |rng| {
        let mut side = || one_run(wandering(rng, 240, 1.0, 10_000.0));
        (side(), side())
    });
    // The classical test takes 60 samples of one second for 60 witnesses.
    assert!(quiet.classical > 0.3, "{}", quiet.classical);
    // Two standard deviations of 240 trials are 2.8 %.
    for (name, share) in [("rank", quiet.rank), ("p50", quiet.median), ("p99", quiet.p99)] {
        assert!(share <= 0.08, "{name}: {share}");
    }
    // Nor so few that nothing would ever be found.
    assert!(quiet.rank >= 0.01, "{}", quiet.rank);
}

#[test]
fn a_planted_difference_is_found_in_autocorrelated_samples() {
    let loud = alarms(60, 6, |rng| {
        let mut side = |level| one_run(wandering(rng, 240, 1.0, level));
        (side(10_000.0), side(12_000.0))
    });
    for (name, share) in [("rank", loud.rank), ("p50", loud.median), ("p99", loud.p99)] {
        assert!(share >= 0.95, "{name}: {share}");
    }
}

/// Each run settles at a level of its own: many seconds of one run are still one run.
#[test]
fn runs_that_differ_among_themselves_are_no_difference_between_sides() {
    let side = |rng: &mut Rng, level: f64| {
        let mut sample = Sample::new();
        for _ in 0..5 {
            let own = level * (1.0 + 0.2 * (rng.unit() + rng.unit() - 1.0));
            let (run, values) = wandering(rng, 20, 0.3, own);
            sample.push(run, &values);
        }
        sample
    };
    let quiet = alarms(240, 7, |rng| (side(rng, 10_000.0), side(rng, 10_000.0)));
    for (name, share) in [("rank", quiet.rank), ("p50", quiet.median), ("p99", quiet.p99)] {
        assert!(share <= 0.08, "{name}: {share}");
    }
    let loud = alarms(40, 8, |rng| (side(rng, 10_000.0), side(rng, 14_000.0)));
    assert!(loud.rank >= 0.95 && loud.median >= 0.95 && loud.p99 >= 0.9, "{}", loud.p99);
}

#[test]
fn intervals_of_quantile_differences_cover_the_truth() {
    // Exponential values: p50 is ln 2 and p99 ln 100 times the mean.
    const TRIALS: u32 = 150;
    let mut covered = [0u32; 2];
    for trial in 0..TRIALS {
        let mut rng = Rng::stream(9, u64::from(trial));
        let mut side = |mean: f64| {
            let second = |rng: &mut Rng| (0..100).map(|_| rng.exponential(mean) as u64).collect();
            of_intervals(&(0..30).map(|_| second(&mut rng)).collect::<Vec<Histogram>>())
        };
        let (before, after) = (side(1_000.0), side(1_300.0));
        let differences = Differences::new(&before, &after, &[50.0, 99.0], 3, 300);
        for (count, percent) in covered.iter_mut().zip([50.0f64, 99.0]) {
            let truth = -300.0 * (1.0 - percent / 100.0).ln();
            let found = differences.quantile(percent, 1.0).intervals.unwrap().headline();
            *count += u32::from(found.low - 2.0 <= truth && truth <= found.high + 2.0);
        }
    }
    for count in covered {
        assert!(f64::from(count) / f64::from(TRIALS) >= 0.93, "{covered:?}");
    }
}

#[test]
fn bursts_of_lost_time_raise_no_more_alarms_than_stated() {
    let side = |rng: &mut Rng, burst: f64| -> Vec<Vec<f64>> {
        let second = |rng: &mut Rng| 0.01 + if rng.unit() < 0.3 { burst * rng.unit() } else { 0.0 };
        vec![(0..60).map(|_| second(rng)).collect()]
    };
    let share = |burst: f64| {
        let differs = |trial: u64| {
            let mut rng = Rng::stream(10, trial);
            let (before, after) = (side(&mut rng, 0.05), side(&mut rng, burst));
            !of_means(&before, &after, 1.0, trial, 200).unwrap().headline().contains(0.0)
        };
        (0..400).filter(|trial| differs(*trial)).count() as f64 / 400.0
    };
    let (quiet, loud) = (share(0.05), share(0.2));
    assert!(quiet <= 0.08, "{quiet}");
    assert!(loud >= 0.9, "{loud}");
}

#[test]
fn a_single_block_is_taken_as_independent_samples_and_says_so() {
    let (a, b) = (of_intervals(&[(0..500).collect()]), of_intervals(&[(100..600).collect()]));
    assert_eq!(rank_test(&a, &b).unwrap().basis, Basis::Samples);
    let found = Differences::new(&a, &b, &[50.0], 1, 100).quantile(50.0, 1.0).intervals.unwrap();
    assert!(!found.resampled && found.within.low > 0.0, "{found:?}");
}
