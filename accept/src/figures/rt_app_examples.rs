//! Every example that rt-app's package ships, run by whylate and by rt-app itself.

use std::path::{Path, PathBuf};

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::run::Run;
use whylate_model::warning::Warning;
use whylate_sys::affinity;

use crate::needs;
use crate::program::{self, whylate};
use crate::rt_app_peer::{Logged, rt_app};
use crate::rt_app_rows::{self, Kept, Shares};

/// Where the package puts its examples.
const SHIPPED: &str = "/usr/share/doc/rt-app/examples";
/// How long each file runs, whatever it says.
const SECONDS: u64 = 1;
/// The one example that asks for more than a few CPUs have, and how many it would fit.
const TOO_MUCH: &str = "example3.json";
const FITS: usize = 11;

pub(crate) const FIGURE: Figure = Figure {
    name: "rt_app_examples",
    method: "each example of rt-app's package for 1 s, by whylate and by rt-app",
    rows: &[
        Row { claim: "run times within 1 % of the file's", unit: "share", bound: Bound::Always },
        Row {
            claim: "periods and lengths within 1 %, or accounted for",
            unit: "share",
            bound: Bound::Always,
        },
        Row {
            claim: "steps by the clock end late by what they did not have",
            unit: "share",
            bound: Bound::Always,
        },
        Row {
            claim: "of more than there is, and of nothing else, it is said",
            unit: "rounds",
            bound: Bound::Always,
        },
        Row { claim: "periods and lengths within 1 %", unit: "share", bound: Bound::Told },
        Row { claim: "rt-app's run times over the files'", unit: "ratio", bound: Bound::Told },
        Row { claim: "rt-app's periods over the files'", unit: "ratio", bound: Bound::Told },
    ],
    rounds: 1,
    seconds: 62.0,
    most_taken: None,
    needs: || {
        needs::can_be_root()?;
        let there = !files(Path::new(SHIPPED)).is_empty();
        there.then_some(()).ok_or_else(|| "the examples of rt-app are not installed".to_owned())
    },
    round,
};

/// Every file of the package that is a workload of its own, in order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "json") {
            found.push(path);
        }
    }
    found.retain(|path| !path.to_string_lossy().contains("/merge/"));
    found.sort();
    found
}

/// Runs a file once; none where it is refused. That this is by its place a test asks.
fn ours(file: &Path) -> Option<(Run, Shares)> {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let duration = format!("{SECONDS}s");
    let words = ["threads", "--cpus", "all", "--duration", &duration];
    let output = whylate(words).arg(file).arg("-o").arg(&directory).output().unwrap();
    if matches!(output.status.code(), Some(1 | 2)) {
        return None;
    }
    let run = program::read(&directory);
    program::ended(output.status.code(), &run);
    let shares = rt_app_rows::shares(&directory, &run);
    Some((run, shares))
}

/// So many of so many.
#[derive(Default)]
pub(super) struct Counted {
    hits: u64,
    of: u64,
}

impl Counted {
    pub(super) fn add(&mut self, held: bool) {
        self.hits += u64::from(held);
        self.of += 1;
    }

    pub(super) fn any(&self) -> bool {
        self.hits > 0
    }

    pub(super) fn reading(&self) -> Reading {
        Reading::Share { hits: self.hits, of: self.of }
    }
}

/// Rows of runs, by what became of them.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) run_times: Counted,
    pub(super) accounted: Counted,
    pub(super) within: Counted,
    pub(super) by_the_clock: Counted,
}

impl Rows {
    /// Of more than there is nothing is promised of periods and lengths.
    pub(super) fn add(&mut self, file: &str, run: &Run, shares: &Shares, over: bool) {
        for (_, phase) in rt_app_rows::of_phases(run).filter(|(_, phase)| phase.passes > 0) {
            if let Some(kept) = rt_app_rows::run_time_kept(phase) {
                self.run_times.add(kept);
            }
            if let Some(ends) = rt_app_rows::ends_as_it_should(phase) {
                self.by_the_clock.add(ends);
            }
        }
        for (row, kept) in rt_app_rows::judge(run, shares) {
            match &kept {
                Kept::Yes => {}
                Kept::Accounted { told, by_others: true } => eprintln!("{file}: {row}: {told}"),
                Kept::Accounted { told, .. } => {
                    eprintln!("{file}: {row}, by the file's own tasks: {told}");
                }
                Kept::No(told) => eprintln!("{file}: {row} is not accounted for: {told}"),
            }
            if !over {
                self.accounted.add(!matches!(kept, Kept::No(_)));
                self.within.add(kept == Kept::Yes);
            }
        }
    }
}

/// What rt-app's own logs come to over what they were to: run times and periods.
#[derive(Default)]
pub(super) struct Theirs {
    run: (f64, f64),
    period: (f64, f64),
}

impl Theirs {
    pub(super) fn add(&mut self, file: &Path, seconds: u64) {
        match rt_app().map(|peer| peer.run(file, seconds)) {
            Some(Ok(threads)) => threads.iter().for_each(|of| self.log(of)),
            Some(Err(why)) => eprintln!("{}: rt-app does not run it: {why}", file.display()),
            None => {}
        }
    }

    fn log(&mut self, of: &Logged) {
        eprintln!("rt-app, {}: {} rows", of.thread, of.rows);
        let sum = |to: &mut (f64, f64), of: (f64, f64)| *to = (to.0 + of.0, to.1 + of.1);
        sum(&mut self.run, of.run);
        sum(&mut self.period, of.period);
    }

    pub(super) fn readings(&self) -> [Reading; 2] {
        [self.run, self.period].map(|(measured, asked)| {
            let none = || Reading::Absent("rt-app logged nothing".to_owned());
            if asked > 0.0 { Reading::Value(measured / asked) } else { none() }
        })
    }
}

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let (mut rows, mut theirs) = (Rows::default(), Theirs::default());
    let mut overcommitted = Vec::new();
    for file in files(Path::new(SHIPPED)) {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let Some((run, shares)) = ours(&file) else { continue };
        let over = run.warnings.iter().any(|of| matches!(of, Warning::Overcommitted { .. }));
        rows.add(&name, &run, &shares, over);
        theirs.add(&file, SECONDS);
        overcommitted.extend(over.then_some(name));
    }
    assert!(rows.within.any(), "nothing was kept");
    let expected = (affinity::get().len() < FITS).then_some(TOO_MUCH);
    let said = overcommitted.iter().map(String::as_str).eq(expected);
    let [run, period] = theirs.readings();
    Ok(vec![
        rows.run_times.reading(),
        rows.accounted.reading(),
        rows.by_the_clock.reading(),
        Reading::held(said),
        rows.within.reading(),
        run,
        period,
    ])
}
