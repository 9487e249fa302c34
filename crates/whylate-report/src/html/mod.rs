//! The report as one self-contained page.
//!
//! It holds everything it shows: figures as SVG with a table beside each, complete without
//! JavaScript; with it, the figures zoom and answer to the pointer. It asks nothing of the network,
//! and says so to the browser by a policy that forbids it. Every text of the run is escaped: a page
//! may leave the machine, and a run may come from anywhere.
//!
//! Memory and size do not grow with the number of gaps: single gaps are read once and added up. What
//! of a run directory cannot be read is named on the page; the rest is shown.

mod breakdown;
mod data;
mod events;
mod figures;
mod histograms;
mod machine;
mod page;
#[cfg(test)]
mod set;
#[cfg(test)]
mod stylesheet;
#[cfg(test)]
mod tests;
mod worst;

use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use whylate_model::directory::{RUN_FILE, RunDir};
use whylate_model::run::{GapSummary, Run};
use whylate_model::segments::{self, BriefGaps};
use whylate_model::{ModelError, output};

use crate::execution::recorded::Recorded;
use crate::svg::Figure;
use crate::timeline::{Builder, Start, Timeline};
use crate::{ReportError, calibration, device};
use histograms::Histograms;
pub(crate) use machine::utc;

/// The file in the run directory.
pub const REPORT_FILE: &str = "report.html";

/// Errors of single segments that are told one by one.
const MOST_NOTES: usize = 8;
/// Threads that decode segments, and how many each may be ahead: some 4 MiB each.
const DECODERS: usize = 2;
const MOST_DECODED: usize = 1;
/// Cells that are read: a matrix has eight.
const MOST_CELLS: usize = 64;

/// Everything a page is made from.
struct Report<'a> {
    run: &'a Run,
    histograms: Histograms,
    timeline: Timeline,
    /// The execution trace of a set of threads.
    recorded: Option<Recorded>,
    /// The cells that a matrix shows side by side.
    cells: Vec<Cell>,
    /// What could not be read, for the reader.
    notes: Vec<String>,
}

/// One cell of a matrix: it keeps its own histograms and gaps.
struct Cell {
    name: String,
    directory: RunDir,
    run: Run,
}

/// Writes `report.html` into the directory of a run and into those of its cells, if it has any;
/// returns where the first is.
pub fn write(directory: &RunDir, run: &Run) -> Result<PathBuf, ReportError> {
    let path = directory.path().join(REPORT_FILE);
    write_to(directory, run, &path)?;
    for cell in cells(directory)? {
        let cell = RunDir::open(cell)?;
        write_to(&cell, &cell.read_checked()?, &cell.path().join(REPORT_FILE))?;
    }
    Ok(path)
}

/// The run directories inside a run directory: the cells of a matrix.
fn cells(directory: &RunDir) -> Result<Vec<PathBuf>, ModelError> {
    let failed = |why| ModelError::Read { path: directory.path().to_owned(), why };
    let mut cells = Vec::new();
    for entry in std::fs::read_dir(directory.path()).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.join(RUN_FILE).is_file() {
            cells.push(path);
        }
    }
    cells.sort();
    Ok(cells)
}

/// Writes the page to a file; see [`whylate_model::output`].
pub fn write_to(directory: &RunDir, run: &Run, path: &Path) -> Result<(), ReportError> {
    put(path, &render(directory, run))
}

/// Puts a page where it belongs.
pub(crate) fn put(path: &Path, page: &str) -> Result<(), ReportError> {
    output::write(path, page.as_bytes())
        .map_err(|why| ReportError::Write { path: path.to_owned(), why })
}

/// The page of a run.
///
/// Reads the histograms and the single gaps of the directory; what it cannot read of them becomes a
/// note on the page.
#[must_use]
pub fn render(directory: &RunDir, run: &Run) -> String {
    page::page(&read(directory, &run.as_shown()))
}

/// The figures of what a run found of context switches, for a page that shows several runs.
pub(crate) fn switch_figures(directory: &RunDir, run: &Run) -> Vec<Figure> {
    let Some(found) = &run.switch_cost else { return Vec::new() };
    let histograms = Histograms::read(&[(String::new(), directory)], run);
    let times = figures::switch_times(&histograms, found);
    times.into_iter().chain(figures::through_caches(found)).collect()
}

/// The figures of what a run found requests to consist of, for a page that shows several runs.
pub(crate) fn breakdown_figures(run: &Run) -> Vec<Figure> {
    breakdown::figures(run)
}

/// The figures of a calibration, for a page that shows several runs: the errors of each backend.
pub(crate) fn error_figures(run: &Run) -> Vec<Figure> {
    let Some(of) = run.calibration.as_deref() else { return Vec::new() };
    of.backends.iter().map(|one| calibration::figure(of, one)).collect()
}

/// The figures of a box, for a page that shows several runs: bounds of the time in it.
pub(crate) fn bounds_figures(run: &Run) -> Vec<Figure> {
    let sizes = run.device.iter().flat_map(|of| &of.sizes);
    sizes.filter(|one| !one.bounds.is_empty()).map(device::figure).collect()
}

fn read<'a>(directory: &RunDir, run: &'a Run) -> Report<'a> {
    let mut notes = Vec::new();
    let cells = cells_of(directory, run, &mut notes);
    let mut sources: Vec<_> =
        cells.iter().map(|cell| (format!("{}-", cell.name), &cell.directory)).collect();
    if sources.is_empty() {
        sources.push((String::new(), directory));
    }
    let mut histograms = Histograms::read(&sources, run);
    notes.append(&mut histograms.notes);
    let start = if cells.is_empty() { Start::OfAll } else { Start::OfEach };
    let mut builder = Builder::new(run, start);
    if !cells.is_empty() {
        builder.name(cells.iter().flat_map(|cell| &cell.run.causes));
    }
    if cells.is_empty() {
        survey(directory, run, "", &mut notes);
    }
    // What is the sum of several recordings has several clocks, and no timeline.
    if cells.is_empty() && !run.is_merged() {
        each_segment(directory, "", &mut notes, |gaps| builder.add(&gaps));
    }
    for cell in &cells {
        let within = format!("{}: ", cell.name);
        survey(&cell.directory, &cell.run, &within, &mut notes);
        let rows: Vec<Option<u16>> =
            cell.run.gaps.iter().map(|gaps| row(run, cell, gaps)).collect();
        each_segment(&cell.directory, &within, &mut notes, |mut gaps| {
            gaps.gaps.retain_mut(|gap| {
                let row = rows.get(usize::from(gap.thread)).copied().flatten();
                row.map(|row| gap.thread = row).is_some()
            });
            builder.add(&gaps);
        });
    }
    let recorded = Recorded::read(directory, run, None);
    notes.extend(recorded.iter().flat_map(|recorded| recorded.notes().iter().cloned()));
    Report { run, histograms, timeline: builder.finish(), recorded, cells, notes }
}

/// The cells whose series the run shows; none for a run that is no matrix.
fn cells_of(directory: &RunDir, run: &Run, notes: &mut Vec<String>) -> Vec<Cell> {
    if run.is_merged() || !run.segments.is_empty() {
        return Vec::new();
    }
    // Without a list there are no cells to be missed: the directory itself cannot be read then.
    let mut found = Vec::new();
    for path in cells(directory).unwrap_or_default().into_iter().take(MOST_CELLS) {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let prefix = format!("{name}-");
        if !run.gaps.iter().any(|gaps| gaps.series.starts_with(&prefix)) {
            continue;
        }
        let read = RunDir::open(path)
            .and_then(|directory| Ok((directory.read_checked()?.as_shown(), directory)));
        match read {
            Ok((run, directory)) => found.push(Cell { name, directory, run }),
            Err(error) => notes.push(format!("figures lack the cell {name}: {error}")),
        }
    }
    found
}

/// Which of the matrix's threads one of a cell is.
fn row(run: &Run, cell: &Cell, gaps: &GapSummary) -> Option<u16> {
    let name = format!("{}-{}", cell.name, gaps.series);
    let row = run.gaps.iter().position(|gaps| gaps.series == name)?;
    u16::try_from(row).ok()
}

fn survey(directory: &RunDir, run: &Run, within: &str, notes: &mut Vec<String>) {
    match segments::survey(directory, run) {
        Ok(survey) if !survey.is_complete() => notes.push(format!("{within}{survey}")),
        Ok(_) => {}
        Err(error) => notes.push(format!("{within}{error}")),
    }
}

/// Every single gap that can be read, segment by segment.
fn each_segment(
    directory: &RunDir,
    within: &str,
    notes: &mut Vec<String>,
    mut take: impl FnMut(BriefGaps),
) {
    let files = match segments::gap_files(directory) {
        Ok(files) => files,
        Err(error) => return notes.push(format!("{within}there is no timeline: {error}")),
    };
    let mut unread = 0;
    // Decoding takes most of the time: segments are decoded side by side, and taken in in their order.
    std::thread::scope(|scope| {
        let decoders: Vec<_> = (0..DECODERS)
            .map(|decoder| {
                let (sender, decoded) = sync_channel(MOST_DECODED);
                let own = files.iter().skip(decoder).step_by(DECODERS);
                scope.spawn(move || {
                    own.map(|f| segments::read_brief_gaps(f)).all(|gaps| sender.send(gaps).is_ok())
                });
                decoded
            })
            .collect();
        for number in 0..files.len() {
            match decoders[number % DECODERS].recv() {
                Ok(Ok(gaps)) => take(gaps),
                Ok(Err(error)) => {
                    unread += 1;
                    if unread <= MOST_NOTES {
                        notes.push(format!("{within}the timeline lacks a segment: {error}"));
                    }
                }
                // It panicked: so does this scope.
                Err(_) => return,
            }
        }
    });
    if unread > MOST_NOTES {
        notes.push(format!("{within}the timeline lacks {unread} segments in all"));
    }
}
