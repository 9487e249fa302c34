//! A counter whose truth is known: planted frequency, drift, jitter, gaps and changes of CPU.
//!
//! For proofs. [`MockCounter`] moves its own time on at each read, so that a loop that reads it
//! runs through simulated seconds or days as fast as it can count; [`MockRawClock`] reads the same
//! time as the kernel's raw clock would, with a cost, a jitter and outliers of its own, so that a
//! calibration can be held against what was planted ([`Truth`]).
//!
//! A clone is a counter of its own that goes on from where the original stood: what one thread
//! reads does not depend on another thread. Only a [`MockRawClock`] shares the time of the counter
//! it was made from.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use whylate_model::{CpuId, Hertz, Nanos, Ticks, TicksDelta};
use whylate_stats::rng::Rng;

use crate::Counter;
use crate::kernel::RawClock;

/// Ticks in which all readings of a noisy [`MockRawClock`] are off by the same.
pub const NOISE_STRETCH: u64 = 1 << 20;

/// A stretch in which the reading thread does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlantedGap {
    /// The gap begins with the first read that would return this or more.
    pub at: Ticks,
    /// How much that read returns on top of its period.
    pub length: TicksDelta,
    /// The CPU the thread finds itself on afterwards, where it changes.
    pub new_cpu: Option<CpuId>,
}

/// What was planted: the relation between the counter and true time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Truth {
    /// Frequency at the first tick.
    pub hz: Hertz,
    /// Change of the frequency, in parts per million of `hz` per second.
    pub drift_ppm_per_s: f64,
    /// The reading at which true time is zero.
    pub start: Ticks,
}

impl Truth {
    /// True time at a reading, in nanoseconds since the first tick.
    #[must_use]
    pub fn nanos_at(&self, ticks: Ticks) -> f64 {
        let cycles = ticks.since(self.start).0 as f64;
        let seconds = cycles / self.hz.0;
        // ticks = hz (t + drift t^2 / 2), solved for t in the form that does not cancel.
        2e9 * seconds / (1.0 + (1.0 + 2.0 * self.drift() * seconds).sqrt())
    }

    /// The reading at a true time given in nanoseconds since the first tick.
    #[must_use]
    pub fn ticks_at(&self, nanos: f64) -> Ticks {
        let seconds = nanos / 1e9;
        let cycles = self.hz.0 * seconds * (1.0 + self.drift() * seconds / 2.0);
        self.start + TicksDelta(cycles.round() as u64)
    }

    /// Frequency at a reading.
    #[must_use]
    pub fn hz_at(&self, ticks: Ticks) -> Hertz {
        Hertz(self.hz.0 * (1.0 + self.drift() * self.nanos_at(ticks) / 1e9))
    }

    fn drift(&self) -> f64 {
        self.drift_ppm_per_s / 1e6
    }
}

/// A counter that moves on by a period at each read, and by the planted gaps.
#[derive(Debug)]
pub struct MockCounter {
    /// The time, shared with the raw clocks made from this counter and with nobody else.
    now: Arc<AtomicU64>,
    truth: Truth,
    period: Vec<u64>,
    phase: usize,
    jitter: u64,
    random: Rng,
    cpu: CpuId,
    gaps: Arc<[PlantedGap]>,
    next_gap: usize,
    next_gap_at: u64,
}

impl MockCounter {
    /// A counter of `hz` on CPU 0 that starts at zero and moves on by 25 ticks at each read.
    #[must_use]
    pub fn new(hz: Hertz) -> Self {
        Self {
            now: Arc::new(AtomicU64::new(0)),
            truth: Truth { hz, drift_ppm_per_s: 0.0, start: Ticks(0) },
            period: vec![25],
            phase: 0,
            jitter: 0,
            random: Rng::new(0),
            cpu: CpuId(0),
            gaps: Arc::new([]),
            next_gap: 0,
            next_gap_at: u64::MAX,
        }
    }

    /// Lets the counter start elsewhere than at zero.
    #[must_use]
    pub fn starting_at(mut self, start: Ticks) -> Self {
        self.truth.start = start;
        self.now = Arc::new(AtomicU64::new(start.0));
        self
    }

    /// Lets the frequency change by so many parts per million per second.
    #[must_use]
    pub fn with_drift(mut self, ppm_per_s: f64) -> Self {
        self.truth.drift_ppm_per_s = ppm_per_s;
        self
    }

    /// Moves on by these ticks in turn, such as `[25, 26, 1]`.
    ///
    /// # Panics
    /// When `period` is empty.
    #[must_use]
    pub fn with_period(mut self, period: &[u64]) -> Self {
        assert!(!period.is_empty(), "a mock counter needs at least one period");
        self.period = period.to_vec();
        self.phase = 0;
        self
    }

    /// Adds 0 to `ticks`, drawn from `seed`, to the period of each read.
    #[must_use]
    pub fn with_jitter(mut self, ticks: TicksDelta, seed: u64) -> Self {
        self.jitter = ticks.0;
        self.random = Rng::new(seed);
        self
    }

    /// Plants gaps; they are sorted by their begin.
    #[must_use]
    pub fn with_gaps(mut self, mut gaps: Vec<PlantedGap>) -> Self {
        gaps.sort_by_key(|gap| gap.at);
        self.next_gap_at = gaps.first().map_or(u64::MAX, |gap| gap.at.0);
        self.next_gap = 0;
        self.gaps = gaps.into();
        self
    }

    /// Puts the reading thread on another CPU than 0.
    #[must_use]
    pub fn on_cpu(mut self, cpu: CpuId) -> Self {
        self.cpu = cpu;
        self
    }

    /// What was planted.
    #[must_use]
    pub fn truth(&self) -> Truth {
        self.truth
    }

    /// The last reading, without moving time on.
    #[must_use]
    pub fn last(&self) -> Ticks {
        Ticks(self.now.load(Ordering::Relaxed))
    }

    /// Lets time pass without a read.
    pub fn advance(&mut self, ticks: TicksDelta) {
        self.now.store(self.last().0 + ticks.0, Ordering::Relaxed);
    }

    /// A clock that reads the time of this counter.
    #[must_use]
    pub fn raw_clock(&self) -> MockRawClock {
        MockRawClock {
            now: Arc::clone(&self.now),
            truth: self.truth,
            offset_ns: 0,
            cost: 52,
            cost_jitter: 0,
            noise_ns: 0.0,
            noise_seed: 0,
            outlier: None,
            random: Rng::new(0),
        }
    }

    #[inline]
    fn step(&mut self) -> u64 {
        let step = self.period[self.phase];
        self.phase += 1;
        if self.phase == self.period.len() {
            self.phase = 0;
        }
        if self.jitter == 0 { step } else { step + self.random.below(self.jitter + 1) }
    }

    #[cold]
    fn cross(&mut self, mut now: u64) -> u64 {
        while let Some(gap) = self.gaps.get(self.next_gap).filter(|gap| gap.at.0 <= now) {
            now += gap.length.0;
            self.cpu = gap.new_cpu.unwrap_or(self.cpu);
            self.next_gap += 1;
        }
        self.next_gap_at = self.gaps.get(self.next_gap).map_or(u64::MAX, |gap| gap.at.0);
        now
    }
}

impl Clone for MockCounter {
    fn clone(&self) -> Self {
        Self {
            now: Arc::new(AtomicU64::new(self.last().0)),
            truth: self.truth,
            period: self.period.clone(),
            phase: self.phase,
            jitter: self.jitter,
            random: self.random.clone(),
            cpu: self.cpu,
            gaps: Arc::clone(&self.gaps),
            next_gap: self.next_gap,
            next_gap_at: self.next_gap_at,
        }
    }
}

impl Counter for MockCounter {
    const KIND: &'static str = "mock";

    #[inline]
    fn read(&mut self) -> Ticks {
        // Only this counter and the raw clocks of the same thread write: no read-modify-write.
        let mut now = self.now.load(Ordering::Relaxed) + self.step();
        if now >= self.next_gap_at {
            now = self.cross(now);
        }
        self.now.store(now, Ordering::Relaxed);
        Ticks(now)
    }

    #[inline]
    fn read_ordered(&mut self) -> (Ticks, CpuId) {
        let ticks = self.read();
        (ticks, self.cpu)
    }

    #[inline]
    fn cpu(&mut self) -> CpuId {
        self.cpu
    }
}

/// The raw clock of a [`MockCounter`]: whole nanoseconds, read at a cost.
#[derive(Debug)]
pub struct MockRawClock {
    now: Arc<AtomicU64>,
    truth: Truth,
    offset_ns: u64,
    cost: u64,
    cost_jitter: u64,
    noise_ns: f64,
    noise_seed: u64,
    outlier: Option<Outlier>,
    random: Rng,
}

#[derive(Debug, Clone, Copy)]
struct Outlier {
    one_in: u64,
    length: TicksDelta,
}

impl MockRawClock {
    /// Adds a constant to every reading.
    #[must_use]
    pub fn with_offset(mut self, offset: Nanos) -> Self {
        self.offset_ns = offset.0;
        self
    }

    /// A read takes `cost` ticks and 0 to `jitter` more; the clock is read somewhere in between.
    #[must_use]
    pub fn with_cost(mut self, cost: TicksDelta, jitter: TicksDelta) -> Self {
        self.cost = cost.0;
        self.cost_jitter = jitter.0;
        self
    }

    /// Readings are off by up to so many nanoseconds to either side: all by the same in a stretch
    /// of [`NOISE_STRETCH`] ticks, so that no sandwich shows it.
    #[must_use]
    pub fn with_noise(mut self, ns: f64) -> Self {
        self.noise_ns = ns;
        self
    }

    /// One read in `one_in` is held up by `length`, before or after the clock is read.
    #[must_use]
    pub fn with_outliers(mut self, one_in: u64, length: TicksDelta) -> Self {
        self.outlier = Some(Outlier { one_in, length });
        self
    }

    /// Draws everything random from another seed.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.random = Rng::new(seed);
        self.noise_seed = seed;
        self
    }
}

impl RawClock for MockRawClock {
    fn now_ns(&mut self) -> u64 {
        let cost = self.cost + self.random.below(self.cost_jitter + 1);
        let before = self.random.below(cost + 1);
        let (held_before, held_after) = match self.outlier {
            Some(outlier) if self.random.below(outlier.one_in) == 0 => {
                let before = self.random.below(2) * outlier.length.0;
                (before, outlier.length.0 - before)
            }
            _ => (0, 0),
        };
        let read_at = self.now.load(Ordering::Relaxed) + held_before + before;
        self.now.store(read_at + cost - before + held_after, Ordering::Relaxed);
        let mut stretch = Rng::stream(self.noise_seed, read_at / NOISE_STRETCH);
        let noise = self.noise_ns * (2.0 * stretch.unit() - 1.0);
        self.offset_ns + (self.truth.nanos_at(Ticks(read_at)) + noise).max(0.0) as u64
    }

    fn wait(&mut self, duration: Nanos) {
        let now = Ticks(self.now.load(Ordering::Relaxed));
        let then = self.truth.ticks_at(self.truth.nanos_at(now) + duration.0 as f64);
        self.now.store(then.0.max(now.0), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Hertz = Hertz(2_596_120_000.0);

    #[test]
    fn each_read_moves_on_by_the_next_period_of_the_pattern() {
        let mut counter = MockCounter::new(RATE).with_period(&[25, 26, 1]).starting_at(Ticks(100));
        let reads: Vec<u64> = (0..6).map(|_| counter.read().0).collect();
        assert_eq!(reads, [125, 151, 152, 177, 203, 204]);
    }

    #[test]
    fn a_planted_gap_is_one_long_delta_and_may_change_the_cpu() {
        let gap =
            |at, length, new_cpu| PlantedGap { at: Ticks(at), length: TicksDelta(length), new_cpu };
        let mut counter = MockCounter::new(RATE)
            .with_period(&[10])
            .with_gaps(vec![gap(55, 1_000, None), gap(20, 500, Some(CpuId(3)))]);
        assert_eq!(counter.read(), Ticks(10));
        assert_eq!(counter.cpu(), CpuId(0));
        assert_eq!(counter.read(), Ticks(1_520), "the second gap falls inside the first");
        assert_eq!(counter.cpu(), CpuId(3));
        assert_eq!(counter.read(), Ticks(1_530));
    }

    #[test]
    fn a_clone_does_not_move_the_original() {
        let mut counter = MockCounter::new(RATE);
        counter.read();
        let mut clone = counter.clone();
        clone.read();
        clone.read();
        assert_eq!(counter.last(), Ticks(25));
        assert_eq!(clone.last(), Ticks(75));
    }

    #[test]
    fn jitter_repeats_with_its_seed() {
        let run = |seed| {
            let mut counter = MockCounter::new(RATE).with_jitter(TicksDelta(9), seed);
            (0..1_000).map(|_| counter.read().0).collect::<Vec<_>>()
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
        let steps: Vec<u64> = run(1).windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(steps.iter().min(), Some(&25));
        assert_eq!(steps.iter().max(), Some(&34));
    }

    #[test]
    fn three_days_pass_in_as_many_reads_as_the_period_makes_of_them() {
        let three_days = (3.0 * 86_400.0 * RATE.0) as u64;
        let period = three_days / 20_000_000;
        let gap = |i: u64| PlantedGap {
            at: Ticks(i * three_days / 1_000),
            length: TicksDelta(10 * period),
            new_cpu: Some(CpuId(i as u32 % 2)),
        };
        let mut counter =
            MockCounter::new(RATE).with_period(&[period]).with_gaps((0..1_000).map(gap).collect());
        let mut gaps = 0;
        let mut previous = counter.last();
        while previous.0 < three_days {
            let now = counter.read();
            gaps += u32::from(now.since(previous).0 > period);
            previous = now;
        }
        assert_eq!(gaps, 1_000);
    }

    #[test]
    fn the_raw_clock_reads_the_counters_time() {
        let mut counter = MockCounter::new(Hertz(1e9)).starting_at(Ticks(1 << 40));
        let mut raw =
            counter.raw_clock().with_offset(Nanos(7)).with_cost(TicksDelta(0), TicksDelta(0));
        assert_eq!(raw.now_ns(), 7);
        counter.read();
        assert_eq!(raw.now_ns(), 32);
        raw.wait(Nanos::SECOND);
        assert_eq!(counter.read(), Ticks((1 << 40) + 50 + 1_000_000_000));
    }

    #[test]
    fn the_truth_is_its_own_inverse_over_three_days_of_drift() {
        let truth = Truth { hz: RATE, drift_ppm_per_s: 1e-3, start: Ticks(12_345) };
        for seconds in [0.0, 1e-6, 1.0, 3_600.0, 259_200.0] {
            let back = truth.nanos_at(truth.ticks_at(seconds * 1e9));
            assert!((back - seconds * 1e9).abs() < 1.0, "{seconds} s came back as {back} ns");
        }
        let hour = truth.ticks_at(3_600e9);
        assert!((truth.hz_at(hour).0 / RATE.0 - 1.0 - 3.6e-6).abs() < 1e-12);
    }
}
