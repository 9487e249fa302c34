//! Late wake-ups: what was late before the thread could run, and who ran after it could.

use whylate_model::cause::{Cause, PriorityClass, Rule};
use whylate_model::event::{Event, EventKind};
use whylate_model::gap::{Gap, GapKind};
use whylate_model::{CpuId, Pid, Ticks, TicksDelta};

use super::{CPU, OWN, Script, context, gap, hog, interrupt, own, task, thread};
use crate::context::Measured;
use crate::split::{Setting, Span, Split, split};

/// How late the timer may fire by the kernel's leave.
const SLACK: TicksDelta = TicksDelta(5);

/// The thread was to run at 1 000 and did at `end`.
fn late(end: u64) -> Gap {
    Gap { kind: GapKind::Dispatch, ..gap(1_000, end) }
}

fn woken() -> EventKind {
    EventKind::Wakeup { task: own(), target: CPU }
}

fn idle() -> whylate_model::event::Task {
    task(0, "swapper/2", 120)
}

fn of(gap: &Gap, events: &[Event], sends: &[Event], lost: &[Span]) -> Split {
    on(true, gap, events, sends, lost)
}

fn on(virtualised: bool, gap: &Gap, events: &[Event], sends: &[Event], lost: &[Span]) -> Split {
    let mut context = context(virtualised);
    for event in events {
        context.learn(event);
    }
    split(gap, events, &Setting { context: &context, own: OWN, sends, lost, slack: SLACK })
}

fn lengths(split: &Split) -> Vec<(u64, Cause)> {
    split.parts.iter().map(|part| (part.length.0, part.cause.clone())).collect()
}

/// The timer's interrupt comes 700 late while `current` has the CPU, and the thread runs at 2 000.
fn interrupted_late(current: whylate_model::event::Task) -> Vec<Event> {
    Script::on(CPU, current)
        .at(1_700, super::entry("local_timer"))
        .at(1_800, woken())
        .at(1_850, super::exit("local_timer"))
        .switch(1_950, &own())
        .events
}

#[test]
fn a_timer_that_fires_late_is_not_the_fault_of_the_thread_that_ran_meanwhile() {
    let split = of(&late(2_000), &interrupted_late(hog()), &[], &[]);
    let expected = [
        (700, Cause::TimerLate),
        (150, interrupt("local_timer")),
        (100, thread("hog", PriorityClass::Ordinary)),
        (50, Cause::ExitResidual),
    ];
    assert_eq!(lengths(&split), expected);
    assert_eq!(split.cause, Cause::TimerLate);
}

/// The interrupt comes 20 ms late, and the thread runs 300 ns after it.
const STOPPED: u64 = 20_001_300;

fn stopped(before: Script) -> Vec<Event> {
    let script = before.at(20_001_000, super::entry("local_timer")).at(20_001_100, woken());
    script.at(20_001_150, super::exit("local_timer")).switch(20_001_250, &own()).events
}

#[test]
fn a_busy_cpu_that_took_no_interrupt_for_longer_than_any_tick_was_stopped_by_the_host() {
    let split = of(&late(STOPPED), &stopped(Script::on(CPU, hog())), &[], &[]);
    let expected = [
        (5, Cause::TimerLate),
        (19_999_995, Cause::Host),
        (150, interrupt("local_timer")),
        (100, thread("hog", PriorityClass::Ordinary)),
        (50, Cause::ExitResidual),
    ];
    assert_eq!(lengths(&split), expected);
    assert_eq!((split.cause, split.rule), (Cause::Host, Some(Rule::R8)));
}

#[test]
fn without_that_evidence_the_time_before_a_wake_up_is_not_the_hosts() {
    let nowhere = |split: &Split| split.parts.iter().all(|part| part.cause != Cause::Host);
    // On bare metal nobody stops a CPU.
    let hardware = on(false, &late(STOPPED), &stopped(Script::on(CPU, hog())), &[], &[]);
    assert!(nowhere(&hardware) && hardware.cause == Cause::TimerLate, "{hardware:?}");
    // An idle CPU has no tick that could be missing.
    let asleep = of(&late(STOPPED), &stopped(Script::on(CPU, idle())), &[], &[]);
    assert!(nowhere(&asleep) && asleep.cause == Cause::IdleExit, "{asleep:?}");
    // The tick came, and the timer of the thread did not.
    let ticks = (1..5).map(|tick| tick * 4_000_000);
    let ticking =
        ticks.fold(Script::on(CPU, hog()), |script, at| script.vector("local_timer", at, at + 100));
    let ticking = of(&late(STOPPED), &stopped(ticking), &[], &[]);
    assert!(nowhere(&ticking) && ticking.cause == Cause::TimerLate, "{ticking:?}");
    // Another device woke the thread: its own timer may have had nothing to do.
    let device = Script::on(CPU, hog()).at(20_001_000, super::entry("reschedule"));
    let device = device.at(20_001_100, woken()).at(20_001_150, super::exit("reschedule"));
    let device = of(&late(STOPPED), &device.switch(20_001_250, &own()).events, &[], &[]);
    assert!(nowhere(&device) && device.cause == Cause::TimerLate, "{device:?}");
}

#[test]
fn an_idle_cpu_has_to_leave_idle_until_the_switch_away_from_it() {
    let split = of(&late(2_000), &interrupted_late(idle()), &[], &[]);
    let expected = [
        (5, Cause::TimerLate),
        (695, Cause::IdleExit),
        (150, interrupt("local_timer")),
        (100, Cause::IdleExit),
        (50, Cause::ExitResidual),
    ];
    assert_eq!(lengths(&split), expected);
    assert_eq!(split.cause, Cause::IdleExit);
}

#[test]
fn who_runs_after_the_wake_up_keeps_the_thread_from_running() {
    let events = Script::on(CPU, hog())
        .at(1_010, super::entry("local_timer"))
        .at(1_020, woken())
        .at(1_030, super::exit("local_timer"))
        .switch(1_900, &own())
        .events;
    let split = of(&late(2_000), &events, &[], &[]);
    assert_eq!(split.cause, thread("hog", PriorityClass::Ordinary));
    assert_eq!(lengths(&split)[0], (10, Cause::TimerLate));
}

#[test]
fn an_idle_thread_that_runs_again_after_a_switch_is_no_exit_from_idle() {
    let audio = task(9, "audio", 49);
    let events = Script::on(CPU, idle())
        .at(1_100, woken())
        .switch(1_110, &audio)
        .switch(1_200, &idle())
        .switch(1_900, &own())
        .events;
    let split = of(&late(2_000), &events, &[], &[]);
    assert_eq!(lengths(&split)[1], (105, Cause::IdleExit));
    assert_eq!(lengths(&split)[3], (700, thread("swapper", PriorityClass::Idle)));
}

#[test]
fn a_wake_up_sent_from_another_cpu_ends_the_lateness_of_the_timer() {
    let events = Script::on(CPU, hog()).switch(1_900, &own()).events;
    let send = Event { ticks: Ticks(1_400), cpu: CpuId(0), pid: hog().pid, kind: woken() };
    let split = of(&late(2_000), &events, &[send], &[]);
    let expected = [
        (400, Cause::TimerLate),
        (500, thread("hog", PriorityClass::Ordinary)),
        (100, Cause::ExitResidual),
    ];
    assert_eq!(lengths(&split), expected);
}

#[test]
fn other_gaps_and_lossy_ones_keep_the_threads_that_ran_in_them() {
    let events = interrupted_late(hog());
    let lost = [Span { from: Ticks(1_100), to: Ticks(1_101) }];
    let lossy = of(&late(2_000), &events, &[], &lost);
    let other = of(&gap(1_000, 2_000), &events, &[], &[]);
    for split in [lossy, other] {
        assert!(split.parts.iter().all(|part| part.cause != Cause::TimerLate), "{split:?}");
    }
}

#[test]
fn a_thread_woken_before_the_gap_waited_for_others_alone() {
    let events = Script::on(CPU, hog()).switch(1_900, &own()).events;
    let split = of(&late(2_000), &events, &[], &[]);
    assert_eq!(lengths(&split)[0], (900, thread("hog", PriorityClass::Ordinary)));
}

#[test]
fn until_a_coarse_timer_fires_by_its_design_nobody_else_is_late() {
    let coarse = Gap { kind: GapKind::LateTimer, ..gap(1_000, 2_000) };
    let events = Script::on(CPU, hog()).vector("local_timer", 1_500, 1_600).events;
    let split = of(&coarse, &events, &[], &[]);
    let expected =
        [(500, Cause::TimerLate), (100, interrupt("local_timer")), (400, Cause::TimerLate)];
    assert_eq!(lengths(&split), expected);
    assert_eq!(of(&coarse, &[], &[], &[]).cause, Cause::TimerLate);
}

#[test]
fn threads_of_the_set_and_of_the_tool_are_named_as_such_and_all_others_as_foreign() {
    let mut context = context(true);
    let other = Measured { index: 1, pid: Pid(101), ..context.threads[0] };
    context.threads.push(other);
    context.own.insert(Pid(55));
    let setting =
        Setting { context: &context, own: OWN, sends: &[], lost: &[], slack: TicksDelta(0) };
    let script = Script::new()
        .switch(1_010, &task(101, "hourglass/0", 49))
        .switch(1_110, &task(55, "whylate-part", 120))
        .switch(1_210, &hog())
        .switch(1_310, &own());
    let split = split(&gap(1_000, 1_320), &script.events, &setting);
    let member = Cause::Member { comm: "hourglass/0".to_owned(), class: PriorityClass::RealTime };
    let expected = [
        (10, Cause::EntryResidual),
        (100, member),
        (100, Cause::Whylate),
        (100, thread("hog", PriorityClass::Ordinary)),
        (10, Cause::ExitResidual),
    ];
    assert_eq!(lengths(&split), expected);
}

#[test]
fn the_interrupt_of_the_own_timer_may_come_with_the_wake_up_and_has_its_name_on_either_architecture()
 {
    let host = |entry: EventKind, exit: EventKind, at: u64| {
        let script = Script::on(CPU, hog()).at(at, entry).at(at, woken()).at(at + 50, exit);
        let split = of(&late(at + 400), &script.switch(at + 200, &own()).events, &[], &[]);
        split
            .parts
            .iter()
            .filter(|part| part.cause == Cause::Host)
            .map(|part| part.length.0)
            .sum::<u64>()
    };
    let x86 = || (super::entry("local_timer"), super::exit("local_timer"));
    let handler = |name: &str| {
        let entry = EventKind::HandlerEntry { irq: 11, name: name.to_owned() };
        (entry, EventKind::HandlerExit { irq: 11 })
    };
    let (entry, exit) = x86();
    // The time that the kernel may wait stays the timer's.
    assert_eq!(host(entry, exit, 20_001_000), 20_000_000 - SLACK.0);
    let (entry, exit) = handler("arch_timer");
    assert_eq!(host(entry, exit, 20_001_000), 20_000_000 - SLACK.0);
    let (entry, exit) = handler("eth0");
    assert_eq!(host(entry, exit, 20_001_000), 0);
    // A tick that comes as seldom as any kernel's is none too late.
    let (entry, exit) = x86();
    assert_eq!(host(entry, exit, 10_001_000), 0);
    let (entry, exit) = x86();
    assert_eq!(host(entry, exit, 10_001_001), 10_000_001 - SLACK.0);
}

#[test]
fn only_a_wake_up_within_the_gap_ends_the_lateness_of_the_timer() {
    let events = Script::on(CPU, hog()).switch(1_900, &own()).events;
    let send = |ticks| Event { ticks: Ticks(ticks), cpu: CpuId(0), pid: hog().pid, kind: woken() };
    let late_by = |sends: &[Event]| {
        let split = of(&late(2_000), &events, sends, &[]);
        let late = split.parts.iter().filter(|part| part.cause == Cause::TimerLate);
        late.map(|part| part.length.0).sum::<u64>()
    };
    assert_eq!(late_by(&[send(900), send(1_400)]), 400);
    assert_eq!(late_by(&[send(900), send(2_001)]), 0);
    assert_eq!(late_by(&[send(2_000)]), 900, "up to the switch to the thread");
}
