//! How long frames stayed, by direction: the percentiles that were asked for.

use whylate_model::reflect::Residence;

use super::Percentiles;
use crate::doc::Table;
use crate::numbers::Value;

/// A row for each; a percentile that is not known lies above the largest that is.
pub(super) fn table(caption: &str, all: &[(String, &Residence)], columns: Percentiles) -> Table {
    let wanted: Vec<f64> = columns.percents().collect();
    let names: Vec<String> = wanted.iter().map(|percent| format!("p{percent}")).collect();
    let mut head = vec!["direction", "n", "min"];
    head.extend(names.iter().map(String::as_str));
    head.push("max");
    let mut table = Table::new(caption, &head);
    for (name, of) in all {
        let value = |percent: &f64| {
            let same = |known: f64| (known - percent).abs() < 1e-9;
            let found = of.percentiles.iter().find(|one| same(one.percent));
            let value = found.and_then(|one| one.value);
            value.map_or_else(|| Value::from(format!("> {}", of.max)), Value::from)
        };
        let first = [name.as_str().into(), Value::Count(of.samples), of.min.into()];
        table.row(first.into_iter().chain(wanted.iter().map(value)).chain([of.max.into()]));
    }
    table
}
