//! A set of threads that run beside each other, each with a model, a timer and a place.
//!
//! [`Set::prepare`] starts the threads and waits until each of them is seated; [`Set::start`]
//! begins their schedules at one instant. The calling thread collects: it drains gaps
//! ([`whylate_gap::Source`]) and marks ([`Set::drain_marks`]), and sits on a CPU of its own where
//! there is one. [`Set::finish`] gives what each thread knows in the end.

pub mod books;
mod thread;
pub mod watchdog;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use whylate_clock::Counter;
use whylate_gap::hot::Live;
use whylate_gap::session::Bins;
use whylate_gap::table::LogLinear;
use whylate_gap::{Source, State, Totals, ring};
use whylate_model::gap::Gap;
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Hertz, Nanos, Pid, Ticks, TicksDelta};
use whylate_sys::sched::Policy;
use whylate_sys::switches::Switches;

use crate::error::ThreadsError;
use crate::mark::Mark;
use crate::model::Model;
use crate::ring::Consumer;
use crate::stage::Term;
use crate::timer::{Timer, TimerFacts, TimerNanos};

/// The schedules begin this long after the threads are told, so that all of them have heard.
const LEAD_IN: Nanos = Nanos(20_000_000);
/// Bytes of a thread name that the kernel keeps (`TASK_COMM_LEN` less its end).
const LONGEST_COMM: usize = 15;
/// Time between two looks whether the user has given up.
const PATIENCE: Duration = Duration::from_millis(50);
/// A stack that holds a body and what it calls; it is locked in memory, and there may be hundreds.
const STACK: usize = 256 << 10;

/// A thread of a set, before it is one.
pub struct Member<C> {
    /// Its name, which the kernel knows the first 15 bytes of.
    pub name: String,
    /// What it does.
    pub model: Box<dyn Model<C>>,
    /// How it waits.
    pub timer: Box<dyn Timer>,
    /// The CPUs it may run on; none leaves them as they are.
    pub cpus: Option<Vec<CpuId>>,
    /// Done by the thread itself when everything else is ready: takes its priority or reservation.
    pub seat: Box<dyn FnOnce() -> Result<Seated, ThreadsError> + Send>,
    /// Its schedule begins this long after the set's.
    pub start: Nanos,
    /// It ends this long after the set's begin; none with the set.
    pub finish: Option<Nanos>,
    /// Which delta is a gap to it, and what recording one costs.
    pub limits: GapLimits,
}

/// What came of taking a seat.
#[derive(Debug, Clone, PartialEq)]
pub struct Seated {
    /// The policy as read back.
    pub policy: Policy,
    /// What the reader must know.
    pub warnings: Vec<Warning>,
}

/// Fixed limits of a thread's gap accounting, found before the set runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GapLimits {
    /// A delta above this is a gap.
    pub threshold: TicksDelta,
    /// Calibrated cost of recording a gap.
    pub recording: TicksDelta,
    /// The same where getrusage is read.
    pub recording_with_switches: TicksDelta,
}

/// What holds for the whole set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Orders {
    /// Rate of the counter.
    pub rate: Hertz,
    /// How long the set runs.
    pub duration: Nanos,
    /// Gaps and marks that each thread can hold until they are drained.
    pub ring: usize,
}

/// What is known about a thread once it is seated.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberFacts {
    /// Its thread id.
    pub tid: Pid,
    /// The CPU it is on.
    pub cpu: CpuId,
    /// Policy as read back, and what the reader must know.
    pub seated: Seated,
    /// The rseq word passed its self-test.
    pub rseq: bool,
    /// How it waits.
    pub timer: TimerFacts,
}

/// What a thread knows in the end.
#[derive(Debug)]
pub struct Ended {
    /// Switches from the begin of its schedule to its end.
    pub switches: Switches,
    /// CPU time over the same stretch by the kernel's clock of the thread; interrupts included.
    pub cpu_time: Option<Nanos>,
    /// Marks that found the ring full.
    pub marks_dropped: u64,
    /// What failed.
    pub failure: Option<ThreadsError>,
}

/// A running set.
pub struct Set {
    threads: Vec<Running>,
    stop: Arc<AtomicBool>,
    batch: Vec<Gap>,
}

struct Running {
    facts: MemberFacts,
    shared: Arc<Shared>,
    gaps: ring::Consumer,
    marks: Consumer,
    begin: Option<SyncSender<Term>>,
    handle: Option<JoinHandle<Ended>>,
    start: Nanos,
    finish: Option<Nanos>,
}

/// What a thread shares with the collecting side.
#[derive(Default)]
struct Shared {
    live: Live,
    overflow: LogLinear,
}

/// What a thread sends when it is seated: what is known of it, and the collecting ends of its rings.
type Ready = Result<Ends, ThreadsError>;
type Ends = (MemberFacts, Arc<Shared>, ring::Consumer, Consumer);

impl Set {
    /// Starts the threads and waits until each is seated.
    pub fn prepare<C: Counter + Clone + 'static>(
        members: Vec<Member<C>>,
        counter: &C,
        orders: &Orders,
        given_up: &AtomicBool,
    ) -> Result<Self, ThreadsError> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut set = Self { threads: Vec::new(), stop, batch: Vec::new() };
        for member in members {
            let (ready, is_ready) = sync_channel(1);
            let (begin, begins) = sync_channel(1);
            let (start, finish) = (member.start, member.finish);
            let task = thread::Task {
                counter: counter.clone(),
                orders: *orders,
                stop: Arc::clone(&set.stop),
                ready,
                begins,
            };
            let name = comm(&member.name);
            let handle = std::thread::Builder::new()
                .name(name)
                .stack_size(STACK)
                .spawn(move || task.run(member))
                .map_err(ThreadsError::Spawn)?;
            // One after the other: a seat that is refused ends the set before the next is taken.
            let (facts, shared, gaps, marks) = seated(&is_ready, given_up)?;
            let (begin, handle) = (Some(begin), Some(handle));
            set.threads.push(Running { facts, shared, gaps, marks, begin, handle, start, finish });
        }
        Ok(set)
    }

    /// Begins all schedules; gives the instant, by the timers' clock and by the counter.
    pub fn start<C: Counter>(
        &mut self,
        counter: &mut C,
        clock: &mut dyn FnMut() -> TimerNanos,
        orders: &Orders,
    ) -> (TimerNanos, Ticks) {
        let epoch = clock() + LEAD_IN;
        let ticks = counter.read() + LEAD_IN.to_ticks(orders.rate);
        let end = epoch + orders.duration;
        for thread in &self.threads {
            let start = epoch + thread.start;
            let end = thread.finish.map_or(end, |finish| end.min(epoch + finish));
            if let Some(begin) = &thread.begin {
                // A thread that has died is found at the end.
                let _ = begin.send(Term { start, end });
            }
        }
        (epoch, ticks)
    }

    /// The schedule of thread `index` when the set's begins at `epoch`.
    #[must_use]
    pub fn term(&self, index: usize, epoch: TimerNanos, orders: &Orders) -> Term {
        let thread = &self.threads[index];
        let end = epoch + orders.duration;
        let end = thread.finish.map_or(end, |finish| end.min(epoch + finish));
        Term { start: epoch + thread.start, end }
    }

    /// What each thread is, in the order of the members.
    pub fn members(&self) -> impl Iterator<Item = &MemberFacts> {
        self.threads.iter().map(|thread| &thread.facts)
    }

    /// Hands over every mark made since the last call, thread by thread, each thread's in order.
    pub fn drain_marks(&mut self, mut take: impl FnMut(usize, Mark)) {
        for (index, thread) in self.threads.iter_mut().enumerate() {
            thread.marks.drain(|words| {
                if let Some(mark) = Mark::unpack(words) {
                    take(index, mark);
                }
            });
        }
    }

    /// The flag that ends the run.
    #[must_use]
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Ends the run: running threads see it within a millisecond, sleeping ones within 250.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Waits for all threads and gives what they know.
    pub fn finish(&mut self) -> Vec<Ended> {
        self.stop();
        let handles = self.threads.iter_mut().map(|thread| thread.handle.take());
        handles.map(|handle| handle.map_or_else(Ended::unknown, joined)).collect()
    }
}

impl Ended {
    fn unknown() -> Self {
        Self { switches: Switches::default(), cpu_time: None, marks_dropped: 0, failure: None }
    }
}

fn joined(handle: JoinHandle<Ended>) -> Ended {
    handle
        .join()
        .unwrap_or_else(|_| Ended { failure: Some(ThreadsError::Died), ..Ended::unknown() })
}

impl Source for Set {
    fn totals(&self, index: usize) -> Totals {
        Totals::of(&self.threads[index].shared.live, None)
    }

    fn drain(&mut self, take: &mut dyn FnMut(usize, &[Gap])) -> State {
        let ended =
            self.threads.iter().all(|t| t.handle.as_ref().is_none_or(JoinHandle::is_finished));
        for (index, thread) in self.threads.iter_mut().enumerate() {
            self.batch.clear();
            thread.gaps.drain(&mut self.batch);
            take(index, &self.batch);
        }
        if ended { State::Ended } else { State::Running }
    }

    fn dropped(&self, index: usize) -> Bins<'_> {
        Box::new(self.threads[index].shared.overflow.bins())
    }

    fn deltas(&self, _: usize) -> Bins<'_> {
        Box::new(std::iter::empty())
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        // Threads that wait for a begin that will not come end when its sender goes.
        self.stop();
        for thread in &mut self.threads {
            thread.begin = None;
            if let Some(handle) = thread.handle.take() {
                let _ = handle.join();
            }
        }
    }
}

/// The name that the kernel shows. A mere number says nothing in a list of all threads.
fn comm(name: &str) -> String {
    let number = name.chars().all(|c| c.is_ascii_digit());
    let name = if number { format!("hourglass/{name}") } else { name.to_owned() };
    name.chars().take(LONGEST_COMM).collect()
}

fn seated(is_ready: &Receiver<Ready>, given_up: &AtomicBool) -> Ready {
    loop {
        match is_ready.recv_timeout(PATIENCE) {
            Ok(ready) => return ready,
            Err(RecvTimeoutError::Timeout) if given_up.load(Ordering::Relaxed) => {
                return Err(ThreadsError::Stopped);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(ThreadsError::Died),
        }
    }
}

#[cfg(test)]
mod tests;
