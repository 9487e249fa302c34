//! The section of a set that was predicted and run: bounds beside what was measured, and the gap behind
//! each job that took longer.

use serde::Serialize;
use whylate_model::prediction::Prediction;
use whylate_model::run::Run;

use super::measured::capped;
use crate::prediction::{
    LONGEST_GAPS, Violations, beside_measured, how_beside, told_jobs, violations,
};
use crate::svg::Table;

/// Rows of a table; what is more is counted in the last.
const MOST_ROWS: usize = 256;

/// The section of the page.
#[derive(Debug, Serialize)]
pub(super) struct Predicted {
    parts: Vec<Part>,
    how_slow: &'static str,
}

/// A prediction beside the run: as it was made before it, and again with the measured jitter.
#[derive(Debug, Serialize)]
struct Part {
    title: &'static str,
    beside: Table,
    how: &'static str,
    /// Jobs that are told one by one.
    told: Vec<String>,
    slow: Option<Slow>,
}

/// Jobs that took longer than was predicted.
#[derive(Debug, Serialize)]
struct Slow {
    by_cause: Table,
    first: Table,
    more: Vec<String>,
}

/// The section; none for a run that was not predicted.
pub(super) fn of(run: &Run) -> Option<Predicted> {
    let first = run.prediction.as_ref()?;
    let again = first.with_measured_jitter.as_deref();
    let mut parts = vec![part("Predicted beside measured", first)];
    parts
        .extend(again.map(|again| part("Again, with the release jitter that was measured", again)));
    Some(Predicted { parts, how_slow: LONGEST_GAPS })
}

fn part(title: &'static str, of: &Prediction) -> Part {
    let slow = violations(of).map(|Violations { by_cause, first, more }| Slow {
        by_cause: shortened(by_cause),
        first: shortened(first),
        more,
    });
    let (how, told) = (how_beside(of), told_jobs(of));
    Part { title, beside: shortened(beside_measured(of)), how, told, slow }
}

fn shortened(mut table: Table) -> Table {
    table.rows = capped(table.rows, MOST_ROWS);
    table
}
