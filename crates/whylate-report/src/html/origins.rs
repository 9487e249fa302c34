//! What a merged run is the sum of: its recordings, each with its own numbers.

use serde::Serialize;
use whylate_model::Nanos;
use whylate_model::cause::WorstGap;
use whylate_model::origin::{Origin, Share};
use whylate_model::run::{Run, Verdict};

use super::machine::utc;
use super::measured::capped;
use super::worst;
use crate::numbers::{count, percent};
use crate::svg::Table;

/// Rows of a table: those with the largest values come first.
const MOST_ROWS: usize = 64;
/// Longest gaps of all recordings.
const MOST_GAPS: usize = 24;

/// The tables of the page's section.
#[derive(Debug, Serialize)]
pub(super) struct Origins {
    recordings: usize,
    shares: Table,
    worst: Option<Table>,
}

/// The section; none for a run that is no sum.
pub(super) fn of(run: &Run) -> Option<Origins> {
    run.is_merged().then(|| Origins {
        recordings: run.origins.len(),
        shares: shares(run),
        worst: worst_gaps(run),
    })
}

fn shares(run: &Run) -> Table {
    let head = [
        "recording",
        "host",
        "began",
        "series",
        "n",
        "p50",
        "p99",
        "p99.9",
        "max",
        "lost",
        "verdict",
    ];
    let mut table = Table::new("Each recording by itself, the largest values first", &head);
    table.left = vec![1, 2, 3, 10];
    let mut shares: Vec<(&Origin, &Share)> =
        run.origins.iter().flat_map(|o| o.series.iter().map(move |share| (o, share))).collect();
    shares.sort_by_key(|(origin, share)| (std::cmp::Reverse(share.max), &origin.directory));
    let cell = |value: Option<Nanos>| value.map_or("-".to_owned(), |v| v.to_string());
    let rows = shares.iter().map(|(origin, share)| {
        vec![
            origin.directory.clone(),
            origin.host.hostname.clone(),
            origin.began().map_or("-".to_owned(), utc),
            share.series.clone(),
            count(share.n),
            cell(share.p50),
            cell(share.p99),
            cell(share.p999),
            cell(share.max),
            share.lost_share.map_or("-".to_owned(), percent),
            verdict(&origin.verdict).to_owned(),
        ]
    });
    table.rows = capped(rows.collect(), MOST_ROWS);
    table
}

fn verdict(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Trustworthy => "trustworthy",
        Verdict::LimitExceeded { .. } => "a limit exceeded",
        Verdict::Untrustworthy { .. } => "not trustworthy",
        Verdict::Pending => "none",
    }
}

/// The longest gaps of all, each by its own clock.
fn worst_gaps(run: &Run) -> Option<Table> {
    let mut gaps: Vec<(&Origin, &WorstGap)> =
        run.origins.iter().flat_map(|o| o.worst.iter().map(move |gap| (o, gap))).collect();
    gaps.sort_by_key(|(origin, gap)| (std::cmp::Reverse(gap.length), &origin.directory));
    let head = ["recording", "host", "at", "length", "CPU", "cause"];
    let mut table = Table::new("The longest gaps of all, each by its own clock", &head);
    table.left = vec![1, 2, 5];
    let rows = gaps.iter().map(|(origin, gap)| {
        vec![
            origin.directory.clone(),
            origin.host.hostname.clone(),
            origin.clock.realtime_ns(gap.start).map_or("-".to_owned(), utc),
            gap.length.to_string(),
            worst::cpus(gap),
            worst::cause(gap),
        ]
    });
    table.rows = capped(rows.collect(), MOST_GAPS);
    (!gaps.is_empty()).then_some(table)
}
