//! Where requests spent their time: those of a process that was watched, or of a flow that was taken apart.

use whylate_model::breakdown::{Breakdown, Composition, Part, PartShare};
use whylate_model::run::Run;
use whylate_model::series::Series;
use whylate_model::trust::NO_REQUEST;

use super::layout::{COLUMNS, LABEL, short};
use super::{COMPARE, Screen, rtt, series};
use crate::breakdown::{QUIET, slow};
use crate::doc::Table;
use crate::numbers::{Cell, Value};
use crate::spans::{Sentence, Told, sentence};
use crate::terminal::Style;

/// Parts that a sentence names.
const SAID: usize = 2;
/// What the end of a line may lack because a word had no room.
const BROKEN: usize = 12;

/// Is it a recording of requests that were taken apart, and of nothing that is a question of its own?
pub(super) fn is_it(run: &Run) -> bool {
    let others = run.backends.is_some() || run.device.is_some() || run.calibration.is_some();
    !others && !run.is_merged() && of(run).is_some()
}

/// Parts below a table of latencies.
const BESIDE_LATENCY: usize = 6;

/// What was taken apart.
fn of(run: &Run) -> Option<&Breakdown> {
    let watched = run.watched.as_deref().map(|watched| &watched.breakdown);
    watched.or_else(|| run.flows.first()?.breakdown.as_deref())
}

pub(super) fn screen(run: &Run, style: Style) -> Screen {
    let Some(of) = of(run) else { return Screen::default() };
    let slow = slow(of, run.is_merged()).map(|(slow, took)| {
        let more = largest(slow, 1).map(|parts| sentence![": ", parts]);
        sentence![took, more, "."].said()
    });
    let parts = match run.watched {
        Some(_) => parts(of),
        None => parts(of).most(BESIDE_LATENCY),
    };
    let tables: Vec<Table> = latency(run, of, style).into_iter().chain([parts]).collect();
    Screen {
        answer: answer(run, of),
        answered: (of.requests == 0).then(|| NO_REQUEST.to_owned()).into_iter().collect(),
        notes: rtt::beyond(&tables).into_iter().chain(slow).chain(rate(run)).collect(),
        tables,
        more: vec![next(run, of)],
        ..Screen::default()
    }
}

/// How many requests came in a second to a process that was watched, and what of them is measured: its clients send
/// as they like, and what comes before the request has arrived is theirs.
fn rate(run: &Run) -> Option<String> {
    let watched = run.watched.as_deref().filter(|_| !run.is_merged())?;
    let (requests, lasted) = (watched.breakdown.requests, watched.lasted?);
    if requests == 0 || lasted.0 == 0 {
        return None;
    }
    let per_second = Value::Rate(requests as f64 * 1e9 / lasted.0 as f64);
    let per_second = Sentence::unitless(Some(per_second)).said();
    Some(format!(
        "{per_second} requests/s, as the clients sent them; from arrival at this machine to the reply \
         leaving it."
    ))
}

/// The times that the answer is about: a client's, or those of the requests that were seen.
fn latency(run: &Run, of: &Breakdown, style: Style) -> Option<Table> {
    if run.watched.is_some() {
        let row = ("whole request".to_owned(), whole(run, of)?);
        return Some(rtt::times_of(run, style, [row]));
    }
    let own = run.flows.first().is_some_and(|of| rtt::times(run, of).is_some());
    own.then(|| rtt::latency(run, style))
}

/// The series of whole requests; runs without it know no more than their mean.
fn whole<'a>(run: &'a Run, of: &Breakdown) -> Option<&'a Series> {
    series::named(run, of.series.as_ref()?)
}

fn answer(run: &Run, of: &Breakdown) -> Vec<Sentence> {
    let begin = match (&run.watched, run.flows.first()) {
        (Some(watched), _) => {
            let whom = short(&watched.process.name);
            if of.requests == 0 {
                let none = sentence!["No request of ", whom, " was seen."];
                return vec![none, sentence![Told::of(super::trusted::upper(QUIET)), "."]];
            }
            let requests = sentence![Value::Count(of.requests), " requests of ", whom];
            match whole(run, of) {
                Some(whole) => {
                    sentence![requests, ": ", series::said(whole), "; mean ", mean(&of.all), "."]
                }
                None => sentence![requests, " took ", mean(&of.all), " on average."],
            }
        }
        (None, Some(flow)) => rtt::headline(run, flow),
        (None, None) => return Vec::new(),
    };
    let parts = |most: usize| {
        largest(&of.all, most).map(|parts| match run.watched {
            Some(_) => sentence!["Of that, ", parts, "."],
            None => sentence!["Of ", mean(&of.all), " on average, ", parts, "."],
        })
    };
    // Where the first sentence goes on in the second line, the rest of that is what there is room for.
    let letters = |of: &Sentence| of.said().chars().count();
    let beyond = match letters(&begin) {
        fits if fits <= COLUMNS => 0,
        more => more - COLUMNS + BROKEN,
    };
    let fits = parts(SAID).filter(|of| letters(of) + beyond <= COLUMNS).or(parts(1));
    vec![begin, fits.unwrap_or_else(|| "None of them was taken apart.".into())]
}

fn mean(of: &Composition) -> Value {
    Value::Time(of.total_mean_ns)
}

/// The parts that took most, the largest first; none where nothing is told apart.
fn largest(of: &Composition, most: usize) -> Option<Sentence> {
    let said = by_share(of).into_iter().take(most).map(|of| {
        let what = Told::of(format_args!("{} ({})", label(of.part), of.part.from.leg.word()));
        sentence![Value::Share(of.share), " is ", what]
    });
    let said = Sentence::joined(said, ", ");
    (said != Sentence::default()).then_some(said)
}

/// What a part consists of, in few enough words for the first column: where all its steps have no room, from which
/// to which.
pub(super) fn label(part: Part) -> String {
    let steps = part.steps();
    let all = steps.join(", ");
    let fits = |text: &String| text.chars().count() <= LABEL;
    match steps.as_slice() {
        [first, others @ .., last] if !fits(&all) => {
            let ends = format!("{first} to {last}");
            if fits(&ends) { ends } else { format!("{first} and {} more", others.len() + 1) }
        }
        [] => part.words(),
        _ => all,
    }
}

fn by_share(of: &Composition) -> Vec<&PartShare> {
    let mut parts: Vec<&PartShare> = of.parts.iter().collect();
    parts.sort_by(|a, b| b.share.total_cmp(&a.share));
    parts
}

/// The parts with the largest shares first, of all requests and, where some were slow, of those.
fn parts(of: &Breakdown) -> Table {
    let slow = of.slow.as_ref().map(|slow| &slow.composition);
    let head = ["part of a request", "way", "mean", "share", "slow mean", "slow share"];
    let head = if slow.is_some() { &head[..] } else { &head[..4] };
    let mut table = Table::new("", head).words(&[1]);
    for part in by_share(&of.all) {
        let of_slow = slow.and_then(|of| of.parts.iter().find(|of| of.part == part.part));
        let cells = |of: Option<&PartShare>| -> [Cell; 2] {
            [
                of.map(|of| Value::Time(of.mean_ns)).into(),
                of.map(|of| Value::Share(of.share)).into(),
            ]
        };
        let what = [Cell::from(label(part.part)), part.part.from.leg.word().into()];
        let slow = slow.is_some().then(|| cells(of_slow));
        table.row(what.into_iter().chain(cells(Some(part))).chain(slow.into_iter().flatten()));
    }
    table
}

fn next(run: &Run, of: &Breakdown) -> String {
    match &run.watched {
        Some(watched) if of.requests == 0 => match watched.process.port {
            Some(port) => format!("whylate watch {port} --duration 1m  while clients ask it"),
            None => "whylate watch PORT --duration 1m  names the server by its port".to_owned(),
        },
        _ => COMPARE.to_owned(),
    }
}
