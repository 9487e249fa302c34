//! What one gap recording has collected so far: records checked, histograms filled, causes named.
//!
//! Everything a recording keeps in memory is here, and none of it grows with the duration.

use std::collections::BTreeMap;

use whylate_cause::attribute::Limits;
use whylate_cause::{Attributed, Attributor, Context, Totals as CauseTotals, validate};
use whylate_gap::closure::Check;
use whylate_gap::{Session, ThreadFacts};
use whylate_model::cause::Validation;
use whylate_model::event::Event;
use whylate_model::gap::Gap;
use whylate_model::{CpuId, Hertz, Nanos, Ticks, TicksDelta};
use whylate_stats::histogram::Histogram;

use crate::intervals::Intervals;
use crate::kernel_trace::KernelTrace;

/// One measuring thread's share.
pub struct Thread {
    /// What it found in its warm-up.
    pub facts: ThreadFacts,
    /// Order and disjointness of its records.
    pub check: Check,
    /// Lengths of all its gaps in nanoseconds, those not kept one by one included.
    pub lengths: Histogram,
    /// Costs of recording in nanoseconds.
    pub recording: Histogram,
    /// Time lost, in nanoseconds.
    pub lost_ns: f64,
    /// By interval of time.
    pub intervals: Intervals,
    start: Option<Ticks>,
    dropped_seen: BTreeMap<TicksDelta, u64>,
    dropped_count: u64,
    interval_log: IntervalLog,
}

/// The interval that is being filled for the histogram log.
struct IntervalLog {
    index: u64,
    lengths: Histogram,
}

/// A closed interval for the histogram log.
pub struct ClosedInterval {
    /// Which thread.
    pub thread: usize,
    /// Start, counted from the start of the measurement.
    pub start: Nanos,
    /// Length.
    pub length: Nanos,
    /// Lengths of the gaps that began in it.
    pub lengths: Histogram,
}

/// All threads' shares and what took their time.
pub struct Collector {
    rate: Hertz,
    interval: TicksDelta,
    threads: Vec<Thread>,
    attributor: Attributor,
    causes: CauseTotals,
    validation: Option<Validation>,
    closed: Vec<ClosedInterval>,
    watched: Option<Vec<Attributed>>,
}

/// What to collect.
pub struct Wanted {
    /// Rate that ticks are converted at.
    pub rate: Hertz,
    /// Width of the intervals of histograms and bootstrap.
    pub interval: Nanos,
    /// Longest gaps to keep.
    pub worst: usize,
    /// Judge evidence B against evidence A.
    pub validate: bool,
    /// Keep every attributed gap, for the self-test.
    pub keep_all: bool,
}

/// The longest gaps are stored in `run.json` with their events: more of them would make it hard to
/// read, and they are all in the segments.
const LIMITS: Limits = Limits {
    events_per_cpu: 65_536,
    gaps_per_thread: 65_536,
    sends_per_cpu: 16_384,
    events_per_gap: 128,
};

/// Attributed gaps kept for a self-test: it takes seconds, and a noisy machine makes 10 000 a
/// second.
const MOST_KEPT: usize = 1_000_000;

impl Collector {
    /// A collector for the session's threads.
    #[must_use]
    pub fn new(session: &Session, context: Context, wanted: &Wanted) -> Self {
        let interval = wanted.interval.to_ticks(wanted.rate);
        let threads = session.threads().map(|facts| Thread::new(facts.clone(), interval)).collect();
        Self {
            rate: wanted.rate,
            interval,
            threads,
            attributor: Attributor::new(context, LIMITS),
            causes: CauseTotals::new(wanted.worst),
            validation: wanted.validate.then(Validation::default),
            closed: Vec::new(),
            watched: wanted.keep_all.then(Vec::new),
        }
    }

    /// The events of these CPUs, and the sends of those, will come.
    pub fn expect_trace(&mut self, measured: &[CpuId], senders: &[CpuId]) {
        for cpu in measured {
            self.attributor.trace_cpu(*cpu);
        }
        for cpu in senders {
            self.attributor.trace_sends(*cpu);
        }
    }

    /// Takes everything that threads and kernel have recorded since the last call. `keep_gap` and
    /// `keep_event` see each record once, to store it.
    pub fn turn(
        &mut self,
        session: &mut Session,
        trace: Option<&mut KernelTrace>,
        now: Ticks,
        mut keep_gap: impl FnMut(usize, &Gap),
        mut keep_event: impl FnMut(&Event),
    ) -> whylate_gap::State {
        // Read before the rings are drained: every gap before these readings is then in them.
        let ran: Vec<_> = (0..self.threads.len()).map(|index| session.totals(index)).collect();
        let (rate, interval) = (self.rate, self.interval);
        let (threads, attributor, closed) =
            (&mut self.threads, &mut self.attributor, &mut self.closed);
        for (index, totals) in ran.iter().enumerate().filter(|(_, totals)| totals.start.0 != 0) {
            threads[index].begin(attributor, index, totals.start);
        }
        let state = session.drain(|index, gaps| {
            let (Some(first), thread) = (gaps.first(), &mut threads[index]) else { return };
            thread.begin(attributor, index, first.start);
            for gap in gaps {
                thread.take(index, gap, rate, interval, closed);
                keep_gap(index, gap);
            }
            // The attribution knows these threads: both were made from one list.
            let _ = attributor.push_gaps(index as u16, gaps);
        });
        for (index, totals) in ran.iter().enumerate().filter(|(_, totals)| totals.start.0 != 0) {
            let _ = self.attributor.ran_until(index as u16, totals.end);
            let thread = &mut self.threads[index];
            thread.take_dropped(session, index, totals.dropped, totals.end, rate);
            thread.intervals.reach(totals.end.since(totals.start));
        }
        if let Some(trace) = trace {
            let attributor = &mut self.attributor;
            trace.poll(now, rate, attributor, &mut keep_event);
        }
        self.name_causes(false);
        state
    }

    /// Takes what is left after the threads have ended.
    pub fn finish(&mut self, session: &Session) {
        for index in 0..self.threads.len() {
            let totals = session.totals(index);
            let _ = self.attributor.end(index as u16, totals.end);
            let thread = &mut self.threads[index];
            thread.take_dropped(session, index, totals.dropped, totals.end, self.rate);
            thread.close_interval(index, self.rate, self.interval, &mut self.closed);
        }
        self.name_causes(true);
    }

    /// Intervals closed since the last call.
    pub fn take_closed(&mut self) -> Vec<ClosedInterval> {
        std::mem::take(&mut self.closed)
    }

    /// Each thread's share.
    #[must_use]
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// The attribution, with what it counted.
    #[must_use]
    pub fn attributor(&self) -> &Attributor {
        &self.attributor
    }

    /// Lost time by cause.
    #[must_use]
    pub fn causes(&self) -> &CauseTotals {
        &self.causes
    }

    /// Evidence B judged, where that was wanted.
    #[must_use]
    pub fn validation(&self) -> Option<&Validation> {
        self.validation.as_ref()
    }

    /// Every attributed gap, where they were to be kept.
    #[must_use]
    pub fn kept(&self) -> &[Attributed] {
        self.watched.as_deref().unwrap_or_default()
    }

    fn name_causes(&mut self, all: bool) {
        let mut ready = Vec::new();
        let mut take = |attributed: Attributed| ready.push(attributed);
        if all {
            self.attributor.finish(&mut take);
        } else {
            self.attributor.drain(&mut take);
        }
        for attributed in ready {
            self.causes.add(&attributed, self.attributor.context());
            if let Some(validation) = &mut self.validation {
                validate::count(validation, &attributed);
            }
            if let Some(kept) = self.watched.as_mut().filter(|kept| kept.len() < MOST_KEPT) {
                kept.push(attributed);
            }
        }
    }
}

impl Thread {
    fn new(facts: ThreadFacts, interval: TicksDelta) -> Self {
        Self {
            facts,
            check: Check::default(),
            lengths: Histogram::new(),
            recording: Histogram::new(),
            lost_ns: 0.0,
            intervals: Intervals::new(interval),
            start: None,
            dropped_seen: BTreeMap::new(),
            dropped_count: 0,
            interval_log: IntervalLog { index: 0, lengths: Histogram::new() },
        }
    }

    fn begin(&mut self, attributor: &mut Attributor, index: usize, start: Ticks) {
        if self.start.is_none() {
            self.start = Some(start);
            let _ = attributor.begin(index as u16, start);
        }
    }

    fn take(
        &mut self,
        index: usize,
        gap: &Gap,
        rate: Hertz,
        interval: TicksDelta,
        closed: &mut Vec<ClosedInterval>,
    ) {
        self.check.push(gap);
        self.recording.record(gap.recording().to_nanos(rate).0);
        let offset = gap.start.since(self.start.unwrap_or(gap.start));
        let number = offset.0 / interval.0.max(1);
        if number != self.interval_log.index {
            self.close_interval(index, rate, interval, closed);
            self.interval_log.index = number;
        }
        self.count(gap.length(), 1, offset, rate);
    }

    fn count(&mut self, length: TicksDelta, times: u64, offset: TicksDelta, rate: Hertz) {
        let length_ns = length.to_nanos(rate).0;
        let lost = (length.0 as f64 - self.facts.warmup_period).max(0.0) * 1e9 / rate.0;
        self.lengths.record_n(length_ns, times);
        self.interval_log.lengths.record_n(length_ns, times);
        self.lost_ns += lost * times as f64;
        self.intervals.add(offset, length_ns, times, lost * times as f64);
    }

    fn close_interval(
        &mut self,
        thread: usize,
        rate: Hertz,
        interval: TicksDelta,
        closed: &mut Vec<ClosedInterval>,
    ) {
        let lengths = std::mem::replace(&mut self.interval_log.lengths, Histogram::new());
        if !lengths.is_empty() {
            let length = interval.to_nanos(rate);
            let start = Nanos(self.interval_log.index.saturating_mul(length.0));
            closed.push(ClosedInterval { thread, start, length, lengths });
        }
    }

    /// Gaps that found the ring full are in the histogram all the same, at the time they were
    /// seen to be there.
    fn take_dropped(
        &mut self,
        session: &Session,
        index: usize,
        dropped: u64,
        now: Ticks,
        rate: Hertz,
    ) {
        if dropped == self.dropped_count {
            return;
        }
        self.dropped_count = dropped;
        let offset = now.since(self.start.unwrap_or(now));
        let table: BTreeMap<TicksDelta, u64> = session.dropped(index).collect();
        for (length, count) in &table {
            let new = count - self.dropped_seen.get(length).copied().unwrap_or(0);
            if new > 0 {
                self.count(*length, new, offset, rate);
            }
        }
        self.dropped_seen = table;
    }
}
