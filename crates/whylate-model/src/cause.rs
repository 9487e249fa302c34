//! Parts and causes of gaps.

use serde::{Deserialize, Serialize};

use crate::event::{Event, Softirq};
use crate::gap::RseqWord;
use crate::units::{CpuId, Nanos, Pid, Ticks, TicksDelta};

mod names;
pub(crate) mod stored;

pub(crate) use names::LOCAL_TIMER;
pub use names::{STORED_NO_EVENT, shown_name};

/// What took a stretch of a gap.
///
/// Two stretches belong to the same cause when they are equal: thread ids are left out where the
/// report adds up over threads of one name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "cause")]
pub enum Cause {
    /// A hard interrupt: a vector of the processor or a device's handler.
    Interrupt {
        /// `local_timer`, `reschedule`, `virtio1-req.0`, ...
        name: String,
    },
    /// The local timer's interrupt in a run whose timer interrupts are the kernel's tick. Never stored:
    /// [`Run::as_shown`](crate::run::Run::as_shown) says so.
    #[serde(skip_deserializing)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Tick,
    /// A softirq.
    Softirq {
        /// Which.
        vector: Softirq,
    },
    /// Another thread had the CPU.
    Thread {
        /// Name of the thread.
        comm: String,
        /// Class of its priority.
        class: PriorityClass,
    },
    /// Another thread of the set that is measured had the CPU: a part of what was asked for, and nobody
    /// else's doing.
    Member {
        /// Name of the thread.
        comm: String,
        /// Class of its priority.
        class: PriorityClass,
    },
    /// A thread of whylate itself had the CPU: an effect of the measurement, and no cause of the
    /// system's.
    Whylate,
    /// The page-fault handler.
    PageFault,
    /// A non-maskable interrupt.
    Nmi,
    /// A signal was delivered.
    Signal {
        /// Number of the signal.
        signal: i32,
    },
    /// From the start of the gap to the first event in it: entry code, unseen work before it.
    EntryResidual,
    /// Between two events of one gap.
    InnerResidual,
    /// From the last event to the end of the gap.
    ExitResidual,
    /// No kernel event at all, on a virtual machine.
    Host,
    /// The same, where the steal time of the run bears out that the hypervisor took it. Never stored:
    /// [`Run::as_shown`](crate::run::Run::as_shown) says so.
    Hypervisor,
    /// No kernel event at all, on bare metal.
    Firmware,
    /// No kernel event was recorded because the trace lost some: nothing is claimed.
    TraceLost,
    /// The thread could run and was not let: its reservation, or the limit of real-time tasks, was
    /// used up, and a thread of a lower class ran.
    Throttled,
    /// A job was late by what it asks for: more than lies before its deadline, or its set more than the
    /// CPUs have.
    OwnDemand,
    /// A job was late because the one before it ended too late to leave it enough time.
    LeftOver,
    /// The timer that was to wake the thread had not fired: another thread had the CPU, rightly. Its
    /// interrupt came late, from the hardware or the hypervisor, or was masked, or the kernel let it wait.
    TimerLate,
    /// The CPU was idle when the thread was to be woken: until the timer's interrupt arrived and the
    /// kernel had left its idle thread. On a virtual machine the hypervisor's part is in it.
    IdleExit,
    /// The thread waited for something that another thread held or had yet to provide.
    Blocked,
    /// The thread could not run until it was woken, though it never waits by itself: a signal
    /// stopped it, or the kernel put it to sleep.
    Stopped,
    /// Inferred from evidence B: the thread was switched out, by whom is not known.
    ContextSwitch,
    /// Inferred from evidence B: the thread kept the CPU; an interrupt, the hypervisor or the firmware.
    NotSwitched,
    /// Inferred from evidence B: the CPU changed.
    Migration,
    /// Evidence B says neither.
    Unknown,
}

/// Class of a thread's priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PriorityClass {
    /// SCHED_DEADLINE, or the kernel's stop class.
    Deadline,
    /// SCHED_FIFO or SCHED_RR.
    RealTime,
    /// SCHED_OTHER, SCHED_BATCH, SCHED_IDLE.
    Ordinary,
    /// The idle thread.
    Idle,
}

impl PriorityClass {
    /// From the priority and thread id in a scheduler event.
    #[must_use]
    pub fn from_kernel(prio: i32, pid: Pid) -> Self {
        match prio {
            _ if pid.0 == 0 => Self::Idle,
            ..0 => Self::Deadline,
            0..100 => Self::RealTime,
            _ => Self::Ordinary,
        }
    }
}

/// One stretch of a gap. The parts of a gap are ordered, adjacent, and sum to the gap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "GapPart"))]
pub struct Part {
    /// Where the stretch begins.
    #[serde(rename = "start_ticks")]
    pub start: Ticks,
    /// How long it is.
    #[serde(rename = "length_ticks")]
    pub length: TicksDelta,
    /// What took it.
    pub cause: Cause,
    /// Who sent the interrupt or woke the thread, where that was recorded.
    pub sender: Option<Sender>,
}

/// Who sent an interrupt to a measured CPU.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sender {
    /// From which CPU.
    pub cpu: CpuId,
    /// From which thread.
    pub pid: Pid,
    /// Its name, where known.
    pub comm: String,
}

/// How often one sender interrupted a measured CPU, and what that took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SenderTotal {
    /// Name of the sending thread; empty where it is not known.
    pub comm: String,
    /// CPU it sent from.
    pub from: CpuId,
    /// Measured CPU it sent to.
    pub to: CpuId,
    /// What it caused there: an interrupt, or a thread that it woke.
    pub cause: Cause,
    /// How often.
    pub count: u64,
    /// Time in the parts that this took.
    pub lost_ns: f64,
}

/// The rules of inference; the names are METHOD's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Rule {
    /// Thread A, gap, thread B on one CPU: context switch.
    R1,
    /// Neither thread ever blocks: the switch was involuntary and includes a timer interrupt.
    R2,
    /// Gaps of the highest-priority thread that never blocks: interrupt, softirq, NMI, SMI, host.
    R3,
    /// Gap rate differs between idle and loaded: the load causes gaps.
    R4,
    /// Late with timer A and not with timer B: timer A is at fault.
    R5,
    /// The rseq word.
    R6,
    /// The CPU changed: migration.
    R7,
    /// No kernel event: host or firmware.
    R8,
    /// A periodic cluster: the tick.
    R9,
}

/// Lost time added up for one cause. Runs of version 1 stored it as it is; see [`stored`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CauseTotal {
    /// The cause.
    pub cause: Cause,
    /// CPU, or none for all measured CPUs together.
    pub cpu: Option<CpuId>,
    /// Gaps whose largest part this was.
    pub gaps: u64,
    /// Parts of any gap that it took.
    pub parts: u64,
    /// Time in those parts.
    pub lost_ns: f64,
    /// Share of all lost time.
    pub share_of_lost: f64,
    /// Share of the elapsed time; in a set of threads, of the time of all of them.
    pub share_of_elapsed: f64,
    /// Longest gap whose largest part this was.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}

/// How much of the lost time is explained, and by what.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Coverage {
    /// Share of lost time in parts that begin and end with an event.
    #[serde(rename = "by_events_share")]
    pub by_events: f64,
    /// Share in residuals beside events.
    #[serde(rename = "by_residuals_share")]
    pub by_residuals: f64,
    /// Share in gaps with no event at all, and in stretches of others too long to be the price of
    /// the event beside them.
    #[serde(rename = "by_nothing_share")]
    pub by_nothing: f64,
}

/// A gap among the longest, with everything known about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorstGap {
    /// Last reading before the gap.
    #[serde(rename = "start_ticks")]
    pub start: Ticks,
    /// Length.
    #[serde(rename = "length_ns")]
    pub length: Nanos,
    /// CPU before.
    pub cpu_before: CpuId,
    /// CPU after.
    pub cpu_after: CpuId,
    /// The part with the largest share.
    pub cause: Cause,
    /// The rule that named it, where no event did.
    pub rule: Option<Rule>,
    /// All parts.
    pub parts: Vec<Part>,
    /// All events inside the gap, and the sends from other CPUs that led to them.
    pub events: Vec<Event>,
    /// Evidence B.
    pub rseq: RseqWord,
    /// Involuntary context switches, where read.
    pub involuntary_switches: Option<u32>,
}

/// Evidence B judged against evidence A, one row per inferred class.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Validation {
    /// Gaps in which both say `context switch`.
    pub switch_as_switch: u64,
    /// Gaps with a context switch that B took for none.
    pub switch_as_none: u64,
    /// Gaps without a context switch that B took for one.
    pub none_as_switch: u64,
    /// Gaps in which both say `no context switch`.
    pub none_as_none: u64,
    /// Gaps left out because B said neither or the trace lost events.
    pub undecided: u64,
}

impl Validation {
    /// Of the true context switches, the share that evidence B found.
    #[must_use]
    pub fn switch_recall(&self) -> Option<f64> {
        share(self.switch_as_switch, self.switch_as_none)
    }

    /// Of what evidence B called a context switch, the share that was one.
    #[must_use]
    pub fn switch_precision(&self) -> Option<f64> {
        share(self.switch_as_switch, self.none_as_switch)
    }

    /// Of the gaps without a switch, the share that evidence B called so.
    #[must_use]
    pub fn none_recall(&self) -> Option<f64> {
        share(self.none_as_none, self.none_as_switch)
    }

    /// Of what evidence B called no switch, the share that was none.
    #[must_use]
    pub fn none_precision(&self) -> Option<f64> {
        share(self.none_as_none, self.switch_as_none)
    }
}

fn share(right: u64, wrong: u64) -> Option<f64> {
    // A file may state any count.
    let all = right.saturating_add(wrong);
    (all > 0).then(|| right as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_of_a_thread_is_that_of_its_priority_and_of_number_0_idle() {
        for (prio, pid, class) in [
            (120, 0, PriorityClass::Idle),
            (-1, 0, PriorityClass::Idle),
            (-1, 7, PriorityClass::Deadline),
            (0, 7, PriorityClass::RealTime),
            (99, 7, PriorityClass::RealTime),
            (100, 7, PriorityClass::Ordinary),
            (120, 7, PriorityClass::Ordinary),
        ] {
            assert_eq!(PriorityClass::from_kernel(prio, Pid(pid)), class, "{prio} {pid}");
        }
    }

    #[test]
    fn recall_is_of_what_was_true_and_precision_of_what_was_said() {
        let of = Validation {
            switch_as_switch: 9,
            switch_as_none: 1,
            none_as_switch: 3,
            none_as_none: 4,
            undecided: 100,
        };
        let all =
            [of.switch_recall(), of.switch_precision(), of.none_recall(), of.none_precision()];
        assert_eq!(all, [Some(0.9), Some(0.75), Some(4.0 / 7.0), Some(0.8)]);
        let nothing = Validation { undecided: 5, ..Validation::default() };
        assert_eq!((nothing.switch_recall(), nothing.none_precision()), (None, None));
        let any = Validation { switch_as_switch: u64::MAX, switch_as_none: 9, ..nothing };
        assert_eq!(any.switch_recall(), Some(1.0), "no count that a file may state is too large");
    }
}
