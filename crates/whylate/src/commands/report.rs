//! `whylate report DIR`.

use std::io::Write;

use anyhow::{Context, Result};
use whylate_model::directory::RunDir;
use whylate_report::execution::recorded::Recorded;
use whylate_report::{Traced, html};

use super::Exit;
use crate::cli::Report;

pub(super) fn run(options: &Report) -> Result<Exit> {
    let directory = RunDir::open(&options.run)?;
    let run = directory.read_run()?;
    match &options.html {
        None => {
            let window = options.trace.flatten();
            let recorded = Recorded::read(&directory, &run, window);
            let trace = options.trace.is_some();
            let traced = recorded.as_ref().map(|recorded| Traced { recorded, trace });
            if trace && traced.is_none() {
                anstream::eprintln!(
                    "there is no execution trace: this is not a run of a set of threads"
                );
            }
            super::print(&run, traced, options.format, options.percentiles)?;
        }
        Some(file) if file.as_os_str() == "-" => {
            let page = html::render(&directory, &run)?;
            std::io::stdout().write_all(page.as_bytes()).context("cannot print the page")?;
        }
        Some(file) => html::write_to(&directory, &run, file)?,
    }
    Ok(Exit::Done)
}
