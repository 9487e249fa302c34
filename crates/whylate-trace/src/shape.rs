//! What each kernel event means: which fields become which [`EventKind`].

mod message;

use whylate_model::Pid;
use whylate_model::event::{EventKind, Softirq, Task};

use crate::error::TraceError;
use crate::field::{Bytes, Number};
use crate::format::EventFormat;
use message::MessageShape;

/// States that mean "blocked" where the format does not list them: S D T t X Z P I.
const BLOCKED: u64 = 0xff;

/// The fields of one event, found in its format.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    VectorEntry { name: String, vector: Number },
    VectorExit { name: String, vector: Number },
    HandlerEntry { irq: Number, name: Bytes },
    HandlerExit { irq: Number },
    SoftirqEntry { vector: Number },
    SoftirqExit { vector: Number },
    Switch { from: TaskFields, from_state: Number, blocked: u64, to: TaskFields },
    Wakeup { task: TaskFields, target: Number },
    Migrate { task: TaskFields, from: Number, to: Number },
    PageFault { user: bool, address: Number, ip: Number },
    Nmi { duration: Number },
    SignalGenerate { signal: Number, pid: Number, comm: Bytes },
    SignalDeliver { signal: Number },
    WorkStart { function: Number },
    WorkEnd { function: Number },
    SendCpu { target: Number, callsite: Number, callback: Number },
    SendMask { targets: Bytes, callsite: Number, callback: Number },
    CallQueued { target: Number, callsite: Number, function: Number },
    Message(MessageShape),
}

/// Where a thread is described.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskFields {
    pid: Number,
    comm: Bytes,
    prio: Number,
}

impl Shape {
    /// Finds the fields that the meaning of the event needs.
    pub(crate) fn of(system: &str, format: &EventFormat) -> Result<Self, TraceError> {
        let number = |name| Number::of(format, name);
        let bytes = |name| Bytes::of(format, name);
        let task = |comm, pid, prio| {
            Ok(TaskFields { pid: number(pid)?, comm: bytes(comm)?, prio: number(prio)? })
        };
        Ok(match (system, format.name.as_str()) {
            ("irq_vectors", event) => return Self::of_vector(event, format),
            ("irq", "irq_handler_entry") => {
                Self::HandlerEntry { irq: number("irq")?, name: bytes("name")? }
            }
            ("irq", "irq_handler_exit") => Self::HandlerExit { irq: number("irq")? },
            ("irq", "softirq_entry") => Self::SoftirqEntry { vector: number("vec")? },
            ("irq", "softirq_exit") => Self::SoftirqExit { vector: number("vec")? },
            ("sched", "sched_switch") => Self::Switch {
                from: task("prev_comm", "prev_pid", "prev_prio")?,
                from_state: number("prev_state")?,
                blocked: format.named_flags("prev_state").unwrap_or(BLOCKED),
                to: task("next_comm", "next_pid", "next_prio")?,
            },
            ("sched", "sched_wakeup") => {
                Self::Wakeup { task: task("comm", "pid", "prio")?, target: number("target_cpu")? }
            }
            ("sched", "sched_migrate_task") => Self::Migrate {
                task: task("comm", "pid", "prio")?,
                from: number("orig_cpu")?,
                to: number("dest_cpu")?,
            },
            ("exceptions", event @ ("page_fault_user" | "page_fault_kernel")) => Self::PageFault {
                user: event == "page_fault_user",
                address: number("address")?,
                ip: number("ip")?,
            },
            ("nmi", "nmi_handler") => Self::Nmi { duration: number("delta_ns")? },
            ("signal", "signal_generate") => Self::SignalGenerate {
                signal: number("sig")?,
                pid: number("pid")?,
                comm: bytes("comm")?,
            },
            ("signal", "signal_deliver") => Self::SignalDeliver { signal: number("sig")? },
            ("workqueue", "workqueue_execute_start") => {
                Self::WorkStart { function: number("function")? }
            }
            ("workqueue", "workqueue_execute_end") => {
                Self::WorkEnd { function: number("function")? }
            }
            ("ipi", "ipi_send_cpu") => Self::SendCpu {
                target: number("cpu")?,
                callsite: number("callsite")?,
                callback: number("callback")?,
            },
            ("ipi", "ipi_send_cpumask") => Self::SendMask {
                targets: bytes("cpumask")?,
                callsite: number("callsite")?,
                callback: number("callback")?,
            },
            ("csd", "csd_queue_cpu") => Self::CallQueued {
                target: number("cpu")?,
                callsite: number("callsite")?,
                function: number("func")?,
            },
            _ => match MessageShape::of(system, format)? {
                Some(shape) => Self::Message(shape),
                None => return Err(not_known(system, format)),
            },
        })
    }

    /// An interrupt vector is entered and left by events named after it.
    fn of_vector(event: &str, format: &EventFormat) -> Result<Self, TraceError> {
        if let Some(name) = event.strip_suffix("_entry") {
            Ok(Self::VectorEntry { name: name.to_owned(), vector: Number::of(format, "vector")? })
        } else if let Some(name) = event.strip_suffix("_exit") {
            Ok(Self::VectorExit { name: name.to_owned(), vector: Number::of(format, "vector")? })
        } else {
            Err(not_known("irq_vectors", format))
        }
    }

    /// What a record says; `None` where it is shorter than its format, or points outside itself.
    #[inline]
    pub(crate) fn read(&self, record: &[u8]) -> Option<EventKind> {
        Some(match self {
            Self::VectorEntry { name, vector } => {
                EventKind::VectorEntry { name: name.clone(), vector: vector.read_i32(record)? }
            }
            Self::VectorExit { name, vector } => {
                EventKind::VectorExit { name: name.clone(), vector: vector.read_i32(record)? }
            }
            Self::HandlerEntry { irq, name } => EventKind::HandlerEntry {
                irq: irq.read_i32(record)?,
                name: name.read_text(record)?,
            },
            Self::HandlerExit { irq } => EventKind::HandlerExit { irq: irq.read_i32(record)? },
            Self::SoftirqEntry { vector } => {
                EventKind::SoftirqEntry { vector: softirq(*vector, record)? }
            }
            Self::SoftirqExit { vector } => {
                EventKind::SoftirqExit { vector: softirq(*vector, record)? }
            }
            Self::Switch { from, from_state, blocked, to } => EventKind::Switch {
                from: from.read(record)?,
                from_runnable: from_state.read(record)? & blocked == 0,
                to: to.read(record)?,
            },
            Self::Wakeup { task, target } => {
                EventKind::Wakeup { task: task.read(record)?, target: target.read_cpu(record)? }
            }
            Self::Migrate { task, from, to } => EventKind::Migrate {
                task: task.read(record)?,
                from: from.read_cpu(record)?,
                to: to.read_cpu(record)?,
            },
            Self::PageFault { user, address, ip } => EventKind::PageFault {
                user: *user,
                address: address.read(record)?,
                ip: ip.read(record)?,
            },
            Self::Nmi { duration } => EventKind::Nmi { duration_ns: duration.read(record)? as i64 },
            Self::SignalGenerate { signal, pid, comm } => EventKind::SignalGenerate {
                signal: signal.read_i32(record)?,
                pid: Pid(pid.read_i32(record)?),
                comm: comm.read_text(record)?,
            },
            Self::SignalDeliver { signal } => {
                EventKind::SignalDeliver { signal: signal.read_i32(record)? }
            }
            Self::WorkStart { function } => {
                EventKind::WorkStart { function: function.read(record)? }
            }
            Self::WorkEnd { function } => EventKind::WorkEnd { function: function.read(record)? },
            Self::SendCpu { target, callsite, callback } => EventKind::IpiSend {
                targets: vec![target.read_cpu(record)?],
                callsite: callsite.read(record)?,
                callback: callback.read(record)?,
            },
            Self::SendMask { targets, callsite, callback } => EventKind::IpiSend {
                targets: targets.read_mask(record)?,
                callsite: callsite.read(record)?,
                callback: callback.read(record)?,
            },
            Self::CallQueued { target, callsite, function } => EventKind::CallQueued {
                target: target.read_cpu(record)?,
                callsite: callsite.read(record)?,
                function: function.read(record)?,
            },
            Self::Message(shape) => shape.read(record)?,
        })
    }
}

impl TaskFields {
    #[inline]
    fn read(self, record: &[u8]) -> Option<Task> {
        Some(Task {
            pid: Pid(self.pid.read_i32(record)?),
            comm: self.comm.read_text(record)?,
            prio: self.prio.read_i32(record)?,
        })
    }
}

fn softirq(vector: Number, record: &[u8]) -> Option<Softirq> {
    Some(Softirq::from_number(vector.read(record)? as u32))
}

fn not_known(system: &str, format: &EventFormat) -> TraceError {
    TraceError::EventNotKnown { system: system.to_owned(), event: format.name.clone() }
}
