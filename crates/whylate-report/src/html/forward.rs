//! The section of a forwarder: what became of frames, where some were lost, what they cost.

use serde::Serialize;
use whylate_model::run::Run;

use crate::forward;
use crate::svg::Table;

/// The section of the page.
#[derive(Debug, Serialize)]
pub(super) struct Forwarded {
    told: Vec<String>,
    tables: Vec<Table>,
    read: Vec<&'static str>,
}

/// The section; none for a run of something else.
pub(super) fn of(run: &Run) -> Option<Forwarded> {
    let of = run.forward.as_deref()?;
    let mut told = vec![forward::circumstances(of)];
    told.extend(forward::remarks(of));
    told.extend(forward::occasions(&of.ports));
    let table = |caption: &str, head: &[&str], left: &[usize], rows: Vec<Vec<String>>| {
        let mut table = Table::new(caption, head);
        (table.left, table.rows) = (left.to_vec(), rows);
        table
    };
    let mut tables = vec![
        table("What became of frames", &forward::DIRECTIONS, &[0], forward::directions(of)),
        table(forward::LOSSES, &forward::PLACES, &[0, 1], forward::losses(of)),
    ];
    tables.extend(forward::ticks(of).into_iter().map(|(direction, rows)| {
        table(&format!("{}, {direction}", forward::TICKS), &forward::PARTS, &[0], rows)
    }));
    tables.retain(|table| !table.rows.is_empty());
    Some(Forwarded {
        told,
        tables,
        read: vec![forward::counted(of), forward::read_residence(of), forward::READ_TICKS],
    })
}
