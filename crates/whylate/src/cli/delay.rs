//! `whylate delay`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use whylate_model::{CpuId, Nanos};
use whylate_net::Speaks;
use whylate_net::delay::ProxyWay;
use whylate_net::schedule::Rate;
use whylate_port::{Transport, Wait};

use super::Findings;
use super::help::COMMON;
use crate::parse::{self, Sched};

/// Delay line: holds frames between two ports for a known time, and logs the truth
///
/// What comes in on one interface is sent on by the other, in both directions, with no byte
/// changed, each frame when its delay is over and not before, in the order of arrival. One thread
/// polls both ports without sleeping. Before the first frame it measures its own delay and error
/// and prints `delaying between A and B: base X, error Y` on standard error: without a delay a
/// frame stays for X, and 99 of 100 are sent no more than Y after they were due. Where the kernel
/// has netem, netem's error for the same delay is printed beside it.
///
/// Delays are constant (20us), drawn (uniform:5us..15us, normal:10us,1us, exponential:5us,20us) or
/// read from a file whose lines are a time since the start and a delay (schedule:FILE). Loss,
/// duplicates and reordering are drawn by --seed: with the same seed and the same frames, the same
/// frames are lost, doubled and reordered. Two values with a comma between them are for the
/// directions from A to B and back: --delay 20us,5us.
///
/// Example: whylate delay eth1 eth2 --transport xdp --delay 20us --cpus 3 -o truth
///
/// Commands: with --control PATH a Unix socket takes commands while it runs, a line each, answered
/// by one line: `delay 20us`, `delay back 5us`, `loss there 0.01`, `duplicate 0`, `reorder 0.001`,
/// `rate 1Gbit/s`, `show` (counts of frames, as JSON) and `stop`. What does not fit is refused with
/// the reason.
///
/// As a proxy: --proxy udp:127.0.0.1:4100=127.0.0.1:4021 carries datagrams (or tcp: the bytes of
/// connections) from clients to one server and back by the same rules, through ordinary sockets and
/// without root. Its error includes that of the kernel's network stack: use it to try things, not
/// as a reference for other instruments.
///
/// Cost: a whole CPU (a proxy that waits by poll sleeps), memory for the frames that arrive at
/// --fastest within the longest delay, and, with --out, up to 40 bytes of disk space per frame.
///
/// Limits: those of `whylate forward` on what a port sees. Frames that find no room are dropped and
/// counted; a delay that needs more room than there is, also one that is set later, is refused with
/// the room that there is.
#[derive(Debug, Clone, Args)]
pub(crate) struct Delay {
    /// One interface, or a DPDK device
    #[arg(value_name = "A", required_unless_present = "proxy", requires = "second")]
    pub(crate) first: Option<String>,
    /// The other one
    #[arg(value_name = "B")]
    pub(crate) second: Option<String>,
    /// How long to hold back
    #[arg(
        help = "How long: 20us, uniform:5us..15us; more: --help",
        long_help,
        help_heading = "What happens to frames",
        long = "delay",
        value_name = "DELAY[,BACK]",
        default_value = "0s"
    )]
    pub(crate) hold: String,
    /// Transport of the frames: packet, xdp or dpdk
    #[arg(
        help = "Transport of the frames: packet, xdp or dpdk",
        long_help,
        help_heading = "How to carry them",
        long,
        alias = "port",
        value_name = "TRANSPORT",
        default_value = "packet"
    )]
    pub(crate) transport: Transport,
    /// CPU to run on
    #[arg(
        help_heading = "Where it runs",
        long,
        alias = "cpu",
        value_name = "CPU",
        value_parser = parse::cpu
    )]
    pub(crate) cpus: Option<CpuId>,
    /// Draw delays evenly around --delay: from this much below it to this much above it
    #[arg(
        help = "Draw delays evenly, at most this far from --delay",
        long_help,
        help_heading = "What happens to frames",
        long,
        value_name = "TIME",
        value_parser = parse::duration
    )]
    pub(crate) jitter: Option<Nanos>,
    /// Share of frames to lose: 0.01 or 1%
    #[arg(
        help_heading = "What happens to frames",
        long,
        value_name = "SHARE[,BACK]",
        default_value = "0"
    )]
    pub(crate) loss: String,
    /// Share of frames to send twice
    #[arg(
        help_heading = "What happens to frames",
        long,
        value_name = "SHARE[,BACK]",
        default_value = "0"
    )]
    pub(crate) duplicate: String,
    /// Share of frames to send early, before those that arrived earlier
    #[arg(
        help = "Share of frames to send before earlier ones",
        long_help,
        help_heading = "What happens to frames",
        long,
        value_name = "SHARE[,BACK]",
        default_value = "0"
    )]
    pub(crate) reorder: String,
    /// Send no faster than this: 1Gbit/s, 800Mbit/s@L2 or 50kpps
    #[arg(
        help = "Send no faster: 1Gbit/s, 800Mbit/s@L2 or 50kpps",
        long_help,
        help_heading = "What happens to frames",
        long,
        value_name = "RATE[,BACK]"
    )]
    pub(crate) rate: Option<String>,
    /// Carry messages between sockets instead of frames: udp:LISTEN=TO or tcp:LISTEN=TO
    #[arg(
        help = "Carry messages: udp:LISTEN=TO or tcp:LISTEN=TO",
        long_help,
        help_heading = "How to carry them",
        long,
        value_name = "WAY",
        conflicts_with_all = ["first", "transport", "bed", "queues", "ring"]
    )]
    pub(crate) proxy: Option<ProxyWay>,
    /// End after this time [default: until Ctrl-C]
    #[arg(
        help_heading = "While it runs",
        long,
        value_name = "TIME",
        value_parser = parse::measuring_time
    )]
    pub(crate) duration: Option<Nanos>,
    /// Take commands at this Unix socket while it runs
    #[arg(help_heading = "While it runs", long, value_name = "PATH")]
    pub(crate) control: Option<PathBuf>,
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
    /// Run inside this test network of `whylate lab` (`lab up --kind open`), in its device, whose
    /// interfaces are to-client and to-server
    #[arg(
        help = "Run inside this test network (lab up --kind open)",
        long_help,
        help_heading = "Where it runs",
        long,
        value_name = "NAME"
    )]
    pub(crate) bed: Option<String>,
    /// How to wait for frames: spin or busy-poll; for messages: spin or poll [default: spin]
    #[arg(
        help = "spin or busy-poll; with --proxy spin or poll [spin]",
        long_help,
        help_heading = "How to carry them",
        long,
        value_name = "WAIT"
    )]
    pub(crate) wait: Option<Wait>,
    /// Highest rate of arrivals: with the longest delay it determines the room for frames in each
    /// direction [default: 1Mpps; 100kpps with --proxy]
    #[arg(
        help = "Highest rate of arrivals [1Mpps; --proxy 100kpps]",
        long_help,
        help_heading = "How to carry them",
        long,
        value_name = "RATE"
    )]
    pub(crate) fastest: Option<Rate>,
    /// Room for this many frames in each direction instead
    #[arg(
        help = "Room for frames in each direction",
        long_help,
        help_heading = "How to carry them",
        long,
        value_name = "FRAMES",
        conflicts_with = "proxy"
    )]
    pub(crate) capacity: Option<u32>,
    /// Queues of both interfaces to use [default: all of them]
    #[arg(
        help = "Queues of both interfaces to use [all]",
        long_help,
        help_heading = "How to carry them",
        long,
        value_name = "LIST",
        value_delimiter = ','
    )]
    pub(crate) queues: Vec<u32>,
    /// Frames in each ring [default: 2048]
    #[arg(help_heading = "How to carry them", long, value_name = "FRAMES")]
    pub(crate) ring: Option<u32>,
    /// Log when each frame arrived, was due and was sent (in the run directory)
    #[arg(
        help = "Log when each frame came, was due and left",
        long_help,
        help_heading = "What to record",
        long,
        value_enum,
        default_value_t = Truths::On
    )]
    pub(crate) truth: Truths,
    /// Protocol of the messages whose numbers are logged: raw (whylate's own) or sockperf
    #[arg(
        help = "Protocol of logged messages: raw or sockperf",
        long_help,
        help_heading = "What to record",
        long,
        value_name = "NAME",
        default_value = "raw"
    )]
    pub(crate) protocol: Speaks,
    /// Do not measure the error of the kernel's netem with the same delay
    #[arg(
        help = "Do not measure the error of the kernel's netem",
        long_help,
        help_heading = "What to record",
        long
    )]
    pub(crate) no_netem: bool,
    /// Random seed [default: drawn and recorded]
    #[arg(long, value_name = "N", help_heading = COMMON)]
    pub(crate) seed: Option<u64>,
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

/// Whether the truth of each frame is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Truths {
    /// Where there is a run directory.
    On,
    /// Only counts and distributions.
    Off,
}
