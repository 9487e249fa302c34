//! What the attribution knows beside gaps and events: the platform, the clock, its own threads,
//! and the names of others.
//!
//! Names are learned from the scheduler's events as they pass; the table is bounded. A thread id
//! that the kernel reuses keeps the newest name.

use std::collections::{HashMap, HashSet};

use whylate_model::cause::PriorityClass;
use whylate_model::event::{Event, EventKind, Task};
use whylate_model::{CpuId, Hertz, Nanos, Pid, TicksDelta};

/// Names kept. Linux allows 4 million thread ids; a run sees hundreds to thousands of them.
const NAMES_MAX: usize = 65_536;

/// Interrupt numbers whose handlers' names are kept; large machines have some thousands.
const HANDLERS_MAX: usize = 16_384;

/// A residual up to this long is the cost of entering or leaving the kernel through a hypervisor
/// (a whole timer interrupt was seen to cost 14 to 17 us there); a longer one is work of somebody.
const RESIDUAL_LIMIT_VIRTUAL: Nanos = Nanos(50_000);

/// The same on bare metal, where entering the kernel takes well below a microsecond.
const RESIDUAL_LIMIT_METAL: Nanos = Nanos(10_000);

/// What the attribution knows beside gaps and events.
#[derive(Debug, Clone)]
pub struct Context {
    /// The machine is virtual: a gap without an event is the host's, not the firmware's.
    pub virtualised: bool,
    /// Frequency of the counter.
    pub hz: Hertz,
    /// The measuring threads.
    pub threads: Vec<Measured>,
    /// The longest residual that is taken for the cost of entering or leaving the kernel; see
    /// [`crate::naming`].
    pub residual_limit: TicksDelta,
    /// Two stamps of different CPUs that are closer than this have no order.
    pub cross_cpu_bound: TicksDelta,
    /// Threads of whylate itself that are to be named as that, where they take a measured CPU.
    pub own: HashSet<Pid>,
    names: HashMap<Pid, Name>,
    handlers: HashMap<i32, String>,
    /// Threads that had a measured CPU, with the name they had last, and those not told yet.
    ran: HashMap<Pid, String>,
    fresh: Vec<(Pid, String)>,
}

/// One measuring thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Its index, as in the gap records.
    pub index: u16,
    /// Its thread id as the kernel's trace shows it, which is the one of the outermost PID
    /// namespace.
    pub pid: Pid,
    /// The CPU it is pinned to, or the one it began on.
    pub cpu: CpuId,
    /// Pinned to that CPU, or free to move.
    pub placement: Placement,
    /// Period of its loop in ticks; a gap has lost its length less this.
    pub period_ticks: f64,
    /// It never waits of its own accord. The gaps of one that does come at its own period, because
    /// it sees some only while it runs.
    pub always_runs: bool,
    /// How much later than asked the kernel may let its timer fire; zero for real-time threads.
    pub slack: TicksDelta,
}

/// May a measuring thread move?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Pinned to one CPU.
    Pinned,
    /// Free to move between CPUs.
    Floating,
}

#[derive(Debug, Clone)]
struct Name {
    comm: String,
    class: Option<PriorityClass>,
}

impl Context {
    /// A context without threads and names. The residual limit is the platform's, the cross-CPU
    /// bound zero.
    #[must_use]
    pub fn new(virtualised: bool, hz: Hertz) -> Self {
        let limit = if virtualised { RESIDUAL_LIMIT_VIRTUAL } else { RESIDUAL_LIMIT_METAL };
        Self {
            virtualised,
            hz,
            threads: Vec::new(),
            residual_limit: limit.to_ticks(hz),
            cross_cpu_bound: TicksDelta(0),
            own: HashSet::new(),
            names: HashMap::new(),
            handlers: HashMap::new(),
            ran: HashMap::new(),
            fresh: Vec::new(),
        }
    }

    /// Foreign threads that have had a measured CPU since the last call, each once under each of its names.
    pub fn take_fresh(&mut self) -> Vec<(Pid, String)> {
        let mut fresh = std::mem::take(&mut self.fresh);
        let own = |pid: &Pid| {
            self.own.contains(pid) || self.threads.iter().any(|thread| thread.pid == *pid)
        };
        fresh.retain(|(pid, _)| !own(pid));
        fresh
    }

    /// The thread of that index.
    #[must_use]
    pub fn thread(&self, index: u16) -> Option<&Measured> {
        self.threads.iter().find(|thread| thread.index == index)
    }

    /// The period of a thread's loop, as far as it is known by now.
    pub fn learn_period(&mut self, index: u16, period_ticks: f64) {
        for thread in self.threads.iter_mut().filter(|thread| thread.index == index) {
            thread.period_ticks = period_ticks;
        }
    }

    /// Remembers a name, as read from /proc.
    pub fn learn_name(&mut self, pid: Pid, comm: &str) {
        self.remember(pid, comm, None);
    }

    /// Remembers the names that an event carries.
    pub fn learn(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Switch { from, to, .. } => {
                for task in [from, to] {
                    self.learn_task(task);
                    self.had_the_cpu(task);
                }
            }
            EventKind::Wakeup { task, .. } | EventKind::Migrate { task, .. } => {
                self.learn_task(task);
            }
            EventKind::SignalGenerate { pid, comm, .. } => self.remember(*pid, comm, None),
            EventKind::HandlerEntry { irq, name }
                if self.handlers.len() < HANDLERS_MAX && !self.handlers.contains_key(irq) =>
            {
                self.handlers.insert(*irq, name.clone());
            }
            _ => {}
        }
    }

    /// Name of a thread as far as known; the idle thread of each CPU has one name.
    #[must_use]
    pub fn comm(&self, pid: Pid) -> String {
        if pid.0 == 0 {
            return "swapper".to_owned();
        }
        self.names.get(&pid).map_or_else(String::new, |name| name.comm.clone())
    }

    /// Priority class of a thread. One whose priority no event has told counts as ordinary.
    #[must_use]
    pub fn class(&self, pid: Pid) -> PriorityClass {
        if pid.0 == 0 {
            return PriorityClass::Idle;
        }
        self.names.get(&pid).and_then(|name| name.class).unwrap_or(PriorityClass::Ordinary)
    }

    /// Name of an interrupt's handler, as /proc/interrupts has it; its number where not known.
    #[must_use]
    pub fn handler(&self, irq: i32) -> String {
        self.handlers.get(&irq).cloned().unwrap_or_else(|| format!("irq {irq}"))
    }

    fn learn_task(&mut self, task: &Task) {
        if task.pid.0 != 0 {
            let class = PriorityClass::from_kernel(task.prio, task.pid);
            self.remember(task.pid, &task.comm, Some(class));
        }
    }

    fn had_the_cpu(&mut self, task: &Task) {
        let known = self.ran.get(&task.pid).is_some_and(|comm| *comm == task.comm);
        if task.pid.0 != 0 && !known && self.ran.len() < NAMES_MAX {
            self.fresh.push((task.pid, task.comm.clone()));
            self.ran.insert(task.pid, task.comm.clone());
        }
    }

    fn remember(&mut self, pid: Pid, comm: &str, class: Option<PriorityClass>) {
        if let Some(known) = self.names.get_mut(&pid) {
            if known.comm != comm {
                comm.clone_into(&mut known.comm);
            }
            known.class = class.or(known.class);
        } else if self.names.len() < NAMES_MAX {
            self.names.insert(pid, Name { comm: comm.to_owned(), class });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whylate_model::Ticks;

    fn switch(to: Task) -> Event {
        let from = Task { pid: Pid(1), comm: "a".into(), prio: 120 };
        let kind = EventKind::Switch { from, from_runnable: true, to };
        Event { ticks: Ticks(0), cpu: CpuId(0), pid: Pid(1), kind }
    }

    #[test]
    fn names_and_classes_are_learned_from_the_scheduler() {
        let mut context = Context::new(true, Hertz(1e9));
        context.learn_name(Pid(9), "old");
        context.learn(&switch(Task { pid: Pid(9), comm: "new".into(), prio: 49 }));
        assert_eq!(context.comm(Pid(9)), "new");
        assert_eq!(context.class(Pid(9)), PriorityClass::RealTime);
        assert_eq!(context.comm(Pid(10)), "");
        assert_eq!(context.take_fresh(), [(Pid(1), "a".to_owned()), (Pid(9), "new".to_owned())]);
        context.learn(&switch(Task { pid: Pid(9), comm: "new".into(), prio: 49 }));
        assert_eq!(context.take_fresh(), [], "once");
        context.own.insert(Pid(9));
        context.learn(&switch(Task { pid: Pid(9), comm: "newer".into(), prio: 49 }));
        context.learn(&switch(Task { pid: Pid(0), comm: "swapper/1".into(), prio: 120 }));
        assert_eq!(context.take_fresh(), [], "whylate's own, and the idle thread");
        assert_eq!(context.class(Pid(0)), PriorityClass::Idle);
    }

    #[test]
    fn the_table_of_names_is_bounded() {
        let mut context = Context::new(true, Hertz(1e9));
        for pid in 1..=(NAMES_MAX as i32 + 10) {
            context.learn_name(Pid(pid), "x");
        }
        assert_eq!(context.names.len(), NAMES_MAX);
    }
}
