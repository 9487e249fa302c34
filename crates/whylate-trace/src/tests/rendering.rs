//! Compares events with the kernel's own text of them, as `trace` shows it with the option `fields`.
//!
//! A line looks so: `COMM-PID [CPU] FLAGS STAMP: EVENT: FIELD=0xHEX (DECIMAL) FIELD=TEXT`.

use whylate_model::event::{Event, EventKind, Softirq, Task};

/// A prefix of a field's name, as in `prev_pid`.
const NO_PREFIX: &str = "";

/// Panics where `line` does not say what `event` says.
pub(crate) fn assert_same(event: &Event, line: &str) {
    let head = format!("-{:<7} [{:03}] ", event.pid, event.cpu);
    let (_, rest) = line
        .split_once(&head)
        .unwrap_or_else(|| panic!("not of this thread and CPU ({head}):\n{line}\n{event:?}"));
    let (_flags, rest) = rest.split_once(' ').unwrap_or_else(|| panic!("no flags:\n{line}"));
    let mut parts = rest.trim_start().splitn(3, ": ");
    let stamp = parts.next().unwrap_or_default();
    let name = parts.next().unwrap_or_default();
    let body = parts.next().unwrap_or_default();
    assert_eq!(stamp, event.ticks.0.to_string(), "the stamp of\n{line}\n{event:?}");
    assert_eq!(name, name_of(&event.kind), "the event of\n{line}\n{event:?}");
    if let Err(field) = compare(&event.kind, body) {
        panic!("the field {field} of\n{line}\ndiffers from\n{event:?}");
    }
}

fn name_of(kind: &EventKind) -> String {
    match kind {
        EventKind::VectorEntry { name, .. } => return format!("{name}_entry"),
        EventKind::VectorExit { name, .. } => return format!("{name}_exit"),
        EventKind::HandlerEntry { .. } => "irq_handler_entry",
        EventKind::HandlerExit { .. } => "irq_handler_exit",
        EventKind::SoftirqEntry { .. } => "softirq_entry",
        EventKind::SoftirqExit { .. } => "softirq_exit",
        EventKind::Switch { .. } => "sched_switch",
        EventKind::Wakeup { .. } => "sched_wakeup",
        EventKind::Migrate { .. } => "sched_migrate_task",
        EventKind::PageFault { user: true, .. } => "page_fault_user",
        EventKind::PageFault { user: false, .. } => "page_fault_kernel",
        EventKind::Nmi { .. } => "nmi_handler",
        EventKind::SignalGenerate { .. } => "signal_generate",
        EventKind::SignalDeliver { .. } => "signal_deliver",
        EventKind::WorkStart { .. } => "workqueue_execute_start",
        EventKind::WorkEnd { .. } => "workqueue_execute_end",
        EventKind::IpiSend { targets, .. } if targets.len() == 1 => "ipi_send_cpu",
        EventKind::IpiSend { .. } => "ipi_send_cpumask",
        EventKind::CallQueued { .. } => "csd_queue_cpu",
        other => panic!("no recorded page holds {other:?}"),
    }
    .to_owned()
}

/// The name of the first field that differs.
fn compare(kind: &EventKind, body: &str) -> Result<(), String> {
    let number = |name: &str, value: i64| match number_in(body, name) {
        Some(found) if found == value => Ok(()),
        _ => Err(name.to_owned()),
    };
    let address = |name: &str, value: u64| number(name, value as i64);
    let text = |name: &str, value: &str, next: &str| match text_in(body, name, next) {
        Some(found) if found == value => Ok(()),
        _ => Err(name.to_owned()),
    };
    let task = |prefix: &str, task: &Task| {
        text(&format!("{prefix}comm"), &task.comm, &format!(" {prefix}pid="))?;
        number(&format!("{prefix}pid"), task.pid.0.into())?;
        number(&format!("{prefix}prio"), task.prio.into())
    };
    let softirq = |vector: Softirq| match number_in(body, "vec") {
        Some(found) if Softirq::from_number(found as u32) == vector => Ok(()),
        _ => Err("vec".to_owned()),
    };
    match kind {
        EventKind::VectorEntry { vector, .. } | EventKind::VectorExit { vector, .. } => {
            number("vector", (*vector).into())
        }
        EventKind::HandlerEntry { irq, name } => {
            number("irq", (*irq).into())?;
            text("name", name, "\n")
        }
        EventKind::HandlerExit { irq } => number("irq", (*irq).into()),
        EventKind::SoftirqEntry { vector } | EventKind::SoftirqExit { vector } => softirq(*vector),
        EventKind::Switch { from, from_runnable, to } => {
            task("prev_", from)?;
            task("next_", to)?;
            // 0 is running, 0x100 preempted.
            let runnable = matches!(number_in(body, "prev_state"), Some(0 | 0x100));
            if runnable == *from_runnable { Ok(()) } else { Err("prev_state".to_owned()) }
        }
        EventKind::Wakeup { task: woken, target } => {
            task(NO_PREFIX, woken)?;
            number("target_cpu", target.0.into())
        }
        EventKind::Migrate { task: moved, from, to } => {
            task(NO_PREFIX, moved)?;
            number("orig_cpu", from.0.into())?;
            number("dest_cpu", to.0.into())
        }
        EventKind::PageFault { address: at, ip, .. } => {
            address("address", *at)?;
            address("ip", *ip)
        }
        EventKind::Nmi { duration_ns } => number("delta_ns", *duration_ns),
        EventKind::SignalGenerate { signal, pid, comm } => {
            number("sig", (*signal).into())?;
            text("comm", comm, " pid=")?;
            number("pid", pid.0.into())
        }
        EventKind::SignalDeliver { signal } => number("sig", (*signal).into()),
        EventKind::WorkStart { function } | EventKind::WorkEnd { function } => {
            address("function", *function)
        }
        EventKind::IpiSend { targets, callsite, callback } => {
            if let [target] = targets.as_slice() {
                number("cpu", target.0.into())?;
            }
            address("callsite", *callsite)?;
            address("callback", *callback)
        }
        EventKind::CallQueued { target, callsite, function } => {
            number("cpu", target.0.into())?;
            address("callsite", *callsite)?;
            address("func", *function)
        }
        other => panic!("no recorded page holds {other:?}"),
    }
}

/// What follows `name=`.
fn value_in<'a>(body: &'a str, name: &str) -> Option<&'a str> {
    let start = format!("{name}=");
    body.strip_prefix(&start).or_else(|| Some(body.split_once(&format!(" {start}"))?.1))
}

/// The decimal part of a number; addresses are printed as signed, and some with a symbol before.
fn number_in(body: &str, name: &str) -> Option<i64> {
    let (_, rest) = value_in(body, name)?.split_once('(')?;
    rest.split_once(')')?.0.parse().ok()
}

fn text_in<'a>(body: &'a str, name: &str, next: &str) -> Option<&'a str> {
    let value = value_in(body, name)?;
    Some(value.split_once(next).map_or(value, |(text, _)| text))
}
