//! `whylate watch`.

use std::path::PathBuf;

use clap::Args;
use whylate_model::Nanos;
use whylate_record::watch::Asked;
use whylate_report::Percentiles;

use super::Format;
use super::help::COMMON;
use crate::parse;

/// Where the requests of any server spend their time
///
/// Names whoever listens at a port, or a process by its number. The kernel's tracepoints tell when
/// a message for it arrived, was in its socket, woke a thread and was read, and when what that
/// thread sent next was given to the driver. So each request is taken apart into stack, wake-up,
/// server and stack again, and the parts sum to the time from driver to driver. The slowest are
/// shown with what the kernel did meanwhile.
///
/// Example: whylate watch 4021 --duration 30s
///
/// Example: whylate watch pid:812 -o slow-server
///
/// Example: whylate watch tcp:443 --log-requests
///
/// Cost: the process is neither changed nor asked; it pays some 100 ns for each tracepoint that it
/// passes, and so does everybody else who sends and receives meanwhile. `whylate rtt
/// --breakdown-cost` measures what that comes to.
///
/// Limits: it needs the kernel's tracing (root). A reply is what the thread that read a request
/// sends next, on the same connection where that is known; servers that hand requests from thread
/// to thread cannot be followed, and the report says so. Threads that the server starts are found
/// every 200 ms: what a thread reads or answers before that is missed, and so is everything of a
/// thread that has ended by then. Ports are those of this network namespace; for another one, name
/// the process.
#[derive(Debug, Clone, Args)]
pub(crate) struct Watch {
    /// The process: its number, or a port that it listens at; pid:N, port:N, udp:N and tcp:N say
    /// which
    #[arg(
        help = "A process number or a port; pid:, port:, udp:, tcp:N",
        long_help,
        value_name = "PID|PORT"
    )]
    pub(crate) whom: Asked,
    /// End after this time [default: until Ctrl-C or the server ends]
    #[arg(
        help = "End after this time [until Ctrl-C or the server ends]",
        long_help,
        help_heading = "How long",
        long,
        value_name = "TIME",
        value_parser = parse::measuring_time
    )]
    pub(crate) duration: Option<Nanos>,
    /// Requests slower than this percentile are slow
    #[arg(
        help_heading = "What to report",
        long,
        value_name = "PERCENT",
        value_parser = parse::percentile,
        default_value_t = 99.9
    )]
    pub(crate) slow: f64,
    /// Log every request: journeys-0001.parquet and so on
    #[arg(help_heading = "What to report", long)]
    pub(crate) log_requests: bool,
    /// Write the run into this directory, which must be new or empty [default: whylate-DATE-TIME]
    #[arg(short = 'o', long = "out", alias = "output", value_name = "DIR", help_heading = COMMON)]
    pub(crate) output: Option<PathBuf>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = COMMON)]
    pub(crate) format: Format,
    /// Percentiles to print, of 50 90 99 99.9 99.99 99.999 99.9999 [default: 50,99,99.9]
    #[arg(long, value_name = "LIST", help_heading = COMMON)]
    pub(crate) percentiles: Option<Percentiles>,
    /// Print the whole report, not its first screen
    #[arg(long, help_heading = COMMON)]
    pub(crate) full: bool,
    /// CPUs for the thread that reads the trace
    #[arg(long, value_name = "CPUS", help_heading = COMMON)]
    pub(crate) housekeeping: Option<String>,
}
