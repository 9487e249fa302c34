//! `whylate rtt`.

use std::net::SocketAddr;

use clap::Args;
use whylate_model::{CpuId, Nanos};
use whylate_net::schedule::Rate;

use super::flow::FlowWords;
use super::{Common, LinkArgs, RttAcross, RttBackends, RttBreakdown, SocketOptions};
use crate::arrivals::AskedArrivals;
use crate::parse::{self, Sched};

/// Request response time at a fixed rate, with every request accounted for
///
/// A client on its own CPU sends requests on a fixed schedule (open loop), whether or not earlier
/// ones were answered. It reports three times: service time (actual send to reply), response time
/// (due send to reply) and send delay (between the two sends). A server that stalls shows in the
/// response time of all requests that were due meanwhile, not in one service time.
///
/// Without a target the other end is a reflector that whylate starts on another CPU, over the
/// loopback interface or through a test network of `whylate lab`; with one it is `whylate reflect`
/// at that address. A server with a protocol of its own cannot answer: `whylate watch PORT` on its
/// machine shows where its requests spend their time.
///
/// Interruptions of the client and of its reflector are compared with the slow requests: causes
/// that struck them more than twice as often as the other ones, and as chance would, are named with
/// their lift. As root the kernel's trace names them; without it interruptions have no name.
///
/// Example: whylate rtt --rate 10kpps
///
/// Example: whylate rtt --rate 10kpps --arrivals poisson --duration 30s
///
/// Example: whylate rtt --runs 5 --duration 120s --warmup 30s -o five
///
/// Example: whylate rtt --bed lab --flow "load: rate=50kpps size=1400 one-way" --flow "back:
/// rate=1kpps back"
///
/// Example: whylate rtt 198.51.100.7:4021 --rate 1Gbit/s --size 512
///
/// Example: whylate rtt 198.51.100.7:4021 --transport xdp --interface eth0 --from 198.51.100.9
///
/// Example: whylate rtt --arrivals 'capture(market-open.pcapng)' --log-packets -o replayed
///
/// Example: whylate rtt --bed lab --compare-backends udp,packet,xdp --both-ends
///
/// Example: whylate rtt --bed lab --across --both-ways --transport packet --rate 50kpps
///
/// Example: whylate rtt --interface eth1 --across eth2 --from 198.18.0.1 --to 198.18.0.2 --transport xdp
///
/// Example: whylate rtt --wait block --breakdown --breakdown-cost --duration 30s
///
/// The first 64 lost, late, duplicate, reordered and foreign messages are kept in anomalies.pcapng
/// of the run directory, each with a comment. A closed loop (--arrivals closed) sends the next
/// request when the reply has come: it hides what happens between, and has no response times.
///
/// Bypassing the socket: --transport packet and --transport xdp write whole frames into rings shared with the
/// kernel, on the interface of --interface. They resolve the target's hardware address and answer
/// such questions themselves, so that an ordinary machine can be the other end. They need
/// CAP_NET_RAW, and xdp CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON. xdp cannot sleep for replies while
/// it sends on time: it waits by spin or busy-poll.
///
/// --compare-backends sends the same requests over several backends in turns, and reports what each
/// saves of the round trip against the first, with intervals. The first is measured twice in each
/// round, and nothing is claimed where it differs from itself by more than 3%. The other end spins
/// over UDP for all, so that one end's saving is measured; with --both-ends the reflector uses the
/// same backend, and both ends' is.
///
/// With --across the client has both ports of what is between them, and nobody answers: what leaves
/// by one comes back by the other, and the time is one way, by one clock. With --both-ways messages
/// go in the other direction as well, as a flow of their own, and a client that spins does all of
/// it on one thread.
///
/// With --breakdown each request is taken apart into parts that sum to the whole: from its due send
/// through stack, driver and wire to the other end and back. Kernel timestamps need no privilege;
/// tracepoints need root. What does not come is counted, two sources of one point are set beside
/// each other, and the mean composition is reported of all requests and of those above p99.9
/// (--slow). Without timestamps the trace is used alone, without the trace the timestamps; without
/// both only the total is reported. Timestamps are those of SO_TIMESTAMPING; BPF callbacks for them
/// (BPF_SOCK_OPS_TSTAMP) are not used.
///
/// Cost: the client's CPU is busy for the whole run, and the reflector's too where it spins; it
/// sends to the target only, at the requested rate, by default 1,000 requests a second.
/// --breakdown-cost measures what --breakdown costs.
///
/// The trace costs some 100 ns per event, and events of an end that shares a CPU with whylate's own
/// thread are read there: --no-trace leaves it out.
///
/// Limits: send and receive times are readings of the counter around system calls; a rate that the
/// client cannot hold is called saturated, and trust is then poor. Causes are looked for at up to
/// 100,000 requests a second; where whylate's own recording thread shares a CPU with an end, as on
/// a machine with two CPUs, at up to 20,000, and 5,000 with a trace. Both the client and a reflector
/// that whylate starts are watched; with another target the client only. Where that thread shares a
/// CPU with an end, histograms are written every ten seconds or at the end: a run that is killed
/// before that leaves none. --no-trace disturbs the ends least.
#[derive(Debug, Clone, Args)]
pub(crate) struct Rtt {
    /// Where a reflector listens: an address or a name with its port, or the path of a Unix socket
    #[arg(
        help = "Reflector: ADDRESS:PORT, NAME:PORT or a Unix path",
        long_help,
        value_name = "TARGET",
        conflicts_with_all = ["bed", "reflector_cpus"]
    )]
    pub(crate) target: Option<String>,
    /// Rate: 100kpps, 1.5Mpps, one every 200us, 1Gbit/s (on the wire), 1Gbit/s@L2 [default: 1kpps]
    #[arg(
        help = "100kpps, one every 200us, 1Gbit/s, 1Gbit/s@L2 [1kpps]",
        long_help,
        help_heading = "What to send",
        long,
        value_name = "RATE"
    )]
    pub(crate) rate: Option<Rate>,
    /// Arrival pattern: constant, poisson, burst(32), pair(10us), train(8,5us), sweep(2us,1ms,10),
    /// closed, or the times of a capture: capture(FILE); only the whole packets of a truncated one:
    /// capture(FILE,cut)
    #[arg(
        help = "constant, poisson, closed; more: --help",
        long_help,
        help_heading = "What to send",
        long,
        value_name = "PATTERN",
        default_value = "constant"
    )]
    pub(crate) arrivals: AskedArrivals,
    /// How long to measure
    #[arg(
        help_heading = "How long",
        long,
        value_name = "TIME",
        value_parser = parse::measuring_time,
        default_value = "60s"
    )]
    pub(crate) duration: Nanos,
    /// Transport: udp, tcp or unix (sockets), packet (whole frames over AF_PACKET, which the kernel
    /// sees too), xdp (whole frames over AF_XDP, past the kernel) or dpdk (a device of DPDK, see
    /// --vdev)
    #[arg(
        help = "udp, tcp, unix, packet, xdp or dpdk",
        long_help,
        help_heading = "How to send it",
        long,
        alias = "port",
        value_name = "TRANSPORT",
        default_value = "udp"
    )]
    pub(crate) transport: whylate_port::open::Transport,
    /// How the client waits for replies: block, poll, epoll, busy-poll, spin or io-uring
    #[arg(
        help = "block, poll, epoll, busy-poll, spin or io-uring",
        long_help,
        help_heading = "How to send it",
        long,
        value_name = "HOW",
        default_value = "spin"
    )]
    pub(crate) wait: whylate_port::Wait,
    /// Bytes of a request and of its reply; 18, the minimum of the protocol raw, make a frame of 64
    /// bytes over UDP and IPv4
    #[arg(
        help = "Bytes of a request and of its reply",
        long_help,
        help_heading = "What to send",
        long,
        value_name = "BYTES",
        default_value_t = 64
    )]
    pub(crate) size: usize,
    /// The client's CPU [default: the last one]
    #[arg(help_heading = "Where it runs", long, value_name = "CPU")]
    pub(crate) cpus: Option<String>,
    /// CPU of the reflector that whylate starts [default: another core]
    #[arg(
        help = "CPU of whylate's own reflector [another core]",
        long_help,
        help_heading = "Where it runs",
        long,
        alias = "other-cpu",
        value_name = "CPU",
        value_parser = parse::cpu
    )]
    pub(crate) reflector_cpus: Option<CpuId>,
    /// Scheduling policy of the client: other or fifo:1-98
    #[arg(
        help = "Policy of the client: other or fifo:1-98",
        long_help,
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
    /// Send through this test network of `whylate lab` instead of over loopback
    #[arg(
        help = "Send through this test network (whylate lab)",
        long_help,
        help_heading = "Where it runs",
        long,
        value_name = "NAME"
    )]
    pub(crate) bed: Option<String>,
    /// Number of independent runs, each with its own process, sockets and ports; prints their sum
    /// and how far they differ
    #[arg(
        help = "Independent runs, of which the sum is printed",
        long_help,
        help_heading = "How long",
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=100)
    )]
    pub(crate) runs: u32,
    /// Add a flow with its own socket, thread and other end, such as `load: rate=20kpps size=1400
    /// cpus=2 one-way`; may be repeated, and `back` sends it from the server's end of the test
    /// network. What it does not say of to, rate, arrivals, size, transport, protocol and
    /// outstanding is as in the first flow, and so is wait, which is block where CPUs are shared;
    /// sched (other) and one-way are of each flow by itself
    #[arg(
        help = "Add a flow: `load: rate=20kpps size=1400 one-way`",
        long_help,
        help_heading = "What to send",
        long = "flow",
        value_name = "NAME: WORDS"
    )]
    pub(crate) flows: Vec<FlowWords>,
    /// Warm-up time, discarded; requests are sent as in the measurement [default: 2s, or 200ms with
    /// --quick]
    #[arg(
        help = "Warm-up time, discarded [2s]",
        long_help,
        help_heading = "How long",
        long,
        value_name = "TIME",
        value_parser = parse::measuring_time
    )]
    pub(crate) warmup: Option<Nanos>,
    /// Protocol of the other end: raw (whylate's own) or sockperf
    #[arg(
        help = "Protocol of the other end: raw or sockperf",
        long_help,
        help_heading = "What to send",
        long,
        value_name = "NAME",
        default_value = "raw"
    )]
    pub(crate) protocol: whylate_net::Speaks,
    /// Maximum requests in flight; with 1 the client waits for each reply, on the schedule
    #[arg(
        help = "Maximum requests in flight",
        long_help,
        help_heading = "What to send",
        long,
        value_name = "N",
        value_parser = parse::outstanding
    )]
    pub(crate) outstanding: Option<u64>,
    /// Give up on a request after this time without a reply
    #[arg(
        help = "Give up on a request after this time",
        long_help,
        help_heading = "How to send it",
        long,
        value_name = "TIME",
        value_parser = parse::limit,
        default_value = "1s"
    )]
    pub(crate) timeout: Nanos,
    /// Report the sender as disturbed when p99.9 of its send delay is above this
    #[arg(
        help = "Sends later than this at p99.9 are reported",
        long_help,
        help_heading = "What to report",
        long,
        value_name = "TIME",
        value_parser = parse::limit,
        default_value = "50us"
    )]
    pub(crate) tolerance: Nanos,
    /// Requests above this percentile are slow, and interruptions of either end are compared with
    /// them [default: 99, and 99.9 from 100,000 requests on]
    #[arg(
        help = "Requests above this percentile are slow [99 or 99.9]",
        long_help,
        help_heading = "What to report",
        long,
        value_name = "PERCENT",
        value_parser = parse::percentile
    )]
    pub(crate) slow: Option<f64>,
    /// Ask for no reply: departures are measured, and the other end counts what arrives
    #[arg(
        help = "Ask for no reply; the other end counts",
        long_help,
        help_heading = "What to send",
        long
    )]
    pub(crate) one_way: bool,
    /// Both ports of what is measured.
    #[command(flatten)]
    pub(crate) across: RttAcross,
    /// Several backends in turns.
    #[command(flatten)]
    pub(crate) backends: RttBackends,
    /// Where requests spend their time.
    #[command(flatten)]
    pub(crate) apart: RttBreakdown,
    /// Log every request: packets-0001.parquet and so on, and with --breakdown each of its points:
    /// journeys-0001.parquet
    #[arg(
        help = "Log every request: packets-0001.parquet and so on",
        long_help,
        help_heading = "What to report",
        long
    )]
    pub(crate) log_packets: bool,
    /// Bring what is measured into the run directory this often: of a run that is killed that much is there
    #[arg(
        help = "Write what is measured this often",
        long_help,
        help_heading = "What to report",
        long,
        value_name = "TIME",
        default_value = "10s",
        value_parser = parse::beat
    )]
    pub(crate) checkpoint: Nanos,
    /// What is asked of the client's socket
    #[command(flatten)]
    pub(crate) socket: SocketOptions,
    /// The client's own address, with or without a port; for frames one that the kernel need not
    /// have [default: the kernel's choice, or the interface's address]
    #[arg(
        help = "The client's own address",
        long_help,
        help_heading = "Socket",
        long,
        value_name = "ADDRESS",
        value_parser = parse::own_address
    )]
    pub(crate) from: Option<SocketAddr>,
    /// What is asked of a port of whole frames
    #[command(flatten)]
    pub(crate) link: LinkArgs,
    /// Do not lock memory
    #[arg(help_heading = "Where it runs", long)]
    pub(crate) no_mlock: bool,
    /// Common options.
    #[command(flatten)]
    pub(crate) common: Common,
}
