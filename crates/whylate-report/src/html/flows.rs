//! The section of flows: by which way, what left, what became of it.

use serde::Serialize;
use whylate_model::run::Run;

use super::measured::capped;
use crate::flows::{self, ACCOUNT, TIMES};
use crate::svg::Table;

/// Rows of a table; what is more is counted in the last.
const MOST_ROWS: usize = 64;

/// The section of the page.
#[derive(Debug, Serialize)]
pub(super) struct Flows {
    times: &'static str,
    tables: Vec<Table>,
    told: Vec<String>,
    counts: Table,
    account: &'static str,
}

/// The section; none for a run without flows.
pub(super) fn of(run: &Run) -> Option<Flows> {
    if run.flows.is_empty() {
        return None;
    }
    let tables = [Some(flows::departures(run)), Some(flows::ways(run)), flows::parts(run)];
    Some(Flows {
        times: TIMES,
        tables: tables.into_iter().flatten().map(shortened).collect(),
        told: flows::remarks(run).into_iter().take(MOST_ROWS).collect(),
        counts: shortened(flows::account(run)),
        account: ACCOUNT,
    })
}

fn shortened(mut table: Table) -> Table {
    table.rows = capped(table.rows, MOST_ROWS);
    table
}
