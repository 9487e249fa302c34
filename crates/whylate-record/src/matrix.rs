//! The matrix of section 4 of the PAM paper: pinned or floating, real-time or not, memory locked or
//! not, alone or sharing the core, others moved away or not.
//!
//! One cell after another on the same CPUs, each a run directory of its own below the matrix's, so
//! that each keeps its causes. The matrix's own run holds every cell's series side by side.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use whylate_gap::{Placement, Policy};
use whylate_model::directory::RunDir;
use whylate_model::hlog::HistogramLog;
use whylate_model::run::{Run, Verdict};
use whylate_model::warning::Warning;

use crate::gaps::{self, Request};
use crate::progress::Progress;
use crate::{RecordError, Recorded};

/// Priority of the real-time cells.
const PRIORITY: u8 = 50;

/// One cell: how it differs from a plain thread.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "the paper's matrix is one of yes and no")]
struct Cell {
    name: &'static str,
    pinned: bool,
    locked: bool,
    fifo: bool,
    shared: bool,
    moved: bool,
}

const PLAIN: Cell = Cell {
    name: "floating",
    pinned: false,
    locked: false,
    fifo: false,
    shared: false,
    moved: false,
};

/// From the worst practice to the best, one step at a time.
const CELLS: [Cell; 8] = [
    PLAIN,
    Cell { name: "floating-shared", shared: true, ..PLAIN },
    Cell { name: "floating-fifo", fifo: true, locked: true, ..PLAIN },
    Cell { name: "pinned", pinned: true, ..PLAIN },
    Cell { name: "pinned-shared", pinned: true, shared: true, ..PLAIN },
    Cell { name: "pinned-mlock", pinned: true, locked: true, ..PLAIN },
    Cell { name: "pinned-mlock-fifo", pinned: true, locked: true, fifo: true, ..PLAIN },
    Cell {
        name: "pinned-mlock-fifo-moved",
        pinned: true,
        locked: true,
        fifo: true,
        moved: true,
        ..PLAIN
    },
];

/// Records every cell for the request's duration.
///
/// # Errors
/// What is asked for cannot be measured on this host, an instrument failed meanwhile, or the run directory
/// cannot be written.
pub fn record(
    request: &Request,
    directory: &RunDir,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Recorded, RecordError> {
    let mut whole: Option<Run> = None;
    let mut log = directory.histogram_log()?;
    for (number, cell) in CELLS.into_iter().enumerate() {
        if stop.load(Ordering::Relaxed) && whole.is_some() {
            break;
        }
        progress.say(&format!("cell {} of {}: {}", number + 1, CELLS.len(), cell.name));
        let below = RunDir::create(directory.path().join(cell.name))?;
        let run = match gaps::record(&cell.of(request), below, stop, progress) {
            Ok(Recorded { run }) => labelled(run, cell.name),
            Err(_) if whole.is_some() && stop.load(Ordering::Relaxed) => break,
            Err(error) => {
                directory.undo().remove();
                return Err(error);
            }
        };
        let mut so_far = match whole {
            None => Run {
                question: format!("{}; one row for each way to run", request.question),
                ..run
            },
            Some(whole) => with(whole, run),
        };
        copy(&directory.path().join(cell.name), cell.name, &mut log)?;
        log.count_in(&mut so_far);
        // After each cell, so that a killed matrix can be read as far as it came.
        directory.write_run(&so_far)?;
        whole = Some(so_far);
    }
    let Some(mut run) = whole else { unreachable!("invariant: the first cell is always measured") };
    run.warnings = run.warnings.into_iter().map(|warning| of_all(warning, CELLS.len())).collect();
    directory.write_run(&run)?;
    Ok(Recorded { run })
}

/// Takes a cell's histograms into the log of the matrix, under the cell's name.
fn copy(cell: &Path, name: &str, log: &mut HistogramLog) -> Result<(), RecordError> {
    for interval in RunDir::open(cell)?.histograms()? {
        let interval = interval?;
        let tag = format!("{name}-{}", interval.tag);
        log.append(&tag, &interval.histogram, interval.start_s, interval.length_s)?;
    }
    Ok(log.sync()?)
}

/// The matrix so far and one cell more.
fn with(mut whole: Run, mut cell: Run) -> Run {
    whole.series.append(&mut cell.series);
    whole.gaps.append(&mut cell.gaps);
    for warning in cell.warnings {
        warn(&mut whole.warnings, warning);
    }
    whole.state = cell.state;
    let reasons = [whole.verdict.reasons(), cell.verdict.reasons()].concat();
    whole.verdict = match (whole.verdict, cell.verdict) {
        (Verdict::LimitExceeded { what, .. }, _) | (_, Verdict::LimitExceeded { what, .. }) => {
            Verdict::LimitExceeded { what, reasons }
        }
        _ if !reasons.is_empty() => Verdict::Untrustworthy { reasons },
        (Verdict::Trustworthy, worse) => worse,
        (as_before, _) => as_before,
    };
    whole
}

/// Adds a cell's warning; where other cells have the same, its name to theirs.
fn warn(known: &mut Vec<Warning>, warning: Warning) {
    let Warning::Within { part: cell, of } = &warning else { return known.push(warning) };
    let same = known.iter_mut().find_map(|known| match known {
        Warning::Within { part, of: other } if other == of => Some(part),
        _ => None,
    });
    match same {
        Some(cells) => *cells = format!("{cells}, {cell}"),
        None => known.push(warning),
    }
}

/// What is to be known about every cell is so of the whole.
fn of_all(warning: Warning, cells: usize) -> Warning {
    match warning {
        Warning::Within { part, of } if part.split(", ").count() == cells => *of,
        other => other,
    }
}

impl Cell {
    fn of(self, request: &Request) -> Request {
        let mut cell = request.clone();
        let cpus = request.plan.placement.cpus().to_vec();
        cell.plan.placement = if self.pinned {
            Placement::Pinned(cpus)
        } else {
            // As many threads as CPUs, over all that this process may use.
            let allowed = whylate_sys::affinity::get();
            Placement::Floating { threads: cpus.len() as u32, allowed }
        };
        cell.plan.policy = if self.fifo { Policy::Fifo(PRIORITY) } else { Policy::Ordinary };
        cell.plan.competitors = u32::from(self.shared);
        cell.lock_memory = self.locked;
        cell.move_tasks = self.moved;
        cell.move_interrupts = self.moved;
        cell.question = format!("{}; cell {}", request.question, self.name);
        cell
    }
}

/// The parts of a cell's run that the matrix shows, under the cell's name.
fn labelled(mut run: Run, cell: &str) -> Run {
    let alone = run.series.len() == 1;
    for series in &mut run.series {
        let words = cell.replace('-', " ");
        series.name = format!("{cell}-{}", series.name);
        series.label = match series.label.strip_prefix("gaps, ") {
            Some(thread) if !alone => format!("{words}, {thread}"),
            _ => words,
        };
    }
    let within = |warning| Warning::Within { part: cell.to_owned(), of: Box::new(warning) };
    run.warnings = run.warnings.into_iter().map(within).collect();
    if let Verdict::Untrustworthy { reasons } | Verdict::LimitExceeded { reasons, .. } =
        &mut run.verdict
    {
        for reason in reasons {
            *reason = format!("{cell}: {reason}");
        }
    }
    for gaps in &mut run.gaps {
        gaps.series = format!("{cell}-{}", gaps.series);
    }
    // Causes and longest gaps differ by cell: they are in the cells' own runs.
    run.causes.clear();
    run.coverage = None;
    run.worst.clear();
    run.senders.clear();
    run.findings.clear();
    run.segments.clear();
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_names_its_cells_unless_it_is_of_all() {
        let of = |cell: &str, warning: Warning| Warning::Within {
            part: cell.to_owned(),
            of: Box::new(warning),
        };
        let noise = || Warning::Guard { what: "not put back".to_owned() };
        let mut known = Vec::new();
        for cell in ["floating", "pinned"] {
            warn(&mut known, of(cell, Warning::NoHousekeepingCpu));
        }
        warn(&mut known, of("pinned", noise()));
        let known: Vec<Warning> = known.into_iter().map(|warning| of_all(warning, 2)).collect();
        assert_eq!(known, [Warning::NoHousekeepingCpu, of("pinned", noise())]);
        assert_eq!(known[1].to_string(), format!("pinned: {}", noise()));
        assert_eq!(known[1].advice(), noise().advice());
        assert_eq!(known[1].spoils_trust(), noise().spoils_trust());
    }
}
