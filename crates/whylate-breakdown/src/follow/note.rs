//! An event as far as messages are concerned: a few words, no text but a reason.

use whylate_model::event::{Event, EventKind, Protocol};
use whylate_model::{Pid, Ticks};

/// An event of a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) at: Ticks,
    /// The number of the CPU among those that are followed.
    pub(super) lane: usize,
    pub(super) pid: Pid,
    pub(super) what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    SendCall,
    TcpSend,
    Queue {
        skb: u64,
        length: u32,
    },
    Xmit {
        skb: u64,
        length: u32,
    },
    Receive {
        skb: u64,
        length: u32,
    },
    Segment {
        skb: Option<u64>,
        socket: Option<u64>,
        length: u32,
    },
    Ready {
        socket: u64,
        protocol: Protocol,
    },
    Sent {
        socket: u64,
        protocol: Protocol,
    },
    Read {
        socket: u64,
        protocol: Protocol,
        length: i32,
    },
    Copied {
        skb: u64,
        length: u32,
    },
    Peeked,
    Freed {
        skb: u64,
        reason: Box<str>,
    },
    Consumed {
        skb: u64,
    },
    SoftirqIn,
    SoftirqOut,
    Switch {
        from: Pid,
        blocked: bool,
        to: Pid,
    },
    Woken {
        pid: Pid,
    },
    /// From here on events of the CPU are lost.
    Blind,
    /// From here on there are events again.
    Sees,
}

impl What {
    /// None of events that say nothing of messages.
    pub(super) fn of(event: &Event) -> Option<Self> {
        Some(match &event.kind {
            EventKind::SendCall => Self::SendCall,
            EventKind::TcpSend { .. } => Self::TcpSend,
            EventKind::NetQueue { skb, length, .. } => Self::Queue { skb: *skb, length: *length },
            EventKind::NetXmit { skb, length, .. } => Self::Xmit { skb: *skb, length: *length },
            EventKind::NetReceive { skb, length, .. } => {
                Self::Receive { skb: *skb, length: *length }
            }
            EventKind::TcpSegment { skb, socket, length } => {
                Self::Segment { skb: *skb, socket: *socket, length: *length }
            }
            EventKind::SocketReady { socket, protocol } => match protocol {
                Protocol::Other => return None,
                _ => Self::Ready { socket: *socket, protocol: *protocol },
            },
            EventKind::SocketSent { socket, protocol, .. } => match protocol {
                Protocol::Other => return None,
                _ => Self::Sent { socket: *socket, protocol: *protocol },
            },
            EventKind::SocketRead { socket, protocol, length } => match protocol {
                Protocol::Other => return None,
                _ => Self::Read { socket: *socket, protocol: *protocol, length: *length },
            },
            EventKind::SocketPeeked { .. } => Self::Peeked,
            EventKind::SkbCopied { skb, length } => {
                Self::Copied { skb: *skb, length: u32::try_from(*length).unwrap_or(0) }
            }
            EventKind::SkbFreed { skb, reason } => {
                Self::Freed { skb: *skb, reason: reason.as_str().into() }
            }
            EventKind::SkbConsumed { skb } => Self::Consumed { skb: *skb },
            EventKind::SoftirqEntry { .. } => Self::SoftirqIn,
            EventKind::SoftirqExit { .. } => Self::SoftirqOut,
            EventKind::Switch { from, from_runnable, to } => {
                Self::Switch { from: from.pid, blocked: !from_runnable, to: to.pid }
            }
            EventKind::Wakeup { task, .. } => Self::Woken { pid: task.pid },
            _ => return None,
        })
    }
}
