//! The section of flows: by which way, what left, what became of it.

use serde::Serialize;
use whylate_model::run::Run;

use super::measured::capped;
use crate::flows::{self, ACCOUNT};
use crate::pacing;
use crate::svg::Table;
use crate::tail::{self, SHARES, Why};

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
    pacing: Option<Table>,
    apart: &'static str,
    why: Vec<Why>,
    shares: &'static str,
}

/// The section; none for a run without flows.
pub(super) fn of(run: &Run) -> Option<Flows> {
    if run.flows.is_empty() {
        return None;
    }
    let tables = [Some(flows::departures(run)), Some(flows::ways(run)), flows::parts(run)];
    Some(Flows {
        times: flows::times(run),
        tables: tables.into_iter().flatten().map(shortened).collect(),
        told: flows::remarks(run).into_iter().take(MOST_ROWS).collect(),
        counts: shortened(flows::account(run)),
        account: ACCOUNT,
        pacing: pacing::table(run).map(shortened),
        apart: pacing::APART,
        why: tail::sections(run).into_iter().take(MOST_ROWS).collect(),
        shares: SHARES,
    })
}

fn shortened(mut table: Table) -> Table {
    table.rows = capped(table.rows, MOST_ROWS);
    table
}
