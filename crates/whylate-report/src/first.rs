//! The first screen of a run: the answer, the small table behind it, how far to trust it, and where the rest is.
//!
//! It has at most 24 lines of 80 columns with the command's own, whatever the run holds. What a kind of run
//! says stands in a file of its own; here is what they have in common: the order, and how much of each.

use std::path::Path;

use serde::Serialize;
use whylate_model::Printable;
use whylate_model::doctor::Diagnosis;
use whylate_model::lab::LabStatus;
use whylate_model::paper::Paper;
use whylate_model::prediction::Prediction;
use whylate_model::run::{Run, Verdict};
use whylate_model::trust::{Reason, Trust};
use whylate_model::warning::Warning;

use crate::compare::Comparison;
use crate::doc::{Block, Section, Table};
use crate::head;
use crate::numbers::Names;
use crate::paper::Parts;
use crate::series::ON_THE_PAGE;
use crate::spans::{Sentence, assert_stand};
use crate::terminal::{self, Style};

mod account;
mod backends;
mod by_task;
mod calibrate;
mod checkup;
mod compare;
mod delay;
mod device;
mod doctor;
mod forward;
mod gaps;
mod hourglass;
mod lab;
mod layout;
mod matrix;
mod merge;
mod missed;
mod names;
mod paper;
mod predicted;
mod received;
mod reflect;
mod residence;
mod rta;
mod rtt;
mod selftest;
mod series;
mod spent;
mod steps;
pub(crate) mod subject;
mod sums;
mod switch_cost;
mod taken;
mod threads;
mod trusted;
mod wake;

#[cfg(test)]
mod tests;

pub use account::Account;
pub(crate) use compare::row_name;
pub(crate) use taken::{by_kind, class_named};

/// Where a run is stored, and how it comes to be shown.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// Its directory; none where it could not be stored.
    pub directory: Option<&'a Path>,
    /// It was recorded before and is shown again.
    pub again: bool,
}

/// Stands for the directory in a command that a screen names.
const DIRECTORY: &str = "{directory}";
/// What two runs are for.
const COMPARE: &str = "whylate compare {directory} OTHER  shows significant changes";

/// A first screen before it is written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Screen {
    /// When and by which command it was recorded, where it is shown again.
    recorded: Option<String>,
    /// The answer with its two or three numbers, and what has to be said with it.
    pub(crate) answer: Vec<Sentence>,
    /// The table behind it, two at most.
    pub(crate) tables: Vec<Table>,
    /// How to read them.
    pub(crate) notes: Vec<String>,
    /// How far to trust it; none where there is nothing to trust.
    trust: Option<Trust>,
    /// What to do about a reason of its trust.
    advice: Vec<(String, String)>,
    /// Reasons of its trust that the answer gives.
    answered: Vec<String>,
    /// So many more follow from those that are told: the whole report has them.
    follow: usize,
    /// The commands below say what to do about them.
    more_advises: bool,
    /// What to change for another answer.
    change: Option<String>,
    /// Where the rest is: commands, the first of which may be long.
    pub(crate) more: Vec<String>,
    /// The directory as a shell takes it, where there is one: its page is the rest, too.
    directory: Option<String>,
    /// Names in what it is of that are no numbers, whatever they look like.
    names: Names,
    /// What the whole report has, where that is looked at.
    whole: Vec<Section>,
}

impl Screen {
    /// With the names that stand in what it is of.
    fn naming(self, data: &impl Serialize) -> Self {
        Self { names: Names::of(data), ..self }
    }
}

/// What the whole report has, beside whose numbers those of an answer are set in tests.
fn whole(sections: impl FnOnce() -> Vec<Section>) -> Vec<Section> {
    if cfg!(test) { sections() } else { Vec::new() }
}

/// The first screen of a run; none where its kind has none.
#[must_use]
pub fn first_screen(run: &Run, place: Place, style: Style) -> Option<String> {
    let run = &run.as_shown();
    let screen = of(run, place, style)?;
    Some(layout::write(&screen, style))
}

/// What was found, in a sentence or several: the answer of the first screen, with which the whole report and the
/// page begin, too. The letters are those of UTF-8.
#[must_use]
pub fn answer(run: &Run) -> String {
    let run = &run.as_shown();
    let screen = of_kind(run, Style::default()).unwrap_or_default().naming(run);
    assert_stand(&screen.answer, &screen.tables, &whole(|| terminal::sections(run, &ON_THE_PAGE)));
    match said(&screen) {
        // Samples of which no kind of run has anything to say are told as they are.
        nothing if nothing.is_empty() => said(&sums::of_others(run, Style::default()).naming(run)),
        said => said,
    }
}

/// The answer of a screen in one line.
fn said(screen: &Screen) -> String {
    let said: Vec<String> = screen.answer.iter().map(Sentence::said).collect();
    screen.names.respelled(&said.join(" "))
}

/// A share of the CPU, as first screens have it.
pub(crate) fn load_of_cpu(share: f64) -> String {
    predicted::load(share).said()
}

/// The answer of the first screen of a prediction.
pub(crate) fn of_prediction(of: &Prediction) -> String {
    predicted::answer(of).said()
}

/// The same of a comparison.
pub(crate) fn of_comparison(of: &Comparison) -> String {
    said(&compare::screen(of).naming(of))
}

/// The same of a server, a forwarder or a delay line.
pub(crate) fn of_account<'a>(of: impl Into<Account<'a>>) -> String {
    said(&of.into().screen(Style::default()))
}

/// The tables of the first screen and how to read them, with which the whole report and the page go on: each with
/// its unit in its head.
pub(crate) fn summary(run: &Run, style: Style) -> Vec<Block> {
    let screen = of_kind(run, style).unwrap_or_default();
    let tables =
        screen.tables.iter().filter_map(|table| layout::as_texts(table, style.letters).filled());
    let notes = screen.notes.iter().map(|note| style.letters.write(note));
    tables.map(Block::Table).chain(notes.map(Block::How)).collect()
}

/// What a run says first, by its kind.
fn of_kind(run: &Run, style: Style) -> Option<Screen> {
    KINDS.iter().find(|(is_it, ..)| is_it(run)).map(|(_, screen, _)| screen(run, style))
}

/// The first screen of a prediction without a run, which this command made.
#[must_use]
pub fn first_prediction(of: &Prediction, command_line: &[String], style: Style) -> String {
    let more = predicted::steps(of, command_line);
    layout::write(&Screen { more, ..predicted::screen(of).naming(of) }, style)
}

/// The first screen of what doctor found.
#[must_use]
pub fn first_of_diagnosis(of: &Diagnosis, style: Style) -> String {
    layout::write(&doctor::screen(of).naming(of), style)
}

/// The first screen of a comparison.
#[must_use]
pub fn first_of_comparison(of: &Comparison, style: Style) -> String {
    layout::write(&compare::screen(of).naming(of), style)
}

/// The first screen of the test networks.
#[must_use]
pub fn first_of_lab(of: &LabStatus, style: Style) -> String {
    layout::write(&lab::screen(of).naming(of), style)
}

/// The first screen of a server, a forwarder or a delay line of which no run is kept.
#[must_use]
pub fn first_of_account<'a>(of: impl Into<Account<'a>>, style: Style) -> String {
    layout::write(&account::without_run(of.into(), style), style)
}

/// The first screen of a paper's experiments, with what their runs say of them.
#[must_use]
pub fn first_screen_of_paper(paper: &Paper, parts: &Parts, place: Place, style: Style) -> String {
    let mut screen = paper::screen(paper).naming(paper);
    let recorded = || recorded("Recorded", parts.began_ns, &paper.command_line);
    screen.recorded = place.again.then(recorded).flatten();
    screen.trust = Some(parts.trust.clone());
    layout::write(&placed(screen, place), style)
}

/// Which run is of a kind, what such a run says first, and what it measured.
type Kind = (fn(&Run) -> bool, fn(&Run, Style) -> Screen, fn(&Run) -> String);

/// Kinds of runs that have a first screen; of several that a run is of, the first counts.
const KINDS: [Kind; 21] = [
    (gaps::is_it, |run, _| gaps::screen(run), subject::gaps),
    (wake::is_it, wake::screen, subject::wake),
    (checkup::is_it, checkup::screen, subject::checkup),
    (rtt::is_it, rtt::screen, subject::rtt),
    (backends::is_it, |run, _| backends::screen(run), subject::backends),
    (hourglass::is_it, |run, _| hourglass::screen(run), subject::hourglass),
    (threads::is_it, |run, _| threads::screen(run), subject::deadlines),
    (received::is_it, |run, _| received::screen(run), subject::received),
    (rta::is_it, |run, _| rta::screen(run), subject::rta),
    (switch_cost::is_it, |run, _| switch_cost::screen(run), subject::switch_cost),
    (merge::is_it, |run, _| merge::screen(run), subject::gaps),
    (calibrate::is_it, |run, _| calibrate::screen(run), subject::calibrate),
    (device::is_it, device::screen, subject::device),
    (account::is_it, account::screen, subject::account),
    (spent::is_it, spent::screen, subject::spent),
    (selftest::is_it, |run, _| selftest::screen(run), subject::selftest),
    (matrix::is_it, |run, _| matrix::screen(run), subject::matrix),
    (sums::is_of_checkups, sums::of_checkups, subject::checkup),
    (sums::is_of_requests, sums::of_requests, subject::rtt),
    (sums::is_of_switches, |run, _| sums::of_switches(run), subject::switch_cost),
    (Run::is_merged, sums::of_others, subject::others),
];

/// What there is to say first.
fn of(run: &Run, place: Place, style: Style) -> Option<Screen> {
    let mut screen = of_kind(run, style)?.naming(run);
    if let Verdict::LimitExceeded { what, .. } = &run.verdict {
        screen.notes.push(format!("Limit exceeded: {what}."));
    }
    let began = || run.clock.anchors.iter().map(|anchor| anchor.realtime_ns).min();
    let made = if run.is_merged() { "Merged" } else { "Recorded" };
    screen.recorded = place.again.then(|| recorded(made, began(), &run.command_line)).flatten();
    let advised = |of: &Warning| of.advice_in(run);
    let trust = Trust::of(run);
    let follows = |of: &&Reason| trusted::follows(&of.what, &run.warnings);
    screen.follow = trust.reasons.iter().filter(follows).count();
    let (mut trust, mut advice) = trusted::others_once(trust, &run.warnings, advised);
    let reasons = trust.reasons.iter_mut().map(|reason| &mut reason.what);
    for what in reasons.chain(advice.iter_mut().map(|(what, _)| what)) {
        if head::is_cut(run, what) {
            what.push_str(&head::measured(run));
        }
    }
    let answer: Vec<String> = screen.answer.iter().map(Sentence::said).collect();
    let answer = answer.join(" ");
    let is_said = |what: &str| trusted::is_said(what, &answer);
    let said = trust.reasons.iter().filter(|reason| is_said(&reason.what));
    screen.answered.extend(said.map(|reason| reason.what.clone()));
    // What to do about another reason, which is told, goes before what to do about those.
    if trust.reasons.iter().any(|reason| !screen.answered.contains(&reason.what)) {
        advice.retain(|(what, _)| !is_said(what));
    }
    (screen.trust, screen.advice) = (Some(trust), advice);
    screen.whole = whole(|| terminal::sections(run, &ON_THE_PAGE));
    Some(placed(screen, place))
}

/// With where the rest of it is.
fn placed(mut screen: Screen, place: Place) -> Screen {
    if place.directory.is_some() {
        screen.more.insert(0, format!("whylate report {DIRECTORY} --full"));
    } else {
        screen.more.retain(|step| !step.contains(DIRECTORY));
    }
    screen.directory = place.directory.map(|path| for_a_shell(&path.display().to_string()));
    screen
}

/// When and by which command something was made; where neither is known nothing is said.
fn recorded(made: &str, began_ns: Option<u64>, command_line: &[String]) -> Option<String> {
    let date = began_ns.map(|ns| {
        let date = crate::html::utc(ns);
        // Seconds are in the whole report.
        format!(" {} UTC", &date[..date.len().min(16)])
    });
    let mut words = command_line.iter();
    let program = words.next().map(|path| path.rsplit('/').next().unwrap_or(path).to_owned());
    let words = program.into_iter().chain(words.map(|word| for_a_shell(word)));
    let command = words.collect::<Vec<_>>().join(" ");
    match (date, command.as_str()) {
        (None, "") => None,
        (date, "") => Some(format!("{made}{}", date.unwrap_or_default())),
        (date, command) => Some(format!("{made}{} by: {command}", date.unwrap_or_default())),
    }
}

/// A word as a shell takes it. Letters that a terminal must not get are told by their numbers, as bash and zsh
/// read them.
fn for_a_shell(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./:,=+@%".contains(letter);
    let shown = |letter: char| Printable(letter.encode_utf8(&mut [0; 4])).to_string();
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else if word.chars().any(|letter| shown(letter) != letter.to_string()) {
        let told = word.chars().map(|letter| match letter {
            '\\' | '\'' => format!("\\{letter}"),
            _ if shown(letter) == letter.to_string() => letter.to_string(),
            _ if letter.is_ascii() => format!("\\x{:02x}", u32::from(letter)),
            _ => format!("\\U{:08x}", u32::from(letter)),
        });
        format!("$'{}'", told.collect::<String>())
    } else {
        // Nothing is expanded between single quotes; one of them stands outside, escaped.
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
