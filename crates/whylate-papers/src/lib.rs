//! The experiments of papers, repeated with the recordings of this tool, and the papers' figures.
//!
//! Guarantees: a figure of this host comes from a run directory that is kept beside it, and the
//! command that repeats it is named. What cannot be measured here has a reason in place of a figure.
//!
//! Has no measuring loop of its own.

mod bench;
mod beside;
mod host;
pub mod hourglass2002;
pub mod killer2017;
mod missed;
pub mod pam2017;
mod rows;
mod spelled;
mod tool;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use whylate_model::configuration::Configurations;
use whylate_model::paper::{NotHere, PAPER_VERSION, Paper, Scenario};
use whylate_model::{CpuId, ModelError};
use whylate_record::RecordError;
use whylate_record::progress::Progress;

use bench::Bench;

/// Why a paper could not be repeated.
#[derive(Debug, thiserror::Error)]
pub enum PaperError {
    /// A recording.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The directory.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The host.
    #[error(transparent)]
    Host(#[from] whylate_host::HostError),
    /// The load of an experiment.
    #[error(transparent)]
    Load(#[from] whylate_load::LoadError),
    /// The network of an experiment.
    #[error(transparent)]
    Net(#[from] whylate_net::NetError),
    /// This program as a process of its own: it did not start, or not end well.
    #[error(transparent)]
    Tool(#[from] whylate_record::child::ChildError),
    /// A command line of the paper is not understood.
    #[error(transparent)]
    Words(#[from] whylate_rta::hourglass::HourglassError),
    /// The analysis of a task set.
    #[error(transparent)]
    Analysis(#[from] whylate_rta::analysis::AnalysisError),
    /// It was stopped.
    #[error("stopped")]
    Stopped,
    /// A box and who measures through it spin on a CPU each.
    #[error("a box and its client spin on a CPU each, and this process may use one alone")]
    OneCpu,
    /// A tool that is not known.
    #[error("no tool is called `{0}`: write some of {1}")]
    NoSuchTool(String, String),
    /// A file of another tool.
    #[error("{file}: {why}")]
    Import {
        /// The file, safe to print.
        file: String,
        /// What is wrong with it.
        why: whylate_report::import::ImportError,
    },
    /// A recording holds nothing of what it was made for.
    #[error("nothing was measured of {0}")]
    Nothing(&'static str),
    /// A place that the paper has not.
    #[error("the paper has no {0} here: write some of {1}")]
    NoSuchPlace(String, String),
    /// A place of the paper that is not repeated here.
    #[error("{0} of the paper is not repeated here yet ({1}): write some of {2}")]
    NotHere(String, String, String),
}

/// What is asked.
#[derive(Debug, Clone)]
pub struct Request {
    /// The directory: made, and empty.
    pub directory: PathBuf,
    /// The CPU of the experiments; the papers' machines had one.
    pub cpu: CpuId,
    /// Shorter parts.
    pub quick: bool,
    /// Only these places of the paper; none for all.
    pub only: Option<Vec<String>>,
    /// Seed of everything random.
    pub seed: u64,
    /// Words with which this program becomes a runner of switches, in front of its number.
    pub runner_words: Vec<OsString>,
    /// This program: recordings that need a process of their own are made by it.
    pub program: PathBuf,
    /// Only these of a paper's tools; none for the usual ones.
    pub tools: Option<Vec<String>>,
    /// Configurations of the operating system in place of a paper's own.
    pub configurations: Option<Configurations>,
    /// Results of other tools, to stand beside those of this one.
    pub imports: Vec<whylate_report::import::Wanted>,
}

/// One experiment: its place in the paper, its title, and what it does.
struct Experiment {
    place: &'static str,
    title: &'static str,
    /// About how many seconds it takes: as usual, and when time is short.
    seconds: (u64, u64),
    run: fn(&mut Bench<'_>, &mut Scenario) -> Result<(), PaperError>,
}

/// A paper that can be repeated.
struct Known {
    name: &'static str,
    reference: &'static str,
    experiments: &'static [Experiment],
    not_here: &'static [Missing],
}

/// An experiment of a paper that is not repeated: its place, its title, and what would repeat it.
struct Missing {
    place: &'static str,
    title: &'static str,
    would_be: &'static str,
}

impl Missing {
    fn told(&self) -> NotHere {
        let [place, title, would_be] = [self.place, self.title, self.would_be].map(str::to_owned);
        NotHere { place, title, would_be }
    }
}

/// Repeats the experiments one after the other. What one of them cannot do is noted in it, and the
/// others go on; the file is written after each.
fn repeat(
    known: &Known,
    request: &Request,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Paper, PaperError> {
    let wanted = chosen(known, request.only.as_deref())?;
    let host = whylate_host::fingerprint::read(std::path::Path::new("/"));
    let mut paper = Paper {
        format_version: PAPER_VERSION,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: whylate_record::command_line(),
        name: known.name.to_owned(),
        reference: known.reference.to_owned(),
        quick: request.quick,
        seed: request.seed,
        host,
        scenarios: Vec::new(),
        not_here: known.not_here.iter().map(Missing::told).collect(),
    };
    let mut bench = Bench::new(request, stop, progress);
    let seconds = |of: &Experiment| if request.quick { of.seconds.1 } else { of.seconds.0 };
    let (mut left, all) = (wanted.iter().map(|of| seconds(of)).sum::<u64>(), wanted.len());
    bench.say(&format!("{all} experiments: {} in all", about(left)));
    for (number, experiment) in wanted.into_iter().enumerate() {
        let mut scenario = empty(experiment.place, experiment.title);
        bench.say(&format!(
            "{} of {all}, {}: {} ({}; {} left)",
            number + 1,
            experiment.place,
            experiment.title,
            about(seconds(experiment)),
            about(left)
        ));
        left = left.saturating_sub(seconds(experiment));
        if let Err(error) = (experiment.run)(&mut bench, &mut scenario) {
            scenario.notes.push(format!("not done: {error}"));
        }
        paper.scenarios.push(scenario);
        paper.write(&request.directory)?;
        if stop.load(Ordering::Relaxed) {
            if let Some(last) = paper.scenarios.last_mut() {
                last.notes.push("stopped early: what follows was not begun".to_owned());
            }
            paper.write(&request.directory)?;
            break;
        }
    }
    Ok(paper)
}

/// A place of a paper, of which nothing is known yet.
fn empty(place: &str, title: &str) -> Scenario {
    Scenario {
        place: place.to_owned(),
        title: title.to_owned(),
        commands: Vec::new(),
        runs: Vec::new(),
        rows: Vec::new(),
        bars: Vec::new(),
        tables: Vec::new(),
        distributions: Vec::new(),
        effects: Vec::new(),
        notes: Vec::new(),
    }
}

/// A time that nobody should set a clock by.
fn about(seconds: u64) -> String {
    match seconds {
        ..90 => format!("about {seconds} s"),
        _ => format!("about {} min", (seconds + 30) / 60),
    }
}

/// The experiments at these places.
fn chosen<'a>(
    known: &'a Known,
    only: Option<&[String]>,
) -> Result<Vec<&'a Experiment>, PaperError> {
    let Some(only) = only else { return Ok(known.experiments.iter().collect()) };
    for place in only {
        if known.experiments.iter().any(|of| of.place.eq_ignore_ascii_case(place)) {
            continue;
        }
        let places: Vec<&str> = known.experiments.iter().map(|of| of.place).collect();
        let places = places.join(", ");
        let missing = known.not_here.iter().find(|of| of.place.eq_ignore_ascii_case(place));
        return Err(match missing {
            Some(of) => PaperError::NotHere(of.place.to_owned(), of.would_be.to_owned(), places),
            None => PaperError::NoSuchPlace(place.clone(), places),
        });
    }
    let named = |of: &&Experiment| only.iter().any(|place| of.place.eq_ignore_ascii_case(place));
    Ok(known.experiments.iter().filter(named).collect())
}

#[cfg(test)]
mod tests {
    use super::about;

    #[test]
    fn times_are_told_as_roughly_as_they_are_known() {
        assert_eq!(
            [4, 89, 90, 600].map(about),
            ["about 4 s", "about 89 s", "about 2 min", "about 10 min"]
        );
    }
}
