//! `whylate report DIR`.

use std::io::Write;

use anyhow::{Context, Result};
use whylate_model::directory::RunDir;
use whylate_report::html;

use super::Exit;
use crate::cli::Report;

pub(super) fn run(options: &Report) -> Result<Exit> {
    let directory = RunDir::open(&options.run)?;
    let run = directory.read_run()?;
    match &options.html {
        None => super::print(&run, options.format, options.percentiles)?,
        Some(file) if file.as_os_str() == "-" => {
            let page = html::render(&directory, &run)?;
            std::io::stdout().write_all(page.as_bytes()).context("cannot print the page")?;
        }
        Some(file) => html::write_to(&directory, &run, file)?,
    }
    Ok(Exit::Done)
}
