//! The matrix of section 4 of the PAM paper: pinned or floating, real-time or not, memory locked or
//! not, alone or sharing the core, others moved away or not.
//!
//! One cell after another on the same CPUs, each a run directory of its own below the matrix's, so
//! that each keeps its causes. The matrix's own run holds every cell's series side by side.

use std::sync::atomic::{AtomicBool, Ordering};

use whylate_gap::{Placement, Policy};
use whylate_model::directory::RunDir;
use whylate_model::run::{Run, Verdict};

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
pub fn record(
    request: &Request,
    directory: &RunDir,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Recorded, RecordError> {
    let mut whole: Option<Run> = None;
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
        let so_far = match whole {
            None => Run {
                question: format!("{} One row for each way to run.", request.question),
                ..run
            },
            Some(whole) => with(whole, run),
        };
        // After each cell, so that a killed matrix can be read as far as it came.
        directory.write_run(&so_far)?;
        whole = Some(so_far);
    }
    let Some(run) = whole else { unreachable!("invariant: the first cell is always measured") };
    Ok(Recorded { run })
}

/// The matrix so far and one cell more.
fn with(mut whole: Run, mut cell: Run) -> Run {
    whole.series.append(&mut cell.series);
    whole.gaps.append(&mut cell.gaps);
    cell.warnings.retain(|warning| !whole.warnings.contains(warning));
    whole.warnings.append(&mut cell.warnings);
    whole.state = cell.state;
    if whole.verdict == Verdict::Trustworthy {
        whole.verdict = cell.verdict;
    }
    whole
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
        cell.question = format!("{} Cell {}.", request.question, self.name);
        cell
    }
}

/// The parts of a cell's run that the matrix shows, under the cell's name.
fn labelled(mut run: Run, cell: &str) -> Run {
    for series in &mut run.series {
        series.name = format!("{cell}-{}", series.name);
        cell.clone_into(&mut series.label);
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
