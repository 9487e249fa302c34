//! Pages recorded on a 6.18 kernel, beside the kernel's own text of them.
//!
//! `tests/data/record.py` recorded them, and says how.

use crate::format::EventFormat;
use crate::{Decoder, Missed};
use whylate_model::CpuId;

use super::builder::layout;
use super::rendering::assert_same;

/// A recorded page.
pub(super) struct Page {
    pub(super) cpu: CpuId,
    pub(super) bytes: &'static [u8],
    text: &'static str,
    missed: Missed,
}

macro_rules! page {
    ($name:literal, $cpu:literal, $missed:expr) => {
        Page {
            cpu: CpuId($cpu),
            bytes: include_bytes!(concat!("../../tests/data/", $name, ".bin")),
            text: include_str!(concat!("../../tests/data/", $name, ".txt")),
            missed: $missed,
        }
    };
}

pub(super) const PAGES: &[Page] = &[
    page!("page-1-cpu1", 1, Missed::None),
    page!("page-2-cpu1", 1, Missed::None),
    page!("page-3-cpu1", 1, Missed::Count(7_365)),
    page!("page-4-cpu0", 0, Missed::Unknown),
];

/// A decoder of all events that were recorded.
pub(super) fn decoder() -> Decoder {
    let mut decoder = Decoder::new(layout());
    for (system, text) in FORMATS {
        decoder.register(system, &EventFormat::parse(text).unwrap()).unwrap();
    }
    decoder
}

macro_rules! formats {
    ($($system:literal: $($event:literal)*;)*) => {
        &[$($(
            ($system, include_str!(concat!("../../tests/data/events/", $system, "/", $event, "/format"))),
        )*)*]
    };
}

const FORMATS: &[(&str, &str)] = formats! {
    "csd": "csd_queue_cpu";
    "exceptions": "page_fault_kernel" "page_fault_user";
    "ipi": "ipi_send_cpu" "ipi_send_cpumask";
    "irq": "irq_handler_entry" "irq_handler_exit" "softirq_entry" "softirq_exit";
    "irq_vectors": "call_function_entry" "call_function_exit" "call_function_single_entry" "call_function_single_exit" "irq_work_entry" "irq_work_exit" "local_timer_entry" "local_timer_exit" "reschedule_entry" "reschedule_exit";
    "nmi": "nmi_handler";
    "sched": "sched_migrate_task" "sched_switch" "sched_wakeup";
    "signal": "signal_deliver" "signal_generate";
    "workqueue": "workqueue_execute_end" "workqueue_execute_start";
};

#[test]
fn recorded_pages_say_what_the_kernel_printed() {
    let decoder = decoder();
    for page in PAGES {
        let mut events = Vec::new();
        let summary = decoder.decode(page.bytes, page.cpu, &mut events).unwrap();
        assert_eq!((summary.unknown_events, summary.backwards), (0, 0));
        assert_eq!(summary.missed, page.missed);
        let lines: Vec<&str> = page.text.lines().collect();
        assert_eq!(events.len(), lines.len());
        for (event, line) in events.iter().zip(lines) {
            assert_same(event, line);
        }
    }
}
