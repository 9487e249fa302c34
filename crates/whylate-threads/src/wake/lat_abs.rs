//! LAT_ABS: how late does a timer wake a thread, on a strict absolute schedule.
//!
//! Activation k is due at epoch + k * T, whatever happened before. The thread waits for it, reads
//! the counter, records, and waits for the first activation that is not over yet; those that are
//! were *skipped*. Raw latency is the latency of the wake-ups that took place. Corrected latency
//! counts each skipped activation too, at its own lateness at the instant the thread ran again:
//! without it, the longer a stall, the fewer samples tell of it.
//!
//! Latency runs from the intended instant on the timer's clock to the counter's reading right after
//! the return of the wait, converted by the [relation](crate::relation) between the two.

use std::fmt;

use whylate_clock::Counter;
use whylate_model::Nanos;
use whylate_stats::histogram::Histogram;

use crate::error::ThreadsError;
use crate::omission::ramp;
use crate::relation::Segment;
use crate::timer::Timer;
use crate::wake::probe::{Activation, Probe};
use crate::wake::stage::{Stage, Woke};

/// Below this the schedule is the cost of the system call, not of the wake-up.
pub const MIN_PERIOD: Nanos = Nanos(10_000);
/// Above this a user waits a minute for one number.
pub const MAX_PERIOD: Nanos = Nanos(60_000_000_000);
/// Thirty days, warm-up included: ten times the longest run the tool is made for.
pub const MAX_LENGTH: Nanos = Nanos(30 * 86_400 * 1_000_000_000);
/// Shorter intervals are taken as this: each has two histograms.
const MIN_INTERVAL: Nanos = Nanos(1_000_000);
/// The first activation is due this long after the thread is ready.
const LEAD_IN: Nanos = Nanos(1_000_000);

/// A strict absolute schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatAbs {
    /// Distance of two activations.
    pub period: Nanos,
    /// Activations in this time at the beginning are run and not counted.
    pub warmup: Nanos,
    /// Time measured after that.
    pub duration: Nanos,
    /// Length of the intervals that have a histogram of their own; 1 ms at least.
    pub interval: Nanos,
}

impl LatAbs {
    /// Period and duration, with a warm-up of a tenth of the duration, one second at most, and
    /// intervals of one second.
    #[must_use]
    pub fn new(period: Nanos, duration: Nanos) -> Self {
        let warmup = Nanos((duration.0 / 10).min(Nanos::SECOND.0));
        Self { period, warmup, duration, interval: Nanos::SECOND }
    }

    fn warmup_activations(&self) -> u64 {
        self.warmup.0.div_ceil(self.period.0)
    }

    fn interval_ns(&self) -> u64 {
        self.interval.max(MIN_INTERVAL).0
    }

    /// The interval that a measured activation belongs to.
    fn interval_of(&self, index: u64) -> u64 {
        (index - self.warmup_activations()).saturating_mul(self.period.0) / self.interval_ns()
    }

    /// The first activation of an interval.
    fn first_of(&self, interval: u64) -> u64 {
        let offset = u128::from(interval) * u128::from(self.interval_ns());
        self.warmup_activations() + offset.div_ceil(u128::from(self.period.0)) as u64
    }
}

impl fmt::Display for LatAbs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LAT_ABS {}", self.period)
    }
}

/// What LAT_ABS leaves behind. All values in nanoseconds.
#[derive(Debug)]
pub struct WakeOutcome {
    /// Latency of the wake-ups that took place.
    pub raw: Histogram,
    /// The same, and each skipped activation at its own lateness.
    pub corrected: Histogram,
    /// Activations that were over before the thread ran again.
    pub skipped: u64,
    /// Wake-ups stamped before their instant: by clock error, or by a timer that fires early.
    /// They are in the histograms as 0.
    pub early: u64,
    /// The earliest of them came this much too early.
    pub earliest: Nanos,
    open: Option<WakeInterval>,
}

/// One interval of a run, by intended instants.
#[derive(Debug)]
pub struct WakeInterval {
    /// Number since the end of the warm-up, from 0. An interval without any activation is left out.
    pub index: u64,
    /// Latency of the wake-ups that took place.
    pub raw: Histogram,
    /// The same, and each skipped activation at its own lateness.
    pub corrected: Histogram,
    /// Skipped activations.
    pub skipped: u64,
}

impl WakeOutcome {
    /// Wake-ups counted.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.raw.len()
    }

    /// The interval `index`, after closing any other.
    fn interval(&mut self, index: u64, emit: &mut dyn FnMut(WakeInterval)) -> &mut WakeInterval {
        if self.open.as_ref().is_some_and(|open| open.index != index) {
            self.close(emit);
        }
        self.open.get_or_insert_with(|| WakeInterval {
            index,
            raw: Histogram::new(),
            corrected: Histogram::new(),
            skipped: 0,
        })
    }

    fn close(&mut self, emit: &mut dyn FnMut(WakeInterval)) {
        if let Some(closed) = self.open.take() {
            self.raw.add(&closed.raw);
            self.corrected.add(&closed.corrected);
            self.skipped += closed.skipped;
            emit(closed);
        }
    }
}

impl Probe for LatAbs {
    type Outcome = WakeOutcome;
    type Interval = WakeInterval;

    fn check(&self) -> Result<(), ThreadsError> {
        if self.period < MIN_PERIOD || self.period > MAX_PERIOD {
            return Err(ThreadsError::Period(self.period));
        }
        if self.duration < self.period {
            let (duration, period) = (self.duration, self.period);
            return Err(ThreadsError::DurationShorterThanPeriod { duration, period });
        }
        let length = Nanos(self.warmup.0.saturating_add(self.duration.0));
        if length > MAX_LENGTH {
            return Err(ThreadsError::TooLong(length));
        }
        Ok(())
    }

    fn activations(&self) -> u64 {
        self.warmup_activations() + self.duration.0 / self.period.0
    }

    fn body<C: Counter, T: Timer>(&self, stage: &mut Stage<'_, C, T>) -> Result<(), ThreadsError> {
        let total = self.activations();
        stage.tie();
        let epoch = stage.now() + LEAD_IN;
        let mut index = 0;
        while index < total {
            let intended = epoch + Nanos(index * self.period.0);
            let Woke::At(wake) = stage.wait_until(intended)? else { break };
            // Read after the stamp: which activations are over by now?
            let over = stage.now().since(intended).0 / self.period.0;
            let skipped = over.min(total - index - 1);
            let next = index + 1 + skipped;
            let next_due = epoch + Nanos(next * self.period.0);
            stage.record(Activation { index, skipped, intended, wake }, next_due);
            index = next;
        }
        stage.tie();
        Ok(())
    }

    fn begin(&self) -> WakeOutcome {
        WakeOutcome {
            raw: Histogram::new(),
            corrected: Histogram::new(),
            skipped: 0,
            early: 0,
            earliest: Nanos(0),
            open: None,
        }
    }

    fn digest(
        &self,
        outcome: &mut WakeOutcome,
        activation: &Activation,
        around: &Segment,
        emit: &mut dyn FnMut(WakeInterval),
    ) {
        let warmup = self.warmup_activations();
        let woke = around.at(activation.wake);
        let lateness = woke.since(activation.intended);
        if activation.index >= warmup {
            let early = activation.intended.since(woke);
            outcome.early += u64::from(early.0 > 0);
            outcome.earliest = outcome.earliest.max(early);
            let interval = outcome.interval(self.interval_of(activation.index), emit);
            interval.raw.record(lateness.0);
            interval.corrected.record(lateness.0);
        }
        let end = activation.index + 1 + activation.skipped;
        let mut next = (activation.index + 1).max(warmup);
        while next < end {
            let index = self.interval_of(next);
            let count = end.min(self.first_of(index + 1)) - next;
            let interval = outcome.interval(index, emit);
            let behind = (next - activation.index).saturating_mul(self.period.0);
            let first = Nanos(lateness.0.saturating_sub(behind));
            ramp(first, self.period, count, |value, n| interval.corrected.record_n(value.0, n));
            interval.skipped += count;
            next += count;
        }
    }

    fn finish(&self, outcome: &mut WakeOutcome, emit: &mut dyn FnMut(WakeInterval)) {
        outcome.close(emit);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use proptest::prelude::*;
    use whylate_clock::HardwareCounter;
    use whylate_model::CpuId;
    use whylate_model::warning::Warning;
    use whylate_suite::missing;

    use super::*;
    use crate::mock::{MockTime, READ_NS};
    use crate::placement::Placement;
    use crate::testing;
    use crate::timers::ClockNanosleep;
    use crate::wake::run::{Measured, run};

    const US: u64 = 1_000;
    const MS: u64 = 1_000_000;
    const S: u64 = 1_000_000_000;

    /// Runs on mock time: a thread that could run at `ns` does run at `runs_at(ns)`.
    fn on_mock_time(
        model: LatAbs,
        runs_at: impl Fn(u64) -> u64 + Send + 'static,
    ) -> (Measured<WakeOutcome>, Vec<WakeInterval>) {
        let time = MockTime::new();
        let mut intervals = Vec::new();
        let (counter, timer, stop) = (time.counter(), time.timer(runs_at), AtomicBool::new(false));
        let mut keep = |interval| intervals.push(interval);
        let measured = run(&model, Placement::default(), counter, timer, &stop, &mut keep);
        (measured.unwrap(), intervals)
    }

    fn schedule(period: u64, warmup: u64, duration: u64) -> LatAbs {
        let (period, warmup, duration) = (Nanos(period), Nanos(warmup), Nanos(duration));
        LatAbs { period, warmup, duration, interval: Nanos::SECOND }
    }

    /// One stall, from an instant on mock time, which is 0 when the thread prepares itself.
    fn stall(from: u64, length: u64) -> impl Fn(u64) -> u64 + Send + 'static {
        move |ns| if (from..from + length).contains(&ns) { from + length } else { ns }
    }

    fn close(value: u64, truth: u64) -> bool {
        value.abs_diff(truth) <= truth / 500 + 2
    }

    #[test]
    fn planted_lateness_is_recovered() {
        for late in [0, 700, 13 * US, 900 * US] {
            let (measured, _) = on_mock_time(schedule(MS, 0, 500 * MS), move |ns| ns + late);
            let outcome = measured.outcome;
            assert_eq!((outcome.n(), outcome.skipped, outcome.early), (500, 0, 0));
            let (min, max) = (outcome.raw.min().unwrap(), outcome.raw.max().unwrap());
            let truth = late + READ_NS;
            let bound = measured.facts.relation.bound_ns().ceil() as u64 + 1;
            assert!(min.abs_diff(truth) <= bound && max.abs_diff(truth) <= bound, "{min} {max}");
        }
    }

    #[test]
    fn a_planted_stall_yields_its_skipped_activations_each_at_its_own_lateness() {
        let (period, length) = (MS, 37 * MS + 400 * US);
        let (measured, _) = on_mock_time(schedule(period, 0, 3 * S), stall(S, length));
        let outcome = measured.outcome;
        // The stall begins at any phase of the schedule, so 37 or 38 activations fall into it, of
        // which one wakes up late and the others are skipped.
        let hit = outcome.skipped + 1;
        assert!((37..=38).contains(&hit), "{hit}");
        assert_eq!(outcome.n() + outcome.skipped, 3_000);
        assert_eq!(outcome.corrected.len(), 3_000);
        assert_eq!(outcome.raw.count_above(10 * US), 1, "the stall is one raw sample");
        assert_eq!(outcome.corrected.count_above(10 * US), hit);
        let longest = outcome.raw.max().unwrap();
        assert_eq!(outcome.corrected.max(), Some(longest));
        assert!(longest <= length + READ_NS + 50 && longest > length - period, "{longest}");
        for k in 0..hit {
            let rank = outcome.corrected.len() - k;
            let (value, truth) =
                (outcome.corrected.rank_value(rank).unwrap(), longest - k * period);
            assert!(close(value, truth), "activation {k}: {value} {truth}");
        }
    }

    #[test]
    fn a_server_stopped_once_per_period_shows_the_ramp_only_when_corrected() {
        // METHOD 7: S = 80 ms once per P = 400 ms: Q(p) = S - P (1 - p) for 1 - p < S / P.
        let (stopped, once_per, period) = (80 * MS, 400 * MS, MS);
        let (measured, _) = on_mock_time(schedule(period, 0, 20 * S), move |ns| {
            // From the middle of a period on, so that no stall is cut by the begin or the end.
            let phase = (ns + once_per / 2) % once_per;
            if phase < stopped { ns - phase + stopped } else { ns }
        });
        let outcome = measured.outcome;
        assert_eq!(outcome.n() + outcome.skipped, 20_000);
        for percent in [81.0, 85.0, 90.0, 95.0, 99.0, 99.9] {
            let expected = stopped as f64 - once_per as f64 * (1.0 - percent / 100.0);
            let value = outcome.corrected.value_at(percent).unwrap() as f64;
            assert!(
                (value - expected).abs() <= 1.1 * period as f64,
                "{percent}: {value} {expected}"
            );
        }
        assert_eq!(outcome.raw.count_above(period), 20_000 * MS / once_per, "one sample per stall");
        assert!(outcome.raw.value_at(99.0).unwrap() < period, "the raw quantile hides the stalls");
    }

    #[test]
    fn intervals_add_up_to_the_whole_and_a_stall_counts_where_it_was_due() {
        let (measured, intervals) =
            on_mock_time(schedule(MS, 300 * MS, 6 * S), stall(2 * S, 2 * S));
        let outcome = measured.outcome;
        assert_eq!(intervals.iter().map(|i| i.index).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
        let sum = |of: fn(&WakeInterval) -> u64| intervals.iter().map(of).sum::<u64>();
        assert_eq!(sum(|i| i.raw.len()), outcome.n());
        assert_eq!(sum(|i| i.corrected.len()), 6_000);
        assert_eq!(sum(|i| i.skipped), outcome.skipped);
        assert!(intervals.iter().all(|i| i.corrected.len() == 1_000));
        // Stalled from 2 s to 4 s of the run, of which the first 0.3 s are warm-up.
        assert_eq!(intervals[2].raw.len(), 0, "nothing woke in the third second");
        assert_eq!(intervals[2].skipped, 1_000);
    }

    #[test]
    fn the_warm_up_is_run_and_not_counted_even_when_a_stall_crosses_its_end() {
        let model = schedule(MS, 500 * MS, S);
        let (measured, _) = on_mock_time(model, stall(400 * MS, 200 * MS));
        let outcome = measured.outcome;
        assert_eq!(outcome.corrected.len(), 1_000);
        assert_eq!(outcome.n() + outcome.skipped, 1_000);
        // About 100 of the 200 stalled activations lie after the warm-up; the one that woke does not.
        assert!((97..=101).contains(&outcome.skipped), "{}", outcome.skipped);
        assert_eq!(outcome.raw.count_above(10 * US), 0);
        assert!(outcome.corrected.max().unwrap() < 102 * MS);
    }

    #[test]
    fn a_stall_beyond_the_end_skips_no_more_activations_than_there_were() {
        let (measured, _) = on_mock_time(schedule(MS, 0, S), stall(900 * MS, 3_600 * S));
        assert_eq!(measured.outcome.corrected.len(), 1_000);
        assert_eq!(measured.outcome.n() + measured.outcome.skipped, 1_000);
    }

    #[test]
    fn settings_that_cannot_be_measured_are_refused_with_their_names() {
        for (model, word) in [
            (schedule(9_999, 0, S), "period"),
            (schedule(61 * S, 0, 3_600 * S), "period"),
            (schedule(MS, 0, 1), "shorter than the period"),
            (schedule(MS, 0, 0), "shorter than the period"),
            (schedule(MS, 0, 10 * 365 * 86_400 * S), "longer than"),
            (schedule(MS, u64::MAX, S), "longer than"),
        ] {
            let text = model.check().unwrap_err().to_string();
            assert!(text.contains(word), "{text}");
        }
    }

    #[test]
    fn a_set_stop_flag_ends_the_run_at_once_and_says_so() {
        let time = MockTime::new();
        let stop = AtomicBool::new(true);
        let (counter, timer) = (time.counter(), time.timer(|ns| ns));
        let model = schedule(MS, 0, S);
        let measured =
            run(&model, Placement::default(), counter, timer, &stop, &mut |_| ()).unwrap();
        assert!(measured.facts.stopped);
        assert_eq!(measured.outcome.n(), 0);
    }

    #[test]
    fn a_wake_up_on_another_cpu_than_the_pinned_one_is_reported() {
        let cpu = whylate_sys::affinity::get()[0];
        let time = MockTime::on_cpu(CpuId(cpu.0 + 1));
        let stop = AtomicBool::new(false);
        let placement = Placement { cpu: Some(cpu), fifo: None };
        let (counter, timer, model) = (time.counter(), time.timer(|ns| ns), schedule(MS, 0, S));
        let measured = run(&model, placement, counter, timer, &stop, &mut |_| ()).unwrap();
        assert_eq!(measured.facts.elsewhere, 1_000);
        assert!(measured.warnings.iter().any(|w| matches!(w, Warning::HostChanged { .. })));
    }

    #[test]
    fn a_real_run_accounts_for_every_activation() {
        let _alone = testing::alone();
        let counter = match HardwareCounter::open() {
            Ok(counter) => counter,
            Err(reason) => return missing(&reason),
        };
        let cpu = whylate_sys::affinity::get().first().copied();
        let placement = Placement { cpu, fifo: Some(50) };
        let (stop, model) = (AtomicBool::new(false), schedule(MS, 20 * MS, 300 * MS));
        let timer = ClockNanosleep::default();
        let measured = run(&model, placement, counter, timer, &stop, &mut |_| ()).unwrap();
        let (outcome, facts) = (measured.outcome, measured.facts);
        assert_eq!(outcome.n() + outcome.skipped, 300);
        assert_eq!(outcome.corrected.len(), 300);
        assert!(outcome.n() > 0);
        assert_eq!((facts.dropped, facts.elsewhere, facts.stopped), (0, 0, false));
        assert!(facts.relation.ties >= 2);
        assert!(outcome.earliest.0 as f64 <= facts.relation.bound_ns() + 1.0, "{facts:?}");
        assert!(facts.switches.voluntary > 0, "a thread that sleeps switches");
        assert!(facts.sample_recording_ns > 0.0);
        let refused = measured.warnings.iter().any(|w| matches!(w, Warning::PolicyRefused { .. }));
        assert_eq!(facts.seat.fifo.is_none(), refused, "a refused policy is a warning");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn every_activation_is_counted_once_whatever_the_stalls(
            period in 10 * US..5 * MS,
            stalls in proptest::collection::vec((0..400 * MS, 1..90 * MS), 0..6),
        ) {
            let model = schedule(period, 20 * MS, 300 * MS);
            let planned = 300 * MS / period;
            let (measured, intervals) = on_mock_time(model, move |ns| {
                stalls.iter().fold(ns, |ns, &(from, length)| {
                    if (from..from + length).contains(&ns) { from + length } else { ns }
                })
            });
            let outcome = measured.outcome;
            prop_assert_eq!(measured.facts.dropped, 0);
            prop_assert_eq!(outcome.n() + outcome.skipped, planned);
            prop_assert_eq!(outcome.corrected.len(), planned);
            prop_assert_eq!(intervals.iter().map(|i| i.corrected.len()).sum::<u64>(), planned);
            prop_assert!(outcome.corrected.max() >= outcome.raw.max());
        }
    }
}
