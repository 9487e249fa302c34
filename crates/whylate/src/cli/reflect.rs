//! `whylate reflect`, and the other end of a probe that whylate itself starts.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use whylate_model::{CpuId, Nanos, Printable};
use whylate_net::Speaks;
use whylate_net::lab::Role;
use whylate_port::{PortError, Transport, Wait};

use super::help::COMMON;
use super::{Findings, LinkArgs, SocketOptions};
use crate::parse::{self, Sched};

/// The server end for rtt
///
/// Answers every well-formed request of any number of clients; a reply is never longer than its
/// request. When it is ready it prints `listening on ADDRESS` on standard error. At the end it
/// reports what was answered, what was not and why, and the residence: its own share of each round
/// trip, from the counter's reading after the receiving system call to the one before the sending
/// one.
///
/// Example: whylate reflect --listen 198.18.0.2:11111 --transport tcp --wait epoll --cpus 1
///
/// Bypassing the socket: packet and xdp need an interface (--interface, or the address of one) and
/// answer questions for their address, which the kernel need not have. xdp-tx attaches a program to
/// the interface of --listen that answers before the network stack has seen a message: it has no
/// socket, no CPU of its own, no residence (it would see only the few instructions of the program),
/// and no account for the client. An interface that already runs a program is refused and left
/// alone; ours goes with this process, however that ends. Over a virtual link the sender's end has
/// to run a program, too, or have GRO on.
///
/// Example: whylate reflect --listen 198.51.100.7:4021 --transport xdp-tx
///
/// Cost: the CPU time of waiting: a whole CPU for spin and busy-poll, a wake-up per message
/// otherwise.
///
/// Limits: 512 connections and accounts of 256 clients at a time; more are turned away and counted.
/// Without --listen it can be reached from this machine only. It answers anybody who reaches it:
/// keep it off networks that you do not trust.
///
/// With --out it writes a run directory: counts, clients, the residence second by second, what
/// the kernel gave, and the machine. Ctrl-C and SIGTERM end it in the regular way.
#[expect(clippy::struct_excessive_bools, reason = "independent switches of a command line")]
#[derive(Debug, Clone, Args)]
pub(crate) struct Reflect {
    /// Address and port to listen at, or a path for unix; port 0 takes any that is free [default:
    /// 127.0.0.1:11111, or the server of the test network]
    #[arg(
        help = "ADDRESS:PORT, or a path for unix [127.0.0.1:11111]",
        long_help,
        help_heading = "Where it listens",
        long,
        value_name = "WHERE",
        conflicts_with = "feed"
    )]
    pub(crate) listen: Option<String>,
    /// Transport: udp, tcp or unix (sockets), packet (whole frames over AF_PACKET), xdp (whole
    /// frames over AF_XDP), dpdk (a device of DPDK, see --vdev) or xdp-tx (a program in the kernel
    /// answers)
    #[arg(
        help = "udp, tcp, unix, packet, xdp, dpdk or xdp-tx",
        long_help,
        help_heading = "Where it listens",
        long,
        alias = "port",
        value_name = "TRANSPORT",
        default_value = "udp",
        conflicts_with = "feed"
    )]
    pub(crate) transport: ReflectPort,
    /// How to wait: block, poll, epoll, busy-poll, spin or io-uring [default: block for one socket,
    /// epoll for tcp and lists]
    #[arg(
        help = "block, poll, epoll, busy-poll, spin or io-uring",
        long_help,
        help_heading = "Where it runs",
        long,
        value_name = "WAIT"
    )]
    pub(crate) wait: Option<Wait>,
    /// CPU to run on
    #[arg(
        help_heading = "Where it runs",
        long,
        alias = "cpu",
        value_name = "CPU",
        value_parser = parse::cpu
    )]
    pub(crate) cpus: Option<CpuId>,
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
    /// Idle timeout: end after this time without a message, or `never`
    #[arg(
        help = "End after this time without a message, or never",
        long_help,
        help_heading = "When it ends",
        long,
        value_name = "TIME",
        default_value = "60s",
        value_parser = parse::idle
    )]
    pub(crate) idle: Nanos,
    /// End when the first client has finished
    #[arg(help_heading = "When it ends", long)]
    pub(crate) once: bool,
    /// Protocol of the clients: raw (whylate's own) or sockperf
    #[arg(
        help = "Protocol of the clients: raw or sockperf",
        long_help,
        help_heading = "Where it listens",
        long,
        value_name = "NAME",
        default_value = "raw"
    )]
    pub(crate) protocol: Speaks,
    /// Listen inside this test network of `whylate lab`, at its server or --bed-end
    #[arg(
        help = "Listen inside this test network (whylate lab)",
        long_help,
        help_heading = "Where it listens",
        long,
        value_name = "NAME"
    )]
    pub(crate) bed: Option<String>,
    /// Listen at all sockets of this list, with lines like U:198.18.0.2:11111 and T:[::1]:11111
    #[arg(
        help = "Listen at all sockets of this list",
        long_help,
        help_heading = "Where it listens",
        long,
        value_name = "FILE"
    )]
    pub(crate) feed: Option<PathBuf>,
    /// Listen inside this part of the test network: client, device or server
    #[arg(
        help = "Listen at its client, device or server",
        long_help,
        help_heading = "Where it listens",
        long,
        value_name = "PART",
        default_value = "server",
        requires = "bed"
    )]
    pub(crate) bed_end: Role,
    /// What is asked of the sockets
    #[command(flatten)]
    pub(crate) socket: SocketOptions,
    /// What is asked of a port of whole frames
    #[command(flatten)]
    pub(crate) link: LinkArgs,
    /// End when standard input does: with whoever holds it.
    #[arg(long, hide = true)]
    pub(crate) until_eof: bool,
    /// Do not hold /dev/cpu_dma_latency at 0 (idle states stay as they are)
    #[arg(long, help_heading = COMMON)]
    pub(crate) no_dma_latency: bool,
    /// The counter's rate, as whoever starts this has found it
    #[arg(long, hide = true, value_name = "HZ", value_parser = parse::hertz)]
    pub(crate) counter_hz: Option<f64>,
    /// Tell on standard output, in place of what was done, when a spinning server did not run
    #[arg(long, hide = true)]
    pub(crate) tell_stalls: bool,
    /// Tell of every measured request through the shared memory that was left at this path
    #[arg(long, hide = true, value_name = "PATH", conflicts_with = "output")]
    pub(crate) tell_visits: Option<PathBuf>,
    /// Tell the kernel's stamps of each request and its answer, too
    #[arg(long, hide = true, requires = "tell_visits")]
    pub(crate) tell_stamps: bool,
    /// Also write this run directory, which `whylate report` can read while it runs, and after it
    /// was killed up to its last checkpoint (every 10s)
    #[arg(
        short = 'o',
        long = "out",
        alias = "output",
        value_name = "DIR",
        conflicts_with = "tell_stalls", help_heading = COMMON)]
    pub(crate) output: Option<PathBuf>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Findings::Text, help_heading = COMMON)]
    pub(crate) format: Findings,
    /// Print the whole report, not its first screen
    #[arg(long, help_heading = COMMON)]
    pub(crate) full: bool,
}

/// What carries the messages of a reflector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReflectPort {
    /// A port.
    Of(Transport),
    /// None: a program in the kernel answers.
    XdpTx,
}

impl fmt::Display for ReflectPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(transport) => transport.fmt(f),
            Self::XdpTx => f.pad("xdp-tx"),
        }
    }
}

impl FromStr for ReflectPort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "xdp-tx" {
            return Ok(Self::XdpTx);
        }
        let told = |_: PortError| {
            format!(
                "`{}` is not a transport: use udp, tcp, unix, packet, xdp, dpdk or xdp-tx",
                Printable(text)
            )
        };
        text.parse().map(Self::Of).map_err(told)
    }
}

/// The other end of the check-up's messages.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReflectStdin {
    /// CPU to run on.
    #[arg(long)]
    pub(crate) cpu: u32,
    /// How to wait for a message: block or spin.
    #[arg(long, default_value = "block")]
    pub(crate) wait: Wait,
}
