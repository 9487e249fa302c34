//! `whylate report DIR`.

use anyhow::Result;
use whylate_model::directory::RunDir;

use super::Exit;
use crate::cli::Report;

pub(super) fn run(options: &Report) -> Result<Exit> {
    let directory = RunDir::open(&options.run)?;
    let run = directory.read_run()?;
    super::print(&run, options.format)?;
    Ok(Exit::Done)
}
