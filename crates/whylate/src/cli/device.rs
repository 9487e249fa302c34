//! `whylate device`.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use whylate_model::configuration::Configurations;
use whylate_model::{CpuId, Nanos};
use whylate_net::schedule::Rate;
use whylate_port::{Transport, Wait};
use whylate_record::device::TheBox;

use super::Common;
use crate::parse;

/// What a network device or function adds to the time of frames
///
/// The box (the device or function), a bare link in its place and a delay line whose truth is known
/// are measured in turns, in an order that the seed draws, each by its own process. A client that
/// has both outer ports sends through them with one clock, so each latency is one way. From these
/// come bounds for what the box alone adds, which hold whether or not its time and that of
/// everything else depend on each other; where the box keeps its own log, the log is shown beside
/// them. Also reported: whether the box stores frames before it forwards them, from how its latency
/// grows with their size; the highest rate without loss; and with --fan-in, or --fan-in-from and
/// --fan-in-to for real ports, the share that each of several ports gets of one.
///
/// Boxes: bridge (of the kernel), ovs (Open vSwitch), forward:packet and forward:xdp (whylate
/// forward), testpmd and testpmd:xdp (DPDK's), delay:10us (whylate delay), each in a test network
/// of `whylate lab` that is set up for it and taken down; between: whatever is between two
/// interfaces of this machine.
///
/// With --captures IN OUT two captures of the same traffic, taken on both sides of a box, are
/// compared instead: pcap, pcapng or ERF. Packets are matched by their contents; no privilege is
/// needed.
///
/// Example: whylate device --box bridge
///
/// Example: whylate device --box forward:xdp --sizes 64,1518 --rate 50kpps --rounds 9
///
/// Example: whylate device --box bridge --fan-in 4
///
/// Example: whylate device --box between --interfaces eth1,eth4 --fan-in-from eth1,eth2,eth3
/// --fan-in-to eth4 --fan-in-takes 1Gbit/s
///
/// Example: whylate device --box between --interfaces eth1,eth2 --loopback eth3,eth4 --from
/// 198.18.0.1 --to 198.18.0.2
///
/// Example: whylate device --box between --interfaces eth1,eth2 --loopback eth3,eth4 --line
/// eth5,eth6,eth7,eth8
///
/// Example: whylate device --captures before.pcap after.pcap --ignore mac,ttl,checksum
///
/// Cost: two CPUs, the client's and the box's; about ten minutes with the usual sizes and rounds,
/// about four with --quick, which makes three rounds of a tenth each. The duration is printed
/// before it starts.
///
/// Limits: a test network needs root. Times are of whole frames, from the last bit in at the first
/// port to the last bit in at the other; software timestamps are of nothing else. Beside real
/// hardware there is no bare link and no upper bound without --loopback, and no delay line and no
/// lower bound without --line. Boxes in a test network pass frames in memory: there is no wire.
#[derive(Debug, Clone, Args)]
pub(crate) struct Device {
    /// What to measure: bridge, ovs, forward:packet, forward:xdp, testpmd, testpmd:xdp, delay:TIME
    /// or between
    #[arg(
        help = "bridge, ovs, delay:TIME, between; more: --help",
        long_help,
        help_heading = "What to measure",
        long = "box",
        value_name = "BOX",
        required_unless_present = "captures"
    )]
    pub(crate) the_box: Option<TheBox>,
    /// Two captures of the same traffic, before the box and behind it
    #[arg(
        help = "Two captures, before the box and behind it",
        long_help,
        help_heading = "Two captures",
        long,
        num_args = 2,
        value_names = ["IN", "OUT"],
        conflicts_with_all = [
            "the_box", "sizes", "rate", "rounds", "duration", "cpus", "box_cpus", "transport", "interfaces",
            "loopback", "fan_in", "line", "from", "to", "wait", "warmup", "no_throughput", "trials",
            "trial_time", "tolerated_loss", "fan_in_from", "fan_in_to", "fan_in_takes", "fan_in_sends",
            "fan_in_weights", "config", "quick", "no_trace", "housekeeping", "no_dma_latency"
        ]
    )]
    pub(crate) captures: Option<Vec<PathBuf>>,
    /// Sizes of frames in bytes, check sequence included
    #[arg(
        help = "Bytes of frames",
        long_help,
        help_heading = "Traffic",
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "64,128,256,512,1024,1280,1518"
    )]
    pub(crate) sizes: Vec<u32>,
    /// Rate in each direction
    #[arg(help_heading = "Traffic", long, value_name = "RATE", default_value = "10kpps")]
    pub(crate) rate: Rate,
    /// Rounds: in each of them everything is measured once, in a random order. With few rounds the
    /// bounds are wide: at the confidence of a report three reach four times as many standard
    /// errors as five [default: 5, or 3 with --quick]
    #[arg(
        help = "Rounds; few of them make the bounds wide [5]",
        long_help,
        help_heading = "Traffic",
        long,
        value_name = "N"
    )]
    pub(crate) rounds: Option<u32>,
    /// How long to measure each size
    #[arg(
        help_heading = "Traffic",
        long,
        value_name = "TIME",
        value_parser = parse::measuring_time,
        default_value = "1s"
    )]
    pub(crate) duration: Nanos,
    /// The client's CPU [default: the last one]
    #[arg(help_heading = "Where it runs", long, value_name = "CPU", value_parser = parse::cpu)]
    pub(crate) cpus: Option<CpuId>,
    /// CPU of the box and of the delay line [default: the first one]
    #[arg(
        help = "CPU of the box and of the delay line [the first]",
        long_help,
        help_heading = "Where it runs",
        long,
        alias = "box-cpu",
        value_name = "CPU",
        value_parser = parse::cpu
    )]
    pub(crate) box_cpus: Option<CpuId>,
    /// Transport of the client: packet, xdp or udp
    #[arg(
        help_heading = "Traffic",
        long,
        alias = "port",
        value_name = "TRANSPORT",
        default_value = "packet"
    )]
    pub(crate) transport: Transport,
    /// The two interfaces that a real box is between
    #[arg(help_heading = "What to measure", long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) interfaces: Vec<String>,
    /// Two interfaces joined by a cable, for a bare link beside a real box
    #[arg(
        help = "Two interfaces joined by a cable: a bare link",
        long_help,
        help_heading = "What to measure",
        long,
        value_name = "A,B",
        value_delimiter = ','
    )]
    pub(crate) loopback: Vec<String>,
    /// Also send from this many ports to one, and report the share that each gets, over several
    /// subsets of them (bridge and ovs)
    #[arg(
        help = "Send from this many ports to one, too",
        long_help,
        help_heading = "Fan-in",
        long,
        value_name = "PORTS",
        group = "shares"
    )]
    pub(crate) fan_in: Option<u32>,
    /// What the box changes in packets, separated by commas: mac, ttl, checksum (with --captures)
    #[arg(
        help = "What the box changes in packets",
        long_help,
        help_heading = "Two captures",
        long,
        value_enum,
        value_name = "WHAT",
        value_delimiter = ',',
        requires = "captures",
        conflicts_with = "the_box"
    )]
    pub(crate) ignore: Vec<Ignored>,
    /// Which bit of a packet its timestamp belongs to: start or end; two separated by a comma for
    /// IN and OUT. The formats do not say it (with --captures) [default: not known]
    #[arg(
        help = "Which bit a timestamp belongs to",
        long_help,
        help_heading = "Two captures",
        long,
        value_enum,
        value_name = "POINT",
        value_delimiter = ',',
        requires = "captures",
        conflicts_with = "the_box"
    )]
    pub(crate) stamped: Vec<StampedAt>,
    /// Packets with the same bytes are the same packet only when they are no further apart than
    /// this (with --captures)
    #[arg(
        help = "Packets further apart are not the same",
        long_help,
        help_heading = "Two captures",
        long,
        value_name = "TIME",
        value_parser = parse::limit,
        default_value = "1s",
        requires = "captures",
        conflicts_with = "the_box"
    )]
    pub(crate) window: Nanos,
    /// Use the whole packets of a capture that ends in the middle of one
    #[arg(
        help = "Use the whole packets of a truncated capture",
        long_help,
        help_heading = "Two captures",
        long,
        requires = "captures",
        conflicts_with = "the_box"
    )]
    pub(crate) cut: bool,
    /// Four interfaces for a delay line beside a real box: cables join the first two and the last
    /// two, and whylate delays between the middle ones
    #[arg(
        help = "Four interfaces for a delay line beside a real box",
        long_help,
        help_heading = "What to measure",
        long,
        value_name = "NEAR,A,B,FAR",
        value_delimiter = ','
    )]
    pub(crate) line: Vec<String>,
    /// Address of the first interface, which the kernel need not have [default: 198.18.0.1]
    #[arg(
        help = "Address of the first interface [198.18.0.1]",
        long_help,
        help_heading = "What to measure",
        long,
        value_name = "ADDRESS"
    )]
    pub(crate) from: Option<Ipv4Addr>,
    /// Address of the second interface [default: 198.18.0.2]
    #[arg(
        help = "Address of the second interface [198.18.0.2]",
        long_help,
        help_heading = "What to measure",
        long,
        value_name = "ADDRESS"
    )]
    pub(crate) to: Option<Ipv4Addr>,
    /// How the client waits: spin, busy-poll, block, ...
    #[arg(
        help = "block, poll, epoll, busy-poll, spin or io-uring",
        long_help,
        help_heading = "Traffic",
        long,
        value_name = "WAIT",
        default_value = "spin"
    )]
    pub(crate) wait: Wait,
    /// Warm-up time before each measurement, discarded [default: 100ms, or 10ms with --quick]
    #[arg(
        help = "Warm-up time before each measurement [100ms]",
        long_help,
        help_heading = "Traffic",
        long,
        value_name = "TIME",
        value_parser = parse::measuring_time
    )]
    pub(crate) warmup: Option<Nanos>,
    /// Do not search for the highest rate without loss
    #[arg(help_heading = "Highest rate without loss", long)]
    pub(crate) no_throughput: bool,
    /// Most trials of that search for one size [default: 8, or 3 with --quick]
    #[arg(
        help = "Most trials of that search for one size [8]",
        long_help,
        help_heading = "Highest rate without loss",
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(2..=32),
        conflicts_with = "no_throughput"
    )]
    pub(crate) trials: Option<u32>,
    /// Length of one trial
    #[arg(
        help_heading = "Highest rate without loss",
        long,
        value_name = "TIME",
        value_parser = parse::measuring_time,
        default_value = "500ms",
        alias = "trial",
        conflicts_with = "no_throughput"
    )]
    pub(crate) trial_time: Nanos,
    /// Share of frames that a trial may lose [default: none, as RFC 2544 demands]
    #[arg(
        help = "Share of frames that a trial may lose [none]",
        long_help,
        help_heading = "Highest rate without loss",
        long,
        value_name = "SHARE",
        value_parser = parse::share,
        conflicts_with = "no_throughput"
    )]
    pub(crate) tolerated_loss: Option<f64>,
    /// The same for interfaces of this machine that a real box joins: those that send (between)
    #[arg(
        help = "Interfaces of this machine that send (between)",
        long_help,
        help_heading = "Fan-in",
        long,
        value_name = "A,B,...",
        value_delimiter = ',',
        group = "shares",
        requires = "fan_in_to"
    )]
    pub(crate) fan_in_from: Vec<String>,
    /// The interface that they send to
    #[arg(help_heading = "Fan-in", long, value_name = "D", requires = "fan_in_from")]
    pub(crate) fan_in_to: Option<String>,
    /// Capacity of the one port of a fan-in: set in a test network, stated of a real one. Twice as
    /// much is sent
    #[arg(
        help = "Capacity of the one port",
        long_help,
        help_heading = "Fan-in",
        long,
        value_name = "RATE",
        default_value = "20Mbit/s@L2",
        requires = "shares"
    )]
    pub(crate) fan_in_takes: Rate,
    /// What each of the ports sends, relative to the others: 2,1 [default: all the same]
    #[arg(
        help = "What each port sends, relative to the others: 2,1",
        long_help,
        help_heading = "Fan-in",
        long,
        value_name = "LIST",
        value_delimiter = ',',
        requires = "shares"
    )]
    pub(crate) fan_in_sends: Vec<u32>,
    /// In a test network, let the one port serve the others by these weights (HTB): a known truth
    /// to find again
    #[arg(
        help = "Serve the ports by these weights, a known truth",
        long_help,
        help_heading = "Fan-in",
        long,
        value_name = "LIST",
        value_delimiter = ',',
        requires = "fan_in"
    )]
    pub(crate) fan_in_weights: Vec<u32>,
    /// Configurations of the operating system for the box, separated by commas:
    /// local,local+isolset+power
    #[arg(
        help = "Configurations of the box; more: --help",
        long_help,
        help_heading = "Where it runs",
        long,
        value_name = "LIST",
        value_parser = parse::configurations
    )]
    pub(crate) config: Option<Configurations>,
    /// What every measurement has.
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Which bit of a packet a timestamp belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StampedAt {
    /// Its first bit.
    Start,
    /// Its last bit.
    End,
}

/// What a device changes in packets that it passes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ignored {
    /// Hardware addresses, as a router does.
    Mac,
    /// Time to live and hop limit.
    Ttl,
    /// Checksums of IP, UDP and TCP.
    Checksum,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use crate::cli::Cli;

    #[test]
    fn every_option_is_of_a_box_or_of_two_captures_or_says_how_either_is_told() {
        const BOTH: [&str; 7] =
            ["output", "format", "percentiles", "full", "seed", "help", "version"];
        const OF_CAPTURES: [&str; 4] = ["ignore", "stamped", "window", "cut"];
        let mut program = Cli::command();
        program.build();
        let device = program.find_subcommand("device").unwrap();
        let of = |id: &str| device.get_arguments().find(|arg| arg.get_id() == id).unwrap();
        let (captures, the_box) = (of("captures"), of("the_box"));
        let mut of_a_box = 0;
        for arg in device.get_arguments() {
            let id = arg.get_id().as_str();
            if BOTH.contains(&id) || ["captures", "the_box"].contains(&id) {
                continue;
            }
            let other = if OF_CAPTURES.contains(&id) {
                the_box
            } else {
                of_a_box += 1;
                captures
            };
            // A conflict stands at either of the two.
            let conflicts = |a: &clap::Arg, b: &clap::Arg| {
                device.get_arg_conflicts_with(a).iter().any(|with| with.get_id() == b.get_id())
            };
            assert!(
                conflicts(arg, other) || conflicts(other, arg),
                "{id} beside {}",
                other.get_id()
            );
        }
        assert!(of_a_box > 25, "{of_a_box} options of a box are few");
    }
}
