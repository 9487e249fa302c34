//! The matrix of section 4 of the PAM paper: pinned or floating, real-time or not, memory locked or
//! not, alone or sharing the core, others moved away or not.
//!
//! One cell after another on the same CPUs, each a run directory of its own below the matrix's, so
//! that each keeps its causes. The matrix's own run holds every cell's series side by side.

use std::sync::atomic::{AtomicBool, Ordering};

use whylate_gap::{Placement, Policy};
use whylate_model::directory::RunDir;
use whylate_model::run::Run;

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
    for cell in CELLS {
        if stop.load(Ordering::Relaxed) && whole.is_some() {
            break;
        }
        progress.say(&format!("cell {}", cell.name));
        let below = RunDir::create(directory.path().join(cell.name))?;
        let Recorded { run } = gaps::record(&cell.of(request), below, stop, progress)?;
        let mut run = labelled(run, cell.name);
        whole = Some(match whole {
            None => run,
            Some(mut whole) => {
                whole.series.append(&mut run.series);
                whole.gaps.append(&mut run.gaps);
                run.warnings.retain(|warning| !whole.warnings.contains(warning));
                whole.warnings.append(&mut run.warnings);
                whole.state = run.state;
                if whole.verdict == whylate_model::run::Verdict::Trustworthy {
                    whole.verdict = run.verdict;
                }
                whole
            }
        });
    }
    let Some(mut run) = whole else { unreachable!("invariant: the first cell is always measured") };
    run.question = format!("{} One row for each way to run.", request.question);
    directory.write_run(&run)?;
    Ok(Recorded { run })
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
