//! `whylate calibrate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use whylate_model::{CpuId, Nanos};
use whylate_net::schedule::Rate;
use whylate_port::Transport;
use whylate_record::calibrate::planted::Tail;
use whylate_report::Percentiles;

use super::help::COMMON;
use super::{BackendList, Format};
use crate::parse;

/// How close each backend is to the truth, and up to which percentile
///
/// A client sends through a delay line (`whylate delay`) that logs when each message arrived and
/// was sent on. What the client measured of every message is compared with the log of the same
/// message. The result is the error at each percentile, with its interval, and the largest
/// percentile up to which errors stay within --tolerance: as they are, and after subtracting what
/// the client measures back to back. That is a constant: it can be subtracted, a tail cannot.
/// Nothing is subtracted from any number without saying so.
///
/// The result is kept for this machine in its present state. Later measurements with a backend are
/// grey beyond its limit, and say what has changed on the machine since.
///
/// All backends get one rate, which is lowered to what all of them hold. Every run is a line and a
/// client in their own processes, in network namespaces that are removed with them, in an order
/// that the seed draws.
///
/// Example: whylate calibrate
///
/// Example: whylate calibrate --backends udp,xdp --rate 50kpps --tolerance 2us
///
/// Example: whylate calibrate --runs 5 --duration 120s --warmup 30s -o as-the-paper
///
/// Other clients are judged in the same way: --client is run in the client's namespace, --server in
/// the server's, {address} and {port} are filled in, no shell reads the words, and --metric finds
/// the numbers in what the client prints. Their median (--statistic mean: their mean) over several
/// delays shows whether it follows what was added: a slope of one half shows that the client halves
/// a round trip.
///
/// Example: whylate calibrate --client 'sockperf ping-pong -i {address} -p {port} -t 2' --server
/// 'sockperf server -i {address} -p {port}' --metric 'percentile (?P<percent>[0-9.]+) +=
/// +(?P<value>[0-9.]+)'
///
/// Example: whylate calibrate --client 'ping -c 500 -i 0.002 {address}' --unit ms --statistic mean
/// --metric '= [0-9.]+/(?P<value>[0-9.]+)/'
///
/// Example: whylate calibrate --client 'qperf {address} --listen_port {port} -t 2 udp_lat' --server
/// 'qperf --listen_port {port}' --statistic mean --metric 'latency += +(?P<value>[0-9.]+)
/// (?P<unit>[a-z]+)'
///
/// Cost: two CPUs, about three minutes for the five backends of a usual machine, half of that with
/// --quick; the duration is printed before it starts. 80 bytes of disk space per message.
///
/// Limits: needs root, for namespaces, and two CPUs: one for the line, one for the client. Without
/// root `whylate delay --proxy` shows what udp makes of a known delay. A limit cannot be beyond
/// what the sample supports: p99.99 takes some 50,000 messages of each backend, p99.999 half a
/// million. The result holds for one way through virtual links of this machine, at this rate and
/// size.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of a command line")]
pub(crate) struct Calibrate {
    /// Backends, such as `udp,xdp spin` [default: all of this machine except dpdk]
    #[arg(
        help = "Backends, such as `udp,xdp spin` [all but dpdk]",
        long_help,
        help_heading = "What to judge",
        long,
        value_name = "LIST",
        conflicts_with = "client"
    )]
    pub(crate) backends: Option<BackendList>,
    /// Rate; lowered to what all backends hold
    #[arg(
        help_heading = "Traffic",
        long,
        value_name = "RATE",
        default_value = "10kpps",
        conflicts_with = "client"
    )]
    pub(crate) rate: Rate,
    /// Delays of the line: curves are of the first, the others show whether medians follow
    #[arg(
        help = "Delays of the line; curves are of the 1st",
        long_help,
        help_heading = "What to judge",
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = parse::limit,
        default_value = "10us,50us"
    )]
    pub(crate) delays: Vec<Nanos>,
    /// Independent runs of each backend [default: 3, or 2 with --quick]
    #[arg(
        help = "Independent runs of each backend [3]",
        long_help,
        help_heading = "Traffic",
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=100)
    )]
    pub(crate) runs: Option<u32>,
    /// Length of a run at the first delay; those at others and back to back are a quarter of it
    #[arg(
        help = "Length of a run at the first delay",
        long_help,
        help_heading = "Traffic",
        long,
        value_name = "TIME",
        value_parser = parse::measuring_time,
        default_value = "2s"
    )]
    pub(crate) duration: Nanos,
    /// Largest error accepted
    #[arg(
        help_heading = "What to judge",
        long,
        value_name = "TIME",
        value_parser = parse::limit,
        default_value = "1us"
    )]
    pub(crate) tolerance: Nanos,
    /// CPU of the client [default: the last one]
    #[arg(help_heading = "Where it runs", long, value_name = "CPU")]
    pub(crate) cpus: Option<String>,
    /// CPU of the line [default: another core than the client's]
    #[arg(
        help = "CPU of the line [another core than the client's]",
        long_help,
        help_heading = "Where it runs",
        long,
        alias = "line-cpu",
        value_name = "CPU",
        value_parser = parse::cpu
    )]
    pub(crate) line_cpus: Option<CpuId>,
    /// Calibrate this program instead of the backends; {address} and {port} are filled in
    #[arg(
        help = "Calibrate this program instead; {address}, {port}",
        long_help,
        help_heading = "Another client",
        long,
        value_name = "COMMAND",
        requires = "metric"
    )]
    pub(crate) client: Option<String>,
    /// Server of that program; without it the kernel answers, as it does for ping
    #[arg(
        help = "Its server [none: the kernel answers]",
        long_help,
        help_heading = "Another client",
        long,
        value_name = "COMMAND",
        requires = "client"
    )]
    pub(crate) server: Option<String>,
    /// Regular expression for the numbers of the client, with a group `value`, and groups
    /// `percent` where it prints several and `unit` where it chooses the unit by the value;
    /// --statistic says what a single value is
    #[arg(
        help = "Regular expression for its numbers, with (?P<value>)",
        long_help,
        help_heading = "Another client",
        long,
        value_name = "REGEX",
        requires = "client"
    )]
    pub(crate) metric: Option<String>,
    /// Bytes of a message; 18, the minimum, make a frame of 64 bytes over UDP and IPv4
    #[arg(
        help = "Bytes of a message",
        long_help,
        help_heading = "Traffic",
        long,
        value_name = "BYTES",
        default_value_t = 64,
        conflicts_with = "client"
    )]
    pub(crate) size: usize,
    /// Warm-up time before each run, discarded
    #[arg(
        help_heading = "Traffic",
        long,
        value_name = "TIME",
        value_parser = parse::measuring_time,
        default_value = "300ms"
    )]
    pub(crate) warmup: Nanos,
    /// Transport of the line's frames: packet or xdp [default: xdp where it works]
    #[arg(
        help = "packet or xdp for the line [xdp where it works]",
        long_help,
        help_heading = "What to judge",
        long,
        alias = "line-port",
        value_name = "TRANSPORT"
    )]
    pub(crate) line_transport: Option<Transport>,
    /// Unit of the values, where the expression has no group for it
    #[arg(
        help = "Unit of its numbers",
        long_help,
        help_heading = "Another client",
        long,
        value_enum,
        default_value_t = MetricUnit::Us,
        requires = "client"
    )]
    pub(crate) unit: MetricUnit,
    /// What a single value is: ping and qperf print a mean, which is compared with the mean of the
    /// truth, without percentiles
    #[arg(
        help = "What a single number is",
        long_help,
        help_heading = "Another client",
        long,
        value_enum,
        default_value_t = MetricStatistic::Median,
        requires = "client"
    )]
    pub(crate) statistic: MetricStatistic,
    /// The client prints one-way times; without this, round trips
    #[arg(
        help = "It prints one-way times, not round trips",
        long_help,
        help_heading = "Another client",
        long,
        requires = "client"
    )]
    pub(crate) one_way: bool,
    /// Port for {port}
    #[arg(
        help_heading = "Another client",
        long,
        value_name = "PORT",
        default_value_t = 11_111,
        requires = "client"
    )]
    pub(crate) port: u16,
    /// End the client after this time
    #[arg(
        help_heading = "Another client",
        long,
        value_name = "TIME",
        value_parser = parse::measuring_time,
        default_value = "60s",
        requires = "client"
    )]
    pub(crate) client_timeout: Nanos,
    /// Two runs, a quarter as long; the report says so
    #[arg(long, help_heading = COMMON)]
    pub(crate) quick: bool,
    /// Write the run into this directory, which must be new or empty [default: whylate-DATE-TIME]
    #[arg(short = 'o', long = "out", alias = "output", value_name = "DIR", help_heading = COMMON)]
    pub(crate) output: Option<PathBuf>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = COMMON)]
    pub(crate) format: Format,
    /// Percentiles to print, of 50 90 99 99.9 99.99 99.999 99.9999
    #[arg(long, value_name = "LIST", help_heading = COMMON)]
    pub(crate) percentiles: Option<Percentiles>,
    /// Print the whole report, not its first screen
    #[arg(long, help_heading = COMMON)]
    pub(crate) full: bool,
    /// Random seed [default: drawn and recorded]
    #[arg(long, value_name = "N", help_heading = COMMON)]
    pub(crate) seed: Option<u64>,
    /// Do not hold /dev/cpu_dma_latency at 0 (idle states stay as they are)
    #[arg(long, help_heading = COMMON)]
    pub(crate) no_dma_latency: bool,
    /// Add so much to the receptions of half of the messages, to see that it is found
    #[arg(long, value_name = "TIME", value_parser = parse::limit, hide = true,
          conflicts_with_all = ["client", "plant_tail"])]
    pub(crate) plant_bias: Option<Nanos>,
    /// Add so much to the receptions of one in so many messages: 1in10000:20us
    #[arg(long, value_name = "TAIL", hide = true, conflicts_with = "client")]
    pub(crate) plant_tail: Option<Tail>,
}

/// What the number that a tool prints is of all its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricStatistic {
    /// The median.
    Median,
    /// The mean: it has no percentile, and no limit.
    Mean,
}

/// The unit of what a tool prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricUnit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}
