//! How long messages or frames stayed: the percentiles that were asked for.

use whylate_model::reflect::Residence;

use crate::doc::{Block, Table};
use crate::numbers::{Value, number, time};
use crate::terminal::Percentiles;

/// A row for each; a percentile that is not known lies above the largest that is. Its first column is of this.
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
        let value = |percent: &f64| {
            let same = |known: f64| (known - percent).abs() < 1e-9;
            let found = of.percentiles.iter().find(|one| same(one.percent));
            let value = found.and_then(|one| one.value);
            value.map_or_else(|| Value::AtLeast(of.max.0 as f64), Value::from)
        };
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
