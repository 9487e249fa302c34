//! Lost time by cause, in the few classes of a first screen.

use std::collections::{BTreeMap, BTreeSet};

use whylate_model::cause::{Cause, CauseTotal};
use whylate_model::run::Run;
use whylate_model::{CpuId, Nanos, Pid};

use super::layout;
use crate::doc::Table;
use crate::numbers::{Cell, Value};
use crate::spans::{Sentence, Told, sentence};

/// Rows of the table; what is less is one row more.
const MOST: usize = 5;
/// Causes that a sentence names, and the least share that it names one with.
const SAID: usize = 3;
const LEAST_SAID: f64 = 0.01;
/// A sentence that names a cause with so much of it names no other.
const NEARLY_ALL: f64 = 0.95;
/// The columns of the share of the CPU, of stalls, and of the longest.
const OF_CPU: usize = 3;
const STALLS: usize = 4;
const LONGEST: usize = 5;
/// Columns of a line, and what stands around the causes in it.
const ROOM: usize = 79;

/// What is known by no name, and what has no row of its own.
pub(super) const UNKNOWN: &str = "cause unknown";
pub(super) const OTHER: &str = "other causes";

/// What one class took.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Taken {
    class: Class,
    lost_ns: f64,
    share: f64,
    of_cpu: f64,
    stalls: u64,
    longest: Nanos,
}

/// Causes that the first screen tells as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Class {
    NoEvent,
    Hypervisor,
    Firmware,
    BesideInterrupts,
    Tick,
    Timer,
    Interrupts,
    Softirqs,
    Task(String),
    /// One of the set that is measured, by its name.
    Member(String),
    /// Inferred without a trace.
    Tasks,
    NoTask {
        virtual_machine: bool,
    },
    Throttling,
    OwnDemand,
    LeftOver,
    TimerLate,
    IdleExit,
    Resource,
    Asleep,
    Unknown,
    Other,
}

impl Class {
    pub(super) fn of(cause: &Cause, run: &Run) -> Self {
        match cause {
            Cause::Host => Self::NoEvent,
            Cause::Hypervisor => Self::Hypervisor,
            Cause::Firmware => Self::Firmware,
            Cause::EntryResidual | Cause::InnerResidual | Cause::ExitResidual => {
                Self::BesideInterrupts
            }
            Cause::Tick => Self::Tick,
            Cause::Interrupt { name } if name == "local_timer" => {
                if run.ticks() {
                    Self::Tick
                } else {
                    Self::Timer
                }
            }
            Cause::Interrupt { .. } | Cause::Nmi => Self::Interrupts,
            Cause::Softirq { .. } => Self::Softirqs,
            Cause::Thread { comm, class } | Cause::Member { comm, class } => {
                let other = || Self::Task(format!("task {} ({class})", layout::name(comm)));
                member(run, comm).map_or_else(other, |name| Self::Member(name.to_owned()))
            }
            Cause::Whylate => Self::Task("whylate itself".to_owned()),
            Cause::ContextSwitch | Cause::Migration => Self::Tasks,
            Cause::NotSwitched => Self::NoTask { virtual_machine: run.host.hypervisor.is_some() },
            Cause::Throttled => Self::Throttling,
            Cause::OwnDemand => Self::OwnDemand,
            Cause::LeftOver => Self::LeftOver,
            Cause::TimerLate => Self::TimerLate,
            Cause::IdleExit => Self::IdleExit,
            Cause::Blocked => Self::Resource,
            Cause::Stopped => Self::Asleep,
            Cause::Unknown => Self::Unknown,
            Cause::PageFault | Cause::Signal { .. } | Cause::TraceLost => Self::Other,
        }
    }

    pub(super) fn name(&self) -> String {
        match self {
            Self::Member(name) => return format!("task {name} of the set"),
            Self::NoEvent => "no kernel event",
            Self::Hypervisor => "hypervisor",
            Self::Firmware => "firmware or hardware",
            Self::BesideInterrupts => "IRQ entry/exit",
            Self::Tick => "timer tick",
            Self::Timer => "timer interrupts",
            Self::Interrupts => "other interrupts",
            Self::Softirqs => "softirqs",
            Self::Task(name) => name,
            Self::Tasks => "other tasks",
            Self::NoTask { virtual_machine: true } => "IRQs or hypervisor",
            Self::NoTask { virtual_machine: false } => "IRQs or firmware",
            Self::Throttling => "throttling",
            Self::OwnDemand => "own demand",
            Self::LeftOver => "left over from the job before",
            Self::TimerLate => "timer fired late",
            Self::IdleExit => "leaving idle",
            Self::Resource => "waiting for a resource",
            Self::Asleep => "stopped or asleep",
            Self::Unknown => UNKNOWN,
            Self::Other => OTHER,
        }
        .to_owned()
    }

    /// What its share of the lost time did: the verb, and the words behind it.
    fn said(&self) -> (&'static str, Sentence) {
        match self {
            Self::NoEvent => (" has", " no kernel event".into()),
            Self::Hypervisor => (" went", " to the hypervisor".into()),
            Self::Task(_) | Self::Member(_) => (" went", sentence![" to ", Told::of(self.name())]),
            Self::Tasks => (" went", " to other tasks".into()),
            Self::NoTask { virtual_machine: true } => {
                (" went", " to interrupts or the hypervisor".into())
            }
            Self::NoTask { virtual_machine: false } => {
                (" went", " to interrupts or the firmware".into())
            }
            Self::Tick => (" is", " the timer tick".into()),
            _ => (" is", sentence![" ", Told::of(self.name())]),
        }
    }
}

/// The thread of the set that the kernel calls so: it has some letters of a name, and none of a number alone.
fn member<'a>(run: &'a Run, comm: &str) -> Option<&'a str> {
    /// Letters of a name that the kernel keeps.
    const LETTERS: usize = 15;
    let name = comm.strip_prefix("hourglass/").unwrap_or(comm);
    let all = || run.threads.iter().map(|thread| thread.name.as_str());
    let cut = |of: &&str| comm.chars().count() == LETTERS && of.starts_with(name);
    all().find(|of| *of == name).or_else(|| all().find(cut))
}

/// What a cause that reads so in reports is called on a first screen; none where the run has no such cause.
pub(crate) fn class_named(cause: &str, run: &Run) -> Option<String> {
    let known = run.causes.iter().map(|total| &total.cause).find(|of| of.to_string() == cause);
    known.map(|cause| Class::of(cause, run).name())
}

/// What the process is called of threads whose process has several names among the causes, by those names.
fn processes(run: &Run) -> BTreeMap<String, String> {
    let shown = run.foreign_names();
    let causes: BTreeSet<&str> = run.causes.iter().filter_map(|of| thread(&of.cause)).collect();
    let mut owners: BTreeMap<&str, BTreeSet<Option<&str>>> = BTreeMap::new();
    let mut ids: BTreeMap<&str, BTreeSet<Pid>> = BTreeMap::new();
    for of in &run.foreign_threads {
        let process = of.process.as_ref().map(|process| process.name.as_str());
        owners.entry(&of.comm).or_default().insert(process);
        if let Some(process) = &of.process {
            ids.entry(&process.name).or_default().insert(process.pid);
        }
    }
    let mut threads: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (comm, owners) in owners {
        let name = shown.get(comm).map_or(comm, String::as_str);
        // What may be of several is nobody's.
        if let [Some(process)] = owners.into_iter().collect::<Vec<_>>()[..]
            && causes.contains(name)
        {
            threads.entry(process).or_default().push(name.to_owned());
        }
    }
    let several = threads.into_iter().filter(|(_, names)| names.len() > 1);
    let called = several.flat_map(|(process, names)| {
        let what = if ids[process].len() > 1 { "processes" } else { "process" };
        let called = format!("{what} {}", layout::name(process));
        names.into_iter().map(move |name| (name, called.clone()))
    });
    called.collect()
}

fn thread(cause: &Cause) -> Option<&str> {
    match cause {
        Cause::Thread { comm, .. } => Some(comm),
        _ => None,
    }
}

/// What each class took of one CPU, or of all together; the most first.
pub(super) fn by_class(run: &Run, cpu: Option<CpuId>) -> Vec<Taken> {
    let of = |cpu: Option<CpuId>| run.causes.iter().filter(move |total| total.cpu == cpu);
    let own: Vec<&CauseTotal> = of(cpu).collect();
    let totals = if own.is_empty() && cpu.is_none() { run.causes.iter().collect() } else { own };
    let mut all: Vec<Taken> = Vec::new();
    let elapsed = |total: &CauseTotal| {
        if total.share_of_elapsed > 0.0 { total.lost_ns / total.share_of_elapsed } else { 0.0 }
    };
    let elapsed = totals.iter().map(|total| elapsed(total)).fold(0.0, f64::max);
    let lost: f64 = totals.iter().map(|total| total.lost_ns).sum();
    let part = |of: f64, whole: f64| if whole > 0.0 { of / whole } else { 0.0 };
    let processes = processes(run);
    for total in totals {
        let class = match &total.cause {
            Cause::Thread { comm, class } if processes.contains_key(comm) => {
                Class::Task(format!("{} ({class})", processes[comm]))
            }
            cause => Class::of(cause, run),
        };
        let taken = Taken {
            class,
            lost_ns: total.lost_ns,
            share: part(total.lost_ns, lost),
            of_cpu: part(total.lost_ns, elapsed),
            stalls: total.gaps,
            longest: total.longest,
        };
        add(&mut all, taken);
    }
    all.sort_by(|a, b| b.lost_ns.total_cmp(&a.lost_ns));
    fewer(all, MOST)
}

/// The largest of them, and one row for the rest.
pub(super) fn fewer(mut all: Vec<Taken>, most: usize) -> Vec<Taken> {
    if all.len() > most {
        let rest = all.split_off(most.saturating_sub(1));
        for taken in rest {
            add(&mut all, Taken { class: Class::Other, ..taken });
        }
    }
    all
}

fn add(all: &mut Vec<Taken>, taken: Taken) {
    match all.iter_mut().find(|known| known.class == taken.class) {
        Some(known) => {
            known.lost_ns += taken.lost_ns;
            known.share += taken.share;
            known.of_cpu += taken.of_cpu;
            known.stalls = known.stalls.saturating_add(taken.stalls);
            known.longest = known.longest.max(taken.longest);
        }
        None => all.push(taken),
    }
}

/// The table of them, without its last row, the total.
pub(super) fn table(taken: &[Taken]) -> Table {
    let head = ["lost CPU time", "lost", "share", "of CPU", "stalls", "longest"];
    let mut table = Table::new("", &head);
    for of in taken {
        // What is part of stalls that are named after something else has none of its own.
        let own = of.stalls > 0;
        table.row([
            Cell::from(of.class.name()),
            Value::Time(of.lost_ns).into(),
            Value::Share(of.share).into(),
            Value::Share(of.of_cpu).into(),
            own.then_some(Value::Count(of.stalls)).into(),
            own.then_some(of.longest).into(),
        ]);
    }
    table
}

/// What each kind of cause took of several CPUs together, for a report, whose other tables have the causes one by
/// one; of one CPU the first screen has these rows.
pub(crate) fn by_kind(run: &Run) -> Option<Table> {
    let mut table =
        Table::new("Lost time by kind of cause, all CPUs", &["kind", "lost", "of lost"]);
    for of in by_class(run, None) {
        let (lost, share) = (Value::Time(of.lost_ns), Value::Share(of.share));
        table.row([Value::from(of.class.name()), lost, share]);
    }
    (run.gaps.len() > 1).then_some(table)
}

/// The same without how many stalls each made.
pub(super) fn table_without_stalls(taken: &[Taken]) -> Table {
    without(table(taken), &[STALLS])
}

/// The same of threads that share CPUs, each of which has a time of its own. Most of what one takes from another
/// is part of stalls that are counted under a third, so that stalls would say nothing of it.
pub(super) fn table_of_threads(taken: &[Taken]) -> Table {
    without(table(taken), &[LONGEST, STALLS, OF_CPU])
}

/// Without these columns, the last of which comes first.
fn without(mut table: Table, columns: &[usize]) -> Table {
    for column in columns {
        table.columns.remove(*column);
        table.rows.iter_mut().for_each(|row| drop(row.remove(*column)));
    }
    table
}

/// The main causes of what was lost, in a sentence that fits a line; none where there is none.
pub(super) fn sentence(taken: &[Taken], begin: &Sentence) -> Option<Sentence> {
    // Several small ones together are no main cause.
    let is_main = |of: &&Taken| of.share >= LEAST_SAID && !matches!(of.class, Class::Other);
    let named: Vec<&Taken> = taken.iter().filter(is_main).take(SAID).collect();
    let enough = if named.first()?.share >= NEARLY_ALL { 1 } else { SAID };
    let named = &named[..named.len().min(enough)];
    let said = (1..=named.len()).rev().filter_map(|many| {
        let parts = parts(&named[..many]);
        let (last, others) = parts.split_last()?;
        let and = if others.is_empty() { "" } else { " and " };
        let others = Sentence::joined(others.iter().cloned(), ", ");
        Some(sentence![begin.clone(), others, and, last.clone(), "."])
    });
    let said: Vec<Sentence> = said.collect();
    let fits = |of: &&Sentence| of.said().chars().count() <= ROOM;
    said.iter().find(fits).or(said.last()).cloned()
}

/// What each of them took; a verb is not repeated.
fn parts(taken: &[&Taken]) -> Vec<Sentence> {
    let mut before = "";
    let part = |of: &&Taken| {
        let (verb, rest) = of.class.said();
        let again = std::mem::replace(&mut before, verb) == verb;
        sentence![Value::Share(of.share), if again { "" } else { verb }, rest]
    };
    taken.iter().map(part).collect()
}

impl Taken {
    /// The cause with its share, for a cell.
    pub(super) fn with_share(&self) -> String {
        format!("{} {}", self.class.name(), Cell::from(Value::Share(self.share)).in_table(None))
    }
}
