//! What a model's body works with: CPU time to receive, a timer to wait with, marks to leave.
//!
//! Between two of its calls a body's own few instructions count as CPU time received. What takes
//! longer than they can take is a gap.

use std::sync::atomic::Ordering;

use whylate_clock::Counter;
use whylate_gap::hot::{Recorder, Wait};
use whylate_gap::workload::Workload;
use whylate_model::gap::GapKind;
use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};
use whylate_sys::SysError;
use whylate_sys::rseq::RseqArea;

use crate::error::ThreadsError;
use crate::hot;
use crate::mark::Mark;
use crate::ring::Producer;
use crate::timer::{Timer, TimerNanos};

/// A longer wait is cut into pieces, so that a stop is noticed; only the last piece is measured.
const LONGEST_WAIT: Nanos = Nanos(250_000_000);
/// A running thread looks this often whether its time is up.
const LOOK: Nanos = Nanos(1_000_000);
/// Looks at the kernel's counts until one is not disturbed by what it counts.
const LOOKS: u32 = 16;

/// Why a body goes no further.
#[derive(Debug)]
pub enum End {
    /// Its time is up, or it was told to stop.
    Over,
    /// Something that it needs failed.
    Failed(ThreadsError),
}

impl From<ThreadsError> for End {
    fn from(error: ThreadsError) -> Self {
        Self::Failed(error)
    }
}

impl From<SysError> for End {
    fn from(source: SysError) -> Self {
        Self::Failed(ThreadsError::Resource(source))
    }
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Woke {
    /// The first reading of the running thread.
    pub at: Ticks,
    /// What the timer's clock showed then.
    pub now: TimerNanos,
}

/// The instants between which a thread is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// Its schedule begins here.
    pub start: TimerNanos,
    /// It ends here.
    pub end: TimerNanos,
}

/// The place a body works in.
pub struct Stage<'a, C> {
    counter: C,
    timer: Box<dyn Timer>,
    recorder: Recorder<'a>,
    marks: Producer,
    rate: Hertz,
    term: Term,
    /// Last reading while running.
    previous: Ticks,
    marks_dropped: u64,
}

/// Whose a late end of a wait is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lateness {
    /// The wait was for something: its late end is a dispatch gap.
    OfTheWait,
    /// Nothing was due.
    OfNobody,
}

impl<'a, C: Counter> Stage<'a, C> {
    pub(crate) fn new(
        mut counter: C,
        timer: Box<dyn Timer>,
        mut recorder: Recorder<'a>,
        marks: Producer,
        rate: Hertz,
        term: Term,
    ) -> Self {
        recorder.arm(&mut counter);
        let previous = counter.read();
        recorder.live.start.store(previous.0, Ordering::Relaxed);
        Self { counter, timer, recorder, marks, rate, term, previous, marks_dropped: 0 }
    }

    /// The thread's time.
    #[must_use]
    pub fn term(&self) -> Term {
        self.term
    }

    /// What the timer's clock shows.
    pub fn now(&mut self) -> TimerNanos {
        self.timer.now()
    }

    /// The thread's last reading of the counter.
    #[must_use]
    pub fn last(&self) -> Ticks {
        self.previous
    }

    /// A time in ticks of the counter.
    #[must_use]
    pub fn ticks(&self, time: Nanos) -> TicksDelta {
        time.to_ticks(self.rate)
    }

    /// Ticks of the counter as a time.
    #[must_use]
    pub fn time(&self, ticks: TicksDelta) -> Nanos {
        ticks.to_nanos(self.rate)
    }

    /// Ends the body when its time is up or it was told to stop.
    pub fn go_on(&self) -> Result<(), End> {
        let over = self.stopping() || self.previous >= self.recorder.limits.end;
        if over { Err(End::Over) } else { Ok(()) }
    }

    /// Works until `amount` of CPU time has been received; returns the reading at its end.
    #[inline]
    pub fn receive<W: Workload>(&mut self, amount: Nanos, work: &mut W) -> Result<Ticks, End> {
        self.receive_counted(amount, work).map(|_| self.previous)
    }

    /// The same, and returns what was received: the amount and the rest of the last interval.
    #[inline]
    pub fn receive_counted<W: Workload>(
        &mut self,
        amount: Nanos,
        work: &mut W,
    ) -> Result<TicksDelta, End> {
        let (amount, look) = (self.ticks(amount), self.ticks(LOOK));
        let previous = self.settle();
        let (counter, recorder) = (&mut self.counter, &mut self.recorder);
        let before = recorder.not_had();
        let received = hot::receive(counter, work, recorder, previous, amount, look);
        self.previous = received.at;
        if received.left.0 > 0 && received.over {
            return Err(End::Over);
        }
        let not_had = recorder.not_had().0 - before.0;
        Ok(TicksDelta(received.at.since(previous).0.saturating_sub(not_had)))
    }

    /// Ticks that the thread did not have up to its last reading, its own waits included.
    pub(crate) fn not_had(&self) -> TicksDelta {
        self.recorder.not_had()
    }

    /// Ticks that it wanted and did not have up to its last reading.
    pub(crate) fn lost(&self) -> TicksDelta {
        TicksDelta(self.recorder.not_had().0.saturating_sub(self.recorder.waited().0))
    }

    /// Works until the thread's time is up.
    pub fn receive_all<W: Workload>(&mut self, work: &mut W) -> End {
        loop {
            match self.receive(Nanos::SECOND, work) {
                Ok(_) => {}
                Err(end) => return end,
            }
        }
    }

    /// Waits for the begin of the thread's schedule, which is no wake-up that anybody counts.
    pub(crate) fn await_start(&mut self) -> Result<Woke, End> {
        self.wait_until(self.term.start, Lateness::OfNobody)
    }

    /// Waits until `at`, by the thread's timer. Ends the body when its time is up before.
    pub fn sleep_until(&mut self, at: TimerNanos) -> Result<Woke, End> {
        // At the end of the schedule nothing is due.
        let late = if at >= self.term.end { Lateness::OfNobody } else { Lateness::OfTheWait };
        self.wait_until(at, late)
    }

    fn wait_until(&mut self, at: TimerNanos, late: Lateness) -> Result<Woke, End> {
        let start = self.settle();
        let until = at.min(self.term.end);
        loop {
            if self.stopping() {
                let now = self.counter.read();
                self.previous =
                    self.recorder.record_as(GapKind::Sleep, &mut self.counter, start, now);
                return Err(End::Over);
            }
            let now = self.timer.now();
            if until.since(now) <= LONGEST_WAIT {
                break;
            }
            self.timer.wait_until(now + LONGEST_WAIT)?;
        }
        let kind = if self.timer.keeps_cpu(until) { GapKind::Spin } else { GapKind::Sleep };
        let later = self.timer.fires_at(until).since(until).to_ticks(self.rate);
        self.timer.wait_until(until)?;
        let wake = self.counter.read();
        let now = self.timer.now();
        let after = self.counter.read();
        // The clock was read between the two, so its instant lies in their middle.
        let seen = wake + TicksDelta(after.since(wake).0 / 2);
        let due = Ticks(seen.0.saturating_sub(now.since(until).to_ticks(self.rate).0));
        let due = match late {
            Lateness::OfTheWait => due.min(wake),
            Lateness::OfNobody => wake,
        };
        let wait = Wait { kind, start, due, fires: due + later, wake };
        self.previous = self.recorder.record_wait(&mut self.counter, &wait);
        if at >= self.term.end { Err(End::Over) } else { Ok(Woke { at: wake, now }) }
    }

    /// Gives way to others that can run.
    pub fn yield_now(&mut self) -> Result<(), End> {
        self.wait_in(GapKind::Yield, |_| {
            std::thread::yield_now();
            Ok(())
        })
    }

    /// Waits for something other than time, inside `wait`; the whole of it is a wait of that kind.
    /// It is told how to find out that there is nothing to wait for any more.
    pub fn wait_in(
        &mut self,
        kind: GapKind,
        wait: impl FnOnce(&dyn Fn() -> bool) -> Result<(), SysError>,
    ) -> Result<(), End> {
        let start = self.settle();
        let (stop, end) = (self.recorder.stop, self.recorder.limits.end);
        let clock = std::cell::RefCell::new(&mut self.counter);
        let over = || stop.load(Ordering::Relaxed) || clock.borrow_mut().read() >= end;
        let waited = wait(&over);
        let over = over();
        let wake = self.counter.read();
        self.previous = self.recorder.record_as(kind, &mut self.counter, start, wake);
        waited.map_err(End::from)?;
        if over { Err(End::Over) } else { Ok(()) }
    }

    /// Leaves a mark. One that finds the ring full is counted.
    pub fn mark(&mut self, mark: Mark) {
        self.marks_dropped += u64::from(!self.marks.push(mark.pack()));
    }

    /// Marks that found the ring full.
    pub(crate) fn marks_dropped(&self) -> u64 {
        self.marks_dropped
    }

    /// The first word: begins to account, and looks at what the kernel counted up to there.
    pub(crate) fn open<T>(&mut self, look: impl Fn() -> T) -> T {
        for _ in 1..LOOKS {
            self.recorder.arm(&mut self.counter);
            let seen = look();
            self.previous = self.counter.read();
            if self.undisturbed() {
                return seen;
            }
        }
        look()
    }

    /// The last word: the counters say up to where the thread ran, and what the kernel counted up
    /// to there.
    pub(crate) fn close<T>(&mut self, look: impl Fn() -> T) -> T {
        let mut last = self.settle();
        let mut seen = look();
        for _ in 1..LOOKS {
            if self.undisturbed() {
                break;
            }
            last = self.settle();
            seen = look();
        }
        let _ = self.recorder.block_done(0, last);
        seen
    }

    /// The thread kept the CPU since the word was last armed, as far as that can be known.
    fn undisturbed(&self) -> bool {
        self.recorder.rseq.as_ref().is_none_or(RseqArea::is_set)
    }

    /// The reading up to which the thread has run. What the body did since the last one counts as
    /// run, unless it took longer than a recording can.
    pub(crate) fn settle(&mut self) -> Ticks {
        let now = self.counter.read();
        let limits = &self.recorder.limits;
        if now.since(self.previous) > limits.threshold + limits.recording_with_switches {
            self.previous = self.recorder.record(&mut self.counter, self.previous, now);
        } else {
            self.previous = now.max(self.previous);
        }
        self.previous
    }

    fn stopping(&self) -> bool {
        self.recorder.stop.load(Ordering::Relaxed)
    }
}
