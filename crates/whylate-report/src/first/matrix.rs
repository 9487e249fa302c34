//! Which configuration of a busy thread loses least?

use whylate_model::run::{GapSummary, Run};

use super::layout::{name, short};
use super::{DIRECTORY, Screen, gaps};
use crate::doc::Table;
use crate::numbers::{Cell, Value};
use crate::spans::{Sentence, sentence};

/// Rows of configurations in their own order; of more the worst stand first.
const IN_ORDER: usize = 8;

/// Is it a matrix: several configurations of a busy thread, one after the other?
pub(super) fn is_it(run: &Run) -> bool {
    gaps::of_busy_threads(run) && run.gaps.iter().all(|of| cell(of).is_some())
}

/// The directory of the cell that a thread ran in.
fn cell(gaps: &GapSummary) -> Option<&str> {
    let (cell, _) = gaps.series.split_once("-gap-")?;
    let plain = |letter: char| letter.is_ascii_lowercase() || letter == '-';
    (cell.starts_with(|letter: char| letter != '-') && cell.chars().all(plain)).then_some(cell)
}

pub(super) fn screen(run: &Run) -> Screen {
    let mut worst_first: Vec<&GapSummary> = run.gaps.iter().collect();
    worst_first.sort_by(|a, b| b.lost_share.total_cmp(&a.lost_share));
    let in_order: Vec<&GapSummary> = run.gaps.iter().collect();
    let rows = if run.gaps.len() > IN_ORDER { &worst_first } else { &in_order };
    let mut table = Table::new("", &["configuration", "of CPU", "95% CI", "stalls", "longest"]);
    for of in rows {
        let share = gaps::lost(of);
        table.row([
            Cell::from(name(&run.thread_name(of))),
            share.clone(),
            share.ends(),
            Value::Count(of.gaps).into(),
            gaps::longest(run, of).into(),
        ]);
    }
    let worst = worst_first.first().and_then(|of| cell(of));
    let more = worst.map(|cell| format!("whylate report {DIRECTORY}/{cell}  says why"));
    Screen {
        answer: answer(run, &worst_first),
        tables: vec![table],
        more: more.into_iter().collect(),
        ..Screen::default()
    }
}

fn answer(run: &Run, worst_first: &[&GapSummary]) -> Vec<Sentence> {
    let (Some(worst), Some(best)) = (worst_first.first(), worst_first.last()) else {
        return Vec::new();
    };
    if worst_first.len() == 1 {
        return vec![gaps::answer(run, worst)];
    }
    let most = short(&run.thread_name(worst)).begins(super::trusted::upper);
    let most = sentence![most, " lost most (", gaps::lost(worst), " of its time)"];
    let least = sentence![gaps::who(run, best), " least (", gaps::lost(best), ")"];
    let first = sentence![most, ", ", least, "."];
    let ends = worst.lost_share_interval.zip(best.lost_share_interval);
    let second = ends.map(|((low, _), (_, high))| {
        if low > high {
            "Their 95% intervals do not overlap."
        } else {
            "Their 95% intervals overlap: no difference is shown."
        }
        .into()
    });
    std::iter::once(first).chain(second).collect()
}
