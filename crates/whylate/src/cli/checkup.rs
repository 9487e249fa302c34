//! `whylate` without a command.

use clap::Args;
use whylate_model::Nanos;

use super::Common;
use crate::parse;

/// Options of the check-up.
#[derive(Debug, Clone, Args)]
pub(crate) struct Checkup {
    /// Common options.
    #[command(flatten)]
    pub(crate) common: Common,
    /// CPU to check up [default: the last one this process may use]
    #[arg(long, alias = "cpu", value_name = "CPU")]
    pub(crate) cpus: Option<String>,
    /// Warm-up time of each measurement of stalls, discarded [default: 1s, or 100ms with --quick]
    #[arg(long, value_name = "TIME", value_parser = parse::measuring_time)]
    pub(crate) warmup: Option<Nanos>,
}
