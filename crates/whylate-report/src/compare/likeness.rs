//! Are two series measurements of the same thing?
//!
//! A number is a distance between two vantage points by a clock, under a definition. Where one of
//! these differs, so does what is measured, and a difference of the numbers says nothing. Between
//! two readings of the counter lies the loop with its work: another loop, or other work, is another
//! distance. Not so the counting of every delta: its cost is part of the period, which is taken off.

use std::collections::BTreeMap;

use whylate_model::Printable;
use whylate_model::difference::Difference;
use whylate_model::run::GapSummary;
use whylate_model::series::{Definition, Series};

/// A series, its gap measurement, and the settings of its run.
pub(crate) type Measurement<'a> =
    (&'a Series, Option<&'a GapSummary>, &'a BTreeMap<String, String>);

/// Fields in which the two are not alike; empty when they can be compared.
pub(crate) fn unlike(
    (a, a_gaps, a_settings): Measurement,
    (b, b_gaps, b_settings): Measurement,
) -> Vec<Difference> {
    let kind = |gaps: Option<&GapSummary>| gaps.map(|gaps| gaps.loop_kind.to_string());
    let mut fields = vec![
        ("from", a.from.clone(), b.from.clone()),
        ("to", a.to.clone(), b.to.clone()),
        ("definition", a.definition.to_string(), b.definition.to_string()),
        ("clock", a.clock.clone(), b.clock.clone()),
    ];
    if matches!(a.definition, Definition::Gap | Definition::ReadDelta) {
        let loops = kind(a_gaps).zip(kind(b_gaps));
        let set = |name: &str| a_settings.get(name).cloned().zip(b_settings.get(name).cloned());
        fields.extend(loops.or_else(|| set("loop")).map(|(a, b)| ("loop", a, b)));
        fields.extend(set("work").map(|(a, b)| ("work", a, b)));
    }
    if let (Some(a), Some(b)) = (a.censored, b.censored) {
        fields.push(("timeout", a.above.to_string(), b.above.to_string()));
    }
    let print = |text: String| Printable(&text).to_string();
    fields
        .into_iter()
        .filter(|(_, left, right)| left != right)
        .map(|(name, left, right)| Difference {
            name: name.to_owned(),
            left: print(left),
            right: print(right),
        })
        .collect()
}
