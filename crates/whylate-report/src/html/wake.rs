//! The section of wake-ups: how late, where the time went, and what the late ones are named after.

use serde::Serialize;
use whylate_model::run::Run;

use super::measured::capped;
use crate::svg::Table;
use crate::wake::{self, CORRECTED, SPLIT};

/// Rows of a table; what is more is counted in the last.
const MOST_ROWS: usize = 64;

/// The section of the page.
#[derive(Debug, Serialize)]
pub(super) struct Wakes {
    later: Table,
    corrected: &'static str,
    split: Option<Table>,
    stages: &'static str,
    told: Vec<String>,
}

/// The section; none for a run without threads that do nothing but wake.
pub(super) fn of(run: &Run) -> Option<Wakes> {
    let wakes = wake::wakes(run)?;
    Some(Wakes {
        later: shortened(wakes.later),
        corrected: CORRECTED,
        split: wakes.split.map(shortened),
        stages: SPLIT,
        told: wakes.told,
    })
}

fn shortened(mut table: Table) -> Table {
    table.rows = capped(table.rows, MOST_ROWS);
    table
}
