//! `whylate forward`.

use std::path::PathBuf;

use clap::Args;
use whylate_model::{CpuId, Nanos};
use whylate_net::forward::Stamps;
use whylate_port::{Transport, Wait};

use super::Findings;
use super::dpdk::MemoryArgs;
use crate::parse;

/// A port forwarder: carries frames or datagrams between two ports, and reports how long each
/// stayed
///
/// What comes in on one interface leaves by the other, in both directions, with no byte changed. It
/// polls rings without sleeping, copies bursts from ring to ring, and prints `forwarding between A
/// and B` on standard error when it is ready. At the end it reports, for each direction, what
/// became of every frame, how long frames stayed (from when they were seen in one ring to when they
/// were handed to the other), what a frame cost in ticks of the counter for receiving, work and
/// transmitting, and which ring or interface lost how many.
///
/// Example: whylate forward eth1 eth2 --port xdp --cpus 2,3 --duration 60s
///
/// By udp it carries datagrams from clients to one server and back, through ordinary sockets and without a
/// capability: A is where clients reach it, B is the server. Up to 256 clients at a time have a socket
/// towards the server each, so that each gets its own answers; bursts take one system call. Bytes are those
/// that datagrams carry. How long one stayed is from when it was taken from one socket to when it was handed
/// over to the other; what the kernel's stacks took on both sides, and what it waited in the socket before,
/// is not in it. It may sleep there: --wait poll or epoll.
///
/// Example: whylate forward 192.0.2.1:4100 198.51.100.7:11111 --port udp --wait poll
///
/// Cost: a whole CPU for each of --cpus, or one, where it does not sleep. The stamps' cost for a burst and
/// for a frame is measured before the first frame and told.
///
/// Limits: by packet the host sees the frames as well and may answer or forward them itself; by xdp it
/// hears nothing on these interfaces, and their drivers leave VLAN tags in frames until it ends
/// (rx-vlan-offload off); what a virtual link's sender leaves beside frames is lost all the same. How long a
/// frame waited in the receiving ring before it was seen is not in how long it stayed. Frames put
/// together of several on their way (GRO, TSO) are too long and counted; checksums that a sender on this
/// machine left to its interface are never finished: between network namespaces switch both off at the
/// senders (`ethtool -K NAME tx off`). What lies in the receiving rings at the end is in no count; what
/// has not left the sending ones is counted apart. By udp there is no probe for what goes round: only what
/// would be sent to itself is refused; that a server is gone is told as often as its host answers so (ICMP),
/// that a client is gone is told by nobody. It forwards whatever comes: keep it off networks that
/// you do not trust.
///
/// With --output it has a run directory: its counts, the residence second by second (or by --interval) with
/// intervals, and the host. Ctrl-C and SIGTERM end it as its time does.
///
/// Exit status: 0 done, 1 when it could not forward, 2 usage, 4 when a port was lost or what was kept is
/// not trustworthy.
#[derive(Debug, Clone, Args)]
pub(crate) struct Forward {
    /// One interface, or a device of DPDK: net_memif0,role=server or 0000:03:00.0; by udp where clients
    /// reach it: 127.0.0.1:4100
    #[arg(value_name = "A")]
    pub(crate) first: String,
    /// The other one; by udp the server: 127.0.0.1:4021
    #[arg(value_name = "B")]
    pub(crate) second: String,
    /// What carries the frames: packet, xdp or dpdk; or datagrams: udp
    #[arg(long, value_name = "PORT", default_value = "packet")]
    pub(crate) port: Transport,
    /// Inside the device of this bed of `whylate lab`, between whose links to-client and to-server
    /// nothing else may be (`lab up --kind open`)
    #[arg(long, value_name = "NAME")]
    pub(crate) bed: Option<String>,
    /// How to look for frames: spin or busy-poll; for datagrams poll or epoll as well
    #[arg(long, value_name = "WAIT", default_value = "spin")]
    pub(crate) wait: Wait,
    /// CPU of one thread for both directions, or two CPUs for one each: 1 or 1,2
    #[arg(long, value_name = "CPUS", value_delimiter = ',', value_parser = parse::cpu)]
    pub(crate) cpus: Vec<CpuId>,
    /// Queues of both interfaces to use [default: all of them]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) queues: Vec<u32>,
    /// Frames in each ring [default: 2048]
    #[arg(long, value_name = "FRAMES")]
    pub(crate) ring: Option<u32>,
    /// Length of the intervals that its log has, a second at most
    #[arg(long, value_name = "TIME", value_parser = parse::log_interval, default_value = "1s")]
    pub(crate) interval: Nanos,
    /// The memory of DPDK
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    /// End after so long [default: when it is told to]
    #[arg(long, value_name = "TIME", value_parser = parse::measuring_time)]
    pub(crate) duration: Option<Nanos>,
    /// What to stamp: every (frame), sampled:N (one burst in N) or off (counts alone)
    #[arg(long, value_name = "WHAT", default_value = "every")]
    pub(crate) stamps: Stamps,
    /// Keep the CPU busy for so long for each frame, as a function that does something would
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse::work_of_frame)]
    pub(crate) work: Nanos,
    /// Run under SCHED_FIFO
    #[arg(long, value_name = "PRIO", num_args = 0..=1, default_missing_value = "50",
          value_parser = parse::priority)]
    pub(crate) fifo: Option<u8>,
    /// Do not hold /dev/cpu_dma_latency at 0 (idle states stay as they are)
    #[arg(long)]
    pub(crate) no_dma_latency: bool,
    /// Keep what was done in this run directory, too: readable by `whylate report` while it goes on,
    /// and after it was killed up to its last checkpoint (every 10s)
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// How to print what was done
    #[arg(long, value_enum, default_value_t = Findings::Text)]
    pub(crate) format: Findings,
}
