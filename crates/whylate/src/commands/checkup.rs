//! `whylate` without a command: the one-minute check-up.

use anyhow::Result;

use super::Exit;
use crate::cli::Checkup;

pub(super) fn run(_options: &Checkup) -> Result<Exit> {
    Ok(Exit::Done)
}
