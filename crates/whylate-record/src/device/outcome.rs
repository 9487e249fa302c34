//! Why a box could not be measured.

use std::path::PathBuf;

use whylate_net::capture::CaptureError;

/// Why a box could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// What was asked cannot be done; the words say what to ask instead.
    #[error("{0}")]
    Refused(String),
    /// A program of others is missing.
    #[error("the box {what} needs {program}, which is not in PATH: install {package}")]
    NotInstalled {
        /// The box.
        what: String,
        /// The program.
        program: &'static str,
        /// Where it is found.
        package: &'static str,
    },
    /// The box itself could not be measured.
    #[error("cannot measure {what}: {why}")]
    NotMeasured {
        /// The box, with its size.
        what: String,
        /// What the process that measured it said.
        why: String,
    },
    /// A capture cannot be read.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// Two captures have nothing in common.
    #[error(
        "{before} and {behind} have no packet in common ({packets_before} and {packets_behind}): are they of \
         the same traffic? If the box changes packets, say what: --ignore mac,ttl,checksum; if their clocks \
         are far apart, give a longer --window"
    )]
    NothingInCommon {
        /// One file.
        before: PathBuf,
        /// The other one.
        behind: PathBuf,
        /// Packets of it.
        packets_before: u64,
        /// Packets of the other one.
        packets_behind: u64,
    },
    /// A file has more packets than are kept.
    #[error("{path} has more than {most} packets: cut a part out of it with editcap")]
    TooMany {
        /// The file.
        path: PathBuf,
        /// What is kept at most.
        most: usize,
    },
    /// Something of the run's files could not be made.
    #[error("cannot {what}: {why}")]
    Files {
        /// What was tried.
        what: String,
        /// Why it failed.
        why: std::io::Error,
    },
    /// Sources or the sink of a fan-in failed.
    #[error("the fan-in failed: {0}")]
    FanIn(String),
    /// It was told to stop before anything was measured.
    #[error("it was stopped before anything was measured")]
    Stopped,
}
