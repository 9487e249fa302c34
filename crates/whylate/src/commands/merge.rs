//! `whylate merge`.

use anyhow::Result;
use whylate_model::directory::RunDir;
use whylate_report::merge::{Request, merge};

use super::Exit;
use crate::cli::{Format, Merge};

pub(super) fn run(options: &Merge) -> Result<Exit> {
    let request = Request {
        directories: options.runs.clone(),
        across_cpus: options.across_cpus,
        across: options.across.clone(),
        skip_damaged: options.skip_damaged,
        tables: !options.without_tables,
        table_bytes: options.max_disk,
        command_line: std::env::args().collect(),
    };
    let merged = merge(&request, &options.output)?;
    for sentence in &merged.left_out {
        anstream::eprintln!("left out: {sentence}");
    }
    super::print(&merged.run, None, options.format, options.percentiles)?;
    if options.format == Format::Text {
        anstream::println!("\nRun directory: {}", options.output.display());
    }
    // The sum is stored and printed: without its page it is as good as before.
    let page = RunDir::open(&options.output).map_err(Into::into);
    if let Err(error) = page.and_then(|run| whylate_report::html::write(&run, &merged.run)) {
        anstream::eprintln!("{error}");
    }
    Ok(super::exit(&merged.run))
}
