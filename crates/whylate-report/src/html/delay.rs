//! The section of a delay line: how frames were held back, and what became of them.

use serde::Serialize;
use whylate_model::run::Run;

use crate::svg::Table;
use crate::{delay, forward};

/// The section of the page.
#[derive(Debug, Serialize)]
pub(super) struct Delayed {
    told: Vec<String>,
    tables: Vec<Table>,
    read: Vec<&'static str>,
}

/// The section; none for a run of something else.
pub(super) fn of(run: &Run) -> Option<Delayed> {
    let of = run.delay.as_deref()?;
    let mut told = vec![delay::circumstances(of)];
    told.extend(delay::remarks(of));
    told.extend(forward::occasions(&of.ends));
    let table = |caption: &str, head: &[&str], left: &[usize], rows: Vec<Vec<String>>| {
        let mut table = Table::new(caption, head);
        (table.left, table.rows) = (left.to_vec(), rows);
        table
    };
    let mut tables = vec![
        table(delay::LAWS, &delay::LAW, &[0, 1], delay::laws(of)),
        table(delay::FATES, &delay::FATE, &[0, 1], delay::fates(of)),
        table(delay::CHANGES, &delay::CHANGE, &[1, 2], delay::changes(of)),
        table(delay::LOSSES, &forward::PLACES, &[0, 1], forward::port_losses(&of.ends)),
    ];
    tables.retain(|table| !table.rows.is_empty());
    Some(Delayed { told, tables, read: vec![delay::READ_FATES, delay::READ_TIMES] })
}
