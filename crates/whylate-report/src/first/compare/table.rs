//! The numbers of both sides beside each other.

use whylate_model::Nanos;

use super::super::layout::{APART, COLUMNS, LABEL};
use super::super::names::apart;
use super::super::series;
use super::{Known, row_name};
use crate::compare::section::sides;
use crate::compare::{
    Caution, Compared, Comparison, NumberDifference, PairResult, RateDifference, Shown, Spread,
    TIMED_OUT, Verdict,
};
use crate::doc::Table;
use crate::numbers::scale::{Letters, Unit};
use crate::numbers::{Cell, Value};
use crate::render::columns;

/// Percentiles of the first pair, and of each other one.
const OF_FIRST: [f64; 4] = [50.0, 90.0, 99.0, 99.9];
const OF_OTHERS: [f64; 2] = [50.0, 99.0];
/// Letters of what a row is of, whatever room its numbers leave.
const NAME: usize = 18;
/// Of a difference that is shown, and of one that is shown between two recordings alone.
const YES: &str = "yes";
const ONCE: &str = "yes*";
/// Lengths of stalls that rates are shown for.
const LENGTHS: [Nanos; 2] = [Nanos(10_000), Nanos(1_000_000)];

/// A row before the unit of all times is known.
struct Row {
    /// What it is of.
    what: String,
    /// Which number of it; a time has its unit behind it.
    which: String,
    before: Cell,
    after: Cell,
    difference: Cell,
    change: &'static str,
}

/// Everything that is compared; or both sides beside each other, where that was asked.
pub(super) fn of(comparison: &Comparison, pairs: &[Known]) -> Table {
    let beside: Vec<Row> = comparison
        .pairs
        .iter()
        .flat_map(|pair| match &pair.result {
            PairResult::SideBySide => {
                side_by_side(&row_name(comparison, pair), &pair.before, &pair.after)
            }
            _ => Vec::new(),
        })
        .collect();
    let judged = beside.is_empty();
    let rows = if judged { rows(comparison, pairs) } else { beside };
    let cells = rows.iter().flat_map(|row| [&row.before, &row.after, &row.difference]);
    let unit = Unit::of_table(cells);
    let heads = ["", "A (before)", "B (after)", "B − A", "95% CI", "differs"];
    let one_run = comparison.cautions.iter().any(|caution| matches!(caution, Caution::OneRunEach));
    let shown = if judged { heads.len() } else { 3 };
    let table = Table::new("", &heads[..shown]);
    let mut table = if judged { table.words(&[5]) } else { table };
    let written: Vec<([String; 2], Vec<Cell>)> =
        rows.into_iter().map(|row| row.written(unit, one_run)).collect();
    let numbers = written.iter().map(|(_, cells)| &cells[..shown - 1]);
    let room = room(&heads[1..shown], numbers);
    let names: Vec<[String; 2]> = written.iter().map(|(name, _)| name.clone()).collect();
    for (name, (_, cells)) in fitted(&names, room).into_iter().zip(written) {
        table.row([Cell::from(name)].into_iter().chain(cells).take(shown));
    }
    table
}

impl Row {
    /// What it is of and which number of it, and its cells as they are written.
    fn written(self, unit: Option<Unit>, one_run: bool) -> ([String; 2], Vec<Cell>) {
        let is_time = [&self.before, &self.after].into_iter().any(Cell::is_time);
        let unit_name =
            unit.filter(|_| is_time).map_or(String::new(), |of| format!(", {}", of.name));
        let which = format!("{}{unit_name}", self.which);
        let written = |cell: &Cell| cell.in_table(unit);
        let plain = |text: String| text.trim_end_matches('%').to_owned();
        let ends = self.difference.ends();
        let difference = self.difference.clone().shown_as(points(&written(&self.difference)));
        let ends = ends.clone().shown_as(plain(written(&ends)));
        let [before, after] = [self.before, self.after].map(|of| {
            let text = written(&of);
            of.shown_as(text)
        });
        let differs = if one_run && self.change == YES { ONCE } else { self.change };
        ([self.what, which], vec![before, after, difference, ends, differs.into()])
    }
}

/// Letters that the columns of numbers leave to what a row is of.
fn room<'a>(heads: &[&str], rows: impl Iterator<Item = &'a [Cell]>) -> usize {
    // Letters of ASCII take no less room than those that they stand for.
    let width = |text: &str| columns(&Letters::Plain.write(text));
    let mut widths: Vec<usize> = heads.iter().map(|head| width(head)).collect();
    for (at, cell) in rows.flat_map(|row| row.iter().enumerate()) {
        widths[at] = widths[at].max(width(&cell.in_table(None)));
    }
    let taken: usize = widths.iter().map(|width| APART + width).sum();
    COLUMNS.saturating_sub(taken).clamp(NAME, LABEL)
}

/// What rows are of, in so many columns: those that differ are told apart, and each says which number it has.
fn fitted(names: &[[String; 2]], most: usize) -> Vec<String> {
    let is_long = |[what, which]: &[String; 2]| columns(what) + columns(which) > most;
    let of_long = names.iter().filter(|name| is_long(name)).map(|[_, which]| columns(which));
    let room = most.saturating_sub(of_long.max().unwrap_or(0));
    let whats: Vec<String> = names.iter().map(|[what, _]| what.clone()).collect();
    let cut = apart(&whats, room);
    let name = |(name, cut): (&[String; 2], String)| {
        let what = if is_long(name) { &cut } else { &name[0] };
        format!("{what}{}", name[1])
    };
    names.iter().zip(cut).map(name).collect()
}

/// A difference of shares, in percentage points, has no sign of a share: it is no share of what was before.
fn points(text: &str) -> String {
    text.trim_end_matches('%').to_owned()
}

/// A difference with its interval.
pub(super) fn difference(of: &Spread, unit: fn(f64) -> Value) -> Cell {
    let (low, high) = of.interval;
    Cell::from(unit(of.difference)).within(Some((unit(low), unit(high)))).signed()
}

fn rows(comparison: &Comparison, pairs: &[Known]) -> Vec<Row> {
    let alone = pairs.iter().filter(|(_, of)| of.lost_share.is_some()).count() == 1;
    let of_pair = |(at, &(pair, of)): (usize, &Known)| {
        let name = row_name(comparison, pair);
        let mut rows = Vec::new();
        if let Some(lost) = &of.lost_share {
            let what = if alone { "lost CPU time".to_owned() } else { name.clone() };
            rows.push(number(what, lost, Value::Share));
            // Of several CPUs the share of each says more than the stalls of one.
            if !alone {
                return rows;
            }
        }
        let percents: &[f64] = if at == 0 { &OF_FIRST } else { &OF_OTHERS };
        let what = if of.lost_share.is_some() { "stall".to_owned() } else { name };
        rows.extend(percents.iter().filter_map(|percent| quantile(&what, (pair, of), *percent)));
        if at == 0 {
            rows.extend(longest(&what, (pair, of)));
        }
        rows.extend(rates(of));
        rows
    };
    pairs.iter().enumerate().flat_map(of_pair).collect()
}

fn number(what: String, of: &NumberDifference, unit: fn(f64) -> Value) -> Row {
    let [before, after] = sides(of, unit);
    Row {
        what,
        which: String::new(),
        before,
        after,
        difference: difference(&of.difference, unit),
        change: word(of.verdict),
    }
}

fn word(of: Verdict) -> &'static str {
    if of == Verdict::NoDifferenceShown { "no" } else { YES }
}

/// What became of a difference that may have no verdict; `without` says why there may be none.
fn change(spread: Option<Spread>, verdict: Option<Verdict>, without: &'static str) -> &'static str {
    match (spread, verdict) {
        (_, Some(verdict)) => word(verdict),
        (Some(_), None) => "beyond trust",
        (None, None) => without,
    }
}

/// A percentile that a side has; none where neither has it.
fn quantile(what: &str, (pair, of): Known, percent: f64) -> Option<Row> {
    let found = of.quantiles.iter().find(|of| (of.percent - percent).abs() < 1e-9)?;
    let without = if pair.is_timed_out(percent) { TIMED_OUT } else { "too few" };
    (found.before.is_some() || found.after.is_some()).then(|| Row {
        what: what.to_owned(),
        which: format!(" {}", series::name(percent)),
        before: found.before.into(),
        after: found.after.into(),
        difference: by(found.difference),
        change: change(found.difference, found.verdict, without),
    })
}

fn by(of: Option<Spread>) -> Cell {
    of.map_or_else(|| Value::Absent.into(), |of| difference(&of, Value::Time))
}

/// The largest values, of which one run tells nothing; of those beyond what was waited for their bounds.
fn longest(what: &str, (pair, of): Known) -> Option<Row> {
    let max = &of.max;
    let without = if pair.gave_up() { TIMED_OUT } else { "–" };
    (max.before.is_some() || max.after.is_some()).then(|| Row {
        what: what.to_owned(),
        which: " max".to_owned(),
        before: pair.before.largest().into(),
        after: pair.after.largest().into(),
        difference: by(max.difference),
        change: change(max.difference, max.verdict, without),
    })
}

fn rates(of: &Compared) -> Vec<Row> {
    let known = of.rates.iter().filter(|of| LENGTHS.contains(&of.at_least));
    let happened = known.filter(|of| of.per_second.before > 0.0 || of.per_second.after > 0.0);
    let row = |of: &RateDifference| {
        let what = format!("stalls ≥{}, per s", Cell::from(of.at_least).said());
        number(what, &of.per_second, Value::Rate)
    };
    happened.map(row).collect()
}

/// Both sides of a series, without a difference.
fn side_by_side(what: &str, before: &Shown, after: &Shown) -> Vec<Row> {
    let row = |which: String, before: Cell, after: Cell| Row {
        what: what.to_owned(),
        which: format!(" {which}"),
        before,
        after,
        difference: Value::Absent.into(),
        change: "",
    };
    let at = |of: &Shown, percent: f64| {
        let found = of.quantiles.iter().find(|of| (of.percent - percent).abs() < 1e-9);
        Cell::from(found.map_or(Value::Absent, series::value)).resolved(of.resolution_ns)
    };
    let mut rows: Vec<Row> = OF_FIRST
        .iter()
        .map(|percent| row(series::name(*percent), at(before, *percent), at(after, *percent)))
        .collect();
    rows.push(row("max".to_owned(), before.largest().into(), after.largest().into()));
    rows
}
