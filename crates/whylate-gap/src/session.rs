//! A measurement from its threads to its totals.
//!
//! [`Session::prepare`] starts the threads and lets them warm up; [`Session::start`] begins the
//! measurement proper at one common instant; the caller then calls [`Session::drain`] from a CPU
//! that is not measured until it says that the threads have ended, and [`Session::finish`] gives
//! the totals. Nothing here analyses a gap.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use whylate_clock::Counter;
use whylate_model::gap::Gap;
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Hertz, Nanos, Pid, Ticks, TicksDelta};

use crate::GapError;
use crate::blocks::{Blocks, Period};
use crate::hot::Live;
use crate::plan::{Placement, Plan};
use crate::ring::Consumer;
use crate::table::{Direct, LogLinear};
use crate::thread;

/// Threads start the measurement proper this long after [`Session::start`], so that all of them
/// have heard of it and settled in their loops.
pub const SETTLE: Nanos = Nanos(20_000_000);

/// A running measurement.
pub struct Session {
    threads: Vec<Measuring>,
    stop: Arc<AtomicBool>,
    competitors: thread::Competitors,
    batch: Vec<Gap>,
    begin: Option<Ticks>,
}

struct Measuring {
    facts: ThreadFacts,
    shared: Arc<Shared>,
    consumer: Consumer,
    begin: SyncSender<Begin>,
    handle: Option<JoinHandle<()>>,
}

/// What a measuring thread shares with the rest.
pub(crate) struct Shared {
    pub(crate) live: Live,
    pub(crate) overflow: LogLinear,
    pub(crate) blocks: Blocks,
    pub(crate) small: Direct,
    pub(crate) large: LogLinear,
}

/// The instants of the measurement proper.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begin {
    pub(crate) start: Ticks,
    pub(crate) end: Ticks,
}

/// What is known about a measuring thread once it has warmed up.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadFacts {
    /// CPU it was pinned to, or found itself on when floating.
    pub cpu: CpuId,
    /// Its SCHED_FIFO priority as read back; none under SCHED_OTHER, also when FIFO was refused.
    pub fifo: Option<u8>,
    /// Its thread id.
    pub tid: Pid,
    /// Its threshold.
    pub threshold: TicksDelta,
    /// The loop's period in the warm-up.
    pub warmup_period: f64,
    /// The same without counting, where the plan counts every delta.
    pub plain_period: Option<f64>,
    /// Calibrated cost of recording a gap.
    pub recording: TicksDelta,
    /// Calibrated cost of recording a gap after which getrusage is read.
    pub recording_with_switches: TicksDelta,
    /// The rseq word passed its self-test.
    pub rseq: bool,
    /// What the reader must know.
    pub warnings: Vec<Warning>,
}

/// What one thread measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Totals {
    /// First reading of the measurement proper; where a gap lasted beyond its start, that.
    pub start: Ticks,
    /// Last reading.
    pub end: Ticks,
    /// Iterations.
    pub iterations: u64,
    /// Gaps seen.
    pub gaps: u64,
    /// Gaps seen but not kept one by one.
    pub dropped: u64,
    /// Gaps with a change of CPU.
    pub migrations: u64,
    /// Time in gaps.
    pub gap_ticks: TicksDelta,
    /// Of these, time in which the thread waited of its own accord.
    pub wait_ticks: TicksDelta,
    /// Time recording them.
    pub recording_ticks: TicksDelta,
    /// Time below the threshold inside pairs; zero for `chain`, where it is all the rest.
    pub inside_ticks: TicksDelta,
    /// The loop's period; none when no block was without a gap.
    pub period: Option<Period>,
    /// End of the first gap above the stop limit.
    pub tripped: Option<Ticks>,
}

impl Totals {
    /// What a thread's own counters say by now.
    #[must_use]
    pub fn of(live: &Live, period: Option<Period>) -> Self {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let tripped = read(&live.tripped);
        Self {
            start: Ticks(read(&live.start)),
            end: Ticks(read(&live.now)),
            iterations: read(&live.iterations),
            gaps: read(&live.gaps),
            dropped: read(&live.dropped),
            migrations: read(&live.migrations),
            gap_ticks: TicksDelta(read(&live.gap_ticks)),
            wait_ticks: TicksDelta(read(&live.wait_ticks)),
            recording_ticks: TicksDelta(read(&live.recording_ticks)),
            inside_ticks: TicksDelta(read(&live.inside_ticks)),
            period,
            tripped: (tripped != 0).then_some(Ticks(tripped)),
        }
    }

    /// Time from the first reading to the last; zero before the first.
    #[must_use]
    pub fn elapsed(&self) -> TicksDelta {
        if self.start.0 == 0 { TicksDelta(0) } else { self.end.since(self.start) }
    }
}

/// Is the measurement still going on?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Yes.
    Running,
    /// All threads have ended and all their records are drained.
    Ended,
}

impl Session {
    /// Starts the threads and waits for their warm-up. `rate` may be a first estimate: it only
    /// scales the threshold and the warm-up.
    pub fn prepare<C: Counter + Clone + 'static>(
        plan: &Plan,
        counter: &C,
        rate: Hertz,
    ) -> Result<Self, GapError> {
        Self::prepare_unless(plan, counter, rate, &AtomicBool::new(false))
    }

    /// As [`Session::prepare`], and gives up with [`GapError::Stopped`] when `given_up` is set.
    pub fn prepare_unless<C: Counter + Clone + 'static>(
        plan: &Plan,
        counter: &C,
        rate: Hertz,
        given_up: &AtomicBool,
    ) -> Result<Self, GapError> {
        if plan.placement.threads() == 0 {
            return Err(GapError::NoCpus);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let competitors = thread::Competitors::start(plan)?;
        let mut starting = Vec::new();
        for index in 0..plan.placement.threads() {
            let (ready, is_ready) = sync_channel(1);
            let (begin, begins) = sync_channel(1);
            let task = thread::Task {
                cpus: plan.placement.of_thread(index).to_vec(),
                plan: plan.clone(),
                counter: counter.clone(),
                rate,
                stop: Arc::clone(&stop),
                ready,
                begins,
            };
            let handle = std::thread::Builder::new()
                .name(format!("gap/{index}"))
                .spawn(move || task.run())
                .map_err(GapError::Spawn)?;
            starting.push((handle, is_ready, begin));
        }
        let mut session =
            Self { threads: Vec::new(), stop, competitors, batch: Vec::new(), begin: None };
        for (handle, is_ready, begin) in starting {
            let measuring = warmed_up(handle, &is_ready, begin, given_up, &session.stop)?;
            session.threads.push(measuring);
        }
        if given_up.load(Ordering::Relaxed) {
            return Err(GapError::Stopped);
        }
        Ok(session)
    }

    /// Begins the measurement proper on all threads at one instant; returns that instant.
    ///
    /// It ends by itself after `duration`, or earlier by [`Session::stop`].
    pub fn start<C: Counter>(&mut self, counter: &mut C, rate: Hertz, duration: Nanos) -> Ticks {
        let start = counter.read() + SETTLE.to_ticks(rate);
        let end = start + duration.to_ticks(rate);
        self.begin = Some(start);
        for thread in &self.threads {
            // A thread that has died is found by `drain`.
            let _ = thread.begin.send(Begin { start, end });
        }
        start
    }

    /// What each thread found in its warm-up, in the order of the plan.
    pub fn threads(&self) -> impl Iterator<Item = &ThreadFacts> {
        self.threads.iter().map(|thread| &thread.facts)
    }

    /// The flag that ends the measurement.
    #[must_use]
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Hands every record made since the last call to `take`, thread by thread. What a thread
    /// recorded before the measurement proper began is left out, and a gap across the begin is cut there.
    pub fn drain(&mut self, mut take: impl FnMut(usize, &[Gap])) -> State {
        let ended =
            self.threads.iter().all(|t| t.handle.as_ref().is_none_or(JoinHandle::is_finished));
        for (index, thread) in self.threads.iter_mut().enumerate() {
            self.batch.clear();
            thread.consumer.drain(&mut self.batch);
            if let Some(begin) = self.begin {
                let first = Ticks(thread.shared.live.start.load(Ordering::Relaxed));
                only_measured(&mut self.batch, begin, first);
                take(index, &self.batch);
            }
        }
        if ended { State::Ended } else { State::Running }
    }

    /// The totals of thread `index` so far: complete after the end, up to the last block before.
    #[must_use]
    pub fn totals(&self, index: usize) -> Totals {
        let shared = &self.threads[index].shared;
        Totals::of(&shared.live, shared.blocks.period())
    }

    /// Lengths of the gaps of thread `index` that found the ring full, as (length, count).
    pub fn dropped(&self, index: usize) -> impl Iterator<Item = (TicksDelta, u64)> + '_ {
        self.threads[index].shared.overflow.bins()
    }

    /// Every delta of thread `index` as (ticks, count), ascending; empty unless the plan counts.
    pub fn deltas(&self, index: usize) -> impl Iterator<Item = (TicksDelta, u64)> + '_ {
        let shared = &self.threads[index].shared;
        shared.small.bins().chain(shared.large.bins())
    }

    /// Ends the measurement now; threads see it at the end of their block.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Waits for the threads and says whether one of them panicked.
    pub fn finish(&mut self) -> Result<(), GapError> {
        self.stop();
        self.competitors.stop();
        let mut result = Ok(());
        for thread in &mut self.threads {
            let panicked = thread.handle.take().is_some_and(|handle| handle.join().is_err());
            if panicked {
                result = Err(GapError::ThreadDied { cpu: thread.facts.cpu });
            }
        }
        result
    }
}

/// Leaves out what came before the begin, and cuts there what lasted beyond it. A thread that was stopped before it
/// measures a block from its first reading on, which is zero where it has not come to that.
fn only_measured(gaps: &mut Vec<Gap>, begin: Ticks, first: Ticks) {
    let begin = if first.0 == 0 { begin } else { begin.min(first) };
    gaps.retain(|gap| gap.end > begin);
    for gap in gaps {
        gap.start = gap.start.max(begin);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The threads wait for a start that will not come; dropping the senders ends them.
        self.stop();
        for thread in &mut self.threads {
            let (closed, _) = sync_channel(1);
            thread.begin = closed;
            if let Some(handle) = thread.handle.take() {
                let _ = handle.join();
            }
        }
    }
}

/// Threads whose records are drained while they run.
pub trait Source {
    /// The totals of thread `index` so far.
    fn totals(&self, index: usize) -> Totals;

    /// Hands every record made since the last call to `take`, thread by thread.
    fn drain(&mut self, take: &mut dyn FnMut(usize, &[Gap])) -> State;

    /// Lengths of the gaps of thread `index` that found the ring full.
    fn dropped(&self, index: usize) -> Bins<'_>;

    /// Every delta of thread `index`; none unless deltas are counted.
    fn deltas(&self, index: usize) -> Bins<'_>;
}

/// Lengths and how often they were seen.
pub type Bins<'a> = Box<dyn Iterator<Item = (TicksDelta, u64)> + 'a>;

impl Source for Session {
    fn totals(&self, index: usize) -> Totals {
        Self::totals(self, index)
    }

    fn drain(&mut self, take: &mut dyn FnMut(usize, &[Gap])) -> State {
        Self::drain(self, take)
    }

    fn dropped(&self, index: usize) -> Bins<'_> {
        Box::new(Self::dropped(self, index))
    }

    fn deltas(&self, index: usize) -> Bins<'_> {
        Box::new(Self::deltas(self, index))
    }
}

/// What a thread sends when its warm-up is over.
pub(crate) type Ready = Result<(ThreadFacts, Arc<Shared>, Consumer), GapError>;

/// Time between two looks at whether the user has given up.
const PATIENCE: Duration = Duration::from_millis(50);

fn warmed_up(
    handle: JoinHandle<()>,
    is_ready: &Receiver<Ready>,
    begin: SyncSender<Begin>,
    given_up: &AtomicBool,
    stop: &AtomicBool,
) -> Result<Measuring, GapError> {
    loop {
        match is_ready.recv_timeout(PATIENCE) {
            Ok(ready) => {
                let (facts, shared, consumer) = ready?;
                return Ok(Measuring { facts, shared, consumer, begin, handle: Some(handle) });
            }
            Err(RecvTimeoutError::Timeout) if given_up.load(Ordering::Relaxed) => {
                stop.store(true, Ordering::Relaxed);
                return Err(GapError::Stopped);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(GapError::ThreadDied { cpu: CpuId(0) });
            }
        }
    }
}

/// Checks that a placement's main thread would not sit on a measured CPU.
#[must_use]
pub fn measures(placement: &Placement, cpu: CpuId) -> bool {
    placement.cpus().contains(&cpu)
}

#[cfg(test)]
mod tests {
    use whylate_model::gap::{Evidence, GapKind};

    use super::*;

    #[test]
    fn gaps_are_measured_from_the_begin_or_from_the_first_reading_of_a_thread_stopped_before_it() {
        let gap = |start: u64, end: u64| Gap {
            start: Ticks(start),
            end: Ticks(end),
            resumed: Ticks(end),
            cpu_before: CpuId(0),
            cpu_after: CpuId(0),
            kind: GapKind::Interruption,
            evidence: Evidence::default(),
        };
        let left = |first: u64| {
            let mut gaps = vec![gap(10, 20), gap(30, 45), gap(90, 130), gap(140, 150)];
            only_measured(&mut gaps, Ticks(100), Ticks(first));
            gaps.iter().map(|gap| (gap.start.0, gap.end.0)).collect::<Vec<_>>()
        };
        let usual = [(100, 130), (140, 150)];
        assert_eq!(
            (left(0), left(100), left(135)),
            (usual.to_vec(), usual.to_vec(), usual.to_vec())
        );
        // Its counters have them all, and so must the records.
        assert_eq!(left(25), [(30, 45), (90, 130), (140, 150)]);
    }
}
