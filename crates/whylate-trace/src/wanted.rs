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
