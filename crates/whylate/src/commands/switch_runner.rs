//! `whylate switch-runner`: a runner of `switch-cost` in a process of its own.

use anyhow::Result;
use whylate_threads::switch_cost::run_stdin;

use super::Exit;
use crate::cli::SwitchRunner;

/// Words with which this program becomes a runner, in front of its number.
pub(super) const WORDS: [&str; 2] = ["switch-runner", "--runner"];

pub(super) fn run(options: &SwitchRunner) -> Result<Exit> {
    run_stdin(options.runner)?;
    Ok(Exit::Done)
}
