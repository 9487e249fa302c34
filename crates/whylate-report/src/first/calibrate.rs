//! Up to which percentile each way to send a message may be trusted.

use whylate_model::Printable;
use whylate_model::calibration::{CalibratedBackend, Calibration, Limit};
use whylate_model::run::Run;

use super::{Screen, series};
use crate::calibration::furthest;
use crate::doc::Table;
use crate::numbers::{Cell, Value};
use crate::spans::{Name, Sentence, Told, sentence};

/// Backends whose reason for not being measured is told.
const MISSING: usize = 2;

/// Is it a calibration?
pub(super) fn is_it(run: &Run) -> bool {
    run.calibration.is_some() && !run.is_merged()
}

pub(super) fn screen(run: &Run) -> Screen {
    let Some(of) = run.calibration.as_deref() else { return Screen::default() };
    let head = ["backend", "runs", "messages", "as measured", "path", "minus path"];
    let mut table = Table::new("", &head);
    for one in &of.backends {
        table.row([
            Cell::from(Printable(&one.backend).to_string()),
            Value::Count(one.runs.into()).into(),
            Value::Count(one.n).into(),
            limit(&one.limit_raw),
            one.base.into(),
            limit(&one.limit_compensated),
        ]);
    }
    let tolerance = Cell::from(of.tolerance).said();
    let mut notes = vec![format!(
        "The highest percentile whose error, with its 95% interval, is at most {tolerance}: as measured, and \
         minus the path (the p50 without the delay line)."
    )];
    notes.extend(missing(of));
    let more = "whylate rtt  marks what lies beyond these limits".to_owned();
    Screen { answer: answer(of), tables: vec![table], notes, more: vec![more], ..Screen::default() }
}

fn limit(of: &Limit) -> Cell {
    of.percent.map_or_else(|| "none".to_owned(), series::name).into()
}

fn answer(of: &Calibration) -> Vec<Sentence> {
    let Some((best, among)) = furthest(of) else {
        return vec!["No backend could be calibrated.".into()];
    };
    let mut said = vec![headline(of, best, among)];
    if among > 1 && best.limit_compensated.percent.is_some() {
        said.push(sentence![
            "No other of the ",
            among,
            " backends is accurate further into the tail."
        ]);
    }
    said
}

fn headline(of: &Calibration, best: &CalibratedBackend, among: usize) -> Sentence {
    let name = Name::of(&best.backend);
    let percentile = |percent: f64| Told::of(series::name(percent));
    let raw = best.limit_raw.percent.map(percentile);
    let without = best.limit_compensated.percent.filter(|_| best.base.is_some()).map(percentile);
    let right = sentence![" accurate to ", Sentence::asked(of.tolerance)];
    match (without, raw) {
        (Some(without), Some(raw)) => {
            let minus = sentence![" up to ", without, " once its path delay is subtracted, "];
            sentence![name, " is", right, minus, raw, " as measured."]
        }
        (Some(without), None) => {
            sentence![
                name,
                " is",
                right,
                " up to ",
                without,
                ", once its path delay is subtracted."
            ]
        }
        (None, Some(raw)) => sentence![name, " is", right, " up to ", raw, ", as measured."],
        (None, None) if among > 1 => {
            sentence!["No percentile of any of ", among, " backends is", right, "."]
        }
        (None, None) if best.errors_raw.is_empty() => {
            sentence![name, " prints no percentile: how far it can be trusted is not known."]
        }
        (None, None) => sentence!["No percentile of ", name, " is", right, "."],
    }
}

fn missing(of: &Calibration) -> Option<String> {
    let named = of.missing.iter().take(MISSING);
    let named: Vec<String> =
        named.map(|one| format!("{} ({})", Printable(&one.backend), Printable(&one.why))).collect();
    let more = of.missing.len().saturating_sub(MISSING);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!named.is_empty()).then(|| format!("Not calibrated: {}{more}.", named.join(", ")))
}
