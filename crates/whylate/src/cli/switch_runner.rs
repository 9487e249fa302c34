//! A runner of `switch-cost`, started by whylate itself.

use clap::Args;

/// A runner in a process of its own.
#[derive(Debug, Clone, Args)]
pub(crate) struct SwitchRunner {
    /// Its number on the board.
    #[arg(long)]
    pub(crate) runner: u32,
}
