//! The page from its parts: `assets/report.html` filled in.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, Value};
use serde::Serialize;
use whylate_model::run::{Run, RunState, Verdict};
use whylate_model::trust::{Level, Trust};

use super::breakdown;
use super::causes::{self, Causes};
use super::figures::{self, Drawn};
use super::machine::{self, Machine};
use super::measured::{self, Measured};
use super::origins::{self, Origins};
use super::predicted::{self, Predicted};
use super::worst::{self, Shown};
use super::{Report, data};
use crate::doc::{Section, Where};
use crate::render::page::Html;
use crate::switch_cost::{self, Pictures};
use crate::{
    ReportError, backends, calibration, delay, device, flows, forward, reflected, sentence, svg,
    threads, wake,
};

const TEMPLATE: &str = include_str!("../../assets/report.html");
const PAGE_STYLE: &str = include_str!("../../assets/report.css");
const SCRIPT: &str = include_str!("../../assets/report.js");
pub(super) const UPLOT: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../../assets/uplot/uPlot.min.css");

/// Longest text from a run that is shown whole.
const LONGEST_TEXT: usize = 4_000;
/// Most warnings, reasons and notes shown.
const MOST_ITEMS: usize = 60;

/// What the template asks for.
#[derive(Debug, Serialize)]
struct Page {
    question: String,
    answer: String,
    verdict: Judged,
    state: Option<&'static str>,
    notes: Vec<String>,
    warnings: Vec<Warned>,
    measured: Measured,
    flows: Value,
    breakdown: Value,
    frames: Value,
    calibrated: Value,
    wakes: Value,
    predicted: Option<Predicted>,
    threads: Value,
    compared: Value,
    figures: Vec<Drawn>,
    causes: Causes,
    worst: Shown,
    origins: Option<Origins>,
    cells: Vec<String>,
    machine: Machine,
    policy: &'static str,
    styles: [Value; 3],
    scripts: [Value; 2],
    data: Value,
}

#[derive(Debug, Serialize)]
struct Judged {
    class: &'static str,
    text: String,
    reasons: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Warned {
    text: String,
    advice: String,
    spoils: bool,
}

/// Nothing is fetched, sent or framed, whatever is on the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      img-src data:; base-uri 'none'; form-action 'none'";

pub(super) fn page(report: &Report) -> Result<String, ReportError> {
    let run = report.run;
    let drawn = figures::all(report);
    let worst = worst::of(report);
    let data = data::of(report, &drawn, &worst);
    let compared = run
        .backends
        .as_deref()
        .map(|found| backends::section(run, found, Some(figures::compared(run, found))));
    let page = Page {
        question: run.question.clone(),
        answer: sentence::answer(run),
        verdict: judged(run),
        state: match run.state {
            RunState::Complete => None,
            RunState::Stopped => Some("This run was stopped early: everything up to then is here."),
            RunState::Running => Some(
                "This run did not end: it was killed, or is still going on. What follows is its \
                 last checkpoint.",
            ),
        },
        notes: report.notes.iter().take(MOST_ITEMS).cloned().collect(),
        warnings: run
            .warnings
            .iter()
            .take(MOST_ITEMS)
            .map(|warning| Warned {
                text: warning.to_string(),
                advice: warning.advice(),
                spoils: warning.level() == Level::Poor,
            })
            .collect(),
        measured: measured::of(run),
        flows: written(flows::section(run)),
        breakdown: written(crate::breakdown::sections(run, breakdown::pictures)),
        frames: written(
            [reflected::section(run), forward::section(run), delay::section(run)]
                .into_iter()
                .flatten(),
        ),
        calibrated: written(
            [calibration::section(run, Where::Page), device::section(run, Where::Page)]
                .into_iter()
                .flatten(),
        ),
        wakes: written(wake::section(run)),
        predicted: predicted::of(run),
        threads: written(threads::section(run)),
        compared: written(switched(report).into_iter().chain(compared)),
        figures: drawn.into_iter().map(|(drawn, _)| drawn).collect(),
        causes: causes::of(run),
        worst: worst.shown,
        origins: origins::of(run),
        cells: report.cells.iter().map(|cell| cell.name.clone()).collect(),
        machine: machine::of(run),
        policy: POLICY,
        styles: [svg::STYLE, PAGE_STYLE, UPLOT_STYLE].map(raw),
        scripts: [UPLOT, SCRIPT].map(raw),
        data: raw(&data),
    };
    let page = render(&page).map(|page| page + "\n");
    page.map_err(|error| ReportError::Page { why: format!("{error:#}") })
}

fn judged(run: &Run) -> Judged {
    let trust = Trust::of(run);
    let level = trust.level();
    let exceeded = match &run.verdict {
        Verdict::LimitExceeded { what } => Some(format!("a limit was exceeded: {what}")),
        _ => None,
    };
    let class = match level {
        _ if exceeded.is_some() => "bad",
        Level::Good => "good",
        Level::Limited => "open",
        Level::Poor => "bad",
    };
    let reasons = trust.reasons.into_iter().map(|reason| reason.what);
    let reasons = exceeded.into_iter().chain(reasons).take(MOST_ITEMS).collect();
    Judged { class, text: format!("{}.", level.name()), reasons }
}

/// Sections as they stand on the page.
fn written(sections: impl IntoIterator<Item = Section>) -> Value {
    let mut html = Html::default();
    for section in sections {
        html.section(&section);
    }
    raw(&html.finish())
}

/// What switches cost, with its pictures.
fn switched(report: &Report) -> Vec<Section> {
    let Some(found) = &report.run.switch_cost else { return Vec::new() };
    let pictures = Pictures {
        times: figures::switch_times(&report.histograms, found).map(|figure| figure.svg),
        caches: figures::through_caches(found).map(|figure| figure.svg),
    };
    switch_cost::sections(found, pictures)
}

/// Markup of our own, not to be escaped.
pub(super) fn raw(text: &str) -> Value {
    Value::from_safe_string(text.to_owned())
}

fn render(page: &impl Serialize) -> Result<String, Error> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax?);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_formatter(write_escaped);
    environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    environment.add_template("report.html", TEMPLATE)?;
    environment.get_template("report.html")?.render(Value::from(Serde(page)))
}

/// Every expression of the template goes through here, so that none can be forgotten.
fn write_escaped(out: &mut Output, _: &mut State, value: &Value) -> Result<(), Error> {
    let written = match value.as_str() {
        Some(text) if value.is_safe() => out.write_str(text),
        Some(text) => write!(out, "{}", svg::escaped(&shortened(text))),
        None if value.is_none() => Ok(()),
        None => write!(out, "{}", svg::escaped(&value.to_string())),
    };
    written.map_err(|_| ErrorKind::WriteFailure.into())
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => format!("{}... ({} bytes in all)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_in_a_text_is_text_and_a_long_text_is_cut() {
        assert_eq!(shortened(&"é".repeat(LONGEST_TEXT)).chars().count(), LONGEST_TEXT);
        let cut = shortened(&"é".repeat(LONGEST_TEXT + 1));
        assert!(cut.ends_with("... (8002 bytes in all)"), "{}", &cut[cut.len() - 40..]);
    }
}
