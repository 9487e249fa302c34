//! What a walk makes of lost switches, of handlers inside others, and of a thread that changed its CPU: exact parts.

use whylate_model::CpuId;
use whylate_model::cause::{Cause, PriorityClass};
use whylate_model::event::{Event, EventKind, Softirq};
use whylate_model::gap::Gap;

use super::split_cases::{lengths, of};
use super::{CPU, Script, entry, exit, gap, hog, interrupt, own, task, thread};

const ORDINARY: PriorityClass = PriorityClass::Ordinary;

fn fault(user: bool) -> EventKind {
    EventKind::PageFault { user, address: 8, ip: 9 }
}

#[track_caller]
fn parts(events: &[Event], expected: &[(u64, Cause)]) {
    assert_eq!(lengths(&of(&gap(1000, 2000), events)), expected);
}

#[test]
fn a_fault_of_the_kernel_is_the_threads_outside_handlers_and_the_handlers_inside_any() {
    let (before, after) = (Cause::EntryResidual, Cause::ExitResidual);
    let outside = Script::new().at(1200, fault(false));
    parts(&outside.events, &[(200, before.clone()), (800, Cause::PageFault)]);
    let timer = interrupt("local_timer");
    let inside = Script::new()
        .at(1100, entry("local_timer"))
        .at(1200, fault(false))
        .at(1900, exit("local_timer"));
    parts(&inside.events, &[(100, before.clone()), (800, timer.clone()), (100, after)]);
    let upon_a_fault = Script::new()
        .at(1100, fault(true))
        .at(1200, entry("local_timer"))
        .at(1300, fault(false))
        .at(1400, exit("local_timer"));
    let expected = [(100, before), (100, Cause::PageFault), (200, timer), (600, Cause::PageFault)];
    parts(&upon_a_fault.events, &expected);
}

#[test]
fn the_end_of_a_device_handler_ends_what_ran_upon_it() {
    let script = Script::new()
        .at(1100, entry("device"))
        .at(1150, EventKind::HandlerEntry { irq: 36, name: "virtio1".to_owned() })
        .at(1200, EventKind::SoftirqEntry { vector: Softirq::NetRx })
        .at(1300, EventKind::HandlerExit { irq: 36 })
        .at(1400, exit("device"));
    let expected = [
        (100, Cause::EntryResidual),
        (100, interrupt("virtio1")),
        (100, Cause::Softirq { vector: Softirq::NetRx }),
        (100, interrupt("virtio1")),
        (600, Cause::ExitResidual),
    ];
    parts(&script.events, &expected);
}

#[test]
fn whoever_an_event_names_has_the_cpu_from_there_on_where_a_switch_was_lost() {
    let with_current = |mut script: Script, current| {
        script.current = current;
        script
    };
    let back = with_current(Script::new().switch(1100, &hog()), own());
    let expected = [
        (100, Cause::EntryResidual),
        (400, thread("hog", ORDINARY)),
        (100, interrupt("local_timer")),
        (400, Cause::ExitResidual),
    ];
    parts(&back.vector("local_timer", 1500, 1600).events, &expected);
    let other = with_current(Script::new().switch(1100, &hog()), task(8, "other", 120));
    let expected = [
        (100, Cause::EntryResidual),
        (400, thread("hog", ORDINARY)),
        (100, interrupt("local_timer")),
        (300, thread("other", ORDINARY)),
        (100, Cause::ExitResidual),
    ];
    parts(&other.vector("local_timer", 1500, 1600).switch(1900, &own()).events, &expected);
    // The idle thread has its one name there, too.
    let idle = Script::on(CPU, task(0, "swapper/2", 120)).switch(1500, &own());
    parts(
        &idle.events,
        &[(500, thread("swapper", PriorityClass::Idle)), (500, Cause::ExitResidual)],
    );
}

const TO: CpuId = CpuId(3);

/// Parts of a gap in which our thread was moved at 1400, while another had its first CPU.
fn moved(after: Script) -> Vec<(u64, Cause)> {
    let migrate = EventKind::Migrate { task: own(), from: CPU, to: TO };
    let before = Script::new().switch(1100, &hog()).at(1400, migrate);
    let migrated = Gap { cpu_after: TO, ..gap(1000, 2000) };
    let events: Vec<Event> = before.events.into_iter().chain(after.events).collect();
    lengths(&of(&migrated, &events))
}

#[test]
fn from_the_move_on_whoever_has_the_other_cpu_has_the_time() {
    let idle = Script::on(TO, task(0, "swapper/3", 120)).switch(1600, &own());
    let begin = [(100, Cause::EntryResidual), (300, thread("hog", ORDINARY))];
    let with = |rest: &[(u64, Cause)]| [&begin[..], rest].concat();
    let swapper = thread("swapper", PriorityClass::Idle);
    assert_eq!(moved(idle), with(&[(200, swapper), (400, Cause::ExitResidual)]));
    let stranger = Script::on(TO, task(31, "stranger", 120))
        .vector("local_timer", 1500, 1550)
        .switch(1600, &own());
    let expected = [
        (100, thread("stranger", ORDINARY)),
        (50, interrupt("local_timer")),
        (50, thread("stranger", ORDINARY)),
        (400, Cause::ExitResidual),
    ];
    assert_eq!(moved(stranger), with(&expected));
    // It went on there at once: the time is its own way through the kernel.
    let at_once = Script::on(TO, own()).vector("local_timer", 1500, 1550);
    let expected =
        [(100, Cause::InnerResidual), (50, interrupt("local_timer")), (450, Cause::ExitResidual)];
    assert_eq!(moved(at_once), with(&expected));
    let and_lost_it =
        Script::on(TO, own()).switch(1600, &task(31, "stranger", 120)).switch(1700, &own());
    let expected = [
        (200, Cause::InnerResidual),
        (100, thread("stranger", ORDINARY)),
        (300, Cause::ExitResidual),
    ];
    assert_eq!(moved(and_lost_it), with(&expected));
    let silent = Script::on(TO, own());
    assert_eq!(moved(silent), with(&[(600, Cause::ExitResidual)]));
}

/// The same where `before` is what the first CPU recorded and `after` what the second did.
fn followed(before: Script, after: Script) -> Vec<(u64, Cause)> {
    let migrated = Gap { cpu_after: TO, ..gap(1000, 2000) };
    let events: Vec<Event> = before.events.into_iter().chain(after.events).collect();
    lengths(&of(&migrated, &events))
}

#[test]
fn the_thread_is_followed_by_its_own_move_to_where_it_went_on_and_by_no_other() {
    let migrate = |task, to| EventKind::Migrate { task, from: CPU, to };
    let before = Script::new()
        .switch(1100, &hog())
        .at(1200, migrate(own(), CpuId(5)))
        .at(1300, migrate(hog(), TO))
        .at(1400, migrate(own(), TO))
        .at(1420, migrate(own(), CpuId(5)));
    let after = Script::on(TO, task(0, "swapper/3", 120)).at(1450, migrate(hog(), TO));
    let expected = [
        (100, Cause::EntryResidual),
        (300, thread("hog", ORDINARY)),
        (600, thread("swapper", PriorityClass::Idle)),
    ];
    assert_eq!(followed(before, after.switch(2000, &own())), expected);
}

#[test]
fn without_a_record_of_the_move_it_is_the_switch_to_the_thread_there_else_the_last_one_from_it_here()
 {
    let there = Script::on(TO, task(0, "swapper/3", 120))
        .vector("local_timer", 1200, 1250)
        .switch(1300, &task(31, "stranger", 120))
        .switch(1600, &own());
    // It came back to its first CPU in between, and what runs there afterwards is not on its way.
    let here = || Script::new().switch(1100, &hog()).switch(1150, &own()).switch(1500, &hog());
    let begin =
        [(100, Cause::EntryResidual), (50, thread("hog", ORDINARY)), (350, Cause::InnerResidual)];
    let with = |rest: &[(u64, Cause)]| [&begin[..], rest].concat();
    let expected = with(&[(100, thread("hog", ORDINARY)), (400, Cause::ExitResidual)]);
    assert_eq!(followed(here(), there), expected);
    let silent = Script::on(TO, own()).vector("local_timer", 1200, 1250);
    let on_the_way = here().switch(1700, &task(8, "elsewhere", 120));
    assert_eq!(followed(on_the_way, silent), with(&[(500, Cause::ExitResidual)]));
}

#[test]
fn what_either_cpu_recorded_at_the_move_itself_is_on_the_way() {
    let migrate = EventKind::Migrate { task: own(), from: CPU, to: TO };
    let stranger = || Script::on(TO, task(31, "stranger", 120));
    let before = || Script::new().at(1400, exit("local_timer"));
    let after = stranger().at(1400, migrate.clone()).switch(2000, &own());
    let expected = [(400, interrupt("local_timer")), (600, thread("stranger", ORDINARY))];
    assert_eq!(followed(before(), after), expected);
    // Who recorded it has the other CPU, also where nothing comes after it.
    let alone = stranger().switch(1050, &task(32, "recorder", 120));
    let alone = alone.at(1400, EventKind::Migrate { task: own(), from: CPU, to: TO });
    let expected_alone = [expected[0].clone(), (600, thread("recorder", ORDINARY))];
    assert_eq!(followed(before(), alone), expected_alone);
    // Earlier and later events of the other CPU are not.
    let early = stranger().vector("local_timer", 1100, 1200).at(1400, migrate).switch(2000, &own());
    assert_eq!(followed(before().vector("reschedule", 1500, 1600), early), expected);
}

#[test]
fn what_begins_with_the_gap_is_in_it() {
    let script = Script::new().at(1000, fault(true));
    parts(&script.events, &[(1000, Cause::PageFault)]);
}
