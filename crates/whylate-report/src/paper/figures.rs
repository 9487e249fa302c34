//! The figures of a scenario, from the run directories of its parts.

use std::path::Path;

use whylate_model::directory::RunDir;
use whylate_model::paper::Scenario;
use whylate_model::{ModelError, Nanos, Printable};

use crate::execution::Window;
use crate::execution::recorded::Recorded;
use crate::html;
use crate::svg::{Figure, execution};

/// Parts that are drawn, of one scenario.
const MOST_RUNS: usize = 16;
/// The segment of Figure 3.
const SEGMENT: Nanos = Nanos(500_000_000);
/// The segment of its last trace.
const DETAIL: Nanos = Nanos(100_000_000);

/// Directories of the parts: names of this directory only, whatever the file says.
pub(super) fn names(scenario: &Scenario) -> impl Iterator<Item = &str> {
    let plain = |name: &&str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
        !name.is_empty() && !name.starts_with('.') && name.chars().all(allowed)
    };
    scenario.runs.iter().map(String::as_str).filter(plain).take(MOST_RUNS)
}

/// The figures of the parts, and what of them cannot be read.
pub(super) fn of(directory: &Path, scenario: &Scenario) -> (Vec<Figure>, Vec<String>) {
    let (mut figures, mut unread) = (Vec::new(), Vec::new());
    for name in names(scenario) {
        match of_run(&directory.join(name), name) {
            Ok(mut of) => figures.append(&mut of),
            Err(error) => unread.push(format!("no figure of {name}: {error}")),
        }
    }
    (figures, unread)
}

fn of_run(path: &Path, name: &str) -> Result<Vec<Figure>, ModelError> {
    let directory = RunDir::open(path)?;
    let run = directory.read_run()?;
    let mut figures = html::switch_figures(&directory, &run);
    let window = window(name);
    if let Some(recorded) = Recorded::read(&directory, &run, window)
        && let Some(rows) = recorded.rows()
    {
        let title = format!("Execution trace of {}", Printable(name));
        figures.push(execution::figure(rows, recorded.window(), &title));
    }
    Ok(figures)
}

/// Those of Figure 3 have the paper's lengths; others are drawn around the first missed deadline.
fn window(name: &str) -> Option<Window> {
    let of = |length| Some(Window { from: Nanos::SECOND, length });
    match name {
        "figure-3a" => of(SEGMENT),
        "figure-3d" => of(DETAIL),
        _ => None,
    }
}
