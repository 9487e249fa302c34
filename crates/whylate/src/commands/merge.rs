//! `whylate merge`.

use anyhow::Result;
use whylate_report::merge::{Request, merge};

use super::{Exit, Form, finish, stored};
use crate::cli::Merge;
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
    let Merge { format, percentiles, full, .. } = *options;
    let place = stored::place(&options.output);
    let printed = super::print(&merged.run, None, place, Form { format, percentiles, full });
    finish(&merged.run, &options.output, printed, false)
}
