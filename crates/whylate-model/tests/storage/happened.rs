//! Gaps and events to store: any.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use whylate_model::event::{DeviceName, Event, EventKind, Protocol, Softirq, Task};
use whylate_model::gap::{Evidence, Gap, GapKind, RseqWord};
use whylate_model::segments::StoredGap;
use whylate_model::{CpuId, Pid, Ticks};

/// Any gap: nothing is assumed of the order of its readings.
fn any_gap() -> impl Strategy<Value = Gap> {
    let words = prop_oneof![Just(RseqWord::Unarmed), Just(RseqWord::Set), Just(RseqWord::Cleared)];
    let evidence = (words, option::of(any::<u32>()), any::<bool>());
    (any::<[u64; 3]>(), any::<[u32; 2]>(), evidence).prop_map(|(ticks, cpus, evidence)| Gap {
        start: Ticks(ticks[0]),
        end: Ticks(ticks[1]),
        resumed: Ticks(ticks[2]),
        cpu_before: CpuId(cpus[0]),
        cpu_after: CpuId(cpus[1]),
        kind: GapKind::Interruption,
        evidence: Evidence {
            rseq: evidence.0,
            involuntary_switches: evidence.1,
            in_recording: evidence.2,
        },
    })
}

/// Any gap with its thread, and a cause or none.
pub(crate) fn any_stored_gap() -> impl Strategy<Value = StoredGap> {
    (any::<u16>(), any_gap(), option::of(name())).prop_map(|(thread, gap, cause)| StoredGap {
        thread,
        gap,
        cause: cause.map(Into::into),
    })
}

/// A name as long as the kernel's longest.
fn name() -> impl Strategy<Value = String> {
    "\\PC{0,15}|[a-z]{1,12}/[0-9]"
}

fn task() -> impl Strategy<Value = Task> {
    (any::<i32>(), name(), any::<i32>()).prop_map(|(pid, comm, prio)| Task {
        pid: Pid(pid),
        comm,
        prio,
    })
}

fn cpu() -> impl Strategy<Value = CpuId> {
    any::<u32>().prop_map(CpuId)
}

/// Any event of any kind.
pub(crate) fn any_event() -> impl Strategy<Value = Event> {
    let named =
        (name(), any::<i32>(), 0_u32..20, 0..6_u8).prop_map(|(name, number, vector, kind)| {
            let softirq = Softirq::from_number(vector);
            match kind {
                0 => EventKind::VectorEntry { name, vector: number },
                1 => EventKind::VectorExit { name, vector: number },
                2 => EventKind::HandlerEntry { irq: number, name },
                3 => EventKind::HandlerExit { irq: number },
                4 => EventKind::SoftirqEntry { vector: softirq },
                _ => EventKind::SoftirqExit { vector: softirq },
            }
        });
    let scheduling = (task(), task(), cpu(), cpu(), any::<bool>(), 0..4_u8).prop_map(
        |(one, two, from, to, from_runnable, kind)| match kind {
            0 => EventKind::Switch { from: one, from_runnable, to: two },
            1 => EventKind::Wakeup { task: one, target: to },
            2 => EventKind::Migrate { task: one, from, to },
            _ => EventKind::SignalGenerate { signal: one.prio, pid: one.pid, comm: one.comm },
        },
    );
    let other = (vec(cpu(), 0..5), any::<[u64; 2]>(), any::<i64>(), any::<bool>(), 0..7_u8)
        .prop_map(|(targets, [a, b], number, user, kind)| match kind {
            0 => EventKind::PageFault { user, address: a, ip: b },
            1 => EventKind::Nmi { duration_ns: number },
            2 => EventKind::SignalDeliver { signal: number as i32 },
            3 => EventKind::WorkStart { function: a },
            4 => EventKind::WorkEnd { function: a },
            5 => EventKind::IpiSend { targets, callsite: a, callback: b },
            _ => EventKind::CallQueued { target: CpuId(number as u32), callsite: a, function: b },
        });
    let kind = prop_oneof![named, scheduling, other, any_message_event()];
    (any::<u64>(), cpu(), any::<i32>(), kind).prop_map(|(ticks, cpu, pid, kind)| Event {
        ticks: Ticks(ticks),
        cpu,
        pid: Pid(pid),
        kind,
    })
}

/// Any event of a message on its way.
fn any_message_event() -> impl Strategy<Value = EventKind> {
    let protocol = prop_oneof![Just(Protocol::Tcp), Just(Protocol::Udp), Just(Protocol::Other)];
    let numbers = (any::<[u64; 2]>(), any::<u32>(), any::<i32>(), any::<bool>());
    (numbers, "[a-z0-9]{0,15}", name(), protocol, 0..17_u8).prop_map(
        |(([skb, socket], long, length, known), device, reason, protocol, kind)| {
            let device = DeviceName::from(device);
            match kind {
                0 => EventKind::SendCall,
                1 => EventKind::TcpSend { length },
                2 => EventKind::NetQueue { skb, device, length: long },
                3 => EventKind::QdiscIn { skb },
                4 => EventKind::QdiscOut { skb },
                5 => EventKind::NetXmit { skb, device, length: long },
                6 => EventKind::NetReceive { skb, device, length: long },
                7 => EventKind::NapiPoll { device, work: length },
                8 => EventKind::TcpSegment {
                    skb: known.then_some(skb),
                    socket: known.then_some(socket),
                    length: long,
                },
                9 => EventKind::SocketReady { socket, protocol },
                10 => EventKind::SocketSent { socket, protocol, length },
                11 => EventKind::SocketRead { socket, protocol, length },
                12 => EventKind::SocketPeeked { socket },
                13 => EventKind::SkbCopied { skb, length },
                14 => EventKind::SkbFreed { skb, reason },
                15 => EventKind::UdpRefused { error: length, port: known.then_some(long as u16) },
                _ => EventKind::SkbConsumed { skb },
            }
        },
    )
}
