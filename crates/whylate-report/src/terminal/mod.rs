//! The report on a terminal: at most 80 columns, colour never the only sign.

pub mod calibrate;
pub mod compare;
pub mod configuration;
pub mod delay;
pub mod device;
pub mod doctor;
pub mod execution;
pub mod fixes;
pub mod forward;
pub mod lab;
pub mod paper;
mod percentiles;
pub mod reflect;
mod residence;
pub(crate) mod rta;
mod threads;

use whylate_model::run::{Run, Verdict};
use whylate_model::trust::{Level, Trust};

use crate::doc::{Block, Section, Where};
use crate::numbers::scale::Letters;
use crate::render::terminal::Page;
use crate::switch_cost::{self, Pictures};
use crate::{
    backends, breakdown, calibration, causes, evidence, flows, gaps, loads, origins, prediction,
    reflected, selftest, sentence, series, wake,
};
pub use percentiles::Percentiles;
pub use rta::render_prediction;
pub use threads::Traced;

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
    let mut page = Page::new(style);
    head(&mut page, run);
    let percents: Vec<f64> = style.percentiles.percents().collect();
    for section in sections(run, &percents) {
        page.write(&section);
        if section.id == crate::threads::ID
            && let Some(traced) = traced
        {
            threads::drawn(&mut page, traced);
        }
    }
    verdict(&mut page, run);
    page.finish()
}

/// What stands between the answer and how far to trust it.
pub(crate) fn sections(run: &Run, percents: &[f64]) -> Vec<Section> {
    let untitled = |blocks: Vec<Block>| Section::new("", "", blocks);
    let mut all = vec![untitled(series::blocks(run, percents))];
    all.extend(run.backends.as_deref().map(|found| backends::section(run, found, None)));
    all.extend(flows::section(run));
    all.extend(breakdown::sections(run, |_| breakdown::Pictures::default()));
    let frames =
        [reflected::section(run), crate::forward::section(run), crate::delay::section(run)];
    all.extend(frames.into_iter().flatten());
    all.extend(calibration::section(run, Where::Terminal));
    all.extend(crate::device::section(run, Where::Terminal));
    all.extend(wake::section(run));
    all.extend(loads::section(run));
    all.extend(prediction::section(run));
    all.extend(crate::threads::section(run));
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

fn head(page: &mut Page, run: &Run) {
    page.title(&run.question);
    page.paragraph(&crate::answer(run));
    page.paragraph(&sentence::machine(run));
    page.blocks(&sentence::notes(run).into_iter().map(Block::Note).collect::<Vec<_>>());
}

fn verdict(page: &mut Page, run: &Run) {
    page.blank();
    if let Verdict::LimitExceeded { what } = &run.verdict {
        page.bad(&format!("Limit exceeded: {what}"));
    }
    write_trust(page, &Trust::of(run));
}

/// The level, and all reasons for it.
fn write_trust(page: &mut Page, trust: &Trust) {
    let said = format!("Trust: {}", trust.level().name());
    match trust.level() {
        Level::Good => page.good(&format!("{said}.")),
        Level::Limited => page.good(&format!("{said}:")),
        Level::Poor => page.bad(&format!("{said}, do not use the headline:")),
    }
    for reason in &trust.reasons {
        page.item(&reason.what);
    }
}
