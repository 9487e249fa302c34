//! Timelines with known truth, for the tests of this crate, and what the whole of it makes of
//! them.
//!
//! One tick is one nanosecond here.

use whylate_model::cause::{Cause, PriorityClass};
use whylate_model::event::{Event, EventKind, Softirq, Task};
use whylate_model::gap::{Evidence, Gap, GapKind, RseqWord};
use whylate_model::{CpuId, Hertz, Pid, Ticks, TicksDelta};

use crate::context::{Context, Measured, Placement};

pub(crate) const OWN: Pid = Pid(100);
pub(crate) const CPU: CpuId = CpuId(2);

pub(crate) fn context(virtualised: bool) -> Context {
    let mut context = Context::new(virtualised, Hertz(1e9));
    context.threads.push(Measured {
        index: 0,
        pid: OWN,
        cpu: CPU,
        placement: Placement::Pinned,
        period_ticks: 10.0,
        always_runs: true,
        slack: TicksDelta(0),
    });
    context
}

pub(crate) fn gap(start: u64, end: u64) -> Gap {
    Gap {
        start: Ticks(start),
        end: Ticks(end),
        resumed: Ticks(end + 20),
        cpu_before: CPU,
        cpu_after: CPU,
        kind: GapKind::Interruption,
        evidence: Evidence { rseq: RseqWord::Set, ..Evidence::default() },
    }
}

/// Writes down events as the kernel would: in order, each with the thread current then.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) events: Vec<Event>,
    pub(crate) cpu: CpuId,
    pub(crate) current: Task,
}

impl Script {
    pub(crate) fn new() -> Self {
        Self { events: Vec::new(), cpu: CPU, current: own() }
    }

    pub(crate) fn on(cpu: CpuId, current: Task) -> Self {
        Self { events: Vec::new(), cpu, current }
    }

    pub(crate) fn at(mut self, ticks: u64, kind: EventKind) -> Self {
        let pid = self.current.pid;
        self.events.push(Event { ticks: Ticks(ticks), cpu: self.cpu, pid, kind });
        self
    }

    pub(crate) fn vector(self, name: &str, from: u64, to: u64) -> Self {
        self.at(from, entry(name)).at(to, exit(name))
    }

    pub(crate) fn softirq(self, vector: Softirq, from: u64, to: u64) -> Self {
        self.at(from, EventKind::SoftirqEntry { vector }).at(to, EventKind::SoftirqExit { vector })
    }

    pub(crate) fn switch(mut self, ticks: u64, to: &Task) -> Self {
        let from = self.current.clone();
        let kind = EventKind::Switch { from, from_runnable: true, to: to.clone() };
        self = self.at(ticks, kind);
        self.current = to.clone();
        self
    }
}

pub(crate) fn entry(name: &str) -> EventKind {
    EventKind::VectorEntry { name: name.to_owned(), vector: 236 }
}

pub(crate) fn exit(name: &str) -> EventKind {
    EventKind::VectorExit { name: name.to_owned(), vector: 236 }
}

pub(crate) fn task(pid: i32, comm: &str, prio: i32) -> Task {
    Task { pid: Pid(pid), comm: comm.to_owned(), prio }
}

pub(crate) fn own() -> Task {
    task(OWN.0, "whylate/2", 120)
}

pub(crate) fn hog() -> Task {
    task(7, "hog", 120)
}

pub(crate) fn interrupt(name: &str) -> Cause {
    Cause::Interrupt { name: name.to_owned() }
}

pub(crate) fn thread(comm: &str, class: PriorityClass) -> Cause {
    Cause::Thread { comm: comm.to_owned(), class }
}

/// A small generator, so that the tests are the same on every run.
#[derive(Debug, Clone)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        (self.0 >> 33) % limit
    }
}

mod order_cases;
mod split_cases;
mod stream_cases;
mod waking_cases;
mod walk_cases;
