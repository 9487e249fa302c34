//! `whylate completions` and `whylate man`: what a shell and a reader of manual pages want.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// Print a completion script for a shell
///
/// Example: whylate completions bash > /usr/share/bash-completion/completions/whylate
#[derive(Debug, Clone, Args)]
pub(crate) struct Completions {
    /// Which shell
    pub(crate) shell: Shell,
}

/// Write a manual page for each command
///
/// Example: whylate man /usr/local/share/man/man1
#[derive(Debug, Clone, Args)]
pub(crate) struct Man {
    /// Directory for the pages; it is made if it does not exist
    #[arg(help = "Directory for the pages", long_help, value_name = "DIR")]
    pub(crate) directory: PathBuf,
}
