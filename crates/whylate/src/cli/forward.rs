//! `whylate forward`.

use std::path::PathBuf;

use clap::Args;
use whylate_model::{CpuId, Nanos};
use whylate_net::forward::Stamps;
use whylate_port::{Transport, Wait};

use super::Findings;
use super::dpdk::MemoryArgs;
use super::help::COMMON;
use crate::parse::{self, Sched};

/// Port forwarder: frames or datagrams between two ports, and how long each stayed
///
/// What comes in on one interface is sent on by the other, in both directions, with no byte
/// changed. It polls rings without sleeping, copies bursts from ring to ring, and prints
/// `forwarding between A and B` on standard error when it is ready. At the end it reports, for each
/// direction, the outcome of every frame, how long frames stayed (from when they were seen in one
/// ring to when they were handed to the other), what a frame cost in ticks of the counter for
/// receiving, work and transmitting, and how many frames each ring or interface lost.
///
/// Example: whylate forward eth1 eth2 --transport xdp --cpus 2,3 --duration 60s
///
/// With --transport udp it carries datagrams from clients to one server and back, through ordinary
/// sockets and without a capability: clients send to A, and B is the server. Up to 256 clients at a
/// time have their own socket towards the server, so that each gets its own answers; a burst takes
/// one system call. Bytes are those of the payload. A datagram stays from when it was read from one
/// socket to when it was handed to the other; the time in the kernel's stacks on both sides, and in
/// the receiving socket, is not included. It can sleep: --wait poll or epoll.
///
/// Example: whylate forward 192.0.2.1:4100 198.51.100.7:11111 --transport udp --wait poll
///
/// Cost: a whole CPU for each of --cpus, or one, unless it sleeps. The cost of timestamps per burst
/// and per frame is measured before the first frame and printed.
///
/// Limits: with packet this machine sees the frames as well and may answer or forward them itself;
/// with xdp it receives nothing on these interfaces, and their drivers leave VLAN tags in frames
/// until the end (rx-vlan-offload off); tags that the sender of a virtual link keeps beside frames
/// are lost even so. The time that a frame waited in the receiving ring before it was seen is not
/// included. Frames that were put together from several on their way (GRO, TSO) are too long, and
/// counted; checksums that a sender on this machine left to its interface are never finished:
/// between network namespaces switch both off at the senders (`ethtool -K NAME tx off`). Frames in
/// the receiving rings at the end are not counted; those still in the sending rings are counted
/// separately. With udp loops are not probed for: only an address that leads directly back to the
/// forwarder is refused. How often the server's machine answered that the server is gone (ICMP) is
/// reported; that a client is gone cannot be known. It forwards whatever arrives: keep it off
/// networks that you do not trust.
///
/// With --out it writes a run directory: counts, the residence second by second (or by
/// --interval) with intervals, and the machine. Ctrl-C and SIGTERM end it in the regular way.
#[derive(Debug, Clone, Args)]
pub(crate) struct Forward {
    /// One interface, or a DPDK device (net_memif0,role=server or 0000:03:00.0); with udp the
    /// address that clients send to: 127.0.0.1:4100
    #[arg(help = "Interface or DPDK device; with udp 127.0.0.1:4100", long_help, value_name = "A")]
    pub(crate) first: String,
    /// The other one; with udp the server: 127.0.0.1:4021
    #[arg(value_name = "B")]
    pub(crate) second: String,
    /// Transport: packet, xdp or dpdk for frames, udp for datagrams
    #[arg(
        help = "packet, xdp or dpdk; udp for datagrams",
        long_help,
        help_heading = "How to forward",
        long,
        alias = "port",
        value_name = "TRANSPORT",
        default_value = "packet"
    )]
    pub(crate) transport: Transport,
    /// CPU of one thread for both directions, or two CPUs for one each: 1 or 1,2
    #[arg(
        help = "CPU for both directions, or one for each: 1 or 1,2",
        long_help,
        help_heading = "Where it runs",
        long,
        value_name = "CPUS",
        value_delimiter = ',',
        value_parser = parse::cpu
    )]
    pub(crate) cpus: Vec<CpuId>,
    /// How to wait for frames: spin or busy-poll; for datagrams also poll or epoll
    #[arg(
        help = "spin or busy-poll; with udp poll or epoll, too",
        long_help,
        help_heading = "How to forward",
        long,
        value_name = "WAIT",
        default_value = "spin"
    )]
    pub(crate) wait: Wait,
    /// End after this time [default: until Ctrl-C]
    #[arg(
        help_heading = "What to record",
        long,
        value_name = "TIME",
        value_parser = parse::measuring_time
    )]
    pub(crate) duration: Option<Nanos>,
    /// Scheduling policy: other or fifo:1-98
    #[arg(
        help_heading = "Where it runs",
        long,
        alias = "fifo",
        value_name = "POLICY",
        num_args = 0..=1,
        default_value = "other",
        default_missing_value = "fifo:50",
        value_parser = parse::sched
    )]
    pub(crate) sched: Sched,
    /// Run inside this test network of `whylate lab`, in its device between to-client and to-server; nothing else may join them (`lab up --kind open`)
    #[arg(
        help = "Run inside this test network (lab up --kind open)",
        long_help,
        help_heading = "Where it runs",
        long,
        value_name = "NAME"
    )]
    pub(crate) bed: Option<String>,
    /// Queues of both interfaces to use [default: all of them]
    #[arg(
        help = "Queues of both interfaces to use [all]",
        long_help,
        help_heading = "How to forward",
        long,
        value_name = "LIST",
        value_delimiter = ','
    )]
    pub(crate) queues: Vec<u32>,
    /// Frames in each ring [default: 2048]
    #[arg(help_heading = "How to forward", long, value_name = "FRAMES")]
    pub(crate) ring: Option<u32>,
    /// Length of the intervals in the log, at most a second
    #[arg(
        help = "Length of the intervals in the log",
        long_help,
        help_heading = "What to record",
        long,
        value_name = "TIME",
        value_parser = parse::log_interval,
        default_value = "1s"
    )]
    pub(crate) interval: Nanos,
    /// The memory of DPDK
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    /// Timestamps: every (frame), sampled:N (one burst in N) or off (only counts)
    #[arg(
        help = "Timestamps: every, sampled:N or off",
        long_help,
        help_heading = "What to record",
        long,
        value_name = "WHAT",
        default_value = "every"
    )]
    pub(crate) stamps: Stamps,
    /// Keep the CPU busy for this time for each frame, as a network function with more to do would
    #[arg(
        help = "Keep the CPU busy for this time for each frame",
        long_help,
        help_heading = "How to forward",
        long,
        value_name = "TIME",
        default_value = "0s",
        value_parser = parse::work_of_frame
    )]
    pub(crate) work: Nanos,
    /// Do not hold /dev/cpu_dma_latency at 0 (idle states stay as they are)
    #[arg(long, help_heading = COMMON)]
    pub(crate) no_dma_latency: bool,
    /// Also write this run directory, which `whylate report` can read while it runs, and after it
    /// was killed up to its last checkpoint (every 10s)
    #[arg(short = 'o', long = "out", alias = "output", value_name = "DIR", help_heading = COMMON)]
    pub(crate) output: Option<PathBuf>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Findings::Text, help_heading = COMMON)]
    pub(crate) format: Findings,
    /// Print the whole report, not its first screen
    #[arg(long, help_heading = COMMON)]
    pub(crate) full: bool,
}
