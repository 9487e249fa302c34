//! `whylate calibrate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use whylate_model::{CpuId, Nanos};
use whylate_net::schedule::Rate;
use whylate_port::Transport;
use whylate_record::calibrate::planted::Tail;
use whylate_report::Percentiles;

use super::{BackendList, Format};
use crate::parse;

/// How close each backend is to the truth, and up to which percentile it can be trusted
///
/// A client sends through a delay line (`whylate delay`) that logs when each message came and left.
/// What the client measured of every message is compared with the log of the same message: the
/// error at each percentile, with its interval, and the largest percentile up to which errors stay
/// within --tolerance: as they are, and after taking off what the client measures back to back,
/// which is a constant and no tail. Nothing is taken off any number without saying so.
///
/// The result is kept for this machine in its present state. Later measurements of a backend are
/// grey beyond its limit, and say what has changed on the machine since.
///
/// All backends get one rate, which is lowered to what all of them hold. Every run is a line and a
/// client in their own processes, in network namespaces that go away with it, in an order that the
/// seed draws.
///
/// Example: whylate calibrate
///
/// Example: whylate calibrate --backends udp,xdp --rate 50kpps --tolerance 2us
///
/// Example: whylate calibrate --runs 5 --duration 120s --warmup 30s -o as-the-paper
///
/// Clients of others are judged in the same way: --client is run in the client's namespace, --server in the
/// server's, {address} and {port} are filled in, no shell reads the words, and --metric finds the numbers in
/// what the client prints. Its median (--statistic mean: its mean) over several delays shows whether it follows
/// what was added: a slope of one half says that it halves a round trip.
///
/// Example: whylate calibrate --client 'sockperf ping-pong -i {address} -p {port} -t 2' --server 'sockperf
/// server -i {address} -p {port}' --metric 'percentile (?P<percent>[0-9.]+) += +(?P<value>[0-9.]+)'
///
/// Example: whylate calibrate --client 'ping -c 500 -i 0.002 {address}' --unit ms --statistic mean --metric
/// '= [0-9.]+/(?P<value>[0-9.]+)/'
///
/// Example: whylate calibrate --client 'qperf {address} --listen_port {port} -t 2 udp_lat' --server 'qperf
/// --listen_port {port}' --statistic mean --metric 'latency += +(?P<value>[0-9.]+) (?P<unit>[a-z]+)'
///
/// Cost: two CPUs, about three minutes for the five backends of a usual host, half of that with --quick; how
/// long is told before it begins. 80 bytes a message on the disk.
///
/// Limits: needs root, for namespaces, and two CPUs: one for the line, one for the client. Without root
/// `whylate delay --proxy` shows what udp makes of a known delay. Trust ends where the sample does: p99.99
/// takes some 50 000 messages of each backend, p99.999 half a million. What is found holds one way through
/// virtual links of this host, at this rate and size.
///
/// Exit status: 0 done, 1 when nothing could be measured, 2 usage, 4 when the result is not trustworthy.
#[derive(Debug, Clone, Args)]
pub(crate) struct Calibrate {
    /// Which backends, such as `udp,xdp spin` [default: all of this host but dpdk]
    #[arg(long, value_name = "LIST", conflicts_with = "client")]
    pub(crate) backends: Option<BackendList>,
    /// What the line holds messages back for: curves are of the first, the others show whether medians
    /// follow
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse::limit,
          default_value = "10us,50us")]
    pub(crate) delays: Vec<Nanos>,
    /// How often; lowered to what all backends hold
    #[arg(long, value_name = "RATE", default_value = "10kpps", conflicts_with = "client")]
    pub(crate) rate: Rate,
    /// Bytes of a message; 18, the fewest, are a frame of 64 over UDP and IPv4
    #[arg(long, value_name = "BYTES", default_value_t = 64, conflicts_with = "client")]
    pub(crate) size: usize,
    /// Independent runs of each
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) runs: u32,
    /// Length of a run at the first delay; those at others and back to back are a quarter of it
    #[arg(long, value_name = "TIME", value_parser = parse::measuring_time, default_value = "2s")]
    pub(crate) duration: Nanos,
    /// Discarded before each
    #[arg(long, value_name = "TIME", value_parser = parse::measuring_time, default_value = "300ms")]
    pub(crate) warmup: Nanos,
    /// Two runs of a quarter of the time; the report says so
    #[arg(long)]
    pub(crate) quick: bool,
    /// An error within this is none
    #[arg(long, value_name = "TIME", value_parser = parse::limit, default_value = "1us")]
    pub(crate) tolerance: Nanos,
    /// What carries the line's frames: packet or xdp [default: xdp where it works]
    #[arg(long, value_name = "PORT")]
    pub(crate) line_port: Option<Transport>,
    /// CPU of the line [default: another core than the client's]
    #[arg(long, value_name = "CPU", value_parser = parse::cpu)]
    pub(crate) line_cpu: Option<CpuId>,
    /// CPU of the client [default: the last one]
    #[arg(long, value_name = "CPU")]
    pub(crate) cpus: Option<String>,
    /// Judge this program in place of the backends; {address} and {port} are filled in
    #[arg(long, value_name = "COMMAND", requires = "metric")]
    pub(crate) client: Option<String>,
    /// Its server; without it the kernel answers, as it does ping
    #[arg(long, value_name = "COMMAND", requires = "client")]
    pub(crate) server: Option<String>,
    /// Where its numbers are: a regular expression with a group `value`, `percent` where it prints several, and
    /// `unit` where it chooses one by the value; what a value alone is says --statistic
    #[arg(long, value_name = "REGEX", requires = "client")]
    pub(crate) metric: Option<String>,
    /// Unit of its values, where the expression finds none
    #[arg(long, value_enum, default_value_t = MetricUnit::Us, requires = "client")]
    pub(crate) unit: MetricUnit,
    /// What a value alone is: ping and qperf print a mean, which is set beside the mean of the truth, without
    /// percentiles
    #[arg(long, value_enum, default_value_t = MetricStatistic::Median, requires = "client")]
    pub(crate) statistic: MetricStatistic,
    /// Its numbers count the way there alone; without this, there and back
    #[arg(long, requires = "client")]
    pub(crate) one_way: bool,
    /// The port that is filled in
    #[arg(long, value_name = "PORT", default_value_t = 11_111, requires = "client")]
    pub(crate) port: u16,
    /// It is ended after so long
    #[arg(long, value_name = "TIME", value_parser = parse::measuring_time, default_value = "60s",
          requires = "client")]
    pub(crate) client_timeout: Nanos,
    /// Write the run into this directory, which must be new or empty [default: whylate-DATE-TIME]
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Percentiles to print, of 50 90 99 99.9 99.99 99.999 99.9999
    #[arg(long, value_name = "LIST")]
    pub(crate) percentiles: Option<Percentiles>,
    /// Seed of everything random; the default is drawn and recorded
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Do not hold /dev/cpu_dma_latency at 0 (idle states stay as they are)
    #[arg(long)]
    pub(crate) no_dma_latency: bool,
    /// Add so much to the receptions of half of the messages, to see that it is found
    #[arg(long, value_name = "TIME", value_parser = parse::limit, hide = true,
          conflicts_with_all = ["client", "plant_tail"])]
    pub(crate) plant_bias: Option<Nanos>,
    /// Add so much to the receptions of one in so many messages: 1in10000:20us
    #[arg(long, value_name = "TAIL", hide = true, conflicts_with = "client")]
    pub(crate) plant_tail: Option<Tail>,
}

/// What the number of a tool is of all its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricStatistic {
    /// Their median.
    Median,
    /// Their mean: it has no percentile, and no limit.
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
