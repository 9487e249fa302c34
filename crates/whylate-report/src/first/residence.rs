//! How long something stayed, as a first screen shows it.

use whylate_model::reflect::Residence;

use super::series;
use crate::doc::Table;
use crate::numbers::{Cell, Value};
use crate::residence;
use crate::terminal::Style;

/// A percentile as a first screen shows it.
pub(super) fn at(of: &Residence, percent: f64) -> Cell {
    Cell::from(residence::at(of, percent)).resolved(of.resolution_ns)
}

/// A row for each of several.
pub(super) fn table(head: &str, rows: &[(String, &Residence)], style: Style) -> Table {
    let percents: Vec<f64> = style.percentiles.percents().collect();
    let names = percents.iter().map(|percent| series::name(*percent));
    let heads = [head, "min"].map(str::to_owned).into_iter().chain(names);
    let heads: Vec<String> = heads.chain(["max", "n"].map(str::to_owned)).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table = Table::new("", &heads);
    for (name, of) in rows {
        let time = |of_it| Cell::from(of_it).resolved(of.resolution_ns);
        let first = [Cell::from(name.as_str()), time(of.min)];
        let values = percents.iter().map(|percent| at(of, *percent));
        let last = [time(of.max), Value::Count(of.samples).into()];
        table.row(first.into_iter().chain(values).chain(last));
    }
    table
}
