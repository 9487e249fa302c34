//! The section of a set of threads: its deadlines and its CPU time.

use serde::Serialize;
use whylate_model::run::Run;

use crate::svg::Table;
use crate::threads::{self, Judged, RECEIVED, Received, SKIPPED};

/// The section of the page.
#[derive(Debug, Serialize)]
pub(super) struct Threads {
    deadlines: Option<Table>,
    skipped: &'static str,
    misses: Vec<String>,
    received: Table,
    how: &'static str,
    items: Vec<String>,
}

/// The section; none for a run without a set of threads.
pub(super) fn of(run: &Run) -> Option<Threads> {
    if run.threads.is_empty() {
        return None;
    }
    let (deadlines, misses) = match threads::judged(run) {
        Some(Judged { table, misses }) => (Some(table), misses),
        None => (None, Vec::new()),
    };
    let Received { table: received, items } = threads::received(run);
    Some(Threads { deadlines, skipped: SKIPPED, misses, received, how: RECEIVED, items })
}
