//! `whylate rtt`.

use clap::Args;
use whylate_model::Nanos;
use whylate_net::schedule::{Arrivals, Rate};

use super::Common;
use crate::parse;

/// How long does a request take from when it was meant to leave, and what became of every one.
///
/// A client on a CPU of its own sends requests when a schedule says, whatever came of those before,
/// and takes in the replies. Three times are told: service (actual send to reply), response (intended
/// send to reply) and lateness (between the two sends). A server that stalls shows in the response of
/// all requests that were meant to leave meanwhile, not in one service time.
///
/// Without a target the other end is a reflector that whylate starts on another CPU, over the loopback
/// interface or through a bed of `whylate lab`; with one it is `whylate reflect` at that address.
///
/// Example: whylate rtt --rate 10kpps --arrivals poisson --duration 30s
///
/// Example: whylate rtt 198.51.100.7:4021 --rate 1Gbit/s --size 512
///
/// Cost: the client's CPU is busy for the whole run, and the reflector's too where it spins; sends to
/// the target only, at the rate asked for, which is 1000 requests a second unless told otherwise.
///
/// Limits: stamps are readings of the counter around system calls; a rate that the client cannot hold
/// is called saturated, and the run is then not trustworthy.
#[derive(Debug, Clone, Args)]
pub(crate) struct Rtt {
    /// Common options.
    #[command(flatten)]
    pub(crate) common: Common,
    /// Where a reflector listens: an address with its port, or the path of a Unix socket
    #[arg(value_name = "TARGET", conflicts_with_all = ["bed", "other_cpu"])]
    pub(crate) target: Option<String>,
    /// How messages go: udp, tcp or unix
    #[arg(long, value_name = "TRANSPORT", default_value = "udp")]
    pub(crate) port: whylate_port::open::Transport,
    /// How the client waits for replies
    #[arg(long, value_name = "HOW", default_value = "spin")]
    pub(crate) wait: whylate_port::Wait,
    /// How often: 100kpps, 1.5Mpps, one every 200us, 1Gbit/s (on the wire), 1Gbit/s@L2
    #[arg(long, value_name = "RATE", default_value = "1kpps")]
    pub(crate) rate: Rate,
    /// In which pattern: constant, poisson, burst(32), pair(10us), train(8,5us),
    /// sweep(2us,1ms,10)
    #[arg(long, value_name = "PATTERN", default_value = "constant")]
    pub(crate) arrivals: Arrivals,
    /// Requests under way at most: with 1 the client waits for each reply, on the schedule
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) outstanding: Option<u64>,
    /// Bytes of a request and of its reply
    #[arg(long, value_name = "BYTES", default_value_t = 64)]
    pub(crate) size: usize,
    /// How long to measure
    #[arg(long, value_name = "TIME", value_parser = parse::measuring_time, default_value = "60s")]
    pub(crate) duration: Nanos,
    /// Requests by the same plan before that, discarded
    #[arg(long, value_name = "TIME", value_parser = parse::measuring_time, default_value = "2s")]
    pub(crate) warmup: Nanos,
    /// A request without a reply so long after it left is given up
    #[arg(long, value_name = "TIME", value_parser = parse::limit, default_value = "1s")]
    pub(crate) timeout: Nanos,
    /// How late the p99.9 of requests may leave before the process counts as disturbed
    #[arg(long, value_name = "TIME", value_parser = parse::limit, default_value = "50us")]
    pub(crate) tolerance: Nanos,
    /// The client's CPU [default: the last one]
    #[arg(long, value_name = "CPU")]
    pub(crate) cpus: Option<String>,
    /// CPU of the reflector that whylate starts [default: another core]
    #[arg(long, value_name = "CPU")]
    pub(crate) other_cpu: Option<u32>,
    /// Real-time priority of the client
    #[arg(long, value_name = "1-99", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub(crate) fifo: Option<u8>,
    /// Send through this bed of `whylate lab` instead of over loopback
    #[arg(long, value_name = "NAME")]
    pub(crate) bed: Option<String>,
    /// Do not lock memory
    #[arg(long)]
    pub(crate) no_mlock: bool,
}
