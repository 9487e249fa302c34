//! Which events whylate asks the kernel for.
//!
//! A kernel offers a part of these, by architecture and configuration; what is not there is left
//! out. `Decoder::register` knows every one of them.

/// Events to record on the measured CPUs: whatever can take a CPU away from a thread.
#[must_use]
pub fn wanted_on_measured() -> &'static [(&'static str, &'static str)] {
    &[
        ("irq_vectors", "local_timer_entry"),
        ("irq_vectors", "local_timer_exit"),
        ("irq_vectors", "reschedule_entry"),
        ("irq_vectors", "reschedule_exit"),
        ("irq_vectors", "call_function_entry"),
        ("irq_vectors", "call_function_exit"),
        ("irq_vectors", "call_function_single_entry"),
        ("irq_vectors", "call_function_single_exit"),
        ("irq_vectors", "irq_work_entry"),
        ("irq_vectors", "irq_work_exit"),
        ("irq_vectors", "x86_platform_ipi_entry"),
        ("irq_vectors", "x86_platform_ipi_exit"),
        ("irq_vectors", "spurious_apic_entry"),
        ("irq_vectors", "spurious_apic_exit"),
        ("irq_vectors", "error_apic_entry"),
        ("irq_vectors", "error_apic_exit"),
        ("irq_vectors", "thermal_apic_entry"),
        ("irq_vectors", "thermal_apic_exit"),
        ("irq_vectors", "threshold_apic_entry"),
        ("irq_vectors", "threshold_apic_exit"),
        ("irq_vectors", "deferred_error_apic_entry"),
        ("irq_vectors", "deferred_error_apic_exit"),
        ("irq", "irq_handler_entry"),
        ("irq", "irq_handler_exit"),
        ("irq", "softirq_entry"),
        ("irq", "softirq_exit"),
        ("sched", "sched_switch"),
        ("sched", "sched_wakeup"),
        ("sched", "sched_migrate_task"),
        ("exceptions", "page_fault_user"),
        ("exceptions", "page_fault_kernel"),
        ("nmi", "nmi_handler"),
        ("signal", "signal_generate"),
        ("signal", "signal_deliver"),
        ("workqueue", "workqueue_execute_start"),
        ("workqueue", "workqueue_execute_end"),
    ]
}

/// Events to record on all CPUs: whatever one CPU sends to another.
#[must_use]
pub fn wanted_elsewhere() -> &'static [(&'static str, &'static str)] {
    &[
        ("ipi", "ipi_send_cpu"),
        ("ipi", "ipi_send_cpumask"),
        ("csd", "csd_queue_cpu"),
        ("sched", "sched_wakeup"),
    ]
}

/// An event of messages on their way, and what the kernel should leave out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnTheWay {
    /// `net`, `sock`, ...
    pub system: &'static str,
    /// Its name.
    pub event: &'static str,
    /// Only of threads that are looked at: whoever sets it up filters by `common_pid`. Other threads
    /// make far too many of these.
    pub by_thread: bool,
    /// The kernel's filter (the event's `filter` file), where not all are of use: sockets of other
    /// families, and calls that found nothing, which a thread that spins makes by the million.
    pub filter: Option<&'static str>,
}

/// Events to record on all CPUs that a message may touch, so that it can be followed from the call
/// that sends it to the call that reads it. Needs those of [`wanted_on_measured`] beside it only
/// where causes are looked for.
#[must_use]
pub fn wanted_on_the_way() -> &'static [OnTheWay] {
    const fn all(system: &'static str, event: &'static str) -> OnTheWay {
        OnTheWay { system, event, by_thread: false, filter: None }
    }
    const fn some(system: &'static str, event: &'static str, filter: &'static str) -> OnTheWay {
        OnTheWay { system, event, by_thread: false, filter: Some(filter) }
    }
    const fn call(event: &'static str) -> OnTheWay {
        OnTheWay { system: "syscalls", event, by_thread: true, filter: None }
    }
    const OF_IP: &str = "family == 2 || family == 10";
    // What is read from the error queue (MSG_ERRQUEUE), stamps among it, is no message.
    const FOUND: &str = "(family == 2 || family == 10) && ret >= 0 && !(flags & 8192)";
    // A reader that busy-polls its card polls for nothing by the million.
    const THAT_TOOK: &str = "work > 0";
    const ALL: &[OnTheWay] = &[
        call("sys_enter_sendto"),
        call("sys_enter_sendmsg"),
        call("sys_enter_sendmmsg"),
        call("sys_enter_write"),
        call("sys_enter_writev"),
        all("tcp", "tcp_sendmsg_locked"),
        all("net", "net_dev_queue"),
        all("qdisc", "qdisc_enqueue"),
        all("qdisc", "qdisc_dequeue"),
        all("net", "net_dev_start_xmit"),
        all("net", "netif_receive_skb"),
        all("tcp", "tcp_probe"),
        some("sock", "sk_data_ready", OF_IP),
        some("sock", "sock_send_length", OF_IP),
        some("sock", "sock_recv_length", FOUND),
        all("skb", "skb_copy_datagram_iovec"),
        all("udp", "udp_fail_queue_rcv_skb"),
        all("skb", "kfree_skb"),
        all("skb", "consume_skb"),
        some("napi", "napi_poll", THAT_TOOK),
        all("irq", "irq_handler_entry"),
        all("irq", "irq_handler_exit"),
        all("irq", "softirq_entry"),
        all("irq", "softirq_exit"),
        all("sched", "sched_switch"),
        all("sched", "sched_wakeup"),
    ];
    ALL
}
