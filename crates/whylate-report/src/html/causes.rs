//! Who took the lost time: totals, senders, findings.

use serde::Serialize;
use whylate_model::Nanos;
use whylate_model::cause::CauseTotal;
use whylate_model::run::Run;

use super::measured::capped;
use crate::numbers::{count, percent};
use crate::svg::Table;

/// Rows of a table.
const MOST_ROWS: usize = 24;

/// The tables of the page's section.
#[derive(Debug, Serialize)]
pub(super) struct Causes {
    coverage: Option<String>,
    senders: Option<Table>,
    foreign: Option<Table>,
    findings: Vec<String>,
}

pub(super) fn of(run: &Run) -> Causes {
    Causes {
        coverage: run.coverage.map(|coverage| {
            format!(
                "Of the lost time {} is explained by events, {} lies in residuals beside events, \
                 {} has no event.",
                percent(coverage.by_events),
                percent(coverage.by_residuals),
                percent(coverage.by_nothing),
            )
        }),
        senders: senders(run),
        foreign: crate::foreign::table(run).map(|mut table| {
            table.rows = capped(table.rows, MOST_ROWS);
            table
        }),
        findings: run
            .findings
            .iter()
            .take(MOST_ROWS)
            .map(|finding| format!("{}, {}: {}", finding.rule, finding.confidence, finding.text))
            .collect(),
    }
}

/// Totals over all CPUs, the largest first.
pub(super) fn totals(run: &Run) -> Vec<&CauseTotal> {
    let mut totals: Vec<&CauseTotal> = run.causes.iter().filter(|t| t.cpu.is_none()).collect();
    if totals.is_empty() {
        totals = run.causes.iter().collect();
    }
    totals.sort_by(|a, b| b.lost_ns.total_cmp(&a.lost_ns));
    totals
}

/// The numbers beside the bars.
pub(super) fn table(run: &Run) -> Table {
    let of = crate::terminal::denominator(run);
    let head = ["cause", "gaps", "lost", "of lost", of, "longest"];
    let mut table = Table::new("Lost time by cause", &head);
    let rows = totals(run).into_iter().map(crate::terminal::cause_cells);
    table.rows = capped(rows.collect(), MOST_ROWS);
    table
}

fn senders(run: &Run) -> Option<Table> {
    let mut totals: Vec<_> = run.senders.iter().collect();
    totals.sort_by_key(|total| std::cmp::Reverse(total.count));
    let mut table =
        Table::new("Who sent interrupts and wake-ups", &["sent by", "what", "to", "times", "lost"]);
    table.left = vec![1];
    let rows = totals.iter().map(|total| {
        let name = if total.comm.is_empty() { "(unnamed)" } else { &total.comm };
        vec![
            format!("{name} on CPU {}", total.from),
            total.cause.to_string(),
            format!("CPU {}", total.to),
            count(total.count),
            Nanos(total.lost_ns.round() as u64).to_string(),
        ]
    });
    table.rows = capped(rows.collect(), MOST_ROWS);
    (!totals.is_empty()).then_some(table)
}
