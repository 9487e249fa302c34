//! The report on a terminal: at most 80 columns, colour never the only sign.

pub mod calibrate;
mod causes;
pub mod compare;
pub mod configuration;
pub mod delay;
pub mod device;
pub mod doctor;
pub mod execution;
pub mod forward;
mod gaps;
pub mod lab;
pub(crate) mod loads;
mod origins;
pub mod paper;
mod percentiles;
pub mod reflect;
pub(crate) mod rta;
mod selftest;
mod series;
mod threads;
pub(crate) mod trust;

use whylate_model::run::{Run, RunState, Verdict};
use whylate_model::trust::{Level, Trust};

use crate::doc::Where;
use crate::render::terminal::Page;
use crate::switch_cost::{self, Pictures};
use crate::{backends, breakdown, calibration, flows, reflected, wake};
pub(crate) use causes::{cells as cause_cells, denominator};
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
    /// Columns of the table of series.
    pub percentiles: Percentiles,
}

impl Default for Style {
    /// 80 columns without colour.
    fn default() -> Self {
        Self { width: 80, colour: false, percentiles: Percentiles::default() }
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
    series::table(&mut page, run, style.percentiles);
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
    loads::sections(&mut page, run);
    rta::sections(&mut page, run);
    if let Some(section) = crate::threads::section(run) {
        page.write(&section);
        if let Some(traced) = traced {
            threads::drawn(&mut page, traced);
        }
    }
    let found = run.switch_cost.iter();
    page.sections(found.flat_map(|found| switch_cost::sections(found, Pictures::default())));
    gaps::sections(&mut page, run);
    causes::sections(&mut page, run);
    selftest::sections(&mut page, run);
    if run.is_merged() {
        origins::sections(&mut page, run);
    } else {
        trust::sections(&mut page, run);
    }
    trust::undigested(&mut page, run);
    verdict(&mut page, run);
    page.finish()
}

fn head(page: &mut Page, run: &Run) {
    let host = &run.host;
    let machine = match &host.hypervisor {
        Some(name) => format!("virtual machine ({name})"),
        None => "bare metal".to_owned(),
    };
    page.title(&run.question);
    page.paragraph(&crate::answer(run));
    page.paragraph(&format!(
        "{}, {}, {} CPUs, {machine}, Linux {}; whylate {}",
        host.hostname,
        host.cpu_model,
        host.cpus_online.len(),
        host.kernel,
        run.tool_version,
    ));
    if run.command_line.iter().any(|word| word == "--quick") {
        page.note(match run.switch_cost {
            Some(_) => "a quick run: shorter and fewer trials than usual, so intervals are wider",
            None => "a quick run: a tenth of the usual time, so less is known about the tail",
        });
    }
    match run.state {
        RunState::Complete => {}
        RunState::Stopped => page.note("stopped early: everything up to then is here"),
        RunState::Running => page.note(
            "this run did not end: it was killed, or is still going on; what follows is its last \
             checkpoint",
        ),
    }
}

fn verdict(page: &mut Page, run: &Run) {
    page.blank();
    if let Verdict::LimitExceeded { what } = &run.verdict {
        page.bad(&format!("Limit exceeded: {what}"));
    }
    let trust = Trust::of(run);
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
