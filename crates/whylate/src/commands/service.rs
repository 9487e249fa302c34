//! What runs until it is told to end: a forwarder, a delay line, a server. With a run directory or without.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use serde::Serialize;
use whylate_host::last_run;
use whylate_model::directory::RunDir;
use whylate_model::run::Run;
use whylate_record::{Asked, RecordError, Recorded};
use whylate_report::{Account, first_of_account, full_of_account};

use super::{Exit, finish, stored};
use crate::cli::Findings;
use crate::out::{self, say};
use crate::progress::Shown;
use crate::stopping::Stopping;

/// Where and under which question it is recorded, and how it is told of.
pub(super) struct Keeping<'a> {
    pub(super) directory: &'a Path,
    pub(super) question: &'a str,
    /// Seed of everything random; 0 where nothing is.
    pub(super) seed: u64,
    pub(super) format: Findings,
    /// The whole report, not its first screen.
    pub(super) full: bool,
    pub(super) stopping: &'a Stopping,
}

impl Keeping<'_> {
    /// Has it recorded, prints its first screen, or all that it did, and judges it.
    pub(super) fn keep(
        &self,
        mut progress: Shown,
        record: impl FnOnce(&Asked, RunDir, &AtomicBool, &mut Shown) -> Result<Recorded, RecordError>,
        print: impl FnOnce(&Run) -> Result<()>,
    ) -> Result<Exit> {
        let directory = whylate_record::new_directory(Some(self.directory))?;
        let path = directory.path().to_owned();
        let asked = Asked {
            command_line: whylate_record::command_line(),
            question: self.question.to_owned(),
            seed: self.seed,
        };
        let recorded = record(&asked, directory, &self.stopping.stop, &mut progress)?;
        drop(progress);
        if let Err(error) = last_run::remember(&recorded.run.host, &path) {
            say!("{error}");
        }
        if self.stopping.twice() {
            return Ok(Exit::Abandoned);
        }
        let run = &recorded.run;
        let place = stored::place(&path);
        let is_text = self.format == Findings::Text;
        let first = (is_text && !self.full)
            .then(|| whylate_report::first_screen(run, place, super::style()));
        if let Some(screen) = first.flatten() {
            // It says where the run is stored.
            return finish(run, &path, out::print(screen), false);
        }
        finish(run, &path, print(run), is_text)
    }
}

/// Prints what was done: its first screen, or all of it.
pub(super) fn print<'a, T: Serialize>(of: &'a T, format: Findings, full: bool) -> Result<()>
where
    Account<'a>: From<&'a T>,
{
    let style = super::style();
    match format {
        Findings::Text if full => out::print(full_of_account(of, style)),
        Findings::Text => out::print(first_of_account(of, style)),
        Findings::Json => {
            let text = serde_json::to_string_pretty(of);
            out::print(text.context("cannot write what was done as JSON")? + "\n")
        }
    }
}
