//! `whylate` without a command.

use clap::Args;

use super::Common;

/// Options of the check-up.
#[derive(Debug, Clone, Args)]
pub(crate) struct Checkup {
    /// Common options.
    #[command(flatten)]
    pub(crate) common: Common,
    /// CPU to check up [default: the last one this process may use]
    #[arg(long, alias = "cpu", value_name = "CPU")]
    pub(crate) cpus: Option<String>,
}
