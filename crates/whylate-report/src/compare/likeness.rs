//! Are two series measurements of the same thing?
//!
//! A number is a distance between two vantage points by a clock, under a definition. Where one of
//! these differs, so does what is measured, and a difference of the numbers says nothing.

use whylate_model::Printable;
use whylate_model::difference::Difference;
use whylate_model::run::{GapSummary, LoopKind};
use whylate_model::series::Series;

/// Fields in which the two are not alike; empty when they can be compared.
pub(crate) fn unlike(
    (a, a_gaps): (&Series, Option<&GapSummary>),
    (b, b_gaps): (&Series, Option<&GapSummary>),
) -> Vec<Difference> {
    let kind = |gaps: Option<&GapSummary>| gaps.map(|gaps| gaps.loop_kind);
    let mut fields = vec![
        ("from", a.from.clone(), b.from.clone()),
        ("to", a.to.clone(), b.to.clone()),
        ("definition", a.definition.to_string(), b.definition.to_string()),
        ("clock", a.clock.clone(), b.clock.clone()),
    ];
    if let (Some(a), Some(b)) = (kind(a_gaps), kind(b_gaps)) {
        fields.push(("loop", LoopKind::to_string(&a), LoopKind::to_string(&b)));
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
