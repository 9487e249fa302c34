//! Attribution while a run goes on.
//!
//! Gaps come per thread in order, events per CPU in order, both late and in batches of any size.
//! A mark per CPU says up to which tick its events are complete ([`Attributor::events_complete`]);
//! a gap is taken apart once the events of its CPUs, and the sends of all CPUs where those are
//! traced, are complete to its end. Each thread's gaps come out in order.
//!
//! Marks must be true. A drain that found a CPU's buffer empty may mark the tick it read *before*
//! it looked. [`Attributor::ran_until`] must be given a reading that the loop itself made, for a
//! thread may be in the middle of a gap that it has not seen the end of.
//!
//! Memory is bounded by [`Limits`]; what does not fit is counted in [`Shed`], and gaps that it
//! could have explained are called `TraceLost`, not the host's.
//!
//! Several measuring threads may share a CPU, and threads may float: an event belongs to the gap of
//! each thread that was on its CPU and did not run.

use std::collections::{BTreeMap, VecDeque};

use whylate_model::cause::{Cause, Part, Rule};
use whylate_model::event::{Event, EventKind};
use whylate_model::gap::Gap;
use whylate_model::run::Shed;
use whylate_model::{CpuId, Pid, Ticks, TicksDelta};

use crate::context::{Context, Measured, Placement};
use crate::error::CauseError;
use crate::evidence_b;
use crate::lane::{During, Lane};
use crate::own_time;
use crate::senders::{self, Signalling};
use crate::split::{self, Arrival, Setting, Span};

pub use crate::lane::EventCounts;

/// Bounds of the attribution's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Events kept per CPU: a busy CPU records some thousand per second, and a thread may be off
    /// the CPU for seconds before its gap is known.
    pub events_per_cpu: usize,
    /// Gaps per thread that wait for events.
    pub gaps_per_thread: usize,
    /// Unanswered sends and wake-ups per measured CPU.
    pub sends_per_cpu: usize,
    /// Events handed out with one gap; its parts are worked out from all of them.
    pub events_per_gap: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            events_per_cpu: 65_536,
            gaps_per_thread: 65_536,
            sends_per_cpu: 16_384,
            events_per_gap: 4_096,
        }
    }
}

/// What a gap was named by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The kernel's trace, complete over the gap.
    Trace,
    /// The kernel's trace, with losses or holes in the gap.
    TraceWithLosses,
    /// Evidence B alone.
    Thread,
}

/// A gap with its parts and its cause.
#[derive(Debug, Clone, PartialEq)]
pub struct Attributed {
    /// Index of the thread.
    pub thread: u16,
    /// The gap.
    pub gap: Gap,
    /// Its parts, which sum to it.
    pub parts: Vec<Part>,
    /// What it is named after.
    pub cause: Cause,
    /// The rule that named it, where no event did.
    pub rule: Option<Rule>,
    /// What the naming rests on.
    pub basis: Basis,
    /// Did the thread lose the CPU? Only a complete trace says so.
    pub switched: Option<bool>,
    /// Times the kernel switched the thread out inside it, as far as it was traced.
    pub switched_out: u64,
    /// Of a traced gap, what the kernel charges to the thread all the same.
    pub own: TicksDelta,
    /// The kernel's events inside it, of both CPUs where it changed, in time order.
    pub events: Vec<Event>,
    /// Sends and wake-ups elsewhere that led to them.
    pub sends: Vec<Event>,
    /// Interrupts and threads in it whose sender is known.
    pub arrivals: Vec<Arrival>,
}

/// Turns gaps and events into [`Attributed`] gaps.
#[derive(Debug)]
pub struct Attributor {
    context: Context,
    limits: Limits,
    lanes: BTreeMap<CpuId, Lane>,
    threads: BTreeMap<u16, Course>,
    sends: BTreeMap<CpuId, VecDeque<Event>>,
    sends_complete: BTreeMap<CpuId, Ticks>,
    shed: Shed,
}

/// What one thread has gone through.
#[derive(Debug)]
struct Course {
    about: Measured,
    state: State,
    pending: VecDeque<Due>,
    /// Every event up to here has been judged against this thread.
    judged_to: Ticks,
    /// From there to here it recorded a gap.
    recorded_to: Ticks,
    /// The CPU it is on since then.
    cpu: CpuId,
}

/// What is known of a thread and waits for events.
#[derive(Debug, Clone, Copy)]
enum Due {
    Gap(Gap),
    /// It ran, or ended, at this tick.
    Ran(Ticks),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Measuring,
    Ended,
}

impl Attributor {
    /// An attributor for the threads of `context`. Until CPUs are announced as traced, gaps are
    /// named by evidence B.
    #[must_use]
    pub fn new(context: Context, limits: Limits) -> Self {
        let course = |about: &Measured| Course {
            about: *about,
            state: State::Waiting,
            pending: VecDeque::new(),
            judged_to: Ticks(0),
            recorded_to: Ticks(0),
            cpu: about.cpu,
        };
        let threads = context.threads.iter().map(|about| (about.index, course(about))).collect();
        Self {
            context,
            limits,
            lanes: BTreeMap::new(),
            threads,
            sends: BTreeMap::new(),
            sends_complete: BTreeMap::new(),
            shed: Shed::default(),
        }
    }

    /// What is known of threads and names by now.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// For names read from /proc.
    pub fn context_mut(&mut self) -> &mut Context {
        &mut self.context
    }

    /// The events of `cpu` will come: its gaps wait for them.
    pub fn trace_cpu(&mut self, cpu: CpuId) {
        self.lanes.entry(cpu).or_insert_with(|| Lane::new(self.limits.events_per_cpu));
    }

    /// The sends recorded on `cpu` will come: gaps wait for the sends of every such CPU.
    pub fn trace_sends(&mut self, cpu: CpuId) {
        self.sends_complete.entry(cpu).or_default();
    }

    /// Thread `thread` measures from `start` on; events before do not count. To be called before
    /// events of that time are drained; without it the thread begins with its first gap.
    pub fn begin(&mut self, thread: u16, start: Ticks) -> Result<(), CauseError> {
        let course = self.course(thread)?;
        course.state = State::Measuring;
        course.judged_to = start;
        Ok(())
    }

    /// The loop of `thread` made a reading at `at`, and every gap before it has been pushed.
    pub fn ran_until(&mut self, thread: u16, at: Ticks) -> Result<(), CauseError> {
        let course = self.course(thread)?;
        if course.state == State::Measuring {
            if let Some(Due::Ran(known)) = course.pending.back_mut() {
                *known = at.max(*known);
            } else {
                course.pending.push_back(Due::Ran(at));
            }
        }
        Ok(())
    }

    /// Thread `thread` measured until `at`; all its gaps have been pushed.
    pub fn end(&mut self, thread: u16, at: Ticks) -> Result<(), CauseError> {
        self.ran_until(thread, at)?;
        self.course(thread)?.state = State::Ended;
        Ok(())
    }

    /// Takes gaps of `thread`, in order.
    pub fn push_gaps(&mut self, thread: u16, gaps: &[Gap]) -> Result<(), CauseError> {
        let course = self.course(thread)?;
        if let (State::Waiting, Some(first)) = (course.state, gaps.first()) {
            course.state = State::Measuring;
            course.judged_to = first.start;
        }
        let mut last = match course.pending.back() {
            Some(Due::Gap(gap)) => gap.end,
            Some(Due::Ran(at)) => *at,
            None => course.judged_to,
        };
        let mut disordered = 0;
        for gap in gaps {
            disordered += u64::from(gap.start < last);
            last = gap.end;
            course.pending.push_back(Due::Gap(*gap));
        }
        self.shed.gaps_disordered += disordered;
        Ok(())
    }

    /// Takes events from the trace of the measured CPU `cpu`.
    pub fn push_events(&mut self, cpu: CpuId, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.context.learn(&event);
            match self.lanes.get_mut(&cpu) {
                Some(lane) => lane.push(event),
                None => self.shed.foreign += 1,
            }
        }
    }

    /// Takes sends and wake-ups from the trace of all CPUs. Those to other than traced CPUs are
    /// only asked for names.
    pub fn push_sends(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.context.learn(&event);
            for target in senders::targets(&event) {
                if !self.lanes.contains_key(target) {
                    continue;
                }
                let queue = self.sends.entry(*target).or_default();
                if queue.len() >= self.limits.sends_per_cpu {
                    queue.pop_front();
                    self.shed.sends += 1;
                }
                // Of several CPUs, each in order: from the back it is not far to the place.
                let later = queue.iter().rev().take_while(|held| held.ticks > event.ticks);
                let at = queue.len() - later.count();
                queue.insert(at, event.clone());
            }
        }
    }

    /// The trace of `cpu` lost events between `from` and `to`.
    pub fn events_lost(&mut self, cpu: CpuId, from: Ticks, to: Ticks) {
        if let Some(lane) = self.lanes.get_mut(&cpu) {
            lane.note_lost(Span { from, to });
        }
    }

    /// Every event of `cpu` up to `to` has been pushed.
    pub fn events_complete(&mut self, cpu: CpuId, to: Ticks) {
        if let Some(lane) = self.lanes.get_mut(&cpu) {
            lane.complete_to = lane.complete_to.max(to);
        }
    }

    /// Every send recorded on `cpu` up to `to` has been pushed.
    pub fn sends_complete(&mut self, cpu: CpuId, to: Ticks) {
        if let Some(complete) = self.sends_complete.get_mut(&cpu) {
            *complete = to.max(*complete);
        }
    }

    /// Hands out every gap that is ready, each thread's in order.
    pub fn drain(&mut self, sink: &mut impl FnMut(Attributed)) {
        let threads: Vec<u16> = self.threads.keys().copied().collect();
        for thread in threads {
            self.drain_thread(thread, sink);
        }
        self.let_go();
    }

    /// Hands out everything that is left, as if all events had come, and judges the last events.
    pub fn finish(&mut self, sink: &mut impl FnMut(Attributed)) {
        for lane in self.lanes.values_mut() {
            lane.complete_to = Ticks(u64::MAX);
        }
        for complete in self.sends_complete.values_mut() {
            *complete = Ticks(u64::MAX);
        }
        self.drain(sink);
        self.lanes.values_mut().for_each(Lane::finish);
    }

    /// Where the events of each traced CPU fell, as far as they have been judged.
    #[must_use]
    pub fn event_counts(&self) -> BTreeMap<CpuId, EventCounts> {
        self.lanes.iter().map(|(cpu, lane)| (*cpu, lane.counts)).collect()
    }

    /// What the limits cost so far.
    #[must_use]
    pub fn shed(&self) -> Shed {
        self.shed
    }

    fn course(&mut self, thread: u16) -> Result<&mut Course, CauseError> {
        self.threads.get_mut(&thread).ok_or(CauseError::UnknownThread { thread })
    }

    fn drain_thread(&mut self, thread: u16, sink: &mut impl FnMut(Attributed)) {
        while let Some(course) = self.threads.get_mut(&thread)
            && let Some(due) = course.pending.front().copied()
        {
            let full = course.pending.len() > self.limits.gaps_per_thread;
            let ready = match due {
                Due::Gap(gap) => {
                    let here = is_complete(&self.lanes, gap.cpu_before, gap.end)
                        && is_complete(&self.lanes, gap.cpu_after, gap.end);
                    here && self.sends_complete.values().all(|to| *to >= gap.end)
                }
                Due::Ran(at) => is_complete(&self.lanes, course.cpu, at),
            };
            if !ready && !full {
                return;
            }
            self.shed.gaps_forced += u64::from(!ready);
            course.pending.pop_front();
            match due {
                Due::Ran(at) => course.run_to(at, &mut self.lanes),
                Due::Gap(gap) => {
                    course.run_to(gap.start, &mut self.lanes);
                    course.pass(&gap);
                    let own = course.about.pid;
                    sink(self.take_apart(thread, own, &gap));
                }
            }
        }
    }

    /// Takes a gap apart, with its events if its CPUs are traced.
    fn take_apart(&mut self, thread: u16, own: Pid, gap: &Gap) -> Attributed {
        let cpus: &[CpuId] =
            if gap.migrated() { &[gap.cpu_before, gap.cpu_after] } else { &[gap.cpu_before] };
        let whole = Span { from: gap.start, to: gap.end };
        let mut events = Vec::new();
        let mut lost = Vec::new();
        let mut traced = false;
        for cpu in cpus {
            let Some(lane) = self.lanes.get_mut(cpu) else {
                lost.push(whole);
                continue;
            };
            traced = true;
            lost.extend(lane.lost_in(whole));
            if lane.complete_to < gap.end {
                lost.push(Span { from: lane.complete_to.max(gap.start), to: gap.end });
            }
            events.extend(lane.mark(whole, During::Gap).cloned());
        }
        if !traced {
            return by_evidence_b(thread, gap);
        }
        events.sort_by_key(|event| event.ticks);
        self.by_trace(thread, own, gap, events, &lost)
    }

    fn by_trace(
        &mut self,
        thread: u16,
        own: Pid,
        gap: &Gap,
        mut events: Vec<Event>,
        lost: &[Span],
    ) -> Attributed {
        let mut sends = self.sends_to(gap.cpu_before, gap);
        if gap.migrated() {
            sends.extend(self.sends_to(gap.cpu_after, gap));
            sends.sort_by_key(|send| send.ticks);
        }
        let slack = self.context.thread(thread).map_or(TicksDelta(0), |of| of.slack);
        let setting = Setting { context: &self.context, own, sends: &sends, lost, slack };
        let split = split::split(gap, &events, &setting);
        let sends = split.sends.iter().map(|&index| sends[index].clone()).collect();
        self.answered(&events);
        let basis = if lost.is_empty() { Basis::Trace } else { Basis::TraceWithLosses };
        let leaves = |event: &&Event| matches!(&event.kind, EventKind::Switch { from, .. } if from.pid == own);
        let switched_out = events.iter().filter(leaves).count() as u64;
        let switched = lost.is_empty().then_some(switched_out > 0);
        let own = own_time::own_time(gap, own, &events);
        let cut = events.len().saturating_sub(self.limits.events_per_gap);
        self.shed.events_cut += cut as u64;
        events.truncate(self.limits.events_per_gap);
        Attributed {
            thread,
            gap: *gap,
            parts: split.parts,
            cause: split.cause,
            rule: split.rule,
            basis,
            switched,
            switched_out,
            own,
            events,
            sends,
            arrivals: split.arrivals,
        }
    }

    /// Unanswered sends to `cpu` that may have led to something in `gap`.
    fn sends_to(&self, cpu: CpuId, gap: &Gap) -> Vec<Event> {
        let Some(queue) = self.sends.get(&cpu) else { return Vec::new() };
        let oldest = senders::oldest(gap.start, &self.context);
        let latest = gap.end + self.context.cross_cpu_bound;
        let from = queue.partition_point(|send| send.ticks < oldest);
        let to = queue.partition_point(|send| send.ticks <= latest).max(from);
        queue.range(from..to).cloned().collect()
    }

    /// The sends that arrivals among these events have answered lead to nothing any more.
    fn answered(&mut self, events: &[Event]) {
        let mut last = BTreeMap::<CpuId, [Option<Ticks>; Signalling::KINDS]>::new();
        for event in events {
            if let EventKind::VectorEntry { name, .. } = &event.kind
                && let Some(kind) = Signalling::of_vector(name)
            {
                last.entry(event.cpu).or_default()[kind.index()] = Some(event.ticks);
            }
        }
        for (cpu, last) in last {
            if let Some(queue) = self.sends.get_mut(&cpu) {
                queue.retain(|send| {
                    let kind = Signalling::of_send(send, cpu);
                    kind.and_then(|kind| last[kind.index()]).is_none_or(|last| send.ticks > last)
                });
            }
        }
    }

    /// Lets go of the events and sends that no gap to come can contain.
    fn let_go(&mut self) {
        for (cpu, lane) in &mut self.lanes {
            let safe = self
                .threads
                .values()
                .filter(|course| course.may_run_on(*cpu))
                .map(Course::safe_to)
                .min()
                .unwrap_or(Ticks(u64::MAX));
            lane.evict(safe);
            if let Some(queue) = self.sends.get_mut(cpu) {
                let oldest = senders::oldest(safe.min(lane.complete_to), &self.context);
                while queue.front().is_some_and(|send| send.ticks < oldest) {
                    queue.pop_front();
                }
            }
        }
    }
}

impl Course {
    /// From the last tick judged the thread recorded, if it did, and then ran up to, but not
    /// including, `to`. The events of that time must have come.
    fn run_to(&mut self, to: Ticks, lanes: &mut BTreeMap<CpuId, Lane>) {
        if let Some(lane) = lanes.get_mut(&self.cpu) {
            let recording = Span { from: after(self.judged_to), to: self.recorded_to };
            lane.mark(recording, During::Recording).for_each(drop);
            let from = after(self.judged_to.max(self.recorded_to));
            let running = Span { from, to: Ticks(to.0.saturating_sub(1)) };
            lane.mark(running, During::Running).for_each(drop);
        }
        self.judged_to = self.judged_to.max(to);
    }

    /// The thread went through `gap`, which is being judged now.
    fn pass(&mut self, gap: &Gap) {
        self.judged_to = self.judged_to.max(gap.end);
        self.recorded_to = gap.resumed;
        self.cpu = gap.cpu_after;
    }

    fn may_run_on(&self, cpu: CpuId) -> bool {
        self.about.placement == Placement::Floating || self.about.cpu == cpu
    }

    /// No event from here on has been judged against this thread.
    fn safe_to(&self) -> Ticks {
        let idle =
            self.state == State::Waiting || (self.state == State::Ended && self.pending.is_empty());
        if idle { Ticks(u64::MAX) } else { self.judged_to }
    }
}

fn by_evidence_b(thread: u16, gap: &Gap) -> Attributed {
    let verdict = evidence_b::verdict(gap);
    Attributed {
        thread,
        gap: *gap,
        parts: split::whole(gap, &verdict.cause),
        cause: verdict.cause,
        rule: verdict.rule,
        basis: Basis::Thread,
        switched: None,
        switched_out: 0,
        own: TicksDelta(0),
        events: Vec::new(),
        sends: Vec::new(),
        arrivals: Vec::new(),
    }
}

/// A CPU without a trace has no events to wait for.
fn is_complete(lanes: &BTreeMap<CpuId, Lane>, cpu: CpuId, to: Ticks) -> bool {
    lanes.get(&cpu).is_none_or(|lane| lane.complete_to >= to)
}

fn after(tick: Ticks) -> Ticks {
    Ticks(tick.0.saturating_add(1))
}
