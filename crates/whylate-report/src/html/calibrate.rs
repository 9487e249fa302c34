//! The section of a calibration: limits of trust, and the errors of each backend as a figure.

use minijinja::Value;
use serde::Serialize;
use whylate_model::calibration::{CalibratedBackend, Calibration};
use whylate_model::run::Run;

use super::measured::capped;
use super::template::raw;
use crate::calibration::{self, EMULATED, HOW, TITLE};
use crate::svg::{Figure, Table, error_curve};

/// Backends of a section; what is more is in run.json.
const MOST_BACKENDS: usize = 24;
/// Rows of a table; what is more is counted in the last.
const MOST_ROWS: usize = 64;

/// The section of the page.
#[derive(Debug, Serialize)]
pub(super) struct Calibrated {
    title: &'static str,
    line: String,
    limits: Table,
    how: &'static str,
    curve: &'static str,
    backends: Vec<Backend>,
    emulators: Option<Table>,
    emulated: &'static str,
    missing: Vec<String>,
    parts: Vec<Table>,
    told: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Backend {
    heading: String,
    svg: Value,
    errors: Table,
    told: Vec<String>,
    readings: Option<Table>,
}

/// How the figures are to be read.
const CURVE: &str = "Right: the percentile, each nine of the tail as wide as the one before. Up: the error; \
     within the tolerance, which is shaded, on an even scale, beyond it by decades. Bars: 95% intervals. \
     Dashed upright: up to where a curve may be trusted.";

/// The section; none for a run of something else.
pub(super) fn of(run: &Run) -> Option<Calibrated> {
    let of = run.calibration.as_deref()?;
    let parts = run.calibration_parts.as_deref();
    let tables =
        parts.map(|of| [calibration::rates(of), calibration::slopes(of), calibration::planted(of)]);
    Some(Calibrated {
        title: TITLE,
        line: calibration::line(of),
        limits: shortened(calibration::limits(of)),
        how: HOW,
        curve: CURVE,
        backends: of.backends.iter().take(MOST_BACKENDS).map(|one| backend(of, one)).collect(),
        emulators: calibration::emulators(of).map(shortened),
        emulated: EMULATED,
        missing: calibration::missing(of).into_iter().take(MOST_ROWS).collect(),
        parts: tables.into_iter().flatten().flatten().map(shortened).collect(),
        told: parts.into_iter().flat_map(calibration::told).take(MOST_ROWS).collect(),
    })
}

fn backend(of: &Calibration, one: &CalibratedBackend) -> Backend {
    let Figure { svg, table } = figure(of, one);
    Backend {
        heading: one.backend.clone(),
        svg: raw(&svg),
        errors: shortened(table),
        told: calibration::remarks(one).into_iter().take(MOST_ROWS).collect(),
        readings: calibration::readings(one).map(shortened),
    }
}

/// The errors of a backend over the percentile, with their table.
pub(super) fn figure(of: &Calibration, one: &CalibratedBackend) -> Figure {
    let table = calibration::errors(one, of.tolerance);
    let title = format!("Error of {} at each percentile", one.backend);
    error_curve::figure(&calibration::curves(one), of.tolerance.0 as f64, &title, table)
}

fn shortened(mut table: Table) -> Table {
    table.rows = capped(table.rows, MOST_ROWS);
    table
}
