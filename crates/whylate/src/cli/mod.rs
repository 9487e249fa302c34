//! The command line: every flag documented once, here, one file per command.

#[cfg(test)]
mod aliases;
mod calibrate;
mod checkup;
mod compare;
mod delay;
mod device;
mod doctor;
mod dpdk;
#[cfg(test)]
mod examples;
mod flow;
mod forward;
mod gaps;
pub(crate) mod help;
mod hourglass;
mod lab;
mod link;
mod merge;
mod paper;
mod reflect;
mod report;
mod rta;
mod rtt;
mod rtt_across;
mod rtt_backends;
mod rtt_breakdown;
mod shell;
mod socket;
mod switch_cost;
mod switch_runner;
mod tap;
mod threads;
mod wake;
mod watch;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use whylate_report::Percentiles;

pub(crate) use calibrate::{Calibrate, MetricStatistic, MetricUnit};
pub(crate) use checkup::Checkup;
pub(crate) use compare::{Compare, Shape};
pub(crate) use delay::{Delay, Truths};
pub(crate) use device::{Device, Ignored, StampedAt};
pub(crate) use doctor::{Doctor, Findings};
pub(crate) use flow::FlowWords;
pub(crate) use forward::Forward;
pub(crate) use gaps::{Gaps, Loop};
use help::COMMON;
pub(crate) use hourglass::Hourglass;
pub(crate) use lab::{Action, Kind, Lab};
pub(crate) use link::{LinkArgs, refused_of_socket};
pub(crate) use merge::Merge;
pub(crate) use paper::{Paper, Which};
pub(crate) use reflect::{Reflect, ReflectPort, ReflectStdin};
pub(crate) use report::Report;
pub(crate) use rta::{Assign, Jitter, Policy, Rta};
pub(crate) use rtt::Rtt;
pub(crate) use rtt_across::RttAcross;
pub(crate) use rtt_backends::{BackendList, RttBackends};
pub(crate) use rtt_breakdown::RttBreakdown;
pub(crate) use shell::{Completions, Man};
pub(crate) use socket::SocketOptions;
pub(crate) use switch_cost::SwitchCost;
pub(crate) use switch_runner::SwitchRunner;
pub(crate) use tap::TapArgs;
pub(crate) use threads::Threads;
pub(crate) use wake::Wake;
pub(crate) use watch::Watch;

/// Find out how long your threads, timers and packets are delayed, by what, and how far each number
/// can be trusted.
///
/// Without a command: a one-minute check-up of this machine. It measures what a busy thread, a
/// timer wake-up, a message between two processes and a UDP round trip experience, reports where
/// the lost time went, and writes a run directory.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// The question to answer; none for the check-up.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// Options of the check-up.
    #[command(flatten)]
    pub(crate) checkup: Checkup,
}

// Words on a variant would take the place of the whole help of its options.
/// A question.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Gaps(Box<Gaps>),
    Wake(Box<Wake>),
    Threads(Box<Threads>),
    Hourglass(Hourglass),
    Rta(Box<Rta>),
    Paper(Paper),
    SwitchCost(Box<SwitchCost>),
    Rtt(Box<Rtt>),
    Watch(Box<Watch>),
    Doctor(Doctor),
    Lab(Lab),
    Reflect(Box<Reflect>),
    Forward(Box<Forward>),
    Delay(Box<Delay>),
    Calibrate(Box<Calibrate>),
    Device(Box<Device>),
    Report(Report),
    Compare(Box<Compare>),
    Merge(Merge),
    Completions(Completions),
    Man(Man),
    /// Answers probes on the socket that is its standard input
    #[command(hide = true)]
    ReflectStdin(ReflectStdin),
    /// Makes the load that its standard input orders
    #[command(hide = true)]
    LoadStdin,
    /// Shares a CPU with others of its kind
    #[command(hide = true)]
    SwitchRunner(SwitchRunner),
}

/// Options that every measuring command has.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = COMMON)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of a command line")]
pub(crate) struct Common {
    /// Write the run into this directory, which must be new or empty [default: whylate-DATE-TIME]
    #[arg(short = 'o', long = "out", alias = "output", value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Percentiles to print, of 50 90 99 99.9 99.99 99.999 99.9999 [default: 50,99,99.9]
    #[arg(long, value_name = "LIST")]
    pub(crate) percentiles: Option<Percentiles>,
    /// Measure a tenth as long; the report says so
    #[arg(long)]
    pub(crate) quick: bool,
    /// Do not use kernel tracing; infer causes from what a thread can know by itself
    #[arg(long)]
    pub(crate) no_trace: bool,
    /// Print the whole report, not its first screen
    #[arg(long)]
    pub(crate) full: bool,
    /// Random seed [default: drawn and recorded]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// CPUs for whylate's own threads [default: any CPU that is not measured]
    #[arg(long, value_name = "CPUS")]
    pub(crate) housekeeping: Option<String>,
    /// Do not hold /dev/cpu_dma_latency at 0 (idle states stay as they are)
    #[arg(long)]
    pub(crate) no_dma_latency: bool,
}

/// How to print a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A report of at most 80 columns.
    Text,
    /// The run as it is stored in run.json.
    Json,
}
