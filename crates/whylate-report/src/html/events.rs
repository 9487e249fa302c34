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
        kind => message(kind),
    }
}

/// What happened to a message on its way.
fn message(kind: &EventKind) -> String {
    match kind {
        EventKind::TcpSend { length } => format!("{length} bytes to be put into segments"),
        EventKind::NetQueue { skb, device, length } => {
            format!("frame {skb:#x} of {length} bytes given to the queue of {device}")
        }
        EventKind::QdiscIn { skb } => format!("frame {skb:#x} into the queueing discipline"),
        EventKind::QdiscOut { skb } => format!("frame {skb:#x} out of the queueing discipline"),
        EventKind::NetXmit { skb, device, .. } => {
            format!("frame {skb:#x} given to the driver of {device}")
        }
        EventKind::NetReceive { skb, device, length } => {
            format!("frame {skb:#x} of {length} bytes taken from {device}")
        }
        EventKind::NapiPoll { device, work } => format!("poll of {device} ends, {work} frames"),
        EventKind::TcpSegment { length, .. } => format!("segment with {length} bytes of data"),
        EventKind::SocketReady { socket, protocol } => {
            format!("something to read in {} socket {socket:#x}", protocol.name())
        }
        EventKind::SocketSent { socket, length, .. } => {
            format!("{length} sent by socket {socket:#x}")
        }
        EventKind::SocketRead { socket, length, .. } => {
            format!("{length} read from socket {socket:#x}")
        }
        EventKind::SocketPeeked { socket } => format!("a look into socket {socket:#x}"),
        EventKind::SkbCopied { skb, length } => {
            format!("{length} bytes of frame {skb:#x} copied to the reader")
        }
        EventKind::UdpRefused { error, port } => {
            let port = port.map_or_else(String::new, |port| format!(" for port {port}"));
            format!("datagram{port} found no room at its socket (error {error})")
        }
        EventKind::SkbFreed { skb, reason } => {
            let why = if reason.is_empty() { "no reason told" } else { reason };
            format!("frame {skb:#x} dropped: {why}")
        }
        EventKind::SkbConsumed { skb } => format!("frame {skb:#x} freed after use"),
        // What is none of these was described by the caller.
        _ => "a call that sends".to_owned(),
    }
}

fn task(task: &Task) -> String {
    let name = if task.comm.is_empty() { "thread" } else { &task.comm };
    format!("{name} {}", task.pid)
}
