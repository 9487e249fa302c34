//! Proofs that a calibration recovers what was planted, within the bound it states.

use proptest::prelude::*;
use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};

use crate::calibrate::{Calibration, Calibrator};
use crate::mock::{MockCounter, MockRawClock, Truth};

/// Everything that can be planted, and how often the calibration looks.
#[derive(Debug, Clone, Copy)]
struct Planted {
    hz: f64,
    /// Total change of the frequency over the run, in parts per million.
    drift_ppm: f64,
    start: u64,
    offset: u64,
    seconds: f64,
    samples: u32,
    /// Ticks that a reading of the raw clock takes, and how much more it may take.
    cost: u64,
    cost_jitter: u64,
    /// Error of a reading of the raw clock beyond its sandwich, to either side.
    noise_ns: f64,
    /// One in so many readings is held up by so many ticks.
    outlier: Option<(u64, u64)>,
    seed: u64,
}

impl Planted {
    const PLAIN: Self = Self {
        hz: 2_596_120_000.0,
        drift_ppm: 0.0,
        start: 1 << 45,
        offset: 987_654_321,
        seconds: 60.0,
        samples: 600,
        cost: 52,
        cost_jitter: 30,
        noise_ns: 0.0,
        outlier: None,
        seed: 1,
    };

    fn counter(&self) -> MockCounter {
        MockCounter::new(Hertz(self.hz))
            .starting_at(Ticks(self.start))
            .with_drift(self.drift_ppm / self.seconds)
            .with_jitter(TicksDelta(self.cost_jitter), self.seed)
    }

    fn clock(&self, counter: &MockCounter) -> MockRawClock {
        let clock = counter
            .raw_clock()
            .with_offset(Nanos(self.offset))
            .with_cost(TicksDelta(self.cost), TicksDelta(self.cost_jitter))
            .with_noise(self.noise_ns)
            .with_seed(!self.seed);
        match self.outlier {
            Some((one_in, length)) => clock.with_outliers(one_in, TicksDelta(length)),
            None => clock,
        }
    }

    fn run(&self) -> Result {
        let mut calibrator = self.calibrator();
        let pause = Nanos((self.seconds * 1e9 / f64::from(self.samples)) as u64);
        for _ in 1..self.samples {
            calibrator.pass(pause);
            calibrator.sample();
        }
        calibrator.pass(pause);
        let calibration = calibrator.finish().expect("time passed");
        Result { truth: self.counter().truth(), calibration }
    }

    fn calibrator(&self) -> Calibrator<MockCounter, MockRawClock> {
        let counter = self.counter();
        let clock = self.clock(&counter);
        Calibrator::start(counter, clock)
    }
}

struct Result {
    truth: Truth,
    calibration: Calibration,
}

impl Result {
    /// How far the frequency is off at a reading, in ppm.
    fn off_at(&self, ticks: Ticks) -> f64 {
        (self.calibration.hz.0 / self.truth.hz_at(ticks).0 - 1.0).abs() * 1e6
    }

    /// How far the frequency is off over the whole run, in ppm.
    fn off_on_average(&self) -> f64 {
        let Calibration { from, to, .. } = self.calibration;
        let nanos = self.truth.nanos_at(to) - self.truth.nanos_at(from);
        let mean = to.since(from).0 as f64 * 1e9 / nanos;
        (self.calibration.hz.0 / mean - 1.0).abs() * 1e6
    }

    fn assert_within_bound(&self, planted: &Planted) {
        let bound = self.calibration.bound_ppm;
        if self.calibration.drift.is_some() {
            let Calibration { from, to, .. } = self.calibration;
            for at in [from, Ticks(from.0.midpoint(to.0)), to] {
                let off = self.off_at(at);
                assert!(off <= bound, "off by {off} ppm, bound {bound} ppm: {planted:?}");
            }
        }
        let off = self.off_on_average();
        assert!(off <= bound, "off by {off} ppm on average, bound {bound} ppm: {planted:?}");
    }
}

#[test]
fn planted_frequency_lies_within_the_bound_for_every_seed() {
    for seed in 0..500 {
        let planted = Planted { seed, samples: 100, seconds: 1.0, ..Planted::PLAIN };
        let result = planted.run();
        result.assert_within_bound(&planted);
        assert!(result.calibration.bound_ppm < 1.0, "{:?}", result.calibration);
    }
}

#[test]
fn planted_drift_is_recovered_within_its_bound_and_widens_the_bound_of_the_frequency() {
    let still = Planted::PLAIN.run().calibration;
    for seed in 0..100 {
        let planted = Planted { seed, drift_ppm: 0.5, ..Planted::PLAIN };
        let result = planted.run();
        result.assert_within_bound(&planted);
        let drift = result.calibration.drift.expect("600 samples show it");
        let off = (drift.ppm_per_s - 0.5 / 60.0).abs();
        assert!(off <= drift.bound_ppm_per_s, "{drift:?}");
        assert!(drift.ppm_per_s.abs() > drift.bound_ppm_per_s, "not told from none: {drift:?}");
        assert!(result.calibration.bound_ppm >= 0.25, "half of what was planted");
        assert!(result.calibration.bound_ppm > 5.0 * still.bound_ppm);
    }
}

#[test]
fn no_drift_is_claimed_where_none_was_planted() {
    for seed in 0..100 {
        let drift = Planted { seed, ..Planted::PLAIN }.run().calibration.drift.unwrap();
        assert!(drift.ppm_per_s.abs() <= drift.bound_ppm_per_s, "{drift:?}");
    }
}

#[test]
fn planted_jitter_is_seen_to_a_fifth_and_widens_the_bound() {
    let quiet = Planted::PLAIN.run().calibration;
    assert!(quiet.jitter.beyond_sandwiches_ns < 1.0, "{:?}", quiet.jitter);
    for seed in 0..100 {
        let planted = Planted { seed, noise_ns: 400.0, ..Planted::PLAIN };
        let result = planted.run();
        result.assert_within_bound(&planted);
        let jitter = result.calibration.jitter;
        assert!((320.0..480.0).contains(&jitter.beyond_sandwiches_ns), "{jitter:?}");
        assert!((320.0..520.0).contains(&jitter.at_most_ns), "{jitter:?}");
        assert!(result.calibration.bound_ppm > 2.0 * quiet.bound_ppm);
    }
}

#[test]
fn outlier_sandwiches_do_not_move_the_frequency() {
    // Every second read of the clock is held up by 40 us: most samples of eight have some sandwich
    // without, and those that have none are wide and hardly count.
    for seed in 0..100 {
        let planted = Planted { seed, outlier: Some((2, 100_000)), ..Planted::PLAIN };
        let result = planted.run();
        result.assert_within_bound(&planted);
        assert!(result.calibration.bound_ppm < 0.05, "{:?}", result.calibration);
    }
}

#[test]
fn a_constant_offset_of_the_raw_clock_changes_nothing() {
    let near = Planted { offset: 0, ..Planted::PLAIN }.run().calibration;
    let far = Planted { offset: 1 << 61, ..Planted::PLAIN }.run().calibration;
    assert_eq!((near.hz, near.bound_ppm.to_bits()), (far.hz, far.bound_ppm.to_bits()));
}

#[test]
fn a_longer_run_has_a_narrower_bound() {
    let bounds = [0.1, 1.0, 10.0, 100.0, 1_000.0]
        .map(|seconds| Planted { seconds, samples: 100, ..Planted::PLAIN }.run())
        .map(|result| result.calibration.bound_ppm);
    assert!(bounds.windows(2).all(|pair| pair[1] < pair[0] / 5.0), "{bounds:?}");
}

#[test]
fn three_days_are_calibrated_in_the_memory_of_a_minute() {
    let planted = Planted { seconds: 259_200.0, samples: 259_200, ..Planted::PLAIN };
    let result = planted.run();
    result.assert_within_bound(&planted);
    assert!(result.calibration.sandwiches <= 512);
    assert!(result.calibration.bound_ppm < 1e-4, "{:?}", result.calibration);
}

#[test]
fn the_quick_estimate_takes_a_tenth_of_a_second_and_holds_its_bound() {
    for seed in 0..100 {
        let planted = Planted { seed, ..Planted::PLAIN };
        let quick = planted.calibrator().quick().unwrap();
        assert!((100_000_000..110_000_000).contains(&quick.span.0), "{quick:?}");
        assert!((quick.hz.0 / planted.hz - 1.0).abs() * 1e6 <= quick.bound_ppm);
        assert!(quick.bound_ppm < 10.0, "{quick:?}");
    }
}

#[test]
fn a_counter_or_clock_that_stands_still_has_no_frequency() {
    let counter = MockCounter::new(Hertz(1e9)).with_period(&[0]);
    let clock = counter.raw_clock().with_cost(TicksDelta(0), TicksDelta(0));
    assert!(Calibrator::start(counter, clock).finish().is_err());
    let counter = MockCounter::new(Hertz(1e18));
    let clock = counter.raw_clock();
    let mut calibrator = Calibrator::start(counter, clock);
    calibrator.sample();
    assert!(calibrator.finish().is_err(), "the clock does not move");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn anything_planted_lies_within_the_bound(
        hz in 1e7..5e9,
        drift_ppm in prop_oneof![Just(0.0), -1.0..1.0, -200.0..200.0],
        start in 0u64..1 << 50,
        offset in 0u64..1 << 55,
        log_seconds in -1.0..5.4,
        samples in 1u32..700,
        cost in 1u64..2_000,
        cost_jitter in 0u64..200,
        outlier in proptest::option::of((1u64..20, 1_000u64..100_000_000)),
        seed in any::<u64>(),
    ) {
        let planted = Planted {
            hz, drift_ppm, start, offset, seconds: 10f64.powf(log_seconds), samples, cost,
            cost_jitter, noise_ns: 0.0, outlier, seed,
        };
        planted.run().assert_within_bound(&planted);
    }

    #[test]
    fn scatter_beyond_the_sandwiches_lies_within_the_bound_too(
        drift_ppm in prop_oneof![Just(0.0), -1.0..1.0],
        log_seconds in -1.0..5.4,
        samples in 16u32..700,
        log_noise in 0.0..5.0,
        outlier in proptest::option::of((1u64..20, 1_000u64..100_000_000)),
        seed in any::<u64>(),
    ) {
        let planted = Planted {
            drift_ppm, seconds: 10f64.powf(log_seconds), samples, noise_ns: 10f64.powf(log_noise),
            outlier, seed, ..Planted::PLAIN
        };
        planted.run().assert_within_bound(&planted);
    }
}
