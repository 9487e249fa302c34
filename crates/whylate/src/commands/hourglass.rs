//! `whylate hourglass`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use whylate_gap::Threshold;
use whylate_host::cpus::CpuSpec;
use whylate_host::last_run;
use whylate_model::directory::RunDir;
use whylate_record::set::{Request, record};
use whylate_record::storage;
use whylate_report::Traced;
use whylate_report::execution::recorded::Recorded as OnDisk;
use whylate_report::hourglass::Output;
use whylate_rta::hourglass::{self, Hourglass as Line};
use whylate_sys::affinity;

use super::gaps::{CPUS, here};
use super::threads::not_understood;
use super::{Exit, Form, finish, print, stored};
use crate::cli::{Format, Hourglass};
use crate::failure;
use crate::out::{self, say};
use crate::progress::Shown;
use crate::stopping::Stopping;

/// What the paper's program printed, in the run directory.
const LINES: &str = "hourglass.txt";

pub(super) fn run(options: &Hourglass) -> Result<Exit> {
    let line = match hourglass::parse(&options.words) {
        Ok(line) => line,
        Err(error) => {
            failure::refuse(error);
            return Ok(Exit::Usage);
        }
    };
    let stopping = Stopping::listen()?;
    let mut progress = Shown::usual();
    for told in whylate_record::mend_what_dead_runs_left() {
        whylate_record::progress::Progress::say(&mut progress, &told);
    }
    let seed = line.extra.seed.unwrap_or_else(whylate_record::draw_seed);
    let output = line.extra.output.clone();
    let (raw, cycles, request) = (line.extra.raw, line.raw_trace, request(line, seed));
    if let Some(exit) = not_understood(&request) {
        return Ok(exit);
    }
    here(&CpuSpec::List(request.cpus.clone()), CPUS)?;
    let directory = whylate_record::new_directory(output.as_deref())?;
    let path = directory.path().to_owned();
    let set = record(&request, directory, &stopping.stop, &mut progress)?;
    drop(progress);
    let run = &set.recorded.run;
    if let Err(error) = last_run::remember(&run.host, &path) {
        say!("{error}");
    }
    if stopping.twice() {
        return Ok(Exit::Abandoned);
    }
    let output = Output {
        threads: &run.threads,
        blocks: &set.blocks,
        latencies: &set.latencies,
        begin: set.begin,
        hz: run.clock.hz,
        raw: cycles,
    };
    let directory = RunDir::open(&path)?;
    let lines = keep(&output, &path.join(LINES)).and_then(|()| {
        // With its digest, as all that is kept of a run.
        let mut whole = run.clone();
        whole.captures.extend(directory.captured(LINES));
        Ok(directory.write_run(&whole)?)
    });
    if let Err(error) = &lines {
        say!("{error:#}");
    }
    if !raw {
        let recorded = OnDisk::read(&directory, run, None);
        let traced = recorded.as_ref().map(|recorded| Traced { recorded, trace: false });
        let place = stored::place(&path);
        let form = Form { format: Format::Text, percentiles: None, full: false };
        let printed = print(run, traced, place, form);
        if lines.is_ok() {
            say!(
                "The lines of the paper are in {} (--raw prints them)",
                path.join(LINES).display()
            );
        }
        return finish(run, &path, printed, false);
    }
    let printed = out::with(|out| {
        let mut out = BufWriter::new(out);
        output.write(&mut out)?;
        out.flush()
    });
    for warning in &run.warnings {
        say!("{warning}");
    }
    // Standard output is the execution trace's alone.
    if stored::place(&path).directory.is_some() {
        say!("Run directory: {}", path.display());
    }
    finish(run, &path, printed, false)
}

/// Writes the lines of the paper into a file.
fn keep(output: &Output, file: &Path) -> Result<()> {
    let write = || {
        let mut out = BufWriter::new(File::create(file)?);
        output.write(&mut out)?;
        out.flush()
    };
    write().with_context(|| format!("cannot write {}", file.display()))
}

fn request(line: Line, seed: u64) -> Request {
    let Line { set, duration, records, extra, .. } = line;
    // The paper's machine had one CPU.
    let cpus = extra.cpus.unwrap_or_else(|| affinity::get().into_iter().rev().take(1).collect());
    let threshold = match extra.threshold {
        None | Some(hourglass::Threshold::Auto) => Threshold::Automatic,
        Some(hourglass::Threshold::Paper) => Threshold::TwiceMedian,
        Some(hourglass::Threshold::Exactly(time)) => Threshold::Fixed(time),
    };
    let question = whylate_record::set::question(&set, &cpus, duration);
    Request {
        set,
        tables_in: None,
        cpus,
        duration,
        warmup: None,
        threshold,
        housekeeping: None,
        lock_memory: true,
        hold_idle_states: true,
        trace: true,
        validate: true,
        worst: 3,
        records,
        passes: 0,
        storage: storage::Limits::default(),
        seed,
        command_line: whylate_record::command_line(),
        question,
        load: Vec::new(),
        bed: None,
        notes: Vec::new(),
    }
}
