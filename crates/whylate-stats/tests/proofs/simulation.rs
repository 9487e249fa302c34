//! Do the intervals hold what they promise? Samples whose truth is known, drawn with fixed seeds.

use whylate_stats::Histogram;
use whylate_stats::bootstrap::{block_bootstrap, mean, of_mean};
use whylate_stats::dependence::Exceedances;
use whylate_stats::quantile::{estimate, ranks};
use whylate_stats::rate::{clustered_interval, poisson_interval, rates_differ};
use whylate_stats::rng::Rng;
use whylate_stats::stationarity::{kruskal_wallis, mann_kendall};

const TRIALS: u64 = 2_000;

/// Share of the trials that say yes; each has its own stream of random numbers.
fn share_of_trials(trials: u64, seed: u64, trial: impl Fn(&mut Rng) -> bool) -> f64 {
    let yes = (0..trials).filter(|&number| trial(&mut Rng::stream(seed, number))).count();
    yes as f64 / trials as f64
}

#[test]
fn order_statistic_intervals_cover_the_quantile() {
    for (n, p) in [(6u64, 0.5), (60, 0.5), (400, 0.9), (368, 0.99), (3_000, 0.99), (3_688, 0.999)] {
        let ranks = ranks(n, p);
        let (low, high) = (ranks.low.unwrap(), ranks.high.unwrap());
        let covered = share_of_trials(TRIALS, n, |rng| {
            // The true quantile of uniform values is p: the l-th smallest is at most p exactly when
            // at least l values are, the u-th at least p when fewer than u are.
            let below = (0..n).filter(|_| rng.unit() <= p).count() as u64;
            (low..high).contains(&below)
        });
        // Two standard deviations of the simulation are 1 %.
        assert!(covered >= 0.93, "n {n} p {p}: {covered}");
    }
}

#[test]
fn intervals_through_the_histogram_cover_the_quantile() {
    const MEAN_NS: f64 = 50_000.0;
    for (n, percent) in [(500u32, 50.0), (1_000, 99.0)] {
        let truth = -MEAN_NS * (1.0f64 - percent / 100.0).ln();
        let covered = share_of_trials(600, 77, |rng| {
            let h: Histogram = (0..n).map(|_| rng.exponential(MEAN_NS) as u64).collect();
            let e = estimate(&h, percent, f64::from(n));
            let (low, high) = (e.low.unwrap() as f64, e.high.unwrap() as f64);
            low * 0.999 <= truth && truth <= high * 1.001
        });
        assert!(covered >= 0.93, "n {n} p{percent}: {covered}");
    }
}

/// Busy seconds among quiet ones: all of a second's samples are slow together.
#[test]
fn samples_in_bursts_need_the_effective_size() {
    const SECONDS: u64 = 100;
    const PER_SECOND: u64 = 100;
    // One second in five is slow; slow is 1 ms + up to 1 ms, quick up to 1 ms: p90 is 1.5 ms.
    let truth = 1_500_000.0;
    let cover = |use_n_eff: bool| {
        share_of_trials(150, 4, |rng| {
            let (mut all, mut sums) = (Histogram::new(), Exceedances::new());
            for _ in 0..SECONDS {
                let floor = if rng.unit() < 0.2 { 1_000_000 } else { 0 };
                let second: Histogram =
                    (0..PER_SECOND).map(|_| floor + rng.below(1_000_000)).collect();
                sums.add(&second);
                all.add(&second);
            }
            let n = all.len() as f64;
            let n_eff = if use_n_eff { sums.effective_n(&all, 90.0) } else { n };
            let e = estimate(&all, 90.0, n_eff);
            let (low, high) = (e.low.unwrap() as f64, e.high.unwrap() as f64);
            low * 0.999 <= truth && truth <= high * 1.001
        })
    };
    // Two standard deviations of 150 trials are 3.6 %.
    let (with, without) = (cover(true), cover(false));
    assert!(with >= 0.90, "{with}");
    assert!(without < 0.6, "{without}");
}

/// Slow seconds whose samples all take the same time: nothing lies above it, and all of it is bursts.
#[test]
fn bursts_of_one_value_need_the_effective_size_of_all_that_share_it() {
    const SECONDS: u64 = 100;
    const PER_SECOND: u64 = 100;
    // One second in fifty is slow, so that p97 is quick; in one sample of seven four seconds or more are slow.
    let (quick, slow) = (1_000_000, 5_000_000);
    let covered = share_of_trials(400, 41, |rng| {
        let (mut all, mut sums) = (Histogram::new(), Exceedances::new());
        for _ in 0..SECONDS {
            let value = if rng.unit() < 0.02 { slow } else { quick };
            let mut second = Histogram::new();
            second.record_n(value, PER_SECOND);
            sums.add(&second);
            all.add(&second);
        }
        let e = estimate(&all, 97.0, sums.effective_n(&all, 97.0));
        e.low.is_none_or(|low| low < 1_001_000)
    });
    assert!(covered >= 0.95, "{covered}");
}

#[test]
fn poisson_intervals_cover_the_rate() {
    for rate in [0.3, 3.0, 40.0] {
        let covered = share_of_trials(TRIALS, 12, |rng| {
            let mut time = rng.exponential(1.0 / rate);
            let mut count = 0;
            while time < 2.0 {
                count += 1;
                time += rng.exponential(1.0 / rate);
            }
            let (low, high) = poisson_interval(count, 2.0);
            low <= rate && rate <= high
        });
        assert!(covered >= 0.93, "rate {rate}: {covered}");
    }
}

/// Bursts that come at random and last `lasting` intervals on average, with `events` in each.
struct Bursts {
    intervals: usize,
    per_interval: f64,
    lasting: f64,
    events: f64,
}

impl Bursts {
    fn counts(&self, rng: &mut Rng) -> Vec<u64> {
        let end = self.intervals as f64;
        let mut counts = vec![0; self.intervals];
        // From so early that what still lasts at the start is there.
        let mut at = -8.0 * self.lasting;
        while at < end {
            at += rng.exponential(1.0 / self.per_interval);
            let over = at + rng.exponential(self.lasting);
            let mut event = at;
            loop {
                event += rng.exponential(self.lasting / self.events);
                if event >= over {
                    break;
                }
                if (0.0..end).contains(&event) {
                    counts[event as usize] += 1;
                }
            }
        }
        counts
    }
}

#[test]
fn rate_intervals_of_events_in_bursts_cover_the_rate() {
    let of = |intervals, per_interval, lasting, events| Bursts {
        intervals,
        per_interval,
        lasting,
        events,
    };
    for bursts in [
        of(30, 2.0, 0.05, 5.0),
        of(30, 0.5, 0.1, 10.0),
        of(240, 0.1, 1.0, 50.0),
        of(240, 0.05, 4.0, 200.0),
    ] {
        let rate = bursts.per_interval * bursts.events;
        let cover = |interval: fn(&[u64]) -> (f64, f64)| {
            share_of_trials(200, 61, |rng| {
                let (low, high) = interval(&bursts.counts(rng));
                low <= rate && rate <= high
            })
        };
        let clustered =
            cover(|counts| clustered_interval(counts.iter().sum(), counts.len() as f64, counts, 5));
        let poisson = cover(|counts| poisson_interval(counts.iter().sum(), counts.len() as f64));
        // Two standard deviations of 200 trials are 3 %.
        assert!((0.91..=0.995).contains(&clustered), "{} intervals: {clustered}", bursts.intervals);
        assert!(poisson < 0.7, "{} intervals: {poisson} by Poisson", bursts.intervals);
    }
}

#[test]
fn studentised_intervals_cover_the_mean_of_skewed_blocks() {
    let cover = |interval: fn(&[f64], u64) -> whylate_stats::bootstrap::Interval| {
        share_of_trials(400, 8, |rng| {
            let blocks: Vec<f64> = (0..30).map(|_| rng.exponential(1.0).powi(2)).collect();
            interval(&blocks, rng.next_u64()).contains(2.0)
        })
    };
    let percentile = cover(|blocks, seed| block_bootstrap(blocks, mean, seed, 400));
    let studentised = cover(of_mean);
    assert!(studentised >= 0.91 && studentised > percentile + 0.03, "{studentised} {percentile}");
}

#[test]
fn bootstrap_intervals_cover_the_mean() {
    let covered = share_of_trials(400, 8, |rng| {
        let blocks: Vec<f64> = (0..60).map(|_| rng.exponential(3.0)).collect();
        block_bootstrap(&blocks, mean, rng.next_u64(), 400).contains(3.0)
    });
    // Skewed blocks and percentile ends: known to cover a little less than 95 %.
    assert!(covered >= 0.90, "{covered}");
}

/// A test at 5 % that cries wolf in more than 5 % of quiet cases, or never hears it, is broken.
#[test]
fn tests_reject_equals_rarely_and_unequals_often() {
    let rejects = |p_value: fn(&mut Rng, f64) -> f64, difference: f64| {
        share_of_trials(600, 21, |rng| p_value(rng, difference) < 0.05)
    };
    let rate = |rng: &mut Rng, difference: f64| {
        let mut count = |rate: f64| (0..1_000).filter(|_| rng.unit() < rate).count() as u64;
        rates_differ(count(0.05), 1.0, count(0.05 * (1.0 + difference)), 1.0)
    };
    let trend = |rng: &mut Rng, difference: f64| {
        let series: Vec<f64> = (0..10).map(|i| rng.unit() + difference * f64::from(i)).collect();
        mann_kendall(&series).p_value
    };
    let blocks = |rng: &mut Rng, difference: f64| {
        let block =
            |rng: &mut Rng, i| (0..20).map(|_| rng.unit() + difference * f64::from(i)).collect();
        let groups: Vec<Vec<f64>> = (0..5).map(|i| block(rng, i)).collect();
        kruskal_wallis(&groups).p_value
    };
    for (name, test) in
        [("rate", rate as fn(&mut Rng, f64) -> f64), ("trend", trend), ("blocks", blocks)]
    {
        let (quiet, loud) = (rejects(test, 0.0), rejects(test, 1.0));
        assert!(quiet <= 0.075, "{name}: {quiet}");
        assert!(loud >= 0.95, "{name}: {loud}");
    }
}
