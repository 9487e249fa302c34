//! A tap beside the ends, in words: `--tap FILE`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use whylate_model::tap::TapClock;

/// What a tap between both ends has written.
#[derive(Debug, Clone, Args)]
pub(crate) struct TapArgs {
    /// What a tap between both ends writes while this runs, read when the run is over: pcap, pcapng, or
    /// ERF in a file named .erf. A bed's own tap needs no file
    #[arg(long, value_name = "FILE")]
    pub(crate) tap: Option<PathBuf>,
    /// Whose clock has stamped it: by a clock of the tap's own only distances from request to reply can
    /// be set beside the ends
    #[arg(long, value_enum, requires = "tap", default_value_t = TapClockWord::Own)]
    pub(crate) tap_clock: TapClockWord,
}

/// Whose clock stamps a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TapClockWord {
    /// The tap's own.
    Own,
    /// This host's system clock: it was captured here.
    System,
}

impl From<TapClockWord> for TapClock {
    fn from(word: TapClockWord) -> Self {
        match word {
            TapClockWord::Own => Self::Own,
            TapClockWord::System => Self::System,
        }
    }
}
