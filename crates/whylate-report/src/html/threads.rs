//! The section of a set of threads: its deadlines and its CPU time.

use serde::Serialize;
use whylate_model::run::Run;

use super::measured::capped;
use crate::svg::Table;
use crate::threads::{self, Explained, Judged, RECEIVED, Received, SKIPPED};

/// Rows of a table; what is more is counted in the last.
const MOST_ROWS: usize = 64;

/// The section of the page.
#[derive(Debug, Serialize)]
pub(super) struct Threads {
    deadlines: Option<Table>,
    skipped: &'static str,
    misses: Vec<String>,
    phases: Vec<Explained>,
    received: Table,
    how: &'static str,
    items: Vec<String>,
}

/// The section; none for a run without a set of threads, or whose threads did nothing but wake.
pub(super) fn of(run: &Run) -> Option<Threads> {
    if run.threads.is_empty() || run.only_wakes() {
        return None;
    }
    let (deadlines, misses) = match threads::judged(run) {
        Some(Judged { table, misses }) => (Some(table), misses),
        None => (None, Vec::new()),
    };
    let Received { table: received, items } = threads::received(run);
    let (deadlines, received) = (deadlines.map(shortened), shortened(received));
    Some(Threads {
        deadlines,
        skipped: SKIPPED,
        misses,
        phases: threads::phases(run)
            .into_iter()
            .map(|of| Explained { table: shortened(of.table), ..of })
            .collect(),
        received,
        how: RECEIVED,
        items,
    })
}

fn shortened(mut table: Table) -> Table {
    table.rows = capped(table.rows, MOST_ROWS);
    table
}

#[cfg(test)]
mod tests;
