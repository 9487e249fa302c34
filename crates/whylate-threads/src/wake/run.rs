//! Runs one model on one thread and collects what it records.
//!
//! The calling thread collects: it sleeps most of the time, wakes every 20 ms, digests, and hands
//! on closed intervals. It belongs on a housekeeping CPU.

use std::panic::resume_unwind;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use whylate_clock::Counter;
use whylate_model::warning::Warning;
use whylate_model::{CpuId, TicksDelta};
use whylate_sys::switches::{Switches, thread_switches};

use crate::error::ThreadsError;
use crate::placement::{Placement, Seat};
use crate::relation::{Relation, RelationFacts, Segment};
use crate::ring::{Consumer, ring};
use crate::timer::{Timer, TimerFacts};
use crate::wake::probe::{Activation, Probe};
use crate::wake::record::Record;
use crate::wake::stage::{Stage, Tally, recording_cost};

/// The collecting side looks this often.
const COLLECT_EVERY: Duration = Duration::from_millis(20);

/// Name of the measuring thread, as `ps -L` shows it.
pub const THREAD_NAME: &str = "model/0";

/// What a run leaves behind.
#[derive(Debug)]
pub struct Measured<O> {
    /// What the model found.
    pub outcome: O,
    /// What a reader must know of the thread.
    pub facts: ThreadFacts,
    /// What a reader must know before trusting the outcome.
    pub warnings: Vec<Warning>,
}

/// What a reader must know of a measuring thread.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadFacts {
    /// Where and how it ran.
    pub seat: Seat,
    /// How it waited.
    pub timer: TimerFacts,
    /// Relation of counter and timer's clock.
    pub relation: RelationFacts,
    /// Switches during the body: voluntary ones are its waits, involuntary ones took it the CPU.
    pub switches: Switches,
    /// Cost of recording one activation, median, in nanoseconds: paid after the stamp.
    pub sample_recording_ns: f64,
    /// Activations that were not recorded because the collecting side was late.
    pub dropped: u64,
    /// Activations on another CPU than the one the thread was pinned to.
    pub elsewhere: u64,
    /// The stop flag ended the run before its time.
    pub stopped: bool,
}

/// What the measuring thread itself knows in the end.
struct Ended {
    seat: Seat,
    warnings: Vec<Warning>,
    timer: TimerFacts,
    switches: Switches,
    tally: Tally,
    cost: TicksDelta,
}

/// Runs `model` on a thread of its own, seated as `placement` says, until its time is up or `stop`
/// is set. Calls `watch` with each interval as it closes, on the calling thread.
pub fn run<M: Probe, C: Counter, T: Timer>(
    model: &M,
    placement: Placement,
    counter: C,
    timer: T,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(M::Interval),
) -> Result<Measured<M::Outcome>, ThreadsError> {
    model.check()?;
    let mut collector = Collector::new(model, watch);
    let ended = thread::scope(|scope| {
        let (to_us, from_thread) = mpsc::sync_channel(1);
        let body = move || measure(model, placement, counter, timer, stop, &to_us);
        let named = thread::Builder::new().name(THREAD_NAME.to_owned());
        let thread = named.spawn_scoped(scope, body).map_err(ThreadsError::Spawn)?;
        // An error here means that the thread failed before it had a ring: join tells why.
        if let Ok(mut consumer) = from_thread.recv() {
            while !thread.is_finished() {
                thread::sleep(COLLECT_EVERY);
                collector.collect(&mut consumer);
            }
            collector.collect(&mut consumer);
        }
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    })?;
    Ok(collector.finish(ended, placement.cpu))
}

/// The measuring thread.
fn measure<M: Probe, C: Counter, T: Timer>(
    model: &M,
    placement: Placement,
    mut counter: C,
    mut timer: T,
    stop: &AtomicBool,
    to_collector: &mpsc::SyncSender<Consumer>,
) -> Result<Ended, ThreadsError> {
    let (seat, warnings) = placement.settle()?;
    timer.prepare()?;
    let cost = recording_cost(&mut counter, &mut timer, &mut ring().0);
    let (producer, consumer) = ring();
    // Nobody to send to means that the calling thread is unwinding: nothing to measure for.
    let _ = to_collector.send(consumer);
    let mut stage = Stage::new(counter, timer, producer, stop, seat.cpu);
    let before = thread_switches();
    model.body(&mut stage)?;
    let after = thread_switches();
    let switches = Switches {
        voluntary: after.voluntary.saturating_sub(before.voluntary),
        involuntary: after.involuntary.saturating_sub(before.involuntary),
    };
    let (timer, tally) = (stage.timer().facts(), stage.tally());
    Ok(Ended { seat, warnings, timer, switches, tally, cost })
}

/// Takes records in order, waits with each until the tie after it is there, and digests it.
pub(crate) struct Collector<'a, M: Probe> {
    model: &'a M,
    outcome: M::Outcome,
    relation: Relation,
    waiting: Vec<Activation>,
    last_segment: Option<Segment>,
    watch: &'a mut dyn FnMut(M::Interval),
}

impl<'a, M: Probe> Collector<'a, M> {
    pub(crate) fn new(model: &'a M, watch: &'a mut dyn FnMut(M::Interval)) -> Self {
        let (outcome, relation) = (model.begin(), Relation::default());
        Self { model, outcome, relation, waiting: Vec::new(), last_segment: None, watch }
    }

    pub(crate) fn collect(&mut self, consumer: &mut Consumer) {
        consumer.drain(|words| match Record::unpack(words) {
            Record::Activation(activation) => self.waiting.push(activation),
            Record::Tie(tie) => {
                if let Some(segment) = self.relation.add(tie) {
                    self.last_segment = Some(segment);
                    for activation in self.waiting.drain(..) {
                        let outcome = &mut self.outcome;
                        self.model.digest(outcome, &activation, &segment, self.watch);
                    }
                }
            }
        });
    }

    fn finish(mut self, ended: Ended, pinned: Option<CpuId>) -> Measured<M::Outcome> {
        // Only a last tie that found the ring full leaves records without the tie after them: the
        // line through the ties before goes on straight.
        let unconverted = match self.last_segment {
            Some(segment) => {
                for activation in self.waiting.drain(..) {
                    self.model.digest(&mut self.outcome, &activation, &segment, self.watch);
                }
                0
            }
            None => self.waiting.iter().map(|waiting| 1 + waiting.skipped).sum(),
        };
        self.model.finish(&mut self.outcome, self.watch);
        let dropped = ended.tally.dropped + unconverted;
        let cpu = pinned.unwrap_or_default();
        let mut warnings = ended.warnings;
        if dropped > 0 {
            warnings.push(Warning::RecordsDropped { cpu, dropped });
        }
        if ended.tally.elsewhere > 0 {
            let what = format!(
                "{} wake-ups of the thread pinned to cpu {cpu} happened on another cpu",
                ended.tally.elsewhere
            );
            warnings.push(Warning::HostChanged { what });
        }
        let sample_recording_ns =
            self.last_segment.map_or(0.0, |segment| segment.nanos(ended.cost));
        let facts = ThreadFacts {
            seat: ended.seat,
            timer: ended.timer,
            relation: self.relation.facts(),
            switches: ended.switches,
            sample_recording_ns,
            dropped,
            elsewhere: ended.tally.elsewhere,
            stopped: ended.tally.stopped,
        };
        Measured { outcome: self.outcome, facts, warnings }
    }
}
