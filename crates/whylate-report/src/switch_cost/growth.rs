//! Does a switch cost more with a larger working set: the table and its sentences.

use whylate_model::switch_cost::{Beyond, Growth, SwitchCost, Trend};

use super::size;
use crate::doc::Table;
use crate::numbers::{ABSENT, Value, number, p_value, time, with_ends};

/// How the table is to be read.
pub(super) const GROWTH: &str = "The mean penalty of each working set beyond the first-level cache less \
     that of all pairs inside it, with its 95% interval by Welch's t; each row for itself.";

/// Larger working sets beside those inside the first-level cache; none where there are no two.
pub(super) fn growth(found: &SwitchCost) -> Option<Table> {
    let growth = found.growth.as_ref()?;
    let head = ["working set", "C - C inside L1", "95% interval", "grows"];
    Table::new("Does it grow with the working set?", &head)
        .words(&[3])
        .with(growth.beyond.iter().map(row))
        .filled()
}

fn row(beyond: &Beyond) -> Vec<String> {
    let [more, interval] = match beyond.more {
        None => [ABSENT, ABSENT].map(str::to_owned),
        Some(more) => {
            let (low, high) = more.interval_ns;
            with_ends(Value::Time(more.mean_ns), Some((Value::Time(low), Value::Time(high))))
        }
    };
    let grows = match &beyond.reason {
        None => "yes".to_owned(),
        Some(reason) => format!("not shown: {reason}"),
    };
    vec![size(beyond.bytes), more, interval, grows]
}

/// What is to be said beside it.
pub(super) fn growth_remarks(found: &SwitchCost) -> Vec<String> {
    let Some(growth) = &found.growth else { return Vec::new() };
    let mut said = vec![inside(growth)];
    said.push(match &growth.trend {
        None => "too few pairs for a trend over all working sets".to_owned(),
        Some(trend) => over_all(trend),
    });
    said
}

fn inside(growth: &Growth) -> String {
    let sizes: Vec<String> = growth.inside.iter().map(|bytes| size(*bytes)).collect();
    let sizes = if sizes.is_empty() { "none".to_owned() } else { sizes.join(", ") };
    let mean = match growth.inside_ns {
        None => "no mean".to_owned(),
        Some(mean) => format!("{} over {} pairs", time(mean), growth.pairs),
    };
    if growth.first_level_known {
        format!("inside the first-level cache: {sizes}, {mean}")
    } else {
        format!(
            "the kernel does not tell of its caches, so that the smallest stands for them: {sizes}, {mean}"
        )
    }
}

fn over_all(trend: &Trend) -> String {
    let rises = if trend.rises() { "it rises" } else { "no rise is shown" };
    format!(
        "over {} working sets in their order {rises}: z {}, p {} (Jonckheere-Terpstra over {} pairs)",
        trend.sizes,
        number(trend.z),
        p_value(trend.p_value),
        trend.pairs
    )
}
