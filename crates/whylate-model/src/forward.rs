//! What a forwarder did.

use serde::{Deserialize, Serialize};

use crate::reflect::Residence;
use crate::units::{CpuId, Nanos};
use crate::warning::Warning;

/// Version of the format of this account.
pub const FORWARD_VERSION: u32 = 2;

/// What [`ForwardPort::copies`] says of a socket.
const SOCKETS: &str = "sockets";

/// What a forwarder did from its start to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Forward {
    /// [`FORWARD_VERSION`] when it was made.
    pub format_version: u32,
    /// What carried the frames: `af_packet`, `af_xdp`, `dpdk`; `udp` for datagrams of sockets, which are
    /// what is called frames here, with the bytes that they carry.
    pub backend: String,
    /// How it waited for frames.
    pub wait: String,
    /// Whether busy-polling did anything, port by port; none where it was not asked for.
    pub busy_polling: Option<String>,
    /// What was stamped: `every`, `sampled:64`, `off`.
    pub stamps: String,
    /// What the stamps cost; none without them.
    pub stamping: Option<Stamping>,
    /// Ticks of the counter in a second, whatever clock the CPU ran at: they are no cycles. 0 where an
    /// older whylate did not tell.
    #[serde(default)]
    pub ticks_hz: f64,
    /// Busy work for each frame, on purpose.
    #[serde(rename = "work_ns")]
    pub work: Nanos,
    /// When it began to forward, nanoseconds since 1970.
    pub since_ns: u64,
    /// How long it forwarded.
    #[serde(rename = "lasted_ns")]
    pub lasted: Nanos,
    /// Why it ended.
    pub ended: ForwardEnd,
    /// The two ports, as they were named.
    pub ports: Vec<ForwardPort>,
    /// From the first port to the second, and back.
    pub directions: Vec<ForwardDirection>,
    /// The threads that forwarded: one for both directions, or one for each.
    pub threads: Vec<ForwardThread>,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
}

/// Why a forwarder ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ForwardEnd {
    /// It was stopped.
    Stopped,
    /// Its time was over.
    Duration,
    /// A port went away or failed.
    PortLost,
    /// A thread of it panicked.
    ThreadFailed,
    /// It had not when this was written: it was killed after that, or still goes on.
    GoingOn,
}

/// What the stamps cost, measured before the first frame.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stamping {
    /// What each burst pays, in nanoseconds.
    pub per_burst_ns: f64,
    /// What each frame of it pays on top, in nanoseconds: 0 where only bursts are stamped.
    pub per_frame_ns: f64,
    /// Planted bursts behind these numbers.
    pub bursts: u64,
}

/// A port of a forwarder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForwardPort {
    /// The interface's name when it was opened; of a socket where clients reach it, or the server.
    pub interface: String,
    /// Its number; 0 of a socket.
    pub index: u32,
    /// Its MTU in bytes; 0 of a socket.
    #[serde(rename = "mtu_bytes")]
    pub mtu: u32,
    /// Its queues that were used; empty where one socket heard all of them.
    pub queues: Vec<u32>,
    /// Frames in a ring of a queue; 0 of a socket, whose queue has room for bytes.
    pub ring: u32,
    /// Who copied between card and ring: `copy`, `zero-copy`; `sockets` where there are neither.
    pub copies: String,
    /// Where a program took frames out of the kernel's way; none where the kernel saw them as well.
    pub attachment: Option<String>,
    /// What was asked for and not to be had.
    pub instead: Vec<String>,
    /// How often it went down and forwarding went on.
    pub downs: u64,
    /// What its rings dropped, as the kernel counts it.
    pub drops: Vec<RingDrops>,
    /// What the interface counted meanwhile; none where it was gone.
    pub interface_counts: Option<InterfaceCounts>,
}

impl ForwardPort {
    /// Is it a socket? Then it has neither an interface nor rings of its own.
    #[must_use]
    pub fn is_socket(&self) -> bool {
        self.copies == SOCKETS
    }
}

/// What a ring dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RingDrops {
    /// The queue.
    pub queue: u32,
    /// `receive`, `send`, `fill` or `completion`.
    pub ring: String,
    /// The kernel's name of the counter.
    pub counter: String,
    /// How many.
    pub count: u64,
    /// Are these frames? Otherwise they are occasions, which say why frames were lost that another
    /// counter has.
    pub frames: bool,
}

/// What an interface counted while frames were forwarded (`/proc/net/dev`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterfaceCounts {
    /// Received.
    pub received: u64,
    /// Dropped on receiving, those missed by the card among them.
    pub receive_dropped: u64,
    /// Received damaged.
    pub receive_errors: u64,
    /// Sent.
    pub sent: u64,
    /// Dropped on sending.
    pub send_dropped: u64,
    /// Not sent for an error.
    pub send_errors: u64,
}

impl InterfaceCounts {
    /// What was counted since `before`. A counter that was set back counts as nothing.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        let past = u64::saturating_sub;
        Self {
            received: past(self.received, before.received),
            receive_dropped: past(self.receive_dropped, before.receive_dropped),
            receive_errors: past(self.receive_errors, before.receive_errors),
            sent: past(self.sent, before.sent),
            send_dropped: past(self.send_dropped, before.send_dropped),
            send_errors: past(self.send_errors, before.send_errors),
        }
    }
}

/// One direction of a forwarder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForwardDirection {
    /// The interface that frames came by.
    pub from: String,
    /// The interface that they left by.
    pub to: String,
    /// Frames received, and their bytes without check sequence.
    pub received: u64,
    /// Bytes of them.
    pub received_bytes: u64,
    /// Frames handed over to the sending ring, without those that were taken back from it or still waited
    /// there at the end.
    pub forwarded: u64,
    /// Bytes of them.
    pub forwarded_bytes: u64,
    /// Frames that were still in the sending ring at the end: 0 until then.
    #[serde(default)]
    pub waiting: u64,
    /// Frames dropped because the sending ring was full.
    pub ring_full: u64,
    /// Frames dropped because they are longer than the other side sends.
    pub too_long: u64,
    /// Frames dropped because they are shorter than a header.
    pub runts: u64,
    /// Frames dropped because the kernel refused to send them, or the link was down: they were taken back
    /// from the sending ring.
    #[serde(default)]
    pub refused: u64,
    /// Bursts that had frames.
    pub bursts: u64,
    /// Occasions on which the kernel refused to send, and why the first time.
    pub refusals: u64,
    /// Why the first of them.
    pub first_refusal: Option<String>,
    /// From when a frame was seen in the ring to when it was handed over to the other port's; none
    /// without stamps. Of a burst at which the kernel refused to send there are no times; what waited in
    /// the ring and was taken back later has some.
    pub residence: Option<Residence>,
    /// The same from when the kernel had it; none where the ring does not tell.
    pub kernel_residence: Option<Residence>,
    /// Stamps of the kernel that lay behind the handing over, or seconds before it: in no count.
    pub kernel_stamps_unfit: u64,
    /// Ticks of the counter; none without stamps.
    pub ticks: Option<ForwardTicks>,
}

impl ForwardDirection {
    /// Is every frame that was received accounted for?
    #[must_use]
    pub fn closes(&self) -> bool {
        let lost = self.ring_full + self.too_long + self.runts + self.refused;
        self.received == self.forwarded + self.waiting + lost
    }
}

/// Ticks of the counter that frames of one direction took, at [`Forward::ticks_hz`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForwardTicks {
    /// Mean of all.
    pub all: TicksPerFrame,
    /// By the size of the burst, smallest first; sizes that did not occur are left out.
    pub by_burst: Vec<TicksPerFrame>,
}

/// Mean ticks of a frame in bursts of some size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TicksPerFrame {
    /// Bursts of so many frames at least.
    pub from: u32,
    /// And at most.
    pub to: u32,
    /// How many bursts.
    pub bursts: u64,
    /// Their frames.
    pub frames: u64,
    /// Ticks for a frame from the end of what was done before, or of a look that found nothing, to
    /// when it was seen.
    #[serde(rename = "receive_ticks")]
    pub receive: f64,
    /// From there to when it was about to be handed over: copying, and work on purpose.
    #[serde(rename = "work_ticks")]
    pub work: f64,
    /// From there to when the kernel had been called.
    #[serde(rename = "transmit_ticks")]
    pub transmit: f64,
}

/// A thread that forwarded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForwardThread {
    /// The CPU that it was pinned to.
    pub cpu: Option<CpuId>,
    /// Looks at rings.
    pub looks: u64,
    /// Looks that found nothing.
    pub in_vain: u64,
    /// Share of its time in bursts; the rest went to looks that found nothing. None without stamps.
    #[serde(rename = "busy_share")]
    pub busy: Option<f64>,
}
