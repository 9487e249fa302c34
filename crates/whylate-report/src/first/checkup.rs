//! Is anything on this machine slow, and what is it?

use whylate_model::run::Run;
use whylate_model::series::{Definition, Series, shown_label};

use super::taken::{self, by_class};
use super::{Screen, gaps, series};
use crate::doc::Table;
use crate::numbers::{Cell, Value, count};
use crate::terminal::Style;

/// Series of timer wake-ups as measured, and with each skipped one at its own latency.
const RAW: &str = "wake";
const CORRECTED: &str = "wake-corrected";
/// Rows of causes beside those of latencies.
const CAUSES: usize = 4;

/// Is it a recording of a check-up?
pub(super) fn is_it(run: &Run) -> bool {
    !run.is_merged() && run.holds_latencies()
}

/// Timer wake-ups that were skipped, and count at their own latency.
pub(super) fn skipped(run: &Run) -> Option<String> {
    let (raw, all) = (series::named(run, RAW)?, series::named(run, CORRECTED)?);
    let skipped = count(all.n.saturating_sub(raw.n));
    Some(format!(
        "Timer wake-ups include {skipped} skipped ones (corrected for coordinated omission)."
    ))
}

pub(super) fn screen(run: &Run, style: Style) -> Screen {
    let taken = taken::fewer(by_class(run, None), CAUSES);
    let worst = run.gaps.iter().max_by(|a, b| a.lost_share.total_cmp(&b.lost_share));
    let worst = worst.map(|gaps| gaps::answer(run, gaps));
    let answer = worst.into_iter().chain(taken::sentence(&taken, &"Of that, ".into())).collect();
    let cpus: Vec<_> = run.gaps.iter().map(|gaps| gaps.cpu).collect();
    let notes = skipped(run).into_iter().collect();
    Screen {
        answer,
        notes,
        tables: vec![latency(run, style), taken::table_without_stalls(&taken)],
        more: vec![gaps::next(run, "", &cpus)],
        ..Screen::default()
    }
}

/// The latencies of all parts.
pub(super) fn latency(run: &Run, style: Style) -> Table {
    let percents: Vec<f64> = style.percentiles.percents().collect();
    let names = percents.iter().map(|percent| series::name(*percent));
    let head: Vec<String> = ["latency".to_owned()]
        .into_iter()
        .chain(names)
        .chain(["max", "samples"].map(str::to_owned))
        .collect();
    let heads: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = Table::new("", &heads);
    for (of, _) in run.latencies() {
        let values = percents.iter().map(|percent| series::at(of, *percent));
        let rest = [series::max(of), Value::Count(of.n).into()];
        table.row([Cell::from(label(of))].into_iter().chain(values).chain(rest));
    }
    table
}

/// What was measured, in the words of the field.
fn label(series: &Series) -> String {
    match series.definition {
        Definition::ReadDelta => "clock reading".to_owned(),
        Definition::DispatchLatency => "timer wake-up".to_owned(),
        _ => shown_label(&series.label),
    }
}
