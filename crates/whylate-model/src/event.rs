//! Kernel events on the same timeline as the gaps.

mod device;

use serde::{Deserialize, Serialize};

use crate::units::{CpuId, Pid, Ticks};

pub use device::DeviceName;

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
    /// `syscalls:sys_enter_NAME` of a call that sends: `sendto`, `write`, ...
    SendCall,
    /// `tcp:tcp_sendmsg_locked`: a part of a message is put into a segment.
    TcpSend {
        /// Bytes of the message that are still to be taken.
        #[serde(rename = "length_bytes")]
        length: i32,
    },
    /// `net:net_dev_queue`: given to an interface's queueing discipline.
    NetQueue {
        /// Address of the buffer.
        skb: u64,
        /// The interface.
        device: DeviceName,
        /// Bytes of the frame.
        #[serde(rename = "length_bytes")]
        length: u32,
    },
    /// `qdisc:qdisc_enqueue`.
    QdiscIn {
        /// Address of the buffer.
        skb: u64,
    },
    /// `qdisc:qdisc_dequeue`.
    QdiscOut {
        /// Address of the buffer; 0 where there was none.
        skb: u64,
    },
    /// `net:net_dev_start_xmit`: given to the driver.
    NetXmit {
        /// Address of the buffer.
        skb: u64,
        /// The interface.
        device: DeviceName,
        /// Bytes of the frame.
        #[serde(rename = "length_bytes")]
        length: u32,
    },
    /// `net:netif_receive_skb`: taken by the receiving stack.
    NetReceive {
        /// Address of the buffer.
        skb: u64,
        /// The interface.
        device: DeviceName,
        /// Bytes without the link's header.
        #[serde(rename = "length_bytes")]
        length: u32,
    },
    /// `napi:napi_poll`, recorded at the END of the poll.
    NapiPoll {
        /// The interface.
        device: DeviceName,
        /// Frames that were taken.
        work: i32,
    },
    /// `tcp:tcp_probe`: a segment of an established connection is about to be processed.
    TcpSegment {
        /// Address of the buffer; kernels before 6.10 do not say.
        skb: Option<u64>,
        /// Address of the receiver's socket; kernels before 6.10 do not say.
        socket: Option<u64>,
        /// Bytes of data; 0 of a mere acknowledgement.
        #[serde(rename = "length_bytes")]
        length: u32,
    },
    /// `sock:sk_data_ready`: there is something in a socket's queue.
    SocketReady {
        /// Address of the socket.
        socket: u64,
        /// Its protocol.
        protocol: Protocol,
    },
    /// `sock:sock_send_length`: a call that sends is about to return.
    SocketSent {
        /// Address of the socket.
        socket: u64,
        /// Its protocol.
        protocol: Protocol,
        /// Bytes, or an error below 0.
        #[serde(rename = "length_bytes")]
        length: i32,
    },
    /// `sock:sock_recv_length`: a call that receives is about to return.
    SocketRead {
        /// Address of the socket.
        socket: u64,
        /// Its protocol.
        protocol: Protocol,
        /// Bytes, or an error below 0.
        #[serde(rename = "length_bytes")]
        length: i32,
    },
    /// `sock:sock_recv_length` of a call that only looked (`MSG_PEEK`) and left the message there.
    SocketPeeked {
        /// Address of the socket.
        socket: u64,
    },
    /// `skb:skb_copy_datagram_iovec`: copied to the reader.
    SkbCopied {
        /// Address of the buffer.
        skb: u64,
        /// Bytes.
        #[serde(rename = "length_bytes")]
        length: i32,
    },
    /// `udp:udp_fail_queue_rcv_skb`: a datagram found no room at its socket.
    UdpRefused {
        /// The kernel's error, below 0.
        error: i32,
        /// The port that it was sent to, where the kernel says.
        port: Option<u16>,
    },
    /// `skb:kfree_skb`: dropped.
    SkbFreed {
        /// Address of the buffer.
        skb: u64,
        /// The kernel's word for why, `NO_SOCKET`; empty where the kernel does not say.
        reason: String,
    },
    /// `skb:consume_skb`: freed after it had served.
    SkbConsumed {
        /// Address of the buffer.
        skb: u64,
    },
}

/// What a socket speaks, as far as messages are told apart by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// A stream of bytes over IP.
    Tcp,
    /// Datagrams over IP.
    Udp,
    /// Anything else, over IP or not.
    Other,
}

impl Protocol {
    /// From the kernel's numbers of the address family and of the protocol.
    #[must_use]
    pub fn from_numbers(family: u64, protocol: u64) -> Self {
        match (family, protocol) {
            (2 | 10, 6) => Self::Tcp,
            (2 | 10, 17) => Self::Udp,
            _ => Self::Other,
        }
    }

    /// Its word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Other => "other",
        }
    }

    /// From its word.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Tcp, Self::Udp, Self::Other].into_iter().find(|known| known.name() == name)
    }
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
    /// One that has no name here, by its number.
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
