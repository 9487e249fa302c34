//! What one gap recording has collected so far: records checked, histograms filled, causes named.
//!
//! Everything a recording keeps in memory is here, and none of it grows with the duration.

use std::collections::BTreeMap;

use whylate_cause::attribute::Limits;
use whylate_cause::{Attributed, Attributor, Context, Placement, Totals as CauseTotals, validate};
use whylate_gap::closure::Check;
use whylate_gap::{Session, Source, ThreadFacts, Totals};
use whylate_model::cause::{CauseTotal, Validation};
use whylate_model::event::Event;
use whylate_model::foreign::ForeignThread;
use whylate_model::gap::Gap;
use whylate_model::run::{Evidence, TraceFacts};
use whylate_model::{CpuId, Hertz, Nanos, Pid, Ticks, TicksDelta};
use whylate_stats::histogram::Histogram;

use crate::deltas::{Deltas, Found};
use crate::foreign::Foreign;
use crate::intervals::Intervals;
use crate::kernel_trace::KernelTrace;

/// One measuring thread's share.
pub struct Thread {
    /// Name of its series, and tag in the histogram log.
    pub series: String,
    /// The same for people.
    pub label: String,
    /// What it found in its warm-up.
    pub facts: ThreadFacts,
    /// Order and disjointness of its records.
    pub check: Check,
    /// Lengths of all its gaps in nanoseconds, those not kept one by one included.
    pub lengths: Histogram,
    /// Costs of recording in nanoseconds.
    pub recording: Histogram,
    /// By interval of time.
    pub intervals: Intervals,
    /// Every delta by interval of time, in a counting run.
    pub deltas: Option<Deltas>,
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
    /// Which series.
    pub series: String,
    /// Start, counted from the start of the measurement.
    pub start: Nanos,
    /// Length.
    pub length: Nanos,
    /// Lengths of the gaps that began in it, or its deltas.
    pub lengths: Histogram,
}

/// All threads' shares and what took their time.
pub struct Collector {
    rate: Hertz,
    interval: TicksDelta,
    threads: Vec<Thread>,
    attributor: Attributor,
    causes: CauseTotals,
    foreign: Foreign,
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
    /// Every delta is counted.
    pub counting: bool,
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
        Self::of_threads(session.threads().cloned(), context, wanted)
    }

    /// A collector for threads with these facts, whose records somebody else drains.
    #[must_use]
    pub fn of_threads(
        threads: impl IntoIterator<Item = ThreadFacts>,
        context: Context,
        wanted: &Wanted,
    ) -> Self {
        let interval = wanted.interval.to_ticks(wanted.rate);
        let threads = threads.into_iter().enumerate();
        let threads = threads
            .map(|(index, facts)| {
                let placement = context.thread(index as u16).map(|thread| thread.placement);
                let mut thread = Thread::new(facts, interval);
                thread.deltas = wanted.counting.then(|| Deltas::new(interval, wanted.rate));
                if placement == Some(Placement::Floating) {
                    thread.series = format!("gap-thread{index}");
                    thread.label = format!("gaps, floating thread {index}");
                }
                thread
            })
            .collect();
        Self {
            rate: wanted.rate,
            interval,
            threads,
            attributor: Attributor::new(context, LIMITS),
            causes: CauseTotals::new(wanted.worst),
            foreign: Foreign::new(),
            validation: wanted.validate.then(Validation::default),
            closed: Vec::new(),
            watched: wanted.keep_all.then(Vec::new),
        }
    }

    /// Calls the series of thread `index` by another name than its CPU's.
    pub fn name(&mut self, index: usize, series: String, label: String) {
        let thread = &mut self.threads[index];
        (thread.series, thread.label) = (series, label);
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

    /// Takes everything that threads and kernel have recorded since the last call. `keep_event`
    /// sees each event once, and `keep_gap` each gap once its cause is known, to store them.
    pub fn turn(
        &mut self,
        source: &mut impl Source,
        trace: Option<&mut KernelTrace>,
        now: Ticks,
        keep_gap: impl FnMut(&Attributed),
        mut keep_event: impl FnMut(&Event),
    ) -> whylate_gap::State {
        // Read before the rings are drained: every gap before these readings is then in them.
        let ran: Vec<_> = (0..self.threads.len()).map(|index| source.totals(index)).collect();
        for (index, totals) in ran.iter().enumerate() {
            self.begin(index, totals);
        }
        let state = source.drain(&mut |index, gaps| self.take_gaps(index, gaps));
        for (index, totals) in ran.iter().enumerate() {
            self.ran_until(index, totals, || source.dropped(index).collect());
            let thread = &mut self.threads[index];
            if let Some(deltas) = &mut thread.deltas {
                deltas.look(totals.elapsed(), source.deltas(index));
            }
        }
        if let Some(trace) = trace {
            let attributor = &mut self.attributor;
            trace.poll(now, self.rate, attributor, &mut keep_event);
            let fresh = attributor.context_mut().take_fresh();
            self.foreign.look(fresh, whylate_host::names::process_of);
        }
        self.name_causes(false, keep_gap);
        state
    }

    /// As [`Collector::turn`] for the one thread `index`, with records that were drained elsewhere
    /// after `totals` were read, and without a trace.
    pub fn take(
        &mut self,
        index: usize,
        totals: &Totals,
        gaps: &[Gap],
        keep_gap: impl FnMut(&Attributed),
    ) {
        self.begin(index, totals);
        self.take_gaps(index, gaps);
        self.ran_until(index, totals, BTreeMap::new);
        self.name_causes(false, keep_gap);
    }

    /// Takes what is left after the threads have ended.
    pub fn finish(&mut self, source: &impl Source, keep_gap: impl FnMut(&Attributed)) {
        for index in 0..self.threads.len() {
            let totals = source.totals(index);
            let _ = self.attributor.end(index as u16, totals.end);
            let thread = &mut self.threads[index];
            let table = || source.dropped(index).collect();
            thread.take_dropped(totals.dropped, table, totals.end, self.rate);
        }
        self.close_intervals(source);
        self.name_causes(true, keep_gap);
    }

    /// Closes each thread's interval as it stands; what comes later within the same time is another
    /// interval of the same start.
    pub fn close_intervals(&mut self, source: &impl Source) {
        for (index, thread) in self.threads.iter_mut().enumerate() {
            thread.close_interval(self.rate, self.interval, &mut self.closed);
            if let Some(deltas) = &mut thread.deltas {
                deltas.look_now(source.deltas(index));
            }
        }
    }

    /// A thread has no begin until it is known to measure.
    fn begin(&mut self, index: usize, totals: &Totals) {
        if totals.start.0 != 0 {
            self.threads[index].begin(&mut self.attributor, index, totals.start);
        }
    }

    fn take_gaps(&mut self, index: usize, gaps: &[Gap]) {
        let (Some(first), thread) = (gaps.first(), &mut self.threads[index]) else { return };
        thread.begin(&mut self.attributor, index, first.start);
        for gap in gaps {
            thread.take(gap, self.rate, self.interval, &mut self.closed);
        }
        // The attribution knows these threads: both were made from one list.
        let _ = self.attributor.push_gaps(index as u16, gaps);
    }

    fn ran_until(
        &mut self,
        index: usize,
        totals: &Totals,
        dropped: impl FnOnce() -> BTreeMap<TicksDelta, u64>,
    ) {
        if totals.start.0 == 0 {
            return;
        }
        let _ = self.attributor.ran_until(index as u16, totals.end);
        let thread = &mut self.threads[index];
        thread.take_dropped(totals.dropped, dropped, totals.end, self.rate);
        thread.intervals.reach(totals.end.since(totals.start));
    }

    /// Intervals closed since the last call.
    pub fn take_closed(&mut self) -> Vec<ClosedInterval> {
        for thread in &mut self.threads {
            let series = delta_series_name(&thread.series);
            let found = thread.deltas.as_mut().map(Deltas::take_found).unwrap_or_default();
            self.closed.extend(found.into_iter().map(|Found { start, length, values }| {
                ClosedInterval { series: series.clone(), start, length, lengths: values }
            }));
        }
        std::mem::take(&mut self.closed)
    }

    /// Each thread's share.
    #[must_use]
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// These are the tool's own threads, beside those that measure.
    pub(crate) fn learn_own(&mut self, own: impl IntoIterator<Item = Pid>) {
        self.attributor.context_mut().own.extend(own);
    }

    /// The attribution, with what it counted.
    #[must_use]
    pub fn attributor(&self) -> &Attributor {
        &self.attributor
    }

    /// Lost time of a gap is its length less the loop's period over the whole run, by thread.
    pub fn learn_periods(&mut self, periods: &[(u16, f64)]) {
        for (index, period_ticks) in periods {
            self.attributor.context_mut().learn_period(*index, *period_ticks);
        }
    }

    /// Evidence with what the threads and the trace can say: where events fell, what was shed.
    #[must_use]
    pub fn evidence(&self, counted: Evidence, trace: Option<TraceFacts>) -> Evidence {
        let rseq = self.threads.iter().all(|thread| thread.facts.rseq);
        let trace = trace.map(|mut facts| {
            let counts = self.attributor.event_counts();
            facts.events_in_gaps = counts.values().map(|count| count.inside).sum();
            facts.events_measured = counts.values().map(|count| count.inside + count.outside).sum();
            facts.events_in_recording = counts.values().map(|count| count.in_recording).sum();
            facts.shed = self.attributor.shed();
            facts
        });
        Evidence { rseq, trace, ..counted }
    }

    /// Lost time by cause.
    #[must_use]
    pub fn causes(&self) -> &CauseTotals {
        &self.causes
    }

    /// Foreign threads among these causes, with their processes.
    pub(crate) fn foreign(&self, causes: &[CauseTotal]) -> Vec<ForeignThread> {
        self.foreign.among(causes)
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

    fn name_causes(&mut self, all: bool, mut keep_gap: impl FnMut(&Attributed)) {
        let mut ready = Vec::new();
        let mut take = |attributed: Attributed| ready.push(attributed);
        if all {
            self.attributor.finish(&mut take);
        } else {
            self.attributor.drain(&mut take);
        }
        for attributed in ready {
            keep_gap(&attributed);
            // A wait is nobody's doing.
            if attributed.gap.kind.is_wait() {
                continue;
            }
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

/// Name of the series of every delta of the thread whose gaps are this series.
#[must_use]
pub fn delta_series_name(gaps: &str) -> String {
    format!("delta-{}", gaps.strip_prefix("gap-").unwrap_or(gaps))
}

impl Thread {
    fn new(facts: ThreadFacts, interval: TicksDelta) -> Self {
        Self {
            series: format!("gap-cpu{}", facts.cpu),
            label: format!("gaps, CPU {}", facts.cpu),
            facts,
            check: Check::default(),
            lengths: Histogram::new(),
            recording: Histogram::new(),
            intervals: Intervals::new(interval),
            deltas: None,
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
        gap: &Gap,
        rate: Hertz,
        interval: TicksDelta,
        closed: &mut Vec<ClosedInterval>,
    ) {
        self.check.push(gap);
        if gap.kind.is_wait() {
            return;
        }
        self.recording.record(gap.recording().to_nanos(rate).0);
        let offset = gap.start.since(self.start.unwrap_or(gap.start));
        let number = offset.0 / interval.0.max(1);
        if number != self.interval_log.index {
            self.close_interval(rate, interval, closed);
            self.interval_log.index = number;
        }
        self.count(gap.length(), 1, offset, rate);
    }

    fn count(&mut self, length: TicksDelta, times: u64, offset: TicksDelta, rate: Hertz) {
        let length_ns = length.to_nanos(rate).0;
        self.lengths.record_n(length_ns, times);
        self.interval_log.lengths.record_n(length_ns, times);
        let bin = Nanos(self.lengths.bin_of(length_ns));
        self.intervals.add(offset, length, bin, times);
    }

    fn close_interval(
        &mut self,
        rate: Hertz,
        interval: TicksDelta,
        closed: &mut Vec<ClosedInterval>,
    ) {
        let lengths = std::mem::replace(&mut self.interval_log.lengths, Histogram::new());
        if !lengths.is_empty() {
            let length = interval.to_nanos(rate);
            let start = Nanos(self.interval_log.index.saturating_mul(length.0));
            closed.push(ClosedInterval { series: self.series.clone(), start, length, lengths });
        }
    }

    /// Gaps that found the ring full are in the histogram all the same, at the time they were
    /// seen to be there.
    fn take_dropped(
        &mut self,
        dropped: u64,
        table: impl FnOnce() -> BTreeMap<TicksDelta, u64>,
        now: Ticks,
        rate: Hertz,
    ) {
        if dropped == self.dropped_count {
            return;
        }
        self.dropped_count = dropped;
        let offset = now.since(self.start.unwrap_or(now));
        let table = table();
        for (length, count) in &table {
            let new = count - self.dropped_seen.get(length).copied().unwrap_or(0);
            if new > 0 {
                self.count(*length, new, offset, rate);
            }
        }
        self.dropped_seen = table;
    }
}
