//! The frequency of the counter, measured over the whole run, with a bound.
//!
//! A [`Calibrator`] takes sandwiches (raw clock, counter, raw clock) from the start of the program
//! to the end of the run and keeps the narrowest of each stretch of time, 512 at most, so that
//! three days need no more memory than a second. The slope through them is the frequency; its
//! bound comes from the widths of the sandwiches over the length of the run, from the drift seen,
//! and from whatever scatters beyond the sandwiches (`fit.rs` has the argument).
//!
//! **Which frequency is used.** Always the regression, whatever else is stated. It is the only one
//! that was measured in this run, the only one with a bound, and the one by which a length in
//! nanoseconds agrees with the difference of two readings of `CLOCK_MONOTONIC_RAW` beside it. Its
//! bound falls as the run goes on: a few parts per million after 0.1 s, less than the rounding of
//! the kernel's own constant to whole kilohertz after some seconds. The statements of kernel,
//! CPUID, firmware and hypervisor stand beside it with their differences.
//!
//! **What it is relative to.** The raw clock. Where that is the counter times a constant
//! (clock source `tsc`, `kvm-clock`, `arch_sys_counter`), the regression finds this constant again
//! and says nothing about true seconds; then no source is independent of it, and
//! [`Calibration::regression_only`] says so.

use std::convert::Infallible;
use std::sync::mpsc::{self, TryRecvError};
use std::thread;

use whylate_model::run::{Drift, FrequencySource};
use whylate_model::warning::Warning;
use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};

use crate::fit::{self, Fit};
use crate::kernel::{KernelRaw, KernelView, RawClock};
use crate::sandwich::{Narrowest, Sandwich};
use crate::sources::{DISAGREEMENT_PPM, REGRESSION, References};
use crate::{ClockError, Counter, HardwareCounter, cost};

/// Sandwiches of which the first and last sample of a run are the narrowest.
const TRIES_AT_ENDS: u32 = 64;

/// Sandwiches of which a sample in between is the narrowest: less than a microsecond in all.
const TRIES: u32 = 8;

/// How long the quick estimate looks.
const QUICK: Nanos = Nanos(100_000_000);

/// Pause between the samples of the quick estimate.
const QUICK_PAUSE: Nanos = Nanos(4_000_000);

/// Samples after which the quick estimate gives up waiting for the raw clock to move.
const QUICK_SAMPLES: u32 = 1_000;

/// Measures the frequency of a counter against a raw clock.
#[derive(Debug)]
pub struct Calibrator<C, R> {
    counter: C,
    raw: R,
    references: References,
    store: Narrowest,
    step: TicksDelta,
}

impl Calibrator<HardwareCounter, KernelRaw> {
    /// Starts with this host's counter against `CLOCK_MONOTONIC_RAW`, beside everything that the
    /// host states about the frequency.
    #[must_use]
    pub fn of_this_host(counter: HardwareCounter) -> Self {
        Self::start(counter, KernelRaw).with_references(References::of_this_host())
    }
}

impl<C: Counter, R: RawClock> Calibrator<C, R> {
    /// Starts: takes the first sandwiches.
    #[must_use]
    pub fn start(mut counter: C, mut raw: R) -> Self {
        let step = cost::resolution_ticks(&mut counter);
        let first = Sandwich::narrowest(&mut counter, &mut raw, TRIES_AT_ENDS);
        let store = Narrowest::starting_with(first);
        Self { counter, raw, references: References::default(), store, step }
    }

    /// Sets what else is stated about the frequency, for the comparison.
    #[must_use]
    pub fn with_references(mut self, references: References) -> Self {
        self.references = references;
        self
    }

    /// Takes one sample, in about a microsecond. To be called again and again during the run, some
    /// times a second, from a CPU that is not measured: drift and scatter show only if samples are
    /// spread over the run.
    pub fn sample(&mut self) {
        self.take(TRIES);
    }

    /// Samples until 0.1 s have passed since the start, and gives the frequency as known by then:
    /// good to a few parts per million, for thresholds and for the end of the run.
    pub fn quick(&mut self) -> Result<Calibration, ClockError> {
        for _ in 0..QUICK_SAMPLES {
            let (first, last) = self.store.ends();
            if last.low_ns - first.low_ns >= QUICK.0 {
                break;
            }
            self.pass(QUICK_PAUSE);
            self.sample();
        }
        self.so_far()
    }

    /// Does `work` on the calling thread and samples beside it, as [`quick`](Self::quick) does, until it
    /// is done and 0.1 s have passed since the start: the longer the work, the longer the baseline. A
    /// sandwich that the work stretches is wide and not wrong.
    ///
    /// # Errors
    /// As [`so_far`](Self::so_far); or the system starts no thread, and then nothing is done.
    pub fn quick_beside<T>(
        &mut self,
        work: impl FnOnce() -> T,
    ) -> Result<(T, Calibration), ClockError>
    where
        C: Send,
        R: Send,
    {
        let (at_work, over) = mpsc::channel::<Infallible>();
        let calibrator = &mut *self;
        let sample = move || {
            while !matches!(over.try_recv(), Err(TryRecvError::Disconnected)) {
                calibrator.pass(QUICK_PAUSE);
                calibrator.sample();
            }
        };
        let done = thread::scope(|scope| {
            let sampling = thread::Builder::new().name("whylate-clock".to_owned());
            let sampling = sampling.spawn_scoped(scope, sample);
            sampling.map_err(|source| ClockError::Thread { source })?;
            let done = work();
            drop(at_work);
            Ok(done)
        })?;
        self.quick().map(|calibration| (done, calibration))
    }

    /// The frequency over the run so far.
    ///
    /// # Errors
    /// [`ClockError::NoTimePassed`] when counter or raw clock have not moved since the start.
    pub fn so_far(&self) -> Result<Calibration, ClockError> {
        let fit = fit::fit(&self.store, self.step).ok_or(ClockError::NoTimePassed)?;
        Ok(Calibration::new(&fit, &self.references, &self.store))
    }

    /// Takes the last sample and gives the frequency over the whole run.
    ///
    /// # Errors
    /// [`ClockError::NoTimePassed`] when counter or raw clock have not moved since the start.
    pub fn finish(mut self) -> Result<Calibration, ClockError> {
        self.take(TRIES_AT_ENDS);
        self.so_far()
    }

    /// Lets time pass by the raw clock: a mock's time moves by nothing else.
    pub fn pass(&mut self, duration: Nanos) {
        self.raw.wait(duration);
    }

    fn take(&mut self, tries: u32) {
        self.store.offer(Sandwich::narrowest(&mut self.counter, &mut self.raw, tries));
    }
}

/// The frequency of a counter over a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// The frequency to convert with.
    pub hz: Hertz,
    /// Bound of its error in parts per million, relative to the raw clock. With `drift` it holds at
    /// every moment of the run, without only for the mean over the run.
    pub bound_ppm: f64,
    /// How the frequency moved, where the run was long enough to tell.
    pub drift: Option<Drift>,
    /// How far single readings lay from the fitted curve.
    pub jitter: Jitter,
    /// The first sample.
    pub from: Ticks,
    /// The last sample.
    pub to: Ticks,
    /// From the one to the other.
    pub span: Nanos,
    /// Sandwiches behind the fit.
    pub sandwiches: usize,
    /// Width of the narrowest of them.
    pub narrowest: Nanos,
    /// How often counter or raw clock went back between two samples: 0, or the counter is no clock.
    pub went_back: u64,
    /// All sources of the frequency, the regression last.
    pub sources: Vec<FrequencySource>,
    /// The raw clock rests on something else than the counter.
    pub independent: bool,
    /// No source is independent of the regression.
    pub regression_only: bool,
    /// What the kernel counts time by.
    pub kernel: KernelView,
}

/// Scatter of the sandwiches round the fitted curve. Scatter inside a sandwich's width cannot be
/// told from none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Jitter {
    /// How far the curve passes outside of the sandwich that it misses by most; 0 when one smooth
    /// curve explains all of them.
    pub beyond_sandwiches_ns: f64,
    /// The same to the far side of the sandwich: no reading that was kept lies further from the
    /// curve.
    pub at_most_ns: f64,
}

impl Calibration {
    fn new(fit: &Fit, references: &References, store: &Narrowest) -> Self {
        let hz = Hertz(1e9 / fit.ns_per_tick);
        let bound_ppm = fit.bound * 1e6;
        let sources = references.beside(hz, bound_ppm);
        let (first, last) = store.ends();
        Self {
            hz,
            bound_ppm,
            drift: fit.drift.map(|drift| Drift {
                ppm_per_s: drift.per_second * 1e6,
                bound_ppm_per_s: drift.bound * 1e6,
            }),
            jitter: Jitter { beyond_sandwiches_ns: fit.excess_ns, at_most_ns: fit.scatter_ns },
            from: first.ticks,
            to: last.ticks,
            span: Nanos(last.low_ns - first.low_ns),
            sandwiches: fit.sandwiches,
            narrowest: Nanos(store.kept().map(Sandwich::width_ns).min().unwrap_or(0)),
            went_back: store.went_back(),
            independent: references.kernel.raw_clock_is_independent(),
            regression_only: !sources.iter().any(|s| s.independent && s.name != REGRESSION),
            sources,
            kernel: references.kernel.clone(),
        }
    }

    /// The largest difference between a statement and the frequency used, where it is too large
    /// for both to be right.
    #[must_use]
    pub fn disagreement_ppm(&self) -> Option<f64> {
        let differences = self.sources.iter().map(|source| source.difference_ppm.abs());
        let largest = differences.fold(0.0, f64::max);
        (largest > DISAGREEMENT_PPM + self.bound_ppm).then_some(largest)
    }

    /// What the reader of a run must know about its clock.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if self.regression_only {
            warnings.push(Warning::FrequencyFromRegressionOnly);
        }
        warnings.extend(self.disagreement_ppm().map(|ppm| Warning::FrequencyDisagreement { ppm }));
        if self.went_back > 0 {
            let what = format!(
                "the counter or CLOCK_MONOTONIC_RAW went back {} times: the machine was suspended, \
                 moved to another machine, or its CPUs are not synchronised",
                self.went_back
            );
            warnings.push(Warning::HostChanged { what });
        }
        if self.bound_ppm > DISAGREEMENT_PPM {
            let what = format!(
                "the counter and CLOCK_MONOTONIC_RAW do not keep step within {:.0} ppm over {}",
                self.bound_ppm, self.span
            );
            warnings.push(Warning::HostChanged { what });
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::mock::{MockCounter, MockRawClock};
    use crate::sources::Nominal;
    use crate::testing;

    fn calibrated(references: References) -> Calibration {
        let counter = MockCounter::new(Hertz(2e9));
        let clock = counter.raw_clock();
        Calibrator::start(counter, clock).with_references(references).quick().unwrap()
    }

    /// A raw clock that says how often it was waited for.
    struct Waited(MockRawClock, Arc<AtomicU64>);

    impl RawClock for Waited {
        fn now_ns(&mut self) -> u64 {
            self.0.now_ns()
        }

        fn wait(&mut self, duration: Nanos) {
            self.1.fetch_add(1, Ordering::Relaxed);
            self.0.wait(duration);
        }
    }

    #[test]
    fn work_beside_the_baseline_costs_the_bound_nothing_and_longer_work_narrows_it() {
        let start = || {
            let counter = MockCounter::new(Hertz(2e9)).with_jitter(TicksDelta(9), 7);
            let (clock, waits) = (counter.raw_clock(), Arc::default());
            (Calibrator::start(counter, Waited(clock, Arc::clone(&waits))), waits)
        };
        let mut at_most_ppm = f64::INFINITY;
        for at_least in [0, 125, 500] {
            let (mut calibrator, waits) = start();
            let work = || {
                while waits.load(Ordering::Relaxed) < at_least {
                    thread::yield_now();
                }
                "done"
            };
            let (done, beside) = calibrator.quick_beside(work).unwrap();
            assert_eq!(done, "done");
            assert!(beside.span >= Nanos((at_least * QUICK_PAUSE.0).max(QUICK.0)), "{beside:?}");
            // The same readings without anything beside them: the same, to the last digit.
            let (mut alone, _) = start();
            while alone.store.ends().1.low_ns - alone.store.ends().0.low_ns < beside.span.0 {
                alone.pass(QUICK_PAUSE);
                alone.sample();
            }
            assert_eq!(alone.so_far().unwrap(), beside);
            assert!(beside.bound_ppm <= at_most_ppm, "{beside:?}");
            at_most_ppm = start().0.quick().unwrap().bound_ppm;
        }
    }

    fn stated(hz: f64, clocksource: &str) -> References {
        References {
            nominal: vec![Nominal { name: "cpuid 15h", hz: Hertz(hz) }],
            kernel: KernelView {
                clocksource: Some(clocksource.to_owned()),
                frequency_was_told: true,
                ..KernelView::default()
            },
        }
    }

    #[test]
    fn with_clocksource_tsc_the_run_says_regression_only() {
        let calibration = calibrated(stated(2e9, "tsc"));
        assert!(!calibration.independent && calibration.regression_only);
        assert_eq!(calibration.warnings(), [Warning::FrequencyFromRegressionOnly]);
        let source = calibration.sources.last().unwrap();
        assert_eq!((source.name.as_str(), source.independent), (REGRESSION, false));
    }

    #[test]
    fn an_independent_statement_that_agrees_leaves_nothing_to_warn_of() {
        let calibration = calibrated(stated(2e9, "hpet"));
        assert!(calibration.independent && !calibration.regression_only);
        assert_eq!(calibration.warnings(), []);
    }

    #[test]
    fn a_statement_rounded_to_ten_megahertz_is_a_disagreement() {
        // 2.596 GHz stated as 2.6 GHz is 1 500 ppm off.
        let calibration = calibrated(stated(2e9 * 2_600.0 / 2_596.12, "hpet"));
        match calibration.warnings()[..] {
            [Warning::FrequencyDisagreement { ppm }] => assert!((ppm - 1_494.5).abs() < 10.0),
            ref other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_counter_that_goes_back_spoils_the_trust_in_a_run() {
        let counter = MockCounter::new(Hertz(2e9)).starting_at(Ticks(1 << 40));
        let clock = counter.raw_clock();
        let mut calibrator = Calibrator::start(counter, clock);
        calibrator.quick().unwrap();
        let (first, last) = calibrator.store.ends();
        let back = Sandwich { ticks: first.ticks, ..last };
        calibrator.store.offer(back);
        let warnings = calibrator.so_far().unwrap().warnings();
        assert!(warnings.iter().any(Warning::spoils_trust), "{warnings:?}");
    }

    #[test]
    fn a_counter_that_does_not_keep_step_spoils_the_trust_in_a_run() {
        let counter = MockCounter::new(Hertz(2e9)).with_drift(20_000.0);
        let clock = counter.raw_clock();
        let warnings = Calibrator::start(counter, clock).quick().unwrap().warnings();
        assert!(warnings.iter().any(Warning::spoils_trust), "{warnings:?}");
    }

    #[test]
    fn a_source_of_this_host_that_disagrees_is_warned_of_and_none_is_left_out() {
        let Some(counter) = testing::hardware() else { return };
        let calibration = Calibrator::of_this_host(counter).quick().unwrap();
        assert!(calibration.sandwiches >= 2 && !calibration.sources.is_empty());
        let beside = |source: &FrequencySource| source.difference_ppm.abs() - calibration.bound_ppm;
        let disagrees = calibration.sources.iter().any(|one| beside(one) > DISAGREEMENT_PPM);
        let warned = |w: &Warning| matches!(w, Warning::FrequencyDisagreement { .. });
        assert_eq!(calibration.warnings().iter().any(warned), disagrees, "{calibration:#?}");
    }

    #[test]
    fn two_calibrations_of_this_host_agree_within_their_bounds() {
        let Some(counter) = testing::hardware() else { return };
        let mut first = Calibrator::of_this_host(counter);
        let mut second = Calibrator::of_this_host(counter);
        let (first, second) = (first.quick().unwrap(), second.quick().unwrap());
        let off = (first.hz.0 / second.hz.0 - 1.0).abs() * 1e6;
        assert!(off <= first.bound_ppm + second.bound_ppm, "{off} ppm: {first:?}, {second:?}");
    }
}
