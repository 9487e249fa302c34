//! One measuring thread: set-up, warm-up, measurement.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use std::thread::JoinHandle;

use whylate_clock::Counter;
use whylate_model::run::LoopKind;
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Hertz, Nanos, Ticks, TicksDelta};
use whylate_sys::rseq::RseqArea;
use whylate_sys::{affinity, memory, process, sched};

use crate::GapError;
use crate::blocks::{Blocks, Period};
use crate::hot::{self, Limits, Live, Recorder};
use crate::plan::{Plan, Policy, Work};
use crate::ring::{self, Consumer};
use crate::selftest_rseq;
use crate::session::{Begin, Ready, Shared, ThreadFacts};
use crate::table::{Direct, LogLinear};
use crate::threshold::{self, FLOOR};
use crate::workload::{Memmove, Nothing, Scan, Workload};

/// Fewer recordings than this in the warm-up, and the rest is made for the purpose.
const RECORDINGS_TO_CALIBRATE: usize = 64;
/// The calibrated cost of recording is this quantile of the warm-up's recordings: those that were
/// themselves interrupted lie above it.
const RECORDING_QUANTILE: f64 = 0.95;

/// Ticks between two readings with nothing between them are fewer.
const SHORT_PERIOD: f64 = 1024.0;

/// From here on one copy takes as long as a block of short ones.
const LONG_COPY: usize = 1 << 20;

pub(crate) struct Task<C> {
    pub(crate) cpus: Vec<CpuId>,
    pub(crate) plan: Plan,
    pub(crate) counter: C,
    pub(crate) rate: Hertz,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) ready: SyncSender<Ready>,
    pub(crate) begins: Receiver<Begin>,
}

impl<C: Counter + Clone> Task<C> {
    pub(crate) fn run(self) {
        match self.plan.work {
            Work::Nothing => self.run_with(&mut Nothing),
            Work::Memmove { bytes } if bytes < LONG_COPY => {
                self.run_with(&mut Memmove::<16>::new(bytes));
            }
            Work::Memmove { bytes } => self.run_with(&mut Memmove::<1>::new(bytes)),
            Work::Scan { bytes } => self.run_with(&mut Scan::new(bytes)),
        }
    }

    fn run_with<W: Workload>(mut self, workload: &mut W) {
        let warmed = match self.set_up().and_then(|set_up| self.warm_up(workload, set_up)) {
            Ok(warmed) => warmed,
            Err(error) => {
                let _ = self.ready.send(Err(error));
                return;
            }
        };
        let Warmed { facts, shared, consumer, producer, rseq } = warmed;
        let limits = Limits {
            threshold: facts.threshold,
            recording: facts.recording,
            recording_with_switches: facts.recording_with_switches,
            stop_at: TicksDelta(u64::MAX),
            begin: Ticks(0),
            end: Ticks(0),
        };
        let stop_at = self.plan.stop_at.map_or(limits.stop_at, |limit| limit.to_ticks(self.rate));
        if self.ready.send(Ok((facts, Arc::clone(&shared), consumer))).is_err() {
            return;
        }
        let Ok(begin) = self.begins.recv() else { return };
        let stop = Arc::clone(&self.stop);
        let (settling, unseen) = (Scratch::new::<W>(1.0), Live::default());
        let mut recorder = Recorder::new(producer, &settling.large, &unseen, &stop, rseq, limits);
        // Runs in the loop to be measured until the common start, so that nothing is cold then. Nobody looks at
        // these counters; what was taken from the thread beyond the start is counted where that is measured.
        recorder.limits.stop_at = stop_at;
        recorder.settles(&mut self.counter, &shared.live, begin.start);
        self.measure(workload, &mut recorder, &settling.blocks, &settling.small, &settling.large);
        recorder.measures(&shared.overflow, begin.end);
        self.measure(workload, &mut recorder, &shared.blocks, &shared.small, &shared.large);
    }

    fn measure<W: Workload>(
        &mut self,
        workload: &mut W,
        recorder: &mut Recorder,
        blocks: &Blocks,
        small: &Direct,
        large: &LogLinear,
    ) {
        let counter = &mut self.counter;
        match (self.plan.loop_kind, self.plan.counting) {
            (LoopKind::Chain, false) => hot::chain(counter, workload, recorder, blocks),
            (LoopKind::Pair, false) => hot::pair(counter, workload, recorder, blocks),
            (LoopKind::Chain, true) => {
                hot::chain_counting(counter, workload, recorder, blocks, small, large);
            }
            (LoopKind::Pair, true) => {
                hot::pair_counting(counter, workload, recorder, blocks, small, large);
            }
        }
    }

    /// The CPU it was pinned to, wherever somebody may have moved it; that of a floating thread is
    /// the one it is on.
    fn home(&mut self) -> CpuId {
        match self.cpus[..] {
            [only] => only,
            _ => self.counter.cpu(),
        }
    }

    fn set_up(&mut self) -> Result<SetUp, GapError> {
        affinity::set(&self.cpus).map_err(|source| GapError::Affinity {
            cpus: self.cpus.iter().map(CpuId::to_string).collect::<Vec<_>>().join(","),
            source,
        })?;
        memory::prefault_stack();
        let mut warnings = Vec::new();
        let fifo = match self.plan.policy {
            Policy::Ordinary => None,
            Policy::Fifo(priority) => sched::set_fifo(priority)
                .inspect_err(|refusal| {
                    warnings.push(Warning::PolicyRefused { reason: refusal.to_string() });
                })
                .ok()
                .and_then(|()| match sched::policy() {
                    sched::Policy::Fifo(granted) => Some(granted),
                    _ => None,
                }),
        };
        let rseq = RseqArea::of_thread()
            .map_err(|refusal| refusal.to_string())
            .and_then(|area| selftest_rseq::check(&mut self.counter, self.rate, area));
        let rseq = rseq
            .inspect_err(|reason| {
                warnings.push(Warning::RseqUnusable { reason: reason.clone() });
            })
            .ok();
        Ok(SetUp { fifo, rseq, warnings })
    }

    /// Half of the warm-up counts deltas to find the threshold; the other half runs with that
    /// threshold to find the period and the cost of recording.
    fn warm_up<W: Workload>(
        &mut self,
        workload: &mut W,
        set_up: SetUp,
    ) -> Result<Warmed, GapError> {
        let SetUp { fifo, rseq, warnings } = set_up;
        let (producer, mut consumer) = ring::ring();
        let half = Nanos(self.plan.warmup.0 / 2).to_ticks(self.rate);
        let overflow = LogLinear::default();
        let limits = Limits {
            threshold: FLOOR.to_ticks(self.rate),
            recording: TicksDelta(u64::MAX >> 1),
            recording_with_switches: TicksDelta(u64::MAX >> 1),
            stop_at: TicksDelta(u64::MAX),
            begin: Ticks(0),
            end: self.counter.read() + half,
        };
        let live = Live::default();
        let stop = Arc::clone(&self.stop);
        let mut recorder = Recorder::new(producer, &overflow, &live, &stop, rseq, limits);
        let counting = self.plan.counting;
        self.plan.counting = true;
        let deltas = Scratch::new::<W>(SHORT_PERIOD);
        self.measure(workload, &mut recorder, &deltas.blocks, &deltas.small, &deltas.large);
        self.plan.counting = counting;
        let threshold = self.plan.threshold.ticks(&deltas.small, &deltas.large, self.rate);
        // A block of long iterations is beyond the scale of short ones.
        let expected = threshold::quantile(&deltas.small, &deltas.large, 0.5).0 as f64;
        let expected = expected.max(SHORT_PERIOD);
        let scratch = Scratch::new::<W>(expected);

        let mut records = Vec::new();
        consumer.drain(&mut records);
        records.clear();
        recorder.limits.threshold = threshold;
        recorder.limits.end = self.counter.read() + half;
        self.measure(workload, &mut recorder, &scratch.blocks, &scratch.small, &scratch.large);
        let period = scratch.blocks.period().or(deltas.blocks.period());
        let plain_period = self.plain_period(workload, &mut recorder, half, expected);
        let Some(Period { median: warmup_period, .. }) = period else {
            return Err(GapError::NeverQuiet { cpu: self.counter.cpu(), iterations: W::BLOCK });
        };
        if (threshold.0 as f64) <= warmup_period {
            return Err(GapError::ThresholdBelowPeriod {
                threshold: threshold.to_nanos(self.rate),
                period: warmup_period * 1e9 / self.rate.0,
            });
        }
        consumer.drain(&mut records);
        self.record_for_practice(&mut recorder, &mut consumer, &mut records);
        let cost = |with_switches: bool| {
            let costs = records
                .iter()
                .filter(|gap| gap.evidence.involuntary_switches.is_some() == with_switches)
                .map(|gap| gap.recording().0);
            upper_quantile(costs.collect())
        };
        let facts = ThreadFacts {
            cpu: self.home(),
            fifo,
            tid: process::tid(),
            threshold,
            warmup_period,
            plain_period,
            recording: cost(false).or(cost(true)).unwrap_or(TicksDelta(0)),
            recording_with_switches: cost(true).or(cost(false)).unwrap_or(TicksDelta(0)),
            rseq: recorder.rseq.is_some(),
            warnings,
        };
        let shared = Arc::new(Shared {
            live: Live::default(),
            overflow: LogLinear::default(),
            blocks: Blocks::new(W::BLOCK, warmup_period),
            small: Direct::default(),
            large: LogLinear::default(),
        });
        let Recorder { ring: producer, rseq, .. } = recorder;
        Ok(Warmed { facts, shared, consumer, producer, rseq })
    }

    /// The loop's period without counting, in a quarter of the warm-up's time on top of it: what
    /// counting costs is the difference.
    fn plain_period<W: Workload>(
        &mut self,
        workload: &mut W,
        recorder: &mut Recorder,
        half: TicksDelta,
        expected: f64,
    ) -> Option<f64> {
        if !self.plan.counting {
            return None;
        }
        let plain = Scratch::new::<W>(expected);
        recorder.limits.end = self.counter.read() + TicksDelta(half.0 / 2);
        self.plan.counting = false;
        self.measure(workload, recorder, &plain.blocks, &plain.small, &plain.large);
        self.plan.counting = true;
        plain.blocks.period().map(|period| period.median)
    }

    /// Records gaps that are none, as many as are missing to know the cost of recording, half of
    /// them with the rseq word cleared so that getrusage is read.
    fn record_for_practice(
        &mut self,
        recorder: &mut Recorder,
        consumer: &mut Consumer,
        records: &mut Vec<whylate_model::gap::Gap>,
    ) {
        recorder.arm(&mut self.counter);
        for turn in 0..2 * RECORDINGS_TO_CALIBRATE {
            if let (Some(rseq), 0) = (&recorder.rseq, turn % 2) {
                rseq.disarm();
            }
            let now = self.counter.read();
            recorder.record(&mut self.counter, now, now);
        }
        consumer.drain(records);
    }
}

struct SetUp {
    fifo: Option<u8>,
    rseq: Option<RseqArea>,
    warnings: Vec<Warning>,
}

struct Warmed {
    facts: ThreadFacts,
    shared: Arc<Shared>,
    consumer: Consumer,
    producer: ring::Producer,
    rseq: Option<RseqArea>,
}

/// Tables that are filled and thrown away.
struct Scratch {
    blocks: Blocks,
    small: Direct,
    large: LogLinear,
}

impl Scratch {
    fn new<W: Workload>(expected_period: f64) -> Self {
        Self {
            blocks: Blocks::new(W::BLOCK, expected_period),
            small: Direct::default(),
            large: LogLinear::default(),
        }
    }
}

fn upper_quantile(mut costs: Vec<u64>) -> Option<TicksDelta> {
    costs.sort_unstable();
    let rank = (costs.len() as f64 * RECORDING_QUANTILE).ceil() as usize;
    costs.get(rank.checked_sub(1)?).map(|cost| TicksDelta(*cost))
}

/// Busy threads that share the measured CPUs, until they are stopped.
pub(crate) struct Competitors {
    stop: Arc<AtomicBool>,
    handles: Vec<JoinHandle<()>>,
}

impl Competitors {
    pub(crate) fn start(plan: &Plan) -> Result<Self, GapError> {
        let mut competitors = Self { stop: Arc::new(AtomicBool::new(false)), handles: Vec::new() };
        for index in 0..plan.placement.threads() {
            for _ in 0..plan.competitors {
                let cpus = plan.placement.of_thread(index).to_vec();
                let stop = Arc::clone(&competitors.stop);
                let handle = std::thread::Builder::new()
                    .name(format!("competitor/{index}"))
                    .spawn(move || compete(&cpus, &stop))
                    .map_err(GapError::Spawn)?;
                competitors.handles.push(handle);
            }
        }
        Ok(competitors)
    }

    pub(crate) fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for handle in self.handles.drain(..) {
            let _ = handle.join();
        }
    }
}

impl Drop for Competitors {
    fn drop(&mut self) {
        self.stop();
    }
}

fn compete(cpus: &[CpuId], stop: &AtomicBool) {
    if affinity::set(cpus).is_ok() {
        while !stop.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    }
}
