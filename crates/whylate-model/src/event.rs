//! Kernel events on the same timeline as the gaps.

use serde::{Deserialize, Serialize};

use crate::units::{CpuId, Pid, Ticks};

/// One kernel event, stamped by the kernel with the counter that the gaps are stamped with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// When.
    pub ticks: Ticks,
    /// The CPU whose buffer held the event.
    pub cpu: CpuId,
    /// The thread that was current when the event was recorded (`common_pid`).
    pub pid: Pid,
    /// What.
    pub kind: EventKind,
}

/// What happened. Names follow the kernel's tracepoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum EventKind {
    /// `irq_vectors:NAME_entry`.
    VectorEntry {
        /// `local_timer`, `reschedule`, `call_function_single`, ...
        name: String,
        /// Vector number.
        vector: i32,
    },
    /// `irq_vectors:NAME_exit`.
    VectorExit {
        /// As in the entry.
        name: String,
        /// Vector number.
        vector: i32,
    },
    /// `irq:irq_handler_entry`.
    HandlerEntry {
        /// Interrupt number.
        irq: i32,
        /// Name of the handler, as in /proc/interrupts.
        name: String,
    },
    /// `irq:irq_handler_exit`.
    HandlerExit {
        /// Interrupt number.
        irq: i32,
    },
    /// `irq:softirq_entry`.
    SoftirqEntry {
        /// Which.
        vector: Softirq,
    },
    /// `irq:softirq_exit`.
    SoftirqExit {
        /// Which.
        vector: Softirq,
    },
    /// `sched:sched_switch`.
    Switch {
        /// The thread that left the CPU.
        from: Task,
        /// It left still runnable: preempted or yielded rather than blocked.
        from_runnable: bool,
        /// The thread that got the CPU.
        to: Task,
    },
    /// `sched:sched_wakeup`, recorded where the waker ran.
    Wakeup {
        /// The thread that was woken.
        task: Task,
        /// The CPU it was put on.
        target: CpuId,
    },
    /// `sched:sched_migrate_task`.
    Migrate {
        /// The thread that was moved.
        task: Task,
        /// From.
        from: CpuId,
        /// To.
        to: CpuId,
    },
    /// `exceptions:page_fault_user` and `page_fault_kernel`. The kernel has no exit event.
    PageFault {
        /// Raised in user mode.
        user: bool,
        /// Faulting address.
        address: u64,
        /// Instruction that faulted.
        ip: u64,
    },
    /// `nmi:nmi_handler`, recorded at the END of the handler.
    Nmi {
        /// How long the handler took, in the kernel's nanoseconds.
        duration_ns: i64,
    },
    /// `signal:signal_generate`.
    SignalGenerate {
        /// Number of the signal.
        signal: i32,
        /// Target.
        pid: Pid,
        /// Name of the target.
        comm: String,
    },
    /// `signal:signal_deliver`.
    SignalDeliver {
        /// Number of the signal.
        signal: i32,
    },
    /// `workqueue:workqueue_execute_start`.
    WorkStart {
        /// Address of the function.
        function: u64,
    },
    /// `workqueue:workqueue_execute_end`.
    WorkEnd {
        /// Address of the function.
        function: u64,
    },
    /// `ipi:ipi_send_cpu`, `ipi:ipi_send_cpumask`: recorded where the sender ran.
    IpiSend {
        /// The CPUs it was sent to.
        targets: Vec<CpuId>,
        /// Address that sent it.
        callsite: u64,
        /// Function to run there, 0 for a plain reschedule.
        callback: u64,
    },
    /// `csd:csd_queue_cpu`: a function call queued for another CPU.
    CallQueued {
        /// The CPU it was queued for.
        target: CpuId,
        /// Address that queued it.
        callsite: u64,
        /// Function to run there.
        function: u64,
    },
}

/// A thread as the scheduler's events describe it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Task {
    /// Thread id; 0 is the idle thread.
    pub pid: Pid,
    /// Name, at most 15 bytes.
    pub comm: String,
    /// The kernel's priority: -1 deadline, 0-98 real-time, 100-139 ordinary.
    pub prio: i32,
}

/// Softirq vectors in the kernel's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the kernel's own names")]
pub enum Softirq {
    Hi,
    Timer,
    NetTx,
    NetRx,
    Block,
    IrqPoll,
    Tasklet,
    Sched,
    Hrtimer,
    Rcu,
    Unknown(u32),
}

impl Softirq {
    /// From the number in the event.
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        match number {
            0 => Self::Hi,
            1 => Self::Timer,
            2 => Self::NetTx,
            3 => Self::NetRx,
            4 => Self::Block,
            5 => Self::IrqPoll,
            6 => Self::Tasklet,
            7 => Self::Sched,
            8 => Self::Hrtimer,
            9 => Self::Rcu,
            other => Self::Unknown(other),
        }
    }
    /// The number in the event.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            Self::Hi => 0,
            Self::Timer => 1,
            Self::NetTx => 2,
            Self::NetRx => 3,
            Self::Block => 4,
            Self::IrqPoll => 5,
            Self::Tasklet => 6,
            Self::Sched => 7,
            Self::Hrtimer => 8,
            Self::Rcu => 9,
            Self::Unknown(number) => number,
        }
    }

    /// The kernel's name in small letters: `net_rx`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hi => "hi",
            Self::Timer => "timer",
            Self::NetTx => "net_tx",
            Self::NetRx => "net_rx",
            Self::Block => "block",
            Self::IrqPoll => "irq_poll",
            Self::Tasklet => "tasklet",
            Self::Sched => "sched",
            Self::Hrtimer => "hrtimer",
            Self::Rcu => "rcu",
            Self::Unknown(_) => "unknown",
        }
    }
}
