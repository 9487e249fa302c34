//! Kernel events in words.

use whylate_model::event::{Event, EventKind, Task};

/// What happened, in a few words; names are the kernel's.
pub(super) fn describe(event: &Event) -> String {
    match &event.kind {
        EventKind::VectorEntry { name, vector } => format!("{name} begins (vector {vector})"),
        EventKind::VectorExit { name, .. } => format!("{name} ends"),
        EventKind::HandlerEntry { irq, name } => format!("handler {name} begins (irq {irq})"),
        EventKind::HandlerExit { irq } => format!("handler of irq {irq} ends"),
        EventKind::SoftirqEntry { vector } => format!("softirq {vector} begins"),
        EventKind::SoftirqExit { vector } => format!("softirq {vector} ends"),
        EventKind::Switch { from, from_runnable, to } => {
            let left = if *from_runnable { "still runnable" } else { "blocked" };
            format!("switch from {} ({left}) to {}", task(from), task(to))
        }
        EventKind::Wakeup { task: woken, target } => {
            format!("wake-up of {} on CPU {target}", task(woken))
        }
        EventKind::Migrate { task: moved, from, to } => {
            format!("{} moved from CPU {from} to {to}", task(moved))
        }
        EventKind::PageFault { user, address, ip } => {
            let mode = if *user { "user" } else { "kernel" };
            format!("page fault in {mode} mode at {address:#x}, by {ip:#x}")
        }
        EventKind::Nmi { duration_ns } => format!("NMI ends after {duration_ns}ns"),
        EventKind::SignalGenerate { signal, pid, comm } => {
            format!("signal {signal} sent to {comm} {pid}")
        }
        EventKind::SignalDeliver { signal } => format!("signal {signal} delivered"),
        EventKind::WorkStart { function } => format!("work {function:#x} begins"),
        EventKind::WorkEnd { function } => format!("work {function:#x} ends"),
        EventKind::IpiSend { targets, callsite, .. } => {
            let list = whylate_model::CpuList(targets);
            format!("interrupt sent to CPU {list}, from {callsite:#x}")
        }
        EventKind::CallQueued { target, function, .. } => {
            format!("call of {function:#x} queued for CPU {target}")
        }
    }
}

fn task(task: &Task) -> String {
    let name = if task.comm.is_empty() { "thread" } else { &task.comm };
    format!("{name} {} (prio {})", task.pid, task.prio)
}
