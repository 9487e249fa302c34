//! Lost time by cause, in the few classes of a first screen.

use whylate_model::cause::{Cause, CauseTotal, PriorityClass, Rule};
use whylate_model::run::Run;
use whylate_model::{CpuId, Nanos};

use super::layout;
use crate::doc::Table;
use crate::numbers::{Cell, Value};

/// Rows of the table; what is less is one row more.
const MOST: usize = 5;
/// Causes that a sentence names, and the least share that it names one with.
const SAID: usize = 3;
const LEAST_SAID: f64 = 0.01;
/// A sentence that names a cause with so much of it names no other.
const NEARLY_ALL: f64 = 0.95;
/// The column of stalls.
const STALLS: usize = 4;
/// Columns of a line, and what stands around the causes in it.
const ROOM: usize = 79;

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
enum Class {
    NoEvent,
    Hypervisor,
    Firmware,
    BesideInterrupts,
    Tick,
    Timer,
    Interrupts,
    Softirqs,
    Task(String),
    /// Inferred without a trace.
    Tasks,
    NoTask {
        virtual_machine: bool,
    },
    Other,
}

impl Class {
    fn of(cause: &Cause, run: &Run) -> Self {
        match cause {
            Cause::Host => Self::NoEvent,
            Cause::Hypervisor => Self::Hypervisor,
            Cause::Firmware => Self::Firmware,
            Cause::EntryResidual | Cause::InnerResidual | Cause::ExitResidual => {
                Self::BesideInterrupts
            }
            Cause::Interrupt { name } if name == "local_timer" => {
                let ticks = run.findings.iter().any(|finding| finding.rule == Rule::R9);
                if ticks { Self::Tick } else { Self::Timer }
            }
            Cause::Interrupt { .. } | Cause::Nmi => Self::Interrupts,
            Cause::Softirq { .. } => Self::Softirqs,
            Cause::Thread { comm, class } | Cause::Member { comm, class } => {
                Self::Task(format!("task {} ({})", layout::name(comm), name(*class)))
            }
            Cause::Whylate => Self::Task("whylate itself".to_owned()),
            Cause::ContextSwitch | Cause::Migration => Self::Tasks,
            Cause::NotSwitched => Self::NoTask { virtual_machine: run.host.hypervisor.is_some() },
            _ => Self::Other,
        }
    }

    fn name(&self) -> String {
        match self {
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
            Self::Other => "other causes",
        }
        .to_owned()
    }

    /// What a share of the lost time did there.
    fn said(&self, share: &str) -> String {
        match self {
            Self::NoEvent => format!("{share} has no kernel event"),
            Self::Hypervisor => format!("{share} went to the hypervisor"),
            Self::Task(name) => format!("{share} went to {name}"),
            Self::Tasks => format!("{share} went to other tasks"),
            Self::Tick => format!("{share} is the timer tick"),
            _ => format!("{share} is {}", self.name()),
        }
    }
}

/// Scheduling classes in the field's words.
pub(super) fn name(class: PriorityClass) -> &'static str {
    match class {
        PriorityClass::Deadline => "deadline",
        PriorityClass::RealTime => "real-time",
        PriorityClass::Ordinary => "normal",
        PriorityClass::Idle => "idle",
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
    for total in totals {
        let class = Class::of(&total.cause, run);
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

/// The same without how many stalls each made.
pub(super) fn table_without_stalls(taken: &[Taken]) -> Table {
    let mut table = table(taken);
    table.columns.remove(STALLS);
    table.rows.iter_mut().for_each(|row| drop(row.remove(STALLS)));
    table
}

/// The main causes of what was lost, in a sentence that fits a line; none where there is none.
pub(super) fn sentence(taken: &[Taken], begin: &str) -> Option<String> {
    let named: Vec<&Taken> = taken.iter().filter(|of| of.share >= LEAST_SAID).take(SAID).collect();
    let enough = if named.first()?.share >= NEARLY_ALL { 1 } else { SAID };
    let parts: Vec<String> = named.iter().take(enough).map(|of| of.said()).collect();
    let said = (1..=parts.len()).rev().map(|many| {
        let (last, others) = parts[..many].split_last()?;
        let joined = if others.is_empty() {
            last.clone()
        } else {
            format!("{} and {last}", others.join(", "))
        };
        Some(format!("{begin} {joined}."))
    });
    let said: Vec<String> = said.flatten().collect();
    said.iter().find(|said| said.chars().count() <= ROOM).or(said.last()).cloned()
}

impl Taken {
    fn said(&self) -> String {
        self.class.said(&Cell::from(Value::Share(self.share)).in_table(None))
    }

    /// The cause with its share, for a cell.
    pub(super) fn with_share(&self) -> String {
        format!("{} {}", self.class.name(), Cell::from(Value::Share(self.share)).in_table(None))
    }
}
