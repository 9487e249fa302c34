//! `whylate merge`.

use anyhow::Result;
use whylate_report::merge::{Request, merge};

use super::{Exit, finish};
use crate::cli::{Format, Merge};
use crate::out::say;

pub(super) fn run(options: &Merge) -> Result<Exit> {
    let request = Request {
        directories: options.runs.clone(),
        across_cpus: options.across_cpus,
        across: options.across.clone(),
        skip_damaged: options.skip_damaged,
        tables: !options.without_tables,
        table_bytes: options.max_disk,
        command_line: whylate_record::command_line(),
    };
    let merged = merge(&request, &options.output)?;
    for sentence in &merged.left_out {
        say!("left out: {sentence}");
    }
    let printed = super::print(&merged.run, None, options.format, options.percentiles);
    finish(&merged.run, &options.output, printed, options.format == Format::Text)
}
