//! How far a paper's repetition may be trusted: what its runs say of themselves, and what was not done.

use std::io;
use std::path::Path;

use whylate_model::ModelError;
use whylate_model::directory::RunDir;
use whylate_model::paper::Paper;
use whylate_model::trust::{Level, Reason, Trust};

use super::figures;

/// How notes of a scenario begin that did not come to its end.
const NOT_DONE: &str = "not done: ";
const STOPPED: &str = "stopped early";
/// How the reason of a run begins that was shortened: the paper says it once, of all.
const QUICK: &str = "a quick run";

/// What the runs of a paper say of it together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parts {
    /// How far it may be trusted: no further than what was done, and not at all where no run may be, or where a file
    /// is not as it was recorded.
    pub trust: Trust,
    /// When the first of them began by wall time, nanoseconds since 1970.
    pub began_ns: Option<u64>,
}

impl Parts {
    /// Reads the runs beside the paper. What cannot be read, or was changed since, is a reason.
    #[must_use]
    pub fn read(directory: &Path, paper: &Paper) -> Self {
        let mut names: Vec<&str> = Vec::new();
        for name in paper.scenarios.iter().flat_map(figures::names) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let mut of_runs: Vec<(Reason, Vec<&str>)> = Vec::new();
        let mut problems: Vec<String> = Paper::problem(directory).into_iter().collect();
        let mut reasons: Vec<Reason> = problems.iter().cloned().map(poor).collect();
        let (mut gone, mut damaged): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
        let (mut of_no_use, mut began_ns): (usize, Option<u64>) = (0, None);
        for name in names.iter().copied() {
            let run = RunDir::open(directory.join(name)).and_then(|run| run.read_checked());
            let run = match run {
                Ok(run) => run,
                Err(error) => {
                    let unread = if is_gone(&error) { &mut gone } else { &mut damaged };
                    unread.push(name);
                    continue;
                }
            };
            let anchors = run.clock.anchors.iter().map(|anchor| anchor.realtime_ns);
            began_ns = began_ns.into_iter().chain(anchors).min();
            let trust = Trust::of(&run);
            of_no_use += usize::from(trust.level() == Level::Poor);
            problems.extend(run.files.problems);
            for reason in trust.reasons {
                if paper.quick && reason.what.starts_with(QUICK) {
                    continue;
                }
                match of_runs.iter_mut().find(|(known, _)| *known == reason) {
                    Some((_, runs)) => runs.push(name),
                    None => of_runs.push((reason, vec![name])),
                }
            }
        }
        let read = names.len() - gone.len() - damaged.len();
        let none_holds = read > 0 && of_no_use == read;
        reasons.extend(of_all(paper));
        reasons.extend(of_the_unread(&damaged, names.len()).map(poor));
        reasons.extend(of_the_unread(&gone, names.len()).map(limited));
        // What most runs have comes first.
        of_runs.sort_by_key(|(_, runs)| std::cmp::Reverse(runs.len()));
        reasons.extend(of_runs.into_iter().map(|(reason, runs)| {
            // Of several runs one may be of no use. One of which a file was changed is no longer what the figures of
            // the paper are from.
            let stays = none_holds || problems.contains(&reason.what);
            let level = if stays { reason.level } else { Level::Limited };
            let what = match runs.as_slice() {
                _ if runs.len() == read => reason.what,
                [one] => format!("{} ({one})", reason.what),
                several => format!("{} ({} of {read} runs)", reason.what, several.len()),
            };
            Reason { level, what }
        }));
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.level));
        Self { trust: Trust { reasons }, began_ns }
    }
}

/// What the paper's own file says.
fn of_all(paper: &Paper) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let measured = paper
        .scenarios
        .iter()
        .any(|of| of.has_tables() || of.rows.iter().any(|row| row.here.is_some()));
    if !measured {
        reasons.push(poor("nothing was measured".to_owned()));
    }
    if paper.quick {
        reasons.push(limited("a quick run: shorter parts, so wider intervals".to_owned()));
    }
    for scenario in &paper.scenarios {
        let why = scenario.notes.iter().find_map(|note| note.strip_prefix(NOT_DONE));
        reasons.extend(why.map(|why| limited(format!("{} was not done: {why}", scenario.place))));
    }
    let mut notes = paper.scenarios.iter().flat_map(|of| &of.notes);
    if notes.any(|note| note.starts_with(STOPPED)) {
        reasons.push(limited("it was stopped early: what comes after was not begun".to_owned()));
    }
    reasons
}

fn of_the_unread(unread: &[&str], all: usize) -> Option<String> {
    match unread {
        [] => None,
        [one] => Some(format!("the run {one} cannot be read")),
        several => Some(format!("{} of {all} runs cannot be read", several.len())),
    }
}

/// Is there no run, rather than one that was damaged?
fn is_gone(error: &ModelError) -> bool {
    match error {
        ModelError::NoRun { .. } => true,
        ModelError::Read { why, .. } => why.kind() == io::ErrorKind::NotFound,
        _ => false,
    }
}

fn limited(what: String) -> Reason {
    Reason { level: Level::Limited, what }
}

fn poor(what: String) -> Reason {
    Reason { level: Level::Poor, what }
}
