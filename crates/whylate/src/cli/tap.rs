//! A tap beside the ends, in words: `--tap FILE`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use whylate_model::tap::TapClock;

/// What a tap between both ends has written.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Where requests spend their time")]
pub(crate) struct TapArgs {
    /// Capture of a tap between both ends, written during the run and read after it: pcap, pcapng,
    /// or ERF in a file named .erf. The tap of a test network needs no file
    #[arg(
        help = "Capture of a tap between the ends: pcap, pcapng, ERF",
        long_help,
        long,
        value_name = "FILE"
    )]
    pub(crate) tap: Option<PathBuf>,
    /// Clock of the tap's timestamps; with a clock of its own only the distance from request to
    /// reply can be compared with the ends
    #[arg(
        help = "Clock of the tap's timestamps",
        long_help,
        long,
        value_enum,
        requires = "tap",
        default_value_t = TapClockWord::Own
    )]
    pub(crate) tap_clock: TapClockWord,
}

/// Whose clock stamps a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TapClockWord {
    /// The tap's own.
    Own,
    /// This machine's system clock: it was captured here.
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
