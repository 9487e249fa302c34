//! How long messages or frames stayed: the percentiles that were asked for.

use whylate_model::reflect::Residence;

use crate::doc::{Block, Table};
use crate::numbers::{Value, number, time};
use crate::terminal::Percentiles;

/// Does the sample support this percentile?
pub(crate) fn shows(of: &Residence, percent: f64) -> bool {
    of.percentiles.iter().any(|one| (one.percent - percent).abs() < 1e-9 && one.value.is_some())
}

/// A percentile; of one that the sample does not support the bound that it reaches, or where that is not
/// known the largest percentile below it.
pub(crate) fn at(of: &Residence, percent: f64) -> Value {
    let same = |known: f64| (known - percent).abs() < 1e-9;
    let asked = of.percentiles.iter().find(|one| same(one.percent));
    let below = of.percentiles.iter().filter(|one| one.percent < percent);
    let reached = || below.filter_map(|one| one.value).max().unwrap_or(of.min);
    match asked.and_then(|one| one.value) {
        Some(value) => value.into(),
        None => Value::AtLeast(asked.and_then(|one| one.low).unwrap_or_else(reached).0 as f64),
    }
}

/// A row for each. Its first column is of this.
pub(crate) fn table(
    caption: &str,
    of: &str,
    all: &[(String, &Residence)],
    columns: Percentiles,
) -> Table {
    let wanted: Vec<f64> = columns.percents().collect();
    let mut table = Table::new(caption, &[of, "n", "min"])
        .columns(wanted.iter().map(|percent| format!("p{percent}")))
        .columns(["max"]);
    for (name, of) in all {
        let value = |percent: &f64| at(of, *percent);
        let first = [name.as_str().into(), Value::Count(of.samples), of.min.into()];
        table.row(first.into_iter().chain(wanted.iter().map(value)).chain([of.max.into()]));
    }
    table
}

/// How finely, and by which clock.
pub(crate) fn resolution(of: &Residence) -> Block {
    Block::Text(format!(
        "Resolution {}; the counter's frequency is known to {} ppm.",
        time(of.resolution_ns.ceil()),
        number(of.frequency_bound_ppm)
    ))
}
