//! The report on a terminal: at most 80 columns, colour never the only sign.

mod drawn;
mod percentiles;
#[cfg(test)]
mod tests;

use whylate_model::doctor::Diagnosis;
use whylate_model::lab::LabStatus;
use whylate_model::paper::Paper;
use whylate_model::prediction::Prediction;
use whylate_model::run::{Run, Verdict};
use whylate_model::trust::{Level, Trust};

use crate::compare::Comparison;
use crate::doc::{Block, Document, Section, Where};
use crate::first::Account;
use crate::numbers::scale::Letters;
use crate::render::terminal::write;
use crate::switch_cost::{self, Pictures};
use crate::{
    backends, breakdown, causes, compare, delay, doctor, evidence, first, forward, gaps, head, lab,
    origins, paper, prediction, reflected, sections, selftest, series, threads,
};
pub use drawn::Traced;
pub use percentiles::Percentiles;

/// How the report looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns; lines are wrapped to it.
    pub width: usize,
    /// Use colour.
    pub colour: bool,
    /// Letters of first screens.
    pub letters: Letters,
    /// Columns of the table of series.
    pub percentiles: Percentiles,
}

impl Default for Style {
    /// 80 columns without colour.
    fn default() -> Self {
        Self {
            width: 80,
            colour: false,
            letters: Letters::default(),
            percentiles: Percentiles::default(),
        }
    }
}

/// The whole report, as far as `run.json` alone has it.
#[must_use]
pub fn render(run: &Run, style: Style) -> String {
    render_with(run, None, style)
}

/// The whole report, with what the run directory holds beside `run.json`.
#[must_use]
pub fn render_with(run: &Run, traced: Option<Traced>, style: Style) -> String {
    let run = &run.as_shown();
    let percents: Vec<f64> = style.percentiles.percents().collect();
    let mut document = Document::new(first::subject::of(run))
        .naming(run)
        .with([style.letters.write(&crate::answer(run)), head::machine(run)].map(Block::Text))
        .with(head::notes(run).into_iter().map(Block::Note))
        .with(first::summary(run, style));
    for section in sections(run, &percents) {
        let traced = traced.filter(|_| section.id == threads::ID);
        document = document.sections([section]);
        if let Some(traced) = traced {
            document = drawn::add(document, traced, style.width);
        }
    }
    write(&document.with(verdict(run)), style)
}

/// What stands between the answer and how far to trust it.
pub(crate) fn sections(run: &Run, percents: &[f64]) -> Vec<Section> {
    let untitled = |blocks: Vec<Block>| Section::new("", "", blocks);
    let mut all = vec![untitled(series::blocks(run, percents))];
    all.extend(run.backends.as_deref().map(|found| backends::section(run, found, None)));
    all.extend(sections::of(run, Where::Terminal, |_| breakdown::Pictures::default()));
    let found = run.switch_cost.iter();
    all.extend(found.flat_map(|found| switch_cost::sections(found, Pictures::default())));
    all.push(untitled(gaps::blocks(run, Where::Terminal)));
    all.extend(causes::sections(run));
    all.push(untitled(selftest::blocks(run)));
    all.extend(origins::section(run));
    all.extend((!run.is_merged()).then(|| evidence::section(run)));
    all.push(untitled(
        Block::items(evidence::undigested(run).into_iter().collect()).into_iter().collect(),
    ));
    all
}

fn verdict(run: &Run) -> Vec<Block> {
    let exceeded = match &run.verdict {
        Verdict::LimitExceeded { what, .. } => {
            Some(Block::Judged(Level::Poor, format!("Limit exceeded: {what}")))
        }
        _ => None,
    };
    let trust = Block::trust(&Trust::of(run));
    [Block::apart()].into_iter().chain(exceeded).chain(trust).collect()
}

/// All of a prediction without a run.
#[must_use]
pub fn full_prediction(of: &Prediction, style: Style) -> String {
    write(&prediction::document(of), style)
}

/// All that doctor found; with `all` also what is fine.
#[must_use]
pub fn full_of_diagnosis(of: &Diagnosis, all: bool, style: Style) -> String {
    write(&doctor::document(of, all), style)
}

/// One check of doctor in whole; none where it has no check of that name.
#[must_use]
pub fn explained(of: &Diagnosis, check: &str, style: Style) -> Option<String> {
    doctor::explained(of, check).map(|document| write(&document, style))
}

/// All of a comparison.
#[must_use]
pub fn full_of_comparison(of: &Comparison, style: Style) -> String {
    write(&compare::section::document(of, Vec::new()), style)
}

/// All of the test networks.
#[must_use]
pub fn full_of_lab(of: &LabStatus, style: Style) -> String {
    write(&lab::document(of), style)
}

/// All that a server, a forwarder or a delay line of which no run is kept accounts for.
#[must_use]
pub fn full_of_account<'a>(of: impl Into<Account<'a>>, style: Style) -> String {
    let document = match of.into() {
        Account::Reflected(of) => reflected::document(of, style.percentiles),
        Account::Forward(of) => forward::document(of, style.percentiles),
        Account::Delay(of) => delay::document(of, style.percentiles),
    };
    write(&document, style)
}

/// All of a paper's experiments, with how far they may be trusted.
#[must_use]
pub fn full_of_paper(of: &Paper, trust: &Trust, style: Style) -> String {
    write(&paper::document(of, trust, |_| Vec::new()), style)
}
