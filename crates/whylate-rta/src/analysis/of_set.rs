//! Tasks of a set of threads: what each of its threads asks for at most, or why that cannot be said.
//!
//! Priorities are words that are known where threads run, so the caller gives them as numbers. A
//! thread without one runs when no other wants to: it is left out, and counts only for what it
//! locks. What an analysis cannot answer for is refused by name, with the reason.

use std::collections::BTreeSet;

use whylate_model::{CpuId, Nanos, Printable};

use super::blocking::{self, Section};
use super::cbs::Server;
use super::task::{Releases, Task};
use crate::call::CallError;
use crate::demand::{Demand, DemandError, Tables};
use crate::task_set::{ReservationScheduler, Step, TaskSet, Thread};

/// What a thread without work of its own asks for: an instant of the CPU.
const INSTANT: Nanos = Nanos(1);

/// The timer that waits by reading the clock: like the names of workloads, one that analysis must know.
const SPIN: &str = "spin";

/// How the CPU is given away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// To the most urgent by a fixed number.
    FixedPriority,
    /// To the one whose deadline is next.
    EarliestDeadline,
    /// To reservations.
    Reservations,
}

/// How a set is to be taken.
#[derive(Clone, Copy)]
pub struct Taken<'a> {
    /// How the CPU is given away.
    pub policy: Policy,
    /// Of each thread, its priority: larger is more urgent; none: it runs when nobody else wants to.
    pub priorities: &'a [Option<u32>],
    /// Where the texts of tables come from.
    pub tables: Tables<'a>,
}

/// The tasks of a set.
#[derive(Debug, Clone, PartialEq)]
pub struct OfSet {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// Of each task, the number of its thread.
    pub threads: Vec<usize>,
    /// Threads that run when no other wants to, by name.
    pub left_out: Vec<String>,
    /// Threads whose largest execution time is where their distribution is cut, by name.
    pub cut: Vec<String>,
}

/// A thread that cannot be analysed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("thread {} cannot be analysed: {reason}", Printable(.thread))]
pub struct NotAnalysed {
    /// Which.
    pub thread: String,
    /// Why.
    pub reason: Reason,
}

/// Why a thread cannot be analysed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Reason {
    /// Its jobs have no least distance.
    #[error(
        "`{}` has no period, so nothing bounds what it takes; write PERIODIC 3ms 8ms, or give it a \
         priority of timesharing, such as NORMAL", Printable(.0)
    )]
    NoPeriod(String),
    /// It never blocks, and something is less urgent.
    #[error(
        "`{}` never blocks, so nothing less urgent would ever run; make it the least urgent", 
        Printable(.0)
    )]
    NeverBlocks(String),
    /// It waits without leaving the CPU, and something is no more urgent.
    #[error(
        "it waits by `spin`, which keeps the CPU until its next release, so thread {}, which is no \
         more urgent, would never run; make it the least urgent, or let it wait by a timer that \
         sleeps, such as HR", Printable(.0)
    )]
    SpinsAbove(String),
    /// It waits without leaving the CPU where deadlines decide.
    #[error(
        "it waits by `spin`, which wants the CPU between its jobs, too, and no deadline is that of \
         such a wait; let it wait by a timer that sleeps, such as HR"
    )]
    SpinsBetween,
    /// Its wait is paid for by its reservation.
    #[error(
        "it waits by `spin`, which uses its budget up, so a job may find none of it when it is \
         released (other reservations keep theirs); let it wait by a timer that sleeps, such as HR"
    )]
    SpinsBudget,
    /// More than one.
    #[error("it may use {0} CPUs, and the analysis is of one: name one, such as cpus = \"1\"")]
    ManyCpus(usize),
    /// Another than the others.
    #[error("it runs on CPU {own}, and others on CPU {other}: analyse each CPU by itself")]
    AnotherCpu {
        /// Its own.
        own: CpuId,
        /// That of another.
        other: CpuId,
    },
    /// A step that waits for another thread.
    #[error(
        "its step `{}` is bound up with other threads or with time, and how long that takes is not \
         bounded here; only run, lock, unlock and yield are", Printable(.0)
    )]
    Waits(String),
    /// A reservation where priorities decide.
    #[error("it has a reservation: use --policy cbs")]
    Reserved,
    /// None where reservations decide.
    #[error("it has no reservation: write one, such as `reserve 3.1ms 8ms`")]
    NotReserved,
    /// A quota is a limit and guarantees nothing.
    #[error("a quota is a limit without a guarantee: reserve by SCHED_DEADLINE")]
    Quota,
    /// A mutex without a protocol.
    #[error(
        "it waits for mutex {mutex}, which the less urgent {holder} may hold for as long as \
         anything between the two runs: give the mutex the protocol inherit or protect"
    )]
    Inversion {
        /// Which mutex.
        mutex: String,
        /// Who may hold it.
        holder: String,
    },
    /// A ceiling that is none.
    #[error(
        "its priority {priority} is above the ceiling {ceiling} of mutex {mutex}: raise the ceiling"
    )]
    Ceiling {
        /// Which mutex.
        mutex: String,
        /// Its ceiling.
        ceiling: u8,
        /// The thread's priority.
        priority: u32,
    },
    /// Locks where reservations or deadlines decide.
    #[error(
        "it locks mutex {0}, and what that costs is bounded for fixed priorities only: use \
         --policy fp"
    )]
    Locks(String),
    /// The workload is not of its grammar.
    #[error(transparent)]
    Call(#[from] CallError),
    /// Its execution time is none.
    #[error(transparent)]
    Demand(#[from] DemandError),
}

/// The tasks of a set, with their blocking.
///
/// # Panics
///
/// When there is not a priority, or none, for each thread.
pub fn tasks(set: &TaskSet, taken: &Taken<'_>) -> Result<OfSet, NotAnalysed> {
    assert_eq!(set.threads.len(), taken.priorities.len(), "one priority for each thread");
    let mut of_set =
        OfSet { tasks: Vec::new(), threads: Vec::new(), left_out: Vec::new(), cut: Vec::new() };
    let mut sections = Vec::new();
    let mut cpu = None;
    for (index, thread) in set.threads.iter().enumerate() {
        let refused = |reason| NotAnalysed { thread: thread.name.clone(), reason };
        let background = taken.policy == Policy::FixedPriority && taken.priorities[index].is_none();
        let Work { run, locks, cut } = match work(thread, taken.tables) {
            Ok(work) => work,
            // Whatever it does, it does when nobody else wants to.
            Err(_) if background && !locks_anything(thread) => {
                of_set.left_out.push(thread.name.clone());
                continue;
            }
            Err(reason) => return Err(refused(reason)),
        };
        sections.push((taken.priorities[index], thread.name.clone(), locks));
        if background {
            of_set.left_out.push(thread.name.clone());
            continue;
        }
        cpu = one_cpu(thread, cpu).map_err(refused)?;
        let mut task = released(thread, run).map_err(refused)?;
        task.priority = taken.priorities[index].unwrap_or_default();
        task.deadline = thread.deadline.unwrap_or(task.period);
        task.server = server(thread, taken.policy).map_err(refused)?;
        if cut {
            of_set.cut.push(thread.name.clone());
        }
        of_set.tasks.push(task);
        of_set.threads.push(index);
    }
    endless_is_last(&of_set.tasks)?;
    spinning_is_last(set, &of_set, taken.policy)?;
    if taken.policy == Policy::FixedPriority {
        blocking::add(set, &sections, &mut of_set.tasks)?;
    } else if let Some((name, mutex)) =
        sections.iter().find_map(|(_, name, locks)| Some((name, &locks.first()?.mutex)))
    {
        return Err(NotAnalysed { thread: name.clone(), reason: Reason::Locks(mutex.clone()) });
    }
    Ok(of_set)
}

fn locks_anything(thread: &Thread) -> bool {
    thread.written_steps().any(|step| matches!(step, Step::Lock(_)))
}

/// What a job of a thread does at most.
struct Work {
    run: Nanos,
    locks: Vec<Section>,
    cut: bool,
}

fn work(thread: &Thread, tables: Tables<'_>) -> Result<Work, Reason> {
    if !thread.steps.is_empty() {
        return steps(&thread.steps);
    }
    let workload = &thread.workload;
    if is_latency(thread) {
        return Ok(Work { run: INSTANT, locks: Vec::new(), cut: false });
    }
    if !workload.is("PERIODIC") && !workload.is("CPU_PERIODIC") {
        return Err(Reason::NoPeriod(workload.to_string()));
    }
    let demand = Demand::parse(workload.argument(0, "amount", USAGE)?, tables)?;
    Ok(Work { run: demand.ceiling(), locks: Vec::new(), cut: demand.worst().is_none() })
}

const USAGE: &str = "PERIODIC <amount> <period>";

fn is_latency(thread: &Thread) -> bool {
    thread.workload.is("LAT") || thread.workload.is("LAT_ABS")
}

/// The sum of what is run, and each section under a lock by what is run inside it.
fn steps(steps: &[Step]) -> Result<Work, Reason> {
    let mut work = Work { run: Nanos(0), locks: Vec::new(), cut: false };
    let mut open: Vec<Section> = Vec::new();
    for step in steps {
        match step {
            Step::Run(demand) => {
                let most = demand.ceiling();
                work.cut |= demand.worst().is_none();
                work.run = Nanos(work.run.0.saturating_add(most.0));
                for section in &mut open {
                    section.length = Nanos(section.length.0.saturating_add(most.0));
                }
            }
            Step::Lock(mutex) => {
                for section in &mut open {
                    section.inner.insert(mutex.clone());
                }
                let outermost = open.is_empty();
                let (mutex, inner) = (mutex.clone(), BTreeSet::new());
                open.push(Section { mutex, inner, length: Nanos(0), outermost });
            }
            Step::Unlock(mutex) => {
                if let Some(index) = open.iter().position(|section| section.mutex == *mutex) {
                    work.locks.push(open.remove(index));
                }
            }
            Step::Yield => {}
            other => return Err(Reason::Waits(other.to_string())),
        }
    }
    work.run = work.run.max(INSTANT);
    Ok(work)
}

fn released(thread: &Thread, run: Nanos) -> Result<Task, Reason> {
    let workload = &thread.workload;
    let (at, releases) = if is_latency(thread) {
        (0, Releases::Periodic)
    } else if workload.is("PERIODIC") {
        (1, Releases::Periodic)
    } else if workload.is("CPU_PERIODIC") {
        (1, Releases::AfterTheLast)
    } else {
        return Err(Reason::NoPeriod(workload.to_string()));
    };
    let period = workload.time(at, "period", USAGE)?;
    Ok(Task { releases, ..Task::new(thread.name.clone(), run, period) })
}

/// The one CPU of all threads so far.
fn one_cpu(thread: &Thread, known: Option<CpuId>) -> Result<Option<CpuId>, Reason> {
    match (thread.cpus.as_deref(), known) {
        (None, known) => Ok(known),
        (Some(&[own]), Some(other)) if own != other => Err(Reason::AnotherCpu { own, other }),
        (Some(&[own]), _) => Ok(Some(own)),
        (Some(cpus), _) => Err(Reason::ManyCpus(cpus.len())),
    }
}

fn server(thread: &Thread, policy: Policy) -> Result<Option<Server>, Reason> {
    match (policy, thread.reservation) {
        (Policy::Reservations, None) => Err(Reason::NotReserved),
        (_, None) => Ok(None),
        (Policy::Reservations, Some(of)) if of.scheduler == ReservationScheduler::Deadline => {
            Ok(Some(Server { budget: of.amount, period: of.period }))
        }
        (Policy::Reservations, Some(_)) => Err(Reason::Quota),
        (Policy::FixedPriority | Policy::EarliestDeadline, Some(_)) => Err(Reason::Reserved),
    }
}

/// A thread that never blocks must not stand above or beside another.
fn endless_is_last(tasks: &[Task]) -> Result<(), NotAnalysed> {
    let endless = tasks.iter().enumerate().find(|(index, task)| {
        let below = |(other, one): (usize, &Task)| other != *index && one.priority <= task.priority;
        task.releases == Releases::AfterTheLast && tasks.iter().enumerate().any(below)
    });
    match endless {
        Some((_, task)) => Err(NotAnalysed {
            thread: task.name.clone(),
            reason: Reason::NeverBlocks("CPU_PERIODIC".to_owned()),
        }),
        None => Ok(()),
    }
}

/// Does a thread keep the CPU while it waits for its next release?
#[must_use]
pub fn waits_busily(thread: &Thread) -> bool {
    thread.timer.is(SPIN)
}

/// A thread that keeps the CPU while it waits takes all of it from what is no more urgent, and
/// nothing from the others. What such a wait is where deadlines or budgets decide is not analysed.
fn spinning_is_last(set: &TaskSet, of_set: &OfSet, policy: Policy) -> Result<(), NotAnalysed> {
    let tasks = || of_set.tasks.iter().zip(&of_set.threads);
    for (task, thread) in tasks() {
        // What never blocks waits for nothing.
        if task.releases == Releases::AfterTheLast || !waits_busily(&set.threads[*thread]) {
            continue;
        }
        let is_held_up =
            |one: &Task| policy != Policy::FixedPriority || one.priority <= task.priority;
        let victim = tasks().find(|(one, other)| *other != thread && is_held_up(one));
        let reason = match (policy, victim) {
            (Policy::Reservations, _) => Reason::SpinsBudget,
            (Policy::FixedPriority, Some((other, _))) => Reason::SpinsAbove(other.name.clone()),
            (Policy::EarliestDeadline, Some(_)) => Reason::SpinsBetween,
            (Policy::FixedPriority | Policy::EarliestDeadline, None) => continue,
        };
        return Err(NotAnalysed { thread: task.name.clone(), reason });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
