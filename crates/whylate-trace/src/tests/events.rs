//! Every kind of event, from records built by their formats.

use crate::format::EventFormat;
use crate::{Decoder, TraceError, wanted_elsewhere, wanted_on_measured};
use whylate_model::event::{EventKind, Softirq, Task};
use whylate_model::{CpuId, Pid, Ticks};

use super::builder::{
    CPU, PageBuilder, Value, Value::Bytes, Value::Number, decode, decoder, layout, record,
    recorded_format,
};

/// What one record of the event means.
fn kind_of(system: &str, format: &EventFormat, values: &[(&str, Value<'_>)]) -> EventKind {
    let page = PageBuilder::new(1_000).event(5, &record(format, values)).page();
    let (result, mut events) = decode(&decoder(system, format), &page);
    assert_eq!(result.unwrap().events, 1);
    let event = events.pop().unwrap();
    assert_eq!((event.ticks, event.cpu, event.pid), (Ticks(1_005), CPU, Pid(77)));
    event.kind
}

fn task(pid: i32, comm: &str, prio: i32) -> Task {
    Task { pid: Pid(pid), comm: comm.to_owned(), prio }
}

#[test]
fn vectors_are_named_by_their_event() {
    for (format, name) in [
        (recorded_format!("irq_vectors/local_timer_entry"), "local_timer"),
        (recorded_format!("irq_vectors/call_function_single_entry"), "call_function_single"),
    ] {
        let kind = kind_of("irq_vectors", &format, &[("vector", Number(236))]);
        assert_eq!(kind, EventKind::VectorEntry { name: name.to_owned(), vector: 236 });
    }
    let format = recorded_format!("irq_vectors/reschedule_exit");
    let kind = kind_of("irq_vectors", &format, &[("vector", Number(253))]);
    assert_eq!(kind, EventKind::VectorExit { name: "reschedule".to_owned(), vector: 253 });
}

#[test]
fn interrupt_handlers_have_a_number_and_a_name_of_any_length() {
    let format = recorded_format!("irq/irq_handler_entry");
    let values = [("irq", Number(36)), ("name", Bytes(b"virtio1-req.0\0"))];
    let expected = EventKind::HandlerEntry { irq: 36, name: "virtio1-req.0".to_owned() };
    assert_eq!(kind_of("irq", &format, &values), expected);
    let long = [b'x'; 300];
    let values = [("irq", Number(-1)), ("name", Bytes(&long))];
    let expected = EventKind::HandlerEntry { irq: -1, name: "x".repeat(300) };
    assert_eq!(kind_of("irq", &format, &values), expected);
    let format = recorded_format!("irq/irq_handler_exit");
    let kind = kind_of("irq", &format, &[("irq", Number(36)), ("ret", Number(1))]);
    assert_eq!(kind, EventKind::HandlerExit { irq: 36 });
}

#[test]
fn softirqs_have_a_vector() {
    let format = recorded_format!("irq/softirq_entry");
    let kind = kind_of("irq", &format, &[("vec", Number(3))]);
    assert_eq!(kind, EventKind::SoftirqEntry { vector: Softirq::NetRx });
    let format = recorded_format!("irq/softirq_exit");
    let kind = kind_of("irq", &format, &[("vec", Number(12))]);
    assert_eq!(kind, EventKind::SoftirqExit { vector: Softirq::Unknown(12) });
}

fn switch(format: &EventFormat, state: i64) -> EventKind {
    let values = [
        ("prev_comm", Bytes(b"sixteen_bytes_ok")),
        ("prev_pid", Number(4_194_303)),
        ("prev_prio", Number(-1)),
        ("prev_state", Number(state)),
        ("next_comm", Bytes(b"swapper/0\0rest")),
        ("next_pid", Number(0)),
        ("next_prio", Number(120)),
    ];
    kind_of("sched", format, &values)
}

#[test]
fn a_switch_names_both_threads_and_whether_the_first_could_go_on() {
    let format = recorded_format!("sched/sched_switch");
    // Running; preempted; asleep; uninterruptible; idle kernel thread; dead.
    for (state, runnable) in
        [(0, true), (0x100, true), (1, false), (2, false), (0x80, false), (0x10, false)]
    {
        let expected = EventKind::Switch {
            from: task(4_194_303, "sixteen_bytes_ok", -1),
            from_runnable: runnable,
            to: task(0, "swapper/0", 120),
        };
        assert_eq!(switch(&format, state), expected, "state {state:#x}");
    }
}

#[test]
fn the_states_that_block_are_those_of_the_kernels_own_print_format() {
    let recorded = recorded_format!("sched/sched_switch");
    // Kernels before 4.14 had states up to 1024 and the preempted mark above them.
    let flags: Vec<String> = (0..11).map(|bit| format!("{{ {}, \"{bit}\" }}", 1 << bit)).collect();
    let mut old = recorded.clone();
    old.print_format = format!(
        "\"%s\", REC->prev_state & (2048-1) ? __print_flags(REC->prev_state & (2048-1), \"|\", {}) \
         : \"R\", REC->prev_state & 2048 ? \"+\" : \"\", __print_flags(REC->other, {{ 4096, \"no\" }})",
        flags.join(", ")
    );
    let mut silent = recorded.clone();
    silent.print_format.clear();
    for (format, state, expected) in [
        (&old, 2048, true),
        (&old, 0x100, false),
        (&old, 4096, true),
        (&silent, 0x100, true),
        (&silent, 0x80, false),
    ] {
        let EventKind::Switch { from_runnable, .. } = switch(format, state) else { panic!() };
        assert_eq!(from_runnable, expected, "state {state:#x} in {}", format.print_format);
    }
}

#[test]
fn wake_ups_and_migrations_name_the_thread_and_the_cpus() {
    let format = recorded_format!("sched/sched_wakeup");
    let values = [
        ("comm", Bytes(b"redis-server")),
        ("pid", Number(501)),
        ("prio", Number(49)),
        ("target_cpu", Number(1)),
    ];
    let expected = EventKind::Wakeup { task: task(501, "redis-server", 49), target: CpuId(1) };
    assert_eq!(kind_of("sched", &format, &values), expected);
    let format = recorded_format!("sched/sched_migrate_task");
    let values = [
        ("comm", Bytes(b"migration/1\0")),
        ("pid", Number(19)),
        ("prio", Number(0)),
        ("orig_cpu", Number(1)),
        ("dest_cpu", Number(130)),
    ];
    let expected =
        EventKind::Migrate { task: task(19, "migration/1", 0), from: CpuId(1), to: CpuId(130) };
    assert_eq!(kind_of("sched", &format, &values), expected);
}

#[test]
fn page_faults_say_in_which_mode_and_where() {
    let values = [("address", Number(0x7f74_0cc0_0000)), ("ip", Number(-2_118_697_960))];
    let expected =
        |user| EventKind::PageFault { user, address: 0x7f74_0cc0_0000, ip: 0xffff_ffff_81b7_3c18 };
    let format = recorded_format!("exceptions/page_fault_user");
    assert_eq!(kind_of("exceptions", &format, &values), expected(true));
    let format = recorded_format!("exceptions/page_fault_kernel");
    assert_eq!(kind_of("exceptions", &format, &values), expected(false));
}

#[test]
fn a_non_maskable_interrupt_says_how_long_it_took() {
    let format = recorded_format!("nmi/nmi_handler");
    let kind = kind_of("nmi", &format, &[("delta_ns", Number(2_345)), ("handled", Number(1))]);
    assert_eq!(kind, EventKind::Nmi { duration_ns: 2_345 });
    // A clock that stepped back makes it negative, in a field of whatever size.
    for size in [1, 2, 4, 8] {
        let mut format = format.clone();
        format.fields.iter_mut().find(|field| field.name == "delta_ns").unwrap().size = size;
        let kind = kind_of("nmi", &format, &[("delta_ns", Number(-7))]);
        assert_eq!(kind, EventKind::Nmi { duration_ns: -7 });
    }
}

#[test]
fn signals_are_generated_for_a_thread_and_delivered() {
    let format = recorded_format!("signal/signal_generate");
    let values = [("sig", Number(10)), ("comm", Bytes(b"b\xffd")), ("pid", Number(502))];
    // A thread may call itself anything.
    let comm = "b\u{fffd}d".to_owned();
    let expected = EventKind::SignalGenerate { signal: 10, pid: Pid(502), comm };
    assert_eq!(kind_of("signal", &format, &values), expected);
    let format = recorded_format!("signal/signal_deliver");
    let kind = kind_of("signal", &format, &[("sig", Number(10))]);
    assert_eq!(kind, EventKind::SignalDeliver { signal: 10 });
}

#[test]
fn work_is_named_by_its_function() {
    let values = [("work", Number(1)), ("function", Number(-4096))];
    let function = 0xffff_ffff_ffff_f000;
    let format = recorded_format!("workqueue/workqueue_execute_start");
    assert_eq!(kind_of("workqueue", &format, &values), EventKind::WorkStart { function });
    let format = recorded_format!("workqueue/workqueue_execute_end");
    assert_eq!(kind_of("workqueue", &format, &values), EventKind::WorkEnd { function });
}

#[test]
fn an_inter_processor_interrupt_names_every_cpu_of_its_mask() {
    let format = recorded_format!("ipi/ipi_send_cpu");
    let values = [("cpu", Number(7)), ("callsite", Number(0x10)), ("callback", Number(0))];
    let expected = EventKind::IpiSend { targets: vec![CpuId(7)], callsite: 0x10, callback: 0 };
    assert_eq!(kind_of("ipi", &format, &values), expected);
    let format = recorded_format!("ipi/ipi_send_cpumask");
    let mask = (1_u128 << 127 | 1 << 64 | 1 << 63 | 0b1010).to_le_bytes();
    let values =
        [("cpumask", Bytes(&mask)), ("callsite", Number(0x10)), ("callback", Number(0x20))];
    let targets = [1, 3, 63, 64, 127].map(CpuId).to_vec();
    let expected = EventKind::IpiSend { targets, callsite: 0x10, callback: 0x20 };
    assert_eq!(kind_of("ipi", &format, &values), expected);
    let values = [("cpumask", Bytes(&[]))];
    let EventKind::IpiSend { targets, .. } = kind_of("ipi", &format, &values) else { panic!() };
    assert_eq!(targets, []);
}

#[test]
fn a_queued_call_names_the_cpu_and_the_function() {
    let format = recorded_format!("csd/csd_queue_cpu");
    let values = [("cpu", Number(1)), ("callsite", Number(0x10)), ("func", Number(0x20))];
    let expected = EventKind::CallQueued { target: CpuId(1), callsite: 0x10, function: 0x20 };
    assert_eq!(kind_of("csd", &format, &values), expected);
}

#[test]
fn text_that_lies_relative_to_its_field_is_found() {
    let text = include_str!("../../tests/data/events/irq/irq_handler_entry/format")
        .replace("__data_loc", "__rel_loc")
        // One field more, so that the pointer is not the last.
        .replace("\n\nprint", "\n\tfield:int more;\toffset:16;\tsize:4;\tsigned:1;\n\nprint");
    let format = EventFormat::parse(&text).unwrap();
    let values = [("irq", Number(4)), ("name", Bytes(b"ttyS0\0"))];
    let expected = EventKind::HandlerEntry { irq: 4, name: "ttyS0".to_owned() };
    assert_eq!(kind_of("irq", &format, &values), expected);
}

#[test]
fn a_record_shorter_than_its_format_is_an_error_and_nothing_is_made_up() {
    let format = recorded_format!("sched/sched_wakeup");
    let whole = record(&format, &[]);
    for words in 1..whole.len() / 4 {
        let page = PageBuilder::new(0).event(1, &whole).event(1, &whole[..4 * words]).page();
        let (result, events) = decode(&decoder("sched", &format), &page);
        let offset = 16 + 4 + whole.len() + 4;
        assert_eq!(result, Err(TraceError::RecordUnfit { offset, id: format.id }));
        assert_eq!(events.len(), 1, "the whole record before is kept");
    }
}

#[test]
fn text_outside_its_record_is_an_error() {
    let format = recorded_format!("irq/irq_handler_entry");
    let whole = record(&format, &[("name", Bytes(b"disk\0"))]);
    for pointer in [0xffff_ffff_u32, 0x0001_ffff, 0x0009_0010, 0x0001_0018] {
        let mut bad = whole.clone();
        bad[12..16].copy_from_slice(&pointer.to_le_bytes());
        let (result, events) =
            decode(&decoder("irq", &format), &PageBuilder::new(0).event(1, &bad).page());
        assert_eq!(
            result,
            Err(TraceError::RecordUnfit { offset: 20, id: format.id }),
            "{pointer:x}"
        );
        assert_eq!(events, []);
    }
}

#[test]
fn a_mask_larger_than_any_machine_is_an_error() {
    let format = recorded_format!("ipi/ipi_send_cpumask");
    let bad = record(&format, &[("cpumask", Bytes(&[0xff; 1028]))]);
    let page = PageBuilder::new(0).event(1, &bad).page();
    let (result, _) = decode(&decoder("ipi", &format), &page);
    assert_eq!(result, Err(TraceError::RecordUnfit { offset: 24, id: format.id }));
}

#[test]
fn every_wanted_event_that_was_recorded_can_be_registered_with_the_others() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/events");
    let mut decoder = Decoder::new(layout());
    let mut registered = 0;
    let mut names: Vec<_> = wanted_on_measured().iter().chain(wanted_elsewhere()).collect();
    names.sort_unstable();
    names.dedup();
    for (system, event) in names {
        let Ok(text) = std::fs::read_to_string(format!("{data}/{system}/{event}/format")) else {
            continue;
        };
        decoder.register(system, &EventFormat::parse(&text).unwrap()).unwrap();
        registered += 1;
    }
    assert_eq!(registered, 27, "as many as there are files");
}

#[test]
fn an_event_without_a_meaning_is_refused_by_name() {
    let mut format = recorded_format!("sched/sched_wakeup");
    format.name = "sched_process_exit".to_owned();
    let error = Decoder::new(layout()).register("sched", &format).unwrap_err();
    assert!(error.to_string().contains("sched:sched_process_exit"), "{error}");
    format.name = "vector_setup".to_owned();
    assert!(Decoder::new(layout()).register("irq_vectors", &format).is_err());
}

#[test]
fn a_format_without_a_needed_field_is_refused_and_leaves_the_decoder_as_it_was() {
    let whole = recorded_format!("sched/sched_wakeup");
    for field in ["comm", "pid", "prio", "target_cpu", "common_type", "common_pid"] {
        let mut decoder = Decoder::new(layout());
        let mut format = whole.clone();
        format.fields.retain(|other| other.name != field);
        let error = decoder.register("sched", &format).unwrap_err();
        assert_eq!(error, TraceError::FieldMissing { event: "sched_wakeup".to_owned(), field });
        decoder.register("sched", &whole).unwrap();
    }
}

#[test]
fn formats_of_two_kernels_are_not_mixed() {
    let wakeup = recorded_format!("sched/sched_wakeup");
    let mut decoder = decoder("sched", &wakeup);
    let again = decoder.register("sched", &wakeup);
    assert!(matches!(again, Err(TraceError::NumberTaken { id, .. }) if id == wakeup.id));
    let mut moved = recorded_format!("sched/sched_switch");
    moved.fields.iter_mut().find(|field| field.name == "common_pid").unwrap().offset = 8;
    let result = decoder.register("sched", &moved);
    assert!(matches!(result, Err(TraceError::CommonFieldsMoved { .. })));
}

#[test]
fn a_field_of_another_kind_is_refused() {
    let mut format = recorded_format!("sched/sched_wakeup");
    let number = format.field("pid").unwrap().clone();
    format.fields.iter_mut().find(|field| field.name == "comm").unwrap().storage = number.storage;
    assert!(matches!(
        Decoder::new(layout()).register("sched", &format),
        Err(TraceError::FieldUnfit { field: "comm", .. })
    ));
    let mut format = recorded_format!("sched/sched_wakeup");
    format.fields.iter_mut().find(|field| field.name == "prio").unwrap().size = 3;
    assert!(matches!(
        Decoder::new(layout()).register("sched", &format),
        Err(TraceError::FieldUnfit { field: "prio", .. })
    ));
}
