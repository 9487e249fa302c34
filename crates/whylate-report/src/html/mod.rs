//! The report as one self-contained page.
//!
//! It holds everything it shows: figures as SVG with a table beside each, complete without
//! JavaScript; with it, the figures zoom and answer to the pointer. It asks nothing of the network,
//! and says so to the browser by a policy that forbids it. Every text of the run is escaped: a page
//! may leave the machine, and a run may come from anywhere.
//!
//! Memory and size do not grow with the number of gaps: single gaps are read once and added up. What
//! of a run directory cannot be read is named on the page; the rest is shown.

mod causes;
mod data;
mod events;
mod figures;
mod histograms;
mod machine;
mod measured;
mod template;
#[cfg(test)]
mod tests;
mod worst;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use whylate_model::ModelError;
use whylate_model::directory::{RUN_FILE, RunDir};
use whylate_model::run::Run;
use whylate_model::segments;

use crate::ReportError;
use crate::timeline::{Builder, Timeline};
use histograms::Histograms;

/// The file in the run directory.
pub const REPORT_FILE: &str = "report.html";

/// Errors of single segments that are told one by one.
const MOST_NOTES: usize = 8;

/// Everything a page is made from.
struct Report<'a> {
    run: &'a Run,
    histograms: Histograms,
    timeline: Timeline,
    /// What could not be read, for the reader.
    notes: Vec<String>,
}

/// Writes `report.html` into the directory of a run and into those of its cells, if it has any;
/// returns where the first is.
pub fn write(directory: &RunDir, run: &Run) -> Result<PathBuf, ReportError> {
    let path = directory.path().join(REPORT_FILE);
    write_to(directory, run, &path)?;
    for cell in cells(directory)? {
        let cell = RunDir::open(cell)?;
        write_to(&cell, &cell.read_run()?, &cell.path().join(REPORT_FILE))?;
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

/// Writes the page to a file, which is whole or not there.
pub fn write_to(directory: &RunDir, run: &Run, path: &Path) -> Result<(), ReportError> {
    let page = render(directory, run)?;
    let failed = |why| ReportError::Write { path: path.to_owned(), why };
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let unfinished = PathBuf::from(unfinished);
    let written = File::create(&unfinished)
        .and_then(|mut file| file.write_all(page.as_bytes()))
        .and_then(|()| std::fs::rename(&unfinished, path));
    written.map_err(|why| {
        let _ = std::fs::remove_file(&unfinished);
        failed(why)
    })
}

/// The page of a run.
///
/// Reads the histograms and the single gaps of the directory; what it cannot read of them becomes a
/// note on the page.
pub fn render(directory: &RunDir, run: &Run) -> Result<String, ReportError> {
    template::page(&read(directory, run))
}

fn read<'a>(directory: &RunDir, run: &'a Run) -> Report<'a> {
    let mut histograms = Histograms::read(directory, run);
    let mut notes = std::mem::take(&mut histograms.notes);
    match segments::survey(directory, run) {
        Ok(survey) if !survey.is_complete() => notes.push(survey.to_string()),
        Ok(_) => {}
        Err(error) => notes.push(error.to_string()),
    }
    let mut builder = Builder::new(run);
    match segments::read_gaps(directory) {
        Ok(gaps) => {
            let mut unread = 0;
            for gap in gaps {
                match gap {
                    Ok(gap) => builder.add(&gap),
                    Err(error) => {
                        unread += 1;
                        if unread <= MOST_NOTES {
                            notes.push(format!("the timeline lacks a segment: {error}"));
                        }
                    }
                }
            }
            if unread > MOST_NOTES {
                notes.push(format!("the timeline lacks {unread} segments in all"));
            }
        }
        Err(error) => notes.push(format!("there is no timeline: {error}")),
    }
    let timeline = builder.finish();
    Report { run, histograms, timeline, notes }
}
