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

use crate::doc::{Block, Where};
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
    page.blocks(&series::blocks(run, &percents));
    let compared = run.backends.as_deref();
    page.sections(compared.map(|found| backends::section(run, found, None)));
    page.sections(flows::section(run));
    page.sections(breakdown::sections(run, |_| breakdown::Pictures::default()));
    let frames =
        [reflected::section(run), crate::forward::section(run), crate::delay::section(run)];
    page.sections(frames.into_iter().flatten());
    let found =
        [calibration::section(run, Where::Terminal), crate::device::section(run, Where::Terminal)];
    page.sections(found.into_iter().flatten());
    page.sections(wake::section(run));
    page.sections(loads::section(run));
    page.sections(prediction::section(run));
    if let Some(section) = crate::threads::section(run) {
        page.write(&section);
        if let Some(traced) = traced {
            threads::drawn(&mut page, traced);
        }
    }
    let found = run.switch_cost.iter();
    page.sections(found.flat_map(|found| switch_cost::sections(found, Pictures::default())));
    page.blocks(&gaps::blocks(run, Where::Terminal));
    page.sections(causes::sections(run));
    page.blocks(&selftest::blocks(run));
    page.sections(origins::section(run));
    if !run.is_merged() {
        page.write(&evidence::section(run));
    }
    page.blocks(
        &Block::items(evidence::undigested(run).into_iter().collect())
            .into_iter()
            .collect::<Vec<_>>(),
    );
    verdict(&mut page, run);
    page.finish()
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
