//! The section of a reflector: where, what became of messages, whose they were.

use serde::Serialize;
use whylate_model::run::Run;

use crate::reflected;
use crate::svg::Table;

/// Rows of a table.
const MOST_ROWS: usize = 64;

/// The section of the page.
#[derive(Debug, Serialize)]
pub(super) struct Reflected {
    told: Vec<String>,
    tables: Vec<Table>,
}

/// The section; none for a run of something else.
pub(super) fn of(run: &Run) -> Option<Reflected> {
    let of = run.reflected.as_deref()?;
    let mut told = vec![reflected::circumstances(of)];
    told.extend(reflected::remarks(of));
    let table = |caption: &str, head: &[&str], left: &[usize], rows: Vec<Vec<String>>| {
        let mut table = Table::new(caption, head);
        (table.left, table.rows) = (left.to_vec(), rows);
        table
    };
    let clients = reflected::clients(of, MOST_ROWS);
    let one_way = reflected::one_way(of, MOST_ROWS);
    let tables = [
        table("What became of messages", &["messages", "count"], &[0], reflected::counts(of)),
        table("Clients", &reflected::CLIENTS, &[0, 4], clients),
        table(reflected::ONE_WAY, &reflected::RECEPTIONS, &[0], one_way),
    ];
    let tables = tables.into_iter().filter(|table| !table.rows.is_empty()).collect();
    Some(Reflected { told, tables })
}
