//! Recordings: measuring threads, evidence and checkpoints become one run directory.
//!
//! A recording opens the clock, reads the host, takes the guards, and finds out whether its
//! directory can be written, all before anything is measured. It then turns: every 20 ms it
//! drains rings and trace buffers, names causes, and stores both; at checkpoints it closes
//! segments and replaces `run.json`, so that a killed run is readable up to there.
//!
//! Nothing here draws, and nothing here runs on a measured CPU while another is left.

pub mod actions;
mod attend;
pub mod calibrate;
pub mod checkup;
pub mod child;
pub mod collector;
mod composed;
pub mod delay;
pub mod deltas;
pub mod device;
mod foreign;
pub mod forward;
pub mod gaps;
pub mod intervals;
mod kept;
pub mod kernel_trace;
pub mod matrix;
pub mod progress;
pub mod reflect;
pub mod rtt;
pub mod scoring;
mod service;
pub mod set;
pub mod storage;
pub mod summary;
pub mod switch_cost;
pub mod trace_cost;
mod verdict;
pub mod wake;
pub mod watch;
mod way_trace;
pub mod workbench;

use std::path::{Path, PathBuf};

use whylate_clock::ClockError;
use whylate_gap::GapError;
use whylate_host::HostError;
use whylate_model::ModelError;
use whylate_model::directory::RunDir;
use whylate_model::run::Run;
use whylate_sys::SysError;
use whylate_sys::nanosleep::{Clock, clock_ns};

pub use service::Asked;

/// Why a recording could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The clock.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The host.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The measuring threads.
    #[error(transparent)]
    Gap(#[from] GapError),
    /// The run directory.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A system call.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// The probe of a thread model.
    #[error(transparent)]
    Threads(#[from] whylate_threads::ThreadsError),
    /// The probe of a port.
    #[error(transparent)]
    Net(#[from] whylate_net::NetError),
    /// The load beside a measurement.
    #[error(transparent)]
    Load(#[from] whylate_load::LoadError),
    /// A part of it in a process of its own.
    #[error(transparent)]
    Child(#[from] child::ChildError),
    /// A box between two ports.
    #[error(transparent)]
    Device(#[from] device::DeviceError),
    /// A port.
    #[error(transparent)]
    Port(#[from] whylate_port::PortError),
    /// A task set asks for something that there is not.
    #[error(transparent)]
    Word(#[from] set::UnknownWord),
    /// A flow cannot be measured as asked.
    #[error("flow {flow}: {reason}")]
    Flow {
        /// Which.
        flow: String,
        /// Why, and what to do.
        reason: String,
    },
    /// Nothing came of a calibration.
    #[error("cannot calibrate: {0}")]
    NotCalibrated(String),
    /// A client with both ports heard nothing of what it sent.
    #[error(
        "what one port sends does not come to the other: {what}; does something between the two pass \
         frames on (whylate forward, whylate delay, a switch), are both links up, and does it let \
         datagrams of these addresses through? `ip -s link` tells how far they came"
    )]
    NothingThrough {
        /// What was seen of it.
        what: String,
    },
    /// A process cannot be watched without the kernel's trace.
    #[error("cannot watch: {}; {}", .0.reason, .0.remedy)]
    NotWatched(kernel_trace::NoTrace),
    /// The self-test needs a CPU to interrupt from.
    #[error(
        "the self-test interrupts the measured CPU from another one, and there is none: measure \
         fewer CPUs than this process may use"
    )]
    NoCpuToInjectFrom,
    /// Working sets do not fit into memory.
    #[error(
        "{runners} working sets of {} each do not fit: of the memory that is free now a quarter may \
         be taken, which is {} for each; give smaller --sizes",
        whylate_model::Bytes(*bytes),
        whylate_model::Bytes(*largest)
    )]
    WorkingSet {
        /// Size asked for.
        bytes: u64,
        /// So many.
        runners: u32,
        /// The largest size that fits.
        largest: u64,
    },
    /// Trials of real-time runners are longer than the kernel lets them run.
    #[error(
        "trials of {length} are too long for real-time runners: the kernel grants them {runtime} in \
         every {period} (kernel.sched_rt_runtime_us), and what it takes from them would be counted \
         as the hypervisor's; take --trial-time {longest} or less, or --quantum kernel"
    )]
    TrialTooLong {
        /// Length asked for.
        length: whylate_model::Nanos,
        /// The longest that is granted.
        longest: whylate_model::Nanos,
        /// What the kernel grants.
        runtime: whylate_model::Nanos,
        /// In each of these.
        period: whylate_model::Nanos,
    },
    /// A thread could not be made.
    #[error("cannot start a thread: {0}; raise `ulimit -u`, or end other programs")]
    NoThread(std::io::Error),
    /// The check-up's messages need a process of their own.
    #[error("cannot find this program's own file, which the check-up's messages need: {0}")]
    NoProgram(std::io::Error),
}

/// What came of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The run, as it is stored.
    pub run: Run,
}

/// Undoes what runs that were killed left behind; each line says what was undone or could not be.
#[must_use]
pub fn mend_what_dead_runs_left() -> Vec<String> {
    whylate_host::journal::summary(&whylate_host::journal::recover())
}

/// Nanoseconds since 1970: when something was made. No latency is taken from it.
fn date_ns() -> u64 {
    clock_ns(Clock::Realtime)
}

/// A seed nobody chose; it is recorded with the run.
#[must_use]
pub fn draw_seed() -> u64 {
    date_ns() ^ u64::from(std::process::id()).rotate_left(32)
}

/// The words that this program was started with, for the run; bytes that are no text are marked as such.
#[must_use]
pub fn command_line() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// `whylate-20261121-065400` in the current directory, in UTC.
#[must_use]
pub fn default_directory() -> PathBuf {
    PathBuf::from(format!("whylate-{}", stamp(date_ns() / 1_000_000_000)))
}

/// Default names tried before giving up: nobody begins more runs in a second.
const MOST_AT_ONCE: u32 = 64;

/// The directory of a new run: the one asked for, or the default one; of several runs begun in the
/// same second each gets one of its own.
///
/// # Errors
/// It cannot be made, or the one asked for is in use or not empty.
pub fn new_directory(asked: Option<&Path>) -> Result<RunDir, ModelError> {
    if let Some(path) = asked {
        return RunDir::create(path);
    }
    let first = default_directory();
    let mut made = RunDir::create(&first);
    for number in 2..=MOST_AT_ONCE {
        if !matches!(made, Err(ModelError::InUse { .. } | ModelError::NotEmpty { .. })) {
            break;
        }
        made = RunDir::create(format!("{}-{number}", first.display()));
    }
    made
}

/// Date and time of a number of seconds since 1970, in UTC, as `YYYYMMDD-HHMMSS`.
///
/// The days are counted in years that begin in March, so that the leap day is the last one (the
/// usual civil-from-days arithmetic).
fn stamp(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

#[cfg(test)]
mod tests {
    use super::stamp;

    #[test]
    fn stamps_are_utc_dates() {
        assert_eq!(stamp(0), "19700101-000000");
        assert_eq!(stamp(951_782_400), "20000229-000000");
        assert_eq!(stamp(1_795_244_040), "20261121-065400");
    }
}
