//! `whylate load-stdin`: one generator of load, started by whylate itself.

use anyhow::Result;

use super::Exit;

pub(super) fn run() -> Result<Exit> {
    whylate_load::generate_stdin()?;
    Ok(Exit::Done)
}
