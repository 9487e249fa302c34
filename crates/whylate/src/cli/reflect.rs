//! The other end of a probe, started by whylate itself.

use clap::Args;

/// The other end of the check-up's messages.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReflectStdin {
    /// CPU to run on.
    #[arg(long)]
    pub(crate) cpu: u32,
    /// How to wait for a message: block or spin.
    #[arg(long, default_value = "block")]
    pub(crate) wait: whylate_port::Wait,
}
