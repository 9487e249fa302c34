//! Any bytes as a page of the kernel's trace buffer, under the formats of a real kernel.
//!
//! Good seeds: `crates/whylate-trace/tests/data/*.bin`.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use whylate_model::CpuId;
use whylate_trace::Decoder;
use whylate_trace::format::EventFormat;
use whylate_trace::page::{PageLayout, Records};

macro_rules! formats {
    ($($system:literal: $($event:literal)*;)*) => {
        &[$($((
            $system,
            include_str!(concat!(
                "../../crates/whylate-trace/tests/data/events/", $system, "/", $event, "/format"
            )),
        ),)*)*]
    };
}

const HEADER_PAGE: &str = include_str!("../../crates/whylate-trace/tests/data/events/header_page");
const FORMATS: &[(&str, &str)] = formats! {
    "csd": "csd_queue_cpu";
    "exceptions": "page_fault_kernel" "page_fault_user";
    "ipi": "ipi_send_cpu" "ipi_send_cpumask";
    "irq": "irq_handler_entry" "irq_handler_exit" "softirq_entry" "softirq_exit";
    "irq_vectors": "call_function_entry" "call_function_exit" "call_function_single_entry" "call_function_single_exit" "irq_work_entry" "irq_work_exit" "local_timer_entry" "local_timer_exit" "reschedule_entry" "reschedule_exit";
    "napi": "napi_poll";
    "net": "net_dev_queue" "net_dev_start_xmit" "netif_receive_skb";
    "nmi": "nmi_handler";
    "qdisc": "qdisc_dequeue" "qdisc_enqueue";
    "sched": "sched_migrate_task" "sched_switch" "sched_wakeup";
    "signal": "signal_deliver" "signal_generate";
    "skb": "consume_skb" "kfree_skb" "skb_copy_datagram_iovec";
    "sock": "sk_data_ready" "sock_recv_length" "sock_send_length";
    "syscalls": "sys_enter_sendto";
    "tcp": "tcp_probe" "tcp_sendmsg_locked";
    "workqueue": "workqueue_execute_end" "workqueue_execute_start";
};

static LAYOUT: LazyLock<PageLayout> =
    LazyLock::new(|| PageLayout::parse(HEADER_PAGE).expect("invariant: a recorded text"));

static DECODER: LazyLock<Decoder> = LazyLock::new(|| {
    let mut decoder = Decoder::new(*LAYOUT);
    for (system, text) in FORMATS {
        let format = EventFormat::parse(text).expect("invariant: a recorded text");
        decoder.register(system, &format).expect("invariant: a recorded event");
    }
    decoder
});

fuzz_target!(|page: &[u8]| {
    let mut events = Vec::new();
    let result = DECODER.decode(page, CpuId(0), &mut events);
    // The smallest record has 8 bytes.
    assert!(events.len() <= page.len() / 8);
    if let Ok(summary) = result {
        assert_eq!(summary.events, events.len());
        let records = Records::new(&LAYOUT, page).expect("the header was read before");
        assert_eq!(records.filter(Result::is_ok).count(), summary.events + summary.unknown_events);
    }
    // What a cut page gives is what the whole one gives first.
    let mut fewer = Vec::new();
    let _ = DECODER.decode(&page[..page.len() / 2], CpuId(0), &mut fewer);
    assert_eq!(fewer, events[..fewer.len()]);
});
