//! What several recordings of busy threads say together.

use whylate_model::run::{GapSummary, Run};
use whylate_model::series::Definition;
use whylate_model::{Nanos, Printable};

use super::taken::{self, by_class};
use super::{COMPARE, Screen, gaps};
use crate::doc::Table;
use crate::numbers::{Cell, Value, count};
use crate::spans::{Sentence, sentence};

/// Rows of causes beside those of recordings.
const CAUSES: usize = 4;

/// Is it a sum of recordings of busy threads, and of nothing else?
pub(super) fn is_it(run: &Run) -> bool {
    let alone = |definition| matches!(definition, Definition::Gap | Definition::ReadDelta);
    run.is_merged()
        && !run.gaps.is_empty()
        && run.threads.is_empty()
        && run.series.iter().all(|series| alone(series.definition))
}

pub(super) fn screen(run: &Run) -> Screen {
    let worst = run.gaps.iter().max_by(|a, b| a.lost_share.total_cmp(&b.lost_share));
    let Some(worst) = worst else { return Screen::default() };
    let mut answer = vec![headline(run, worst)];
    answer.extend(between(run, worst));
    let taken = taken::fewer(by_class(run, None), CAUSES);
    let tables = vec![taken::table_without_stalls(&taken), recordings(run, worst)];
    let notes = left_out(run).into_iter().collect();
    Screen { answer, tables, notes, more: vec![COMPARE.to_owned()], ..Screen::default() }
}

pub(super) fn headline(run: &Run, gaps: &GapSummary) -> Sentence {
    let runs = sentence!["Over ", run.origins.len(), " runs (", gaps::elapsed(run, gaps), "), "];
    let several = if run.gaps.len() > 1 { "the worst of several, " } else { "" };
    sentence![runs, several, gaps::answer(run, gaps)]
}

/// How the recordings differ in the share that they lost.
pub(super) fn between(run: &Run, gaps: &GapSummary) -> Option<Sentence> {
    let shares: Vec<&Share> = worst_first(run, gaps).into_iter().map(|(_, share)| share).collect();
    let known: Vec<Cell> =
        shares.iter().filter(|of| of.lost_share.is_some()).map(|of| lost(of)).collect();
    let [most, .., least] = known.as_slice() else { return None };
    Some(if least.said() == most.said() {
        sentence!["Each of them lost ", least.clone(), "."]
    } else {
        sentence!["The runs disagree: ", least.clone(), " to ", most.clone(), "."]
    })
}

type Origin = whylate_model::origin::Origin;
type Share = whylate_model::origin::Share;

/// What each recording added to a thread's series.
fn of_recordings<'a>(
    run: &'a Run,
    gaps: &'a GapSummary,
) -> impl Iterator<Item = (&'a Origin, &'a Share)> {
    let of_series = |origin: &'a Origin| {
        let share = origin.series.iter().find(|share| share.series == gaps.series)?;
        Some((origin, share))
    };
    run.origins.iter().filter_map(of_series)
}

/// The recordings, the one that lost most first.
fn worst_first<'a>(run: &'a Run, gaps: &'a GapSummary) -> Vec<(&'a Origin, &'a Share)> {
    let mut all: Vec<(&Origin, &Share)> = of_recordings(run, gaps).collect();
    let lost = |share: &Share| share.lost_share.unwrap_or(0.0);
    all.sort_by(|a, b| lost(b.1).total_cmp(&lost(a.1)));
    all
}

/// The share that a recording lost, with its interval.
fn lost(of: &Share) -> Cell {
    let ends = of.lost_share_interval.map(|(low, high)| (Value::Share(low), Value::Share(high)));
    Cell::from(of.lost_share.map(Value::Share)).within(ends)
}

/// A row for each recording, the one that lost most first.
pub(super) fn recordings(run: &Run, gaps: &GapSummary) -> Table {
    let mut table = Table::new("", &["runs", "of CPU", "stalls", "longest"]);
    for (origin, share) in worst_first(run, gaps) {
        table.row([
            Cell::from(Printable(&origin.directory).to_string()),
            lost(share),
            Value::Count(share.n).into(),
            share.max.into(),
        ]);
    }
    table
}

/// What was too short for one of the recordings.
pub(super) fn left_out(run: &Run) -> Option<String> {
    let shares = run.origins.iter().flat_map(|origin| &origin.series);
    let left_out = shares.clone().map(|share| share.left_out).fold(0, u64::saturating_add);
    let threshold = shares.filter_map(|share| share.threshold).max().unwrap_or(Nanos(0));
    let threshold = Cell::from(threshold).said();
    (left_out > 0).then(|| {
        format!(
            "{} stalls below {threshold} were left out: the thresholds differ.",
            count(left_out)
        )
    })
}
