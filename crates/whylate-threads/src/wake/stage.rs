//! What a model's body works with: counter, timer, recorder, and the wish to stop.

use std::sync::atomic::{AtomicBool, Ordering};

use whylate_clock::Counter;
use whylate_model::{CpuId, Nanos, Ticks, TicksDelta};

use crate::error::ThreadsError;
use crate::relation::tie;
use crate::ring::Producer;
use crate::timer::{Timer, TimerNanos};
use crate::wake::probe::Activation;
use crate::wake::record::Record;

/// Counter and timer's clock are tied together this often.
const TIE_EVERY: Nanos = Nanos::SECOND;
/// A tie takes a microsecond or so; it waits for a pause of at least this length.
const TIE_ROOM: Nanos = Nanos(20_000);
/// Without such a pause a tie is taken anyway after this many activations, so that the collecting
/// side holds no more than these.
const TIE_AT_LATEST: u64 = 1 << 14;
/// A longer wait is cut into pieces, so that a stop is noticed; only the last piece is measured.
const LONGEST_WAIT: Nanos = Nanos(250_000_000);
/// Records made to find out what one costs.
const COST_ROUNDS: usize = 1_001;

/// The place a body works in.
pub struct Stage<'a, C, T> {
    counter: C,
    timer: T,
    producer: Producer,
    stop: &'a AtomicBool,
    cpu: Option<CpuId>,
    last_tie: TimerNanos,
    since_tie: u64,
    tally: Tally,
}

/// What the recorder counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Activations that found the ring full, the skipped ones behind them included.
    pub(crate) dropped: u64,
    /// Activations on another CPU than the thread was pinned to.
    pub(crate) elsewhere: u64,
    /// The run was ended by the stop flag.
    pub(crate) stopped: bool,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woke {
    /// The timer fired, and this was the counter right after.
    At(Ticks),
    /// The run is to stop.
    Stopped,
}

impl<'a, C: Counter, T: Timer> Stage<'a, C, T> {
    pub(crate) fn new(
        counter: C,
        timer: T,
        producer: Producer,
        stop: &'a AtomicBool,
        cpu: Option<CpuId>,
    ) -> Self {
        let (last_tie, tally) = (TimerNanos::default(), Tally::default());
        Self { counter, timer, producer, stop, cpu, last_tie, since_tie: 0, tally }
    }

    /// What the timer's clock shows.
    #[inline]
    pub fn now(&mut self) -> TimerNanos {
        self.timer.now()
    }

    /// Waits until `at` and reads the counter at once.
    #[inline]
    pub fn wait_until(&mut self, at: TimerNanos) -> Result<Woke, ThreadsError> {
        if self.stop.load(Ordering::Relaxed) {
            return Ok(self.stopped());
        }
        loop {
            let now = self.timer.now();
            if at.since(now) <= LONGEST_WAIT {
                break;
            }
            self.timer.wait_until(now + LONGEST_WAIT)?;
            if self.stop.load(Ordering::Relaxed) {
                return Ok(self.stopped());
            }
        }
        self.timer.wait_until(at)?;
        Ok(Woke::At(self.counter.read()))
    }

    /// Records an activation; ties the clocks together when it is time and there is room before
    /// `next`, the next instant that matters.
    #[inline]
    pub fn record(&mut self, activation: Activation, next: TimerNanos) {
        let cpu = self.counter.cpu();
        self.tally.elsewhere += u64::from(self.cpu.is_some_and(|pinned| pinned != cpu));
        if !self.producer.push(Record::Activation(activation).pack()) {
            self.tally.dropped += 1 + activation.skipped;
        }
        self.since_tie += 1;
        let due = activation.intended.since(self.last_tie) >= TIE_EVERY;
        if self.since_tie >= TIE_AT_LATEST || due && next.since(self.timer.now()) >= TIE_ROOM {
            self.tie();
        }
    }

    /// Ties counter and timer's clock together. A body does so before its first activation and
    /// after its last.
    pub fn tie(&mut self) {
        let timer = &mut self.timer;
        let tie = tie(&mut self.counter, || timer.now());
        // A full ring refuses the tie: the next one makes a longer segment, nothing is lost.
        if self.producer.push(Record::Tie(tie).pack()) {
            self.last_tie = tie.at;
            self.since_tie = 0;
        }
    }

    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    /// The counter, for bodies that do more than wait.
    pub fn counter(&mut self) -> &mut C {
        &mut self.counter
    }

    pub(crate) fn timer(&self) -> &T {
        &self.timer
    }

    fn stopped(&mut self) -> Woke {
        self.tally.stopped = true;
        Woke::Stopped
    }
}

/// What one pass through the recorder costs, median: counter to counter, the reading of the timer's
/// clock that decides what was skipped included. Fills `scratch`, a ring of its own.
pub(crate) fn recording_cost<C: Counter, T: Timer>(
    counter: &mut C,
    timer: &mut T,
    scratch: &mut Producer,
) -> TicksDelta {
    let mut costs: Vec<u64> = (0..COST_ROUNDS as u64)
        .map(|index| {
            let wake = counter.read();
            let intended = timer.now();
            let cpu = counter.cpu();
            let skipped = u64::from(cpu.0) & 1;
            let activation = Activation { index, skipped, intended, wake };
            scratch.push(Record::Activation(activation).pack());
            counter.read().since(wake).0
        })
        .collect();
    costs.sort_unstable();
    TicksDelta(costs[COST_ROUNDS / 2])
}
