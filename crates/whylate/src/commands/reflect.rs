//! `whylate reflect-stdin`: the other end of the check-up's messages.

use anyhow::Result;

use super::Exit;
use crate::cli::ReflectStdin;

pub(super) fn run(_options: &ReflectStdin) -> Result<Exit> {
    Ok(Exit::Done)
}
