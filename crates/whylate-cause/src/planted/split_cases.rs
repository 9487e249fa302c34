//! One gap at a time: the parts that METHOD asks for, incomplete records, and any events at all.

use proptest::prelude::*;
use whylate_model::cause::{Cause, Part, PriorityClass, Rule, Sender};
use whylate_model::event::{Event, EventKind, Softirq};
use whylate_model::gap::{Gap, RseqWord};
use whylate_model::{CpuId, Pid, Ticks, TicksDelta};

use super::{CPU, Dice, OWN, Script, context, entry, exit, gap, hog, interrupt, own, task, thread};
use crate::naming;
use crate::split::{Setting, Span, Split, split};

const ORDINARY: PriorityClass = PriorityClass::Ordinary;

pub(super) fn of(gap: &Gap, events: &[Event]) -> Split {
    with(gap, events, &[], &[], true)
}

fn with(gap: &Gap, events: &[Event], sends: &[Event], lost: &[Span], virtualised: bool) -> Split {
    let mut context = context(virtualised);
    for event in events.iter().chain(sends) {
        context.learn(event);
    }
    let slack = TicksDelta(0);
    let setting = Setting { context: &context, own: OWN, sends, lost, slack };
    let split = split(gap, events, &setting);
    assert_closed(gap, &split.parts);
    split
}

/// Ordered, adjacent, none empty, and the sum is the gap.
fn assert_closed(gap: &Gap, parts: &[Part]) {
    let mut at = gap.start;
    for part in parts {
        assert_eq!(part.start, at, "{parts:?}");
        assert!(part.length.0 > 0, "{parts:?}");
        at = at + part.length;
    }
    assert_eq!(at, gap.end.max(gap.start), "{parts:?}");
}

pub(super) fn lengths(split: &Split) -> Vec<(u64, Cause)> {
    split.parts.iter().map(|part| (part.length.0, part.cause.clone())).collect()
}

#[test]
fn a_timer_interrupt_with_its_softirq_has_its_parts_and_its_name() {
    let script =
        Script::new().vector("local_timer", 1300, 1700).softirq(Softirq::Timer, 1750, 1850);
    let split = of(&gap(1000, 2000), &script.events);
    let expected = [
        (300, Cause::EntryResidual),
        (400, interrupt("local_timer")),
        (50, Cause::InnerResidual),
        (100, Cause::Softirq { vector: Softirq::Timer }),
        (150, Cause::ExitResidual),
    ];
    assert_eq!(lengths(&split), expected);
    assert_eq!((split.cause, split.rule), (interrupt("local_timer"), None));
}

#[test]
fn of_nested_handlers_the_inner_has_the_time() {
    let script = Script::new()
        .at(1100, EventKind::SoftirqEntry { vector: Softirq::NetRx })
        .vector("local_timer", 1200, 1300)
        .at(1600, EventKind::SoftirqExit { vector: Softirq::NetRx });
    let softirq = Cause::Softirq { vector: Softirq::NetRx };
    let split = of(&gap(1000, 1700), &script.events);
    let expected = [
        (100, Cause::EntryResidual),
        (100, softirq.clone()),
        (100, interrupt("local_timer")),
        (300, softirq.clone()),
        (100, Cause::ExitResidual),
    ];
    assert_eq!(lengths(&split), expected);
    assert_eq!(split.cause, softirq);
}

#[test]
fn a_device_handler_names_its_vector_and_a_second_one_takes_its_own_time() {
    let handler = |irq, name: &str| EventKind::HandlerEntry { irq, name: name.to_owned() };
    let script = Script::new()
        .at(1100, entry("device"))
        .at(1150, handler(36, "virtio1-req.0"))
        .at(1250, EventKind::HandlerExit { irq: 36 })
        .at(1260, handler(37, "eth0"))
        .at(1290, EventKind::HandlerExit { irq: 37 })
        .at(1300, exit("device"));
    let expected = [
        (100, Cause::EntryResidual),
        (160, interrupt("virtio1-req.0")),
        (30, interrupt("eth0")),
        (10, interrupt("virtio1-req.0")),
        (100, Cause::ExitResidual),
    ];
    assert_eq!(lengths(&of(&gap(1000, 1400), &script.events)), expected);
}

#[test]
fn a_device_handler_outside_a_vector_has_its_own_name() {
    let script = Script::new()
        .at(1100, EventKind::HandlerEntry { irq: 36, name: "virtio1-req.0".to_owned() })
        .at(1200, EventKind::HandlerExit { irq: 36 });
    assert_eq!(of(&gap(1000, 1300), &script.events).cause, interrupt("virtio1-req.0"));
}

#[test]
fn a_thread_has_the_time_from_the_switch_to_the_switch_back() {
    let audio = task(9, "audio", 49);
    let script = Script::new()
        .vector("reschedule", 1100, 1150)
        .switch(1200, &audio)
        .switch(1900, &hog())
        .vector("local_timer", 2000, 2100)
        .switch(2500, &own());
    let split = of(&gap(1000, 2600), &script.events);
    let expected = [
        (100, Cause::EntryResidual),
        (50, interrupt("reschedule")),
        (50, Cause::InnerResidual),
        (700, thread("audio", PriorityClass::RealTime)),
        (100, thread("hog", ORDINARY)),
        (100, interrupt("local_timer")),
        (400, thread("hog", ORDINARY)),
        (100, Cause::ExitResidual),
    ];
    assert_eq!(lengths(&split), expected);
    assert_eq!(split.cause, thread("audio", PriorityClass::RealTime));
}

#[test]
fn the_idle_thread_has_one_name_on_every_cpu() {
    let script = Script::new().switch(1100, &task(0, "swapper/2", 120)).switch(1900, &own());
    assert_eq!(of(&gap(1000, 2000), &script.events).cause, thread("swapper", PriorityClass::Idle));
}

#[test]
fn a_page_fault_lasts_to_the_end_of_the_gap_and_interrupts_are_nested_in_it() {
    let fault = EventKind::PageFault { user: true, address: 8, ip: 9 };
    let script = Script::new().at(1100, fault).vector("local_timer", 1200, 1250);
    let expected = [
        (100, Cause::EntryResidual),
        (100, Cause::PageFault),
        (50, interrupt("local_timer")),
        (750, Cause::PageFault),
    ];
    assert_eq!(lengths(&of(&gap(1000, 2000), &script.events)), expected);
}

#[test]
fn a_fault_that_waits_for_the_disk_goes_on_after_the_switch_back() {
    let fault = EventKind::PageFault { user: true, address: 8, ip: 9 };
    let script = Script::new().at(1100, fault).switch(1200, &hog()).switch(1800, &own());
    let expected = [
        (100, Cause::EntryResidual),
        (100, Cause::PageFault),
        (600, thread("hog", ORDINARY)),
        (200, Cause::PageFault),
    ];
    assert_eq!(lengths(&of(&gap(1000, 2000), &script.events)), expected);
}

#[test]
fn faults_and_signals_of_another_thread_are_its_own_time() {
    let script = Script::new()
        .switch(1100, &hog())
        .at(1200, EventKind::PageFault { user: true, address: 8, ip: 9 })
        .at(1300, EventKind::SignalDeliver { signal: 14 })
        .at(1400, EventKind::WorkStart { function: 5 })
        .at(1500, EventKind::WorkEnd { function: 5 })
        .switch(1900, &own());
    let split = of(&gap(1000, 2000), &script.events);
    let expected =
        [(100, Cause::EntryResidual), (800, thread("hog", ORDINARY)), (100, Cause::ExitResidual)];
    assert_eq!(lengths(&split), expected);
}

#[test]
fn a_signal_takes_over_from_a_fault_and_a_fault_from_a_signal() {
    let fault = || EventKind::PageFault { user: true, address: 8, ip: 9 };
    let script = Script::new()
        .at(1100, EventKind::SignalDeliver { signal: 10 })
        .at(1300, fault())
        .at(1400, EventKind::SignalDeliver { signal: 12 });
    let expected = [
        (100, Cause::EntryResidual),
        (200, Cause::Signal { signal: 10 }),
        (100, Cause::PageFault),
        (600, Cause::Signal { signal: 12 }),
    ];
    assert_eq!(lengths(&of(&gap(1000, 2000), &script.events)), expected);
}

#[test]
fn a_fault_of_the_kernel_inside_a_handler_is_the_handlers() {
    let fault = |user| EventKind::PageFault { user, address: 8, ip: 9 };
    let inside = Script::new()
        .at(1100, entry("local_timer"))
        .at(1200, fault(false))
        .at(1900, exit("local_timer"));
    assert_eq!(of(&gap(1000, 2000), &inside.events).parts.len(), 3);
    // A fault of user code proves that the handler, whose exit was lost, has ended.
    let after = Script::new().at(1100, entry("local_timer")).at(1200, fault(true));
    let expected =
        [(100, Cause::EntryResidual), (100, interrupt("local_timer")), (800, Cause::PageFault)];
    assert_eq!(lengths(&of(&gap(1000, 2000), &after.events)), expected);
}

#[test]
fn an_nmi_is_laid_over_what_it_interrupted_from_its_end_backwards() {
    let nmi = |duration_ns| EventKind::Nmi { duration_ns };
    let script = Script::new()
        .at(1100, entry("local_timer"))
        .at(1250, nmi(100))
        .at(1400, exit("local_timer"))
        .at(1450, nmi(-5));
    let expected = [
        (100, Cause::EntryResidual),
        (50, interrupt("local_timer")),
        (100, Cause::Nmi),
        (150, interrupt("local_timer")),
        (50, Cause::InnerResidual),
        (50, Cause::ExitResidual),
    ];
    assert_eq!(lengths(&of(&gap(1000, 1500), &script.events)), expected);
}

#[test]
fn the_residual_before_an_nmi_ends_where_the_nmi_began() {
    let script = Script::new().at(1800, EventKind::Nmi { duration_ns: 500 });
    let split = of(&gap(1000, 2000), &script.events);
    let expected = [(300, Cause::EntryResidual), (500, Cause::Nmi), (200, Cause::ExitResidual)];
    assert_eq!(lengths(&split), expected);
    // One that took longer than the gap cannot have begun before it.
    let script = Script::new().at(1800, EventKind::Nmi { duration_ns: 50_000 });
    assert_eq!(lengths(&of(&gap(1000, 2000), &script.events))[0], (800, Cause::Nmi));
}

#[test]
fn a_gap_that_begins_inside_a_handler_gives_it_the_time_to_its_exit() {
    let script = Script::new().at(1300, exit("local_timer")).softirq(Softirq::Rcu, 1400, 1450);
    let expected = [
        (300, interrupt("local_timer")),
        (100, Cause::InnerResidual),
        (50, Cause::Softirq { vector: Softirq::Rcu }),
        (50, Cause::ExitResidual),
    ];
    assert_eq!(lengths(&of(&gap(1000, 1500), &script.events)), expected);
}

#[test]
fn a_gap_that_begins_while_another_thread_runs_gives_it_the_time_to_the_switch() {
    let script = Script::on(CPU, hog()).switch(1800, &own());
    let split = of(&gap(1000, 2000), &script.events);
    assert_eq!(lengths(&split), [(800, thread("hog", ORDINARY)), (200, Cause::ExitResidual)]);
    // A handler that interrupts a thread whose switch was lost tells who was current.
    let mut script = Script::new().switch(500, &hog()).vector("local_timer", 1500, 1600);
    script.events.remove(0);
    script.events[0].kind = entry("local_timer");
    let split = of(&gap(1000, 2000), &script.events);
    assert_eq!(lengths(&split)[1], (100, interrupt("local_timer")));
    assert!(matches!(split.parts[0].cause, Cause::Thread { .. }));
}

#[test]
fn a_handler_whose_exit_was_lost_ends_with_what_encloses_it() {
    let script = Script::new()
        .at(1100, entry("local_timer"))
        .at(1200, EventKind::SoftirqEntry { vector: Softirq::Timer })
        .at(1300, exit("local_timer"));
    let expected = [
        (100, Cause::EntryResidual),
        (100, interrupt("local_timer")),
        (100, Cause::Softirq { vector: Softirq::Timer }),
        (700, Cause::ExitResidual),
    ];
    assert_eq!(lengths(&of(&gap(1000, 2000), &script.events)), expected);
    let script = Script::new().at(1100, entry("local_timer")).switch(1200, &hog());
    assert_eq!(lengths(&of(&gap(1000, 2000), &script.events))[2].0, 800);
}

#[test]
fn events_at_the_edges_are_inside_and_those_beyond_are_not() {
    let script = Script::new().vector("local_timer", 1000, 2000).vector("reschedule", 999, 2001);
    let split = of(&gap(1000, 2000), &script.events);
    assert_eq!(lengths(&split), [(1000, interrupt("local_timer"))]);
    let script = Script::new().at(2000, exit("local_timer"));
    assert_eq!(of(&gap(1000, 2000), &script.events).cause, interrupt("local_timer"));
}

#[test]
fn a_point_event_alone_leaves_residuals_on_both_sides() {
    let kind = EventKind::Wakeup { task: hog(), target: CPU };
    let script = Script::new().at(1600, kind);
    let split = of(&gap(1000, 2000), &script.events);
    assert_eq!(lengths(&split), [(600, Cause::EntryResidual), (400, Cause::ExitResidual)]);
    assert_eq!(split.cause, Cause::EntryResidual);
}

#[test]
fn without_any_event_the_host_or_the_firmware_took_the_gap() {
    let says = |virtualised, lost: &[Span]| {
        let split = with(&gap(1000, 2000), &[], &[], lost, virtualised);
        assert_eq!(lengths(&split), [(1000, split.cause.clone())]);
        (split.cause, split.rule)
    };
    assert_eq!(says(true, &[]), (Cause::Host, Some(Rule::R8)));
    assert_eq!(says(false, &[]), (Cause::Firmware, Some(Rule::R8)));
    let beside = Span { from: Ticks(2001), to: Ticks(3000) };
    assert_eq!(says(true, &[beside]), (Cause::Host, Some(Rule::R8)));
    let within = Span { from: Ticks(1999), to: Ticks(3000) };
    assert_eq!(says(true, &[within]), (Cause::TraceLost, None));
}

#[test]
fn without_any_event_what_the_thread_itself_counted_is_believed() {
    let mut switched = gap(1000, 2000);
    switched.evidence.rseq = RseqWord::Cleared;
    switched.evidence.involuntary_switches = Some(1);
    let split = of(&switched, &[]);
    assert_eq!((split.cause, split.rule), (Cause::ContextSwitch, Some(Rule::R6)));
    let mut migrated = gap(1000, 2000);
    migrated.cpu_after = CpuId(3);
    let split = of(&migrated, &[]);
    assert_eq!((split.cause, split.rule), (Cause::Migration, Some(Rule::R7)));
}

#[test]
fn losses_take_only_what_nobody_claims() {
    let script = Script::new().vector("local_timer", 1300, 1700);
    let lost = [Span { from: Ticks(1200), to: Ticks(1800) }];
    let split = with(&gap(1000, 2000), &script.events, &[], &lost, true);
    let expected = [
        (200, Cause::EntryResidual),
        (100, Cause::TraceLost),
        (400, interrupt("local_timer")),
        (100, Cause::TraceLost),
        (200, Cause::ExitResidual),
    ];
    assert_eq!(lengths(&split), expected);
}

fn send(ticks: u64, cpu: u32, pid: i32, kind: EventKind) -> Event {
    Event { ticks: Ticks(ticks), cpu: CpuId(cpu), pid: Pid(pid), kind }
}

fn ipi(callback: u64) -> EventKind {
    EventKind::IpiSend { targets: vec![CpuId(1), CPU], callsite: 1, callback }
}

fn queued() -> EventKind {
    EventKind::CallQueued { target: CPU, callsite: 1, function: 77 }
}

#[test]
fn an_interrupt_between_cpus_names_the_nearest_earlier_sender_of_its_kind() {
    let script = Script::new()
        .vector("call_function_single", 1300, 1400)
        .vector("reschedule", 1500, 1550)
        .vector("local_timer", 1600, 1650);
    let sends = [
        send(900, 0, 50, ipi(9)),
        send(1190, 0, 51, queued()),
        send(1200, 0, 51, ipi(9)),
        send(1250, 1, 52, ipi(0)),
        send(1260, 1, 53, EventKind::IpiSend { targets: vec![CpuId(5)], callsite: 1, callback: 9 }),
        send(1450, 3, 54, ipi(9)),
        send(1300, 3, 55, EventKind::Wakeup { task: task(51, "mprotect", 120), target: CpuId(0) }),
    ];
    let split = with(&gap(1000, 2000), &script.events, &sends, &[], true);
    let sender = |cpu, pid, comm: &str| {
        Some(Sender { cpu: CpuId(cpu), pid: Pid(pid), comm: comm.to_owned() })
    };
    let senders: Vec<_> = split
        .parts
        .iter()
        .filter(|part| matches!(part.cause, Cause::Interrupt { .. }))
        .map(|part| part.sender.clone())
        .collect();
    assert_eq!(senders, [sender(0, 51, "mprotect"), sender(1, 52, ""), None]);
    // The send, the queueing of its call, and the reschedule.
    assert_eq!(split.sends, [1, 2, 3]);
    assert_eq!(split.arrivals.len(), 2);
    assert_eq!((split.arrivals[0].cpu, split.arrivals[0].length), (CPU, TicksDelta(100)));
}

#[test]
fn a_send_is_answered_once() {
    let script =
        Script::new().vector("call_function", 1300, 1400).vector("call_function", 1500, 1550);
    let sends = [send(1200, 0, 51, ipi(9))];
    let split = with(&gap(1000, 2000), &script.events, &sends, &[], true);
    let senders: Vec<_> = split.parts.iter().map(|part| part.sender.is_some()).collect();
    assert_eq!(senders, [false, true, false, false, false]);
}

#[test]
fn a_send_after_the_arrival_counts_only_within_the_bound_of_the_clocks() {
    let script = Script::new().vector("reschedule", 1300, 1400);
    let sends = [send(1340, 0, 51, ipi(0))];
    let named = |bound| {
        let mut context = context(true);
        context.cross_cpu_bound = TicksDelta(bound);
        let setting =
            Setting { context: &context, own: OWN, sends: &sends, lost: &[], slack: TicksDelta(0) };
        split(&gap(1000, 2000), &script.events, &setting).parts[1].sender.is_some()
    };
    assert!(!named(39));
    assert!(named(40));
}

#[test]
fn a_stale_send_and_one_by_our_own_cpu_name_nobody() {
    let script = Script::new().vector("reschedule", 20_001_300, 20_001_400);
    let gap = gap(20_001_000, 20_002_000);
    let stale = [send(9_000_000, 0, 51, ipi(0))];
    assert!(with(&gap, &script.events, &stale, &[], true).arrivals.is_empty());
    let itself = [send(20_001_100, CPU.0, OWN.0, ipi(0))];
    let split = with(&gap, &script.events, &itself, &[], true);
    assert!(split.arrivals.is_empty());
    assert_eq!(split.sends, [0]);
}

#[test]
fn a_thread_names_who_woke_it_and_counts_once_however_often_it_was_interrupted() {
    let script =
        Script::new().switch(1100, &hog()).vector("local_timer", 1200, 1300).switch(1900, &own());
    let wakeup = |target| EventKind::Wakeup { task: hog(), target };
    let sends = [send(1050, 0, 60, wakeup(CPU)), send(1060, 0, 61, wakeup(CpuId(0)))];
    let split = with(&gap(1000, 2000), &script.events, &sends, &[], true);
    assert_eq!(split.arrivals.len(), 1);
    assert_eq!(split.arrivals[0].length, TicksDelta(700));
    assert_eq!(split.arrivals[0].sender.pid, Pid(60));
    let later = Script::new().switch(20_001_100, &hog()).switch(20_001_900, &own());
    let gap = gap(20_001_000, 20_002_000);
    assert!(with(&gap, &later.events, &sends, &[], true).arrivals.is_empty(), "a stale wake-up");
}

#[test]
fn a_migrated_gap_follows_our_thread_from_one_cpu_to_the_other() {
    let to = CpuId(3);
    let migrate = EventKind::Migrate { task: own(), from: CPU, to };
    let before = Script::new()
        .switch(1100, &hog())
        .vector("local_timer", 1150, 1160)
        .switch(1700, &task(8, "elsewhere", 120));
    let after = Script::on(to, task(31, "stranger", 120))
        .switch(1050, &task(30, "balancer", 120))
        .vector("local_timer", 1200, 1250)
        .at(1500, migrate)
        .switch(1600, &own())
        .vector("reschedule", 1650, 1680);
    let mut migrated = gap(1000, 2000);
    migrated.cpu_after = to;
    let events: Vec<_> = after.events.iter().chain(&before.events).cloned().collect();
    let split = of(&migrated, &events);
    let expected = [
        (100, Cause::EntryResidual),
        (50, thread("hog", ORDINARY)),
        (10, interrupt("local_timer")),
        (340, thread("hog", ORDINARY)),
        (100, thread("balancer", ORDINARY)),
        (50, Cause::InnerResidual),
        (30, interrupt("reschedule")),
        (320, Cause::ExitResidual),
    ];
    assert_eq!(lengths(&split), expected);
    assert_eq!(split.cause, thread("hog", ORDINARY));
}

#[test]
fn a_migration_that_was_not_recorded_happens_at_the_switch_on_the_other_cpu() {
    let to = CpuId(3);
    let before = Script::new().switch(1100, &hog());
    let after = Script::on(to, task(0, "swapper/3", 120)).switch(1600, &own());
    let mut migrated = gap(1000, 2000);
    migrated.cpu_after = to;
    let events: Vec<_> = before.events.iter().chain(&after.events).cloned().collect();
    let expected =
        [(100, Cause::EntryResidual), (500, thread("hog", ORDINARY)), (400, Cause::ExitResidual)];
    assert_eq!(lengths(&of(&migrated, &events)), expected);
}

#[test]
fn events_of_other_cpus_are_left_aside() {
    let script = Script::on(CpuId(9), own()).vector("local_timer", 1300, 1700);
    assert_eq!(of(&gap(1000, 2000), &script.events).cause, Cause::Host);
}

/// Any event at all: all kinds, balanced or not, of any of some threads, at or beyond the edges.
fn any_event() -> impl Strategy<Value = Event> {
    let some_task = |pid: i32| task(pid, ["own", "a", "b", "idle"][pid as usize % 4], pid + 97);
    let kind = (0..18_u8, 0..4_i32, 0..3_i32, 0..2000_i64).prop_map(move |(kind, x, y, ns)| {
        let name = ["local_timer", "reschedule", "call_function", "device"][x as usize];
        let vector = Softirq::from_number(x as u32);
        let (task, to) = (some_task([100, 7, 8, 0][x as usize]), CpuId(y as u32 + 1));
        match kind {
            0 | 1 => entry(name),
            2 | 3 => exit(name),
            4 => EventKind::HandlerEntry { irq: x, name: format!("irq{x}") },
            5 => EventKind::HandlerExit { irq: x },
            6 => EventKind::SoftirqEntry { vector },
            7 => EventKind::SoftirqExit { vector },
            8..=10 => EventKind::Switch {
                from: some_task([7, 100, 0, 8][y as usize]),
                from_runnable: true,
                to: task,
            },
            11 => EventKind::PageFault { user: x > 1, address: 0, ip: 0 },
            12 => EventKind::Nmi { duration_ns: ns - 500 },
            13 => EventKind::SignalDeliver { signal: x },
            14 => EventKind::Migrate { task, from: CPU, to },
            15 => EventKind::Wakeup { task, target: to },
            16 => EventKind::IpiSend { targets: vec![to], callsite: 0, callback: x as u64 },
            _ => EventKind::CallQueued { target: to, callsite: 0, function: 0 },
        }
    });
    (950..2050_u64, 2..4_u32, 0..5_usize, kind).prop_map(|(ticks, cpu, pid, kind)| {
        let pid = Pid([100, 100, 7, 8, 0][pid]);
        Event { ticks: Ticks(ticks), cpu: CpuId(cpu), pid, kind }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_parts_of_any_gap_with_any_events_sum_to_it(
        events in prop::collection::vec(any_event(), 0..40),
        sends in prop::collection::vec(any_event(), 0..10),
        lost in prop::collection::vec((900..2100_u64, 800..2400_u64), 0..3),
        (start, length, moves) in (1000..1500_u64, 0..600_u64, any::<bool>()),
        (virtualised, bound) in (any::<bool>(), 0..50_u64),
    ) {
        let mut gap = gap(start, start + length);
        gap.cpu_after = if moves { CpuId(3) } else { CPU };
        let span = |&(from, to)| Span { from: Ticks(from), to: Ticks(to) };
        let lost: Vec<_> = lost.iter().map(span).collect();
        let mut context = context(virtualised);
        context.cross_cpu_bound = TicksDelta(bound);
        let setting = Setting { context: &context, own: OWN, sends: &sends, lost: &lost, slack: TicksDelta(0) };
        let split = split(&gap, &events, &setting);
        assert_closed(&gap, &split.parts);
        prop_assert!(length == 0 || split.parts.iter().any(|part| part.cause == split.cause));
        prop_assert!(split.sends.iter().all(|index| *index < sends.len()));
        let arrived: u64 = split.arrivals.iter().map(|arrival| arrival.length.0).sum();
        prop_assert!(arrived <= length);
    }

    #[test]
    fn a_balanced_timeline_gives_back_the_planted_parts(seed in any::<u64>()) {
        let (gap, script, planted) = plant(&mut Dice(seed));
        let split = of(&gap, &script.events);
        let named: Vec<_> = lengths(&split)
            .into_iter()
            .filter(|(_, cause)| !naming::is_residual(cause))
            .collect();
        prop_assert_eq!(named, planted);
        // The order in which events are handed over says nothing.
        let mut shuffled = script.events;
        shuffled.reverse();
        prop_assert_eq!(of(&gap, &shuffled).parts, split.parts);
    }
}

/// A gap with handlers one after another, each with its stretch of time before it.
fn plant(dice: &mut Dice) -> (Gap, Script, Vec<(u64, Cause)>) {
    let mut script = Script::new();
    let mut planted = Vec::new();
    let mut at = 1000;
    for _ in 0..=dice.below(6) {
        at += 1 + dice.below(500);
        let to = at + 1 + dice.below(3000);
        match dice.below(4) {
            0 => {
                script = script.vector("local_timer", at, to);
                planted.push((to - at, interrupt("local_timer")));
            }
            1 => {
                script = script.softirq(Softirq::NetRx, at, to);
                planted.push((to - at, Cause::Softirq { vector: Softirq::NetRx }));
            }
            2 => {
                script = script.switch(at, &hog()).switch(to, &own());
                planted.push((to - at, thread("hog", ORDINARY)));
            }
            _ => {
                let duration_ns = (to - at) as i64;
                script = script.at(to, EventKind::Nmi { duration_ns });
                planted.push((to - at, Cause::Nmi));
            }
        }
        at = to;
    }
    (gap(1000, at + 1 + dice.below(500)), script, planted)
}
