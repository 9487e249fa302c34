//! Time that only moves when it is read or waited for: a counter and a timer on one clock, with
//! planted lateness.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use whylate_clock::Counter;
use whylate_model::{CpuId, Nanos, Ticks};

use crate::error::ThreadsError;
use crate::timer::{Timer, TimerFacts, TimerNanos};

/// Ticks of the mock counter in a nanosecond.
const TICKS_PER_NS: u64 = 3;
/// What a reading of the counter takes; the value is that of its end.
pub(crate) const READ_NS: u64 = 10;
/// What a reading of the clock takes; the value is that of its middle.
const CLOCK_NS: u64 = 20;

/// One time for a counter and a timer.
#[derive(Debug, Clone)]
pub(crate) struct MockTime {
    ns: Arc<AtomicU64>,
    cpu: CpuId,
}

impl MockTime {
    pub(crate) fn new() -> Self {
        Self::on_cpu(CpuId(0))
    }

    pub(crate) fn on_cpu(cpu: CpuId) -> Self {
        Self { ns: Arc::default(), cpu }
    }

    pub(crate) fn counter(&self) -> MockCounter {
        MockCounter(self.clone())
    }

    /// A counter whose thread, when it could read at `ns`, reads at `runs_at(ns)`.
    pub(crate) fn counter_of<F: Fn(u64) -> u64 + Send>(&self, runs_at: F) -> HeldCounter<F> {
        HeldCounter { counter: self.counter(), runs_at }
    }

    /// A timer whose thread, when it could run at `ns`, runs at `runs_at(ns)`.
    pub(crate) fn timer<F: Fn(u64) -> u64 + Send>(&self, runs_at: F) -> MockTimer<F> {
        MockTimer { time: self.clone(), runs_at }
    }

    /// What the counter shows when the clock shows `at`.
    pub(crate) fn ticks_at(at: TimerNanos) -> Ticks {
        Ticks(at.0 * TICKS_PER_NS)
    }

    /// Reads the clock.
    pub(crate) fn now(&self) -> TimerNanos {
        let before = self.ns.fetch_add(CLOCK_NS, Ordering::Relaxed);
        TimerNanos(before + CLOCK_NS / 2)
    }
}

pub(crate) struct MockCounter(MockTime);

impl Counter for MockCounter {
    const KIND: &'static str = "mock";

    fn read(&mut self) -> Ticks {
        let before = self.0.ns.fetch_add(READ_NS, Ordering::Relaxed);
        MockTime::ticks_at(TimerNanos(before + READ_NS))
    }

    fn read_ordered(&mut self) -> (Ticks, CpuId) {
        (self.read(), self.cpu())
    }

    fn cpu(&mut self) -> CpuId {
        self.0.cpu
    }
}

/// The counter of a thread that others take the CPU from.
pub(crate) struct HeldCounter<F> {
    counter: MockCounter,
    runs_at: F,
}

impl<F: Fn(u64) -> u64 + Send> Counter for HeldCounter<F> {
    const KIND: &'static str = "mock";

    fn read(&mut self) -> Ticks {
        let ns = &self.counter.0.ns;
        ns.store((self.runs_at)(ns.load(Ordering::Relaxed)), Ordering::Relaxed);
        self.counter.read()
    }

    fn read_ordered(&mut self) -> (Ticks, CpuId) {
        (self.read(), self.cpu())
    }

    fn cpu(&mut self) -> CpuId {
        self.counter.cpu()
    }
}

pub(crate) struct MockTimer<F> {
    time: MockTime,
    runs_at: F,
}

impl<F: Fn(u64) -> u64 + Send> Timer for MockTimer<F> {
    fn prepare(&mut self) -> Result<(), ThreadsError> {
        Ok(())
    }

    fn wait_until(&mut self, at: TimerNanos) -> Result<(), ThreadsError> {
        let could = self.time.ns.load(Ordering::Relaxed).max(at.0);
        self.time.ns.store((self.runs_at)(could), Ordering::Relaxed);
        Ok(())
    }

    fn now(&mut self) -> TimerNanos {
        self.time.now()
    }

    fn facts(&self) -> TimerFacts {
        TimerFacts { name: "mock", clock: "mock", slack: Some(Nanos(0)) }
    }
}
