//! What each backend saves of a round trip against the first.

use whylate_model::backends::{BackendRole, BackendRow, Backends, Claim, Saved};
use whylate_model::run::Run;

use super::layout::{name, short};
use super::{COMPARE, Screen, series};
use crate::backends::PERCENTS;
use crate::doc::Table;
use crate::numbers::{Cell, Value};
use crate::spans::{Sentence, Told, sentence};

/// Backends whose reason for not being measured is told.
const MISSING: usize = 2;
/// The percentile that savings are told of.
const MEDIAN: f64 = 50.0;
/// What to do where nothing can be claimed.
const MORE_ROUNDS: &str = "whylate rtt --compare-backends --rounds 20  narrows the intervals";

/// Is it a comparison of backends?
pub(super) fn is_it(run: &Run) -> bool {
    run.backends.is_some() && !run.is_merged()
}

pub(super) fn screen(run: &Run) -> Screen {
    let Some(of) = run.backends.as_deref() else { return Screen::default() };
    let mut notes = Vec::new();
    if let Some(first) = of.first().filter(|row| row.measured.is_some()) {
        let (first, rounds) = (name(&first.backend), of.rounds);
        notes.push(format!(
            "Saved: p50 of {first} minus p50 of the row's backend, averaged over {rounds} rounds. \
             \"Again\" repeats {first} in each round, as a control."
        ));
    }
    notes.extend(missing(of));
    let more = if unclaimed(of).is_some() { MORE_ROUNDS } else { COMPARE };
    Screen {
        answer: answer(run, of),
        tables: vec![table(run, of)],
        notes,
        more: vec![more.to_owned()],
        ..Screen::default()
    }
}

/// What is set against the first, as far as it was measured.
pub(super) fn compared(of: &Backends) -> impl Iterator<Item = (&BackendRow, Option<&Saved>)> {
    let measured = |row: &&BackendRow| row.role == BackendRole::Compared && row.measured.is_some();
    of.rows.iter().filter(measured).map(|row| (row, row.saved_at(MEDIAN)))
}

/// Those of which this is claimed.
fn with_claim(of: &Backends, claim: Claim) -> impl Iterator<Item = (&BackendRow, &Saved)> {
    let known = compared(of).filter_map(|(row, saved)| Some((row, saved?)));
    known.filter(move |(_, saved)| saved.claim.as_ref() == Some(&claim))
}

/// Backends with no claim for the reason of the first of them; none where each has one.
fn unclaimed(of: &Backends) -> Option<(Vec<&BackendRow>, &str)> {
    let why = |saved: Option<&'_ Saved>| match saved?.claim.as_ref()? {
        Claim::Nothing { why } => Some(why.clone()),
        _ => None,
    };
    let first = compared(of).find_map(|(_, saved)| match saved?.claim.as_ref()? {
        Claim::Nothing { why } => Some(why.as_str()),
        _ => None,
    })?;
    let same = compared(of).filter(|(_, saved)| why(*saved).as_deref() == Some(first));
    Some((same.map(|(row, _)| row).collect(), first))
}

fn answer(run: &Run, of: &Backends) -> Vec<Sentence> {
    let Some(first) = of.first().filter(|row| row.measured.is_some()) else {
        return vec!["No backend was measured that others can be compared with.".into()];
    };
    let who = |row: &BackendRow| short(&row.backend);
    let measured = compared(of).count();
    if measured == 0 {
        return vec![sentence!["No other backend was measured than ", who(first), "."]];
    }
    let faster = || with_claim(of, Claim::Saves);
    let slower = with_claim(of, Claim::Costs).count();
    let most = faster().max_by(|(_, a), (_, b)| a.mean_ns.total_cmp(&b.mean_ns));
    let median = quantile(run, first, MEDIAN);
    let Some((row, saved)) = most else {
        let none = sentence!["No backend is shown to be faster than ", who(first)];
        let mut said = vec![sentence![none, " (p50 ", median, ")."]];
        said.extend(unclaimed(of).map(|(rows, why)| {
            let rows = Sentence::joined(rows.into_iter().map(|row| who(row).into()), " and ");
            sentence![rows, " cannot be judged: ", Told::of(why), "."]
        }));
        if said.len() == 1 && slower > 0 {
            said.push(sentence!["Shown to be slower: ", slower, " of ", measured, "."]);
        }
        return said;
    };
    let most = if measured > 1 { " saves most: " } else { " saves " };
    let best = sentence![who(row), most, saving(saved), ends(saved)];
    let mut said = vec![sentence![best, " of ", who(first), "'s p50 (", median, ")."]];
    said.extend(match (measured, faster().count(), slower) {
        (1, ..) => None,
        (_, 1, 0) => {
            Some(sentence!["No other of the ", measured, " backends is shown to save time."])
        }
        (_, some, 0) => {
            Some(sentence![some, " of ", measured, " backends are shown to save time."])
        }
        (_, some, slower) => {
            let of_all = sentence!["Shown to save time: ", some, " of ", measured, " backends"];
            Some(sentence![of_all, "; to take longer: ", slower, "."])
        }
    });
    said
}

/// The interval of what it saves, in a sentence.
fn ends(of: &Saved) -> Option<Sentence> {
    of.interval_ns.map(|_| sentence![" (95% CI ", saving(of).ends(), ")"])
}

/// What it saves, with its interval.
fn saving(of: &Saved) -> Cell {
    let ends = of.interval_ns.map(|(low, high)| (Value::Time(low), Value::Time(high)));
    Cell::from(Value::Time(of.mean_ns)).within(ends)
}

/// A row for each, those that were not measured last.
fn table(run: &Run, of: &Backends) -> Table {
    let percents = PERCENTS.map(series::name);
    let [p50, p99] = &percents;
    let head = ["round trip", p50, p99, "saved, p50", "95% CI", "ratio", "claim"];
    let mut table = Table::new("", &head).words(&[6]);
    let (there, missing): (Vec<_>, Vec<_>) = of.rows.iter().partition(|row| row.measured.is_some());
    for row in there.into_iter().chain(missing) {
        let mut saved = crate::backends::supported(run, of, row);
        let saved = saved.find(|saved| (saved.percent - MEDIAN).abs() < 1e-9);
        let time = saved.map_or_else(|| Cell::from(Value::Absent), saving);
        let ratio = saved.map_or_else(
            || Cell::from(Value::Absent),
            |of| {
                let ends =
                    of.ratio_interval.map(|(low, high)| (Value::Ratio(low), Value::Ratio(high)));
                Cell::from(Value::Ratio(of.ratio)).within(ends).alone()
            },
        );
        let quantiles = PERCENTS.map(|percent| quantile(run, row, percent));
        let label = Cell::from(crate::backends::name(row));
        let [p50, p99] = quantiles;
        table.row([label, p50, p99, time.clone(), time.ends(), ratio, claim(row).into()]);
    }
    table
}

fn quantile(run: &Run, row: &BackendRow, percent: f64) -> Cell {
    let series = row.measured.as_ref().and_then(|of| series::named(run, &of.service));
    series.map_or_else(|| Cell::from(Value::Absent), |of| series::at(of, percent))
}

/// What is claimed of it.
fn claim(row: &BackendRow) -> Value {
    if row.measured.is_none() {
        return "not measured".into();
    }
    match row.saved_at(MEDIAN).and_then(|saved| saved.claim.as_ref()) {
        None => Value::Absent,
        Some(Claim::Saves) => "faster".into(),
        Some(Claim::Costs) => "slower".into(),
        Some(Claim::NoDifference) => "not shown".into(),
        Some(Claim::Nothing { .. }) => "not judged".into(),
    }
}

/// Why some were not measured, or not to the end.
fn missing(of: &Backends) -> Option<String> {
    let reasons = of.rows.iter().filter_map(|row| Some((row, row.reason.as_deref()?)));
    let all: Vec<String> =
        reasons.map(|(row, why)| format!("{} ({})", name(&row.backend), why)).collect();
    let many = if all.len() > MISSING { format!(" ({})", all.len()) } else { String::new() };
    let told = all[..all.len().min(MISSING)].join("; ");
    (!all.is_empty()).then(|| format!("Not measured, or incomplete{many}: {told}."))
}
