//! Did it change, by how much, and could it be chance?

use whylate_model::Printable;
use whylate_model::difference::{Difference, HOST_NAME};
use whylate_model::series::{Definition, shown_label};
use whylate_model::trust::Level;

use super::{Screen, trusted};
use crate::compare::section::{footnotes, sides};
use crate::compare::{
    CauseChange, Caution, Compared, Comparison, NumberDifference, Pair, PairResult, Verdict,
    allowed_by, renamed,
};
use crate::doc::{Block, Section};
use crate::numbers::{Cell, Value};
use crate::render::shorter;
use crate::spans::{Name, Sentence, Told, sentence};

mod limits;
mod next;
mod table;

/// Letters of a directory that a sentence names.
const DIRECTORY: usize = 24;
/// Settings that are named of those that differ besides, and letters of each value.
const DIFFERING: usize = 3;
const LETTERS: usize = 20;

pub(super) fn screen(of: &Comparison) -> Screen {
    let pairs = compared(of);
    let mut answer = vec![headline(of, &pairs)];
    let by_limits = limits::sentence(of, &pairs);
    let one_run = of.cautions.iter().any(|caution| matches!(caution, Caution::OneRunEach));
    let chance: Option<Sentence> = (one_run && !pairs.is_empty()).then(|| {
        "One run per side (*) cannot tell a real change from run-to-run variation.".into()
    });
    let cause =
        pairs.first().and_then(|(_, of)| cause(of.causes.as_ref()?, of.lost_share.as_ref()));
    // What has no room in the answer stands below the table.
    let mut rest = [by_limits, instead(of), chance.clone(), cause].into_iter().flatten();
    let second = rest.next();
    let is_chance = chance.is_some() && second == chance;
    let answered = is_chance.then(|| Caution::OneRunEach.to_string()).into_iter().collect();
    answer.extend(second);
    let rest = rest.map(|of| of.said());
    // What else differs says nothing of sides that have nothing in common.
    let notes =
        if of.pairs.is_empty() { rest.collect() } else { rest.chain(notes(of, &pairs)).collect() };
    Screen {
        answer,
        tables: vec![table::of(of, &pairs)],
        notes,
        trust: Some(of.trust()).filter(|of| !pairs.is_empty() || !of.reasons.is_empty()),
        advice: of.cautions.iter().map(|caution| (of.told(caution), advice(caution))).collect(),
        answered,
        more: next::steps(of),
        whole: super::whole(|| sections(of)),
        ..Screen::default()
    }
}

/// What the whole report has beside its tables.
fn sections(of: &Comparison) -> Vec<Section> {
    let notes = of.pairs.iter().flat_map(footnotes);
    let limits = of.limits.iter().map(crate::compare::Judged::sentence);
    vec![Section::new("", "", vec![Block::Items(notes.chain(limits).collect())])]
}

/// What to do about it, in a sentence.
fn advice(of: &Caution) -> String {
    match of {
        Caution::OneRunEach => {
            "Record five runs per side, alternating A B A B: whylate compare B1 ... B5 \
             --baseline A1 ... A5."
                .to_owned()
        }
        other => trusted::last_sentence(other.advice()),
    }
}

/// A pair that was compared.
type Known<'a> = (&'a Pair, &'a Compared);

/// Pairs that were compared, those that the question is about first, and of those the one that changed most.
fn compared(of: &Comparison) -> Vec<Known<'_>> {
    let known = of.pairs.iter().filter_map(|pair| match &pair.result {
        PairResult::Compared(compared) => Some((pair, &**compared)),
        _ => None,
    });
    let mut known: Vec<Known> = known.collect();
    known.sort_by(|a, b| {
        place_of(a.0).cmp(&place_of(b.0)).then_with(|| change(b.1).total_cmp(&change(a.1)))
    });
    known
}

fn place_of(pair: &Pair) -> u8 {
    place(pair.before.definition, &pair.series)
}

/// How the series of whole requests ends that were taken apart.
const WHOLE: &str = "-whole";

/// How far a series is from what a user asks about: lost time, how long requests and jobs took, and what they are
/// made of.
pub(super) fn place(definition: Definition, series: &str) -> u8 {
    match definition {
        Definition::Gap => 0,
        Definition::Response | Definition::OneWayResponse | Definition::ResponseTime => 1,
        Definition::DispatchLatency if series.contains("corrected") => 2,
        Definition::DispatchLatency
        | Definition::RoundTrip
        | Definition::OneWay
        | Definition::Residence
        | Definition::ContextSwitch => 3,
        Definition::PartOfRequest if series.ends_with(WHOLE) => 4,
        Definition::Tardiness | Definition::Slack | Definition::PartOfRequest => 5,
        Definition::SendLateness | Definition::UninterruptedLateness => 6,
        Definition::ReadDelta | Definition::Departures | Definition::Receptions => 7,
    }
}

/// The largest relative change that is shown; of a share that was nothing any change is the largest.
fn change(of: &Compared) -> f64 {
    let is_shown = |verdict: Verdict| verdict != Verdict::NoDifferenceShown;
    let relative = |relative: Option<f64>| relative.map_or(f64::MAX, f64::abs);
    let lost = of.lost_share.as_ref().filter(|of| is_shown(of.verdict));
    let lost = lost.map(|of| relative(of.difference.relative));
    let quantiles = of.quantiles.iter().filter(|of| of.verdict.is_some_and(is_shown));
    let quantiles = quantiles.filter_map(|of| Some(relative(of.difference?.relative)));
    lost.into_iter().chain(quantiles).fold(0.0, f64::max)
}

/// Timer wake-ups, and with each skipped one at its own latency.
const WAKES: &str = "wake";
const CORRECTED: &str = "wake-corrected";

/// What a pair is about, as a row of a table has it: of timer wake-ups both series as `wake` has them.
pub(crate) fn row_name(of: &Comparison, pair: &Pair) -> String {
    let corrected = || {
        let series = of.pairs.iter().map(|pair| pair.series.as_str());
        series.filter_map(|series| series.strip_prefix(CORRECTED))
    };
    let of_thread = |what: &str, thread: &str| match thread.strip_prefix('-') {
        Some(thread) if corrected().count() > 1 => format!("{what}, {}", Printable(thread)),
        _ => what.to_owned(),
    };
    if let Some(thread) = pair.series.strip_prefix(CORRECTED) {
        return of_thread("all due wake-ups", thread);
    }
    let raw = pair.series.strip_prefix(WAKES);
    match raw.filter(|thread| corrected().any(|corrected| corrected == *thread)) {
        Some(thread) => of_thread("uncorrected", thread),
        None => name(pair),
    }
}

/// What a pair is about, in the words of the field.
fn name(pair: &Pair) -> String {
    let label = shown_label(pair.before.label.trim());
    let begins = [
        ("stalls, ", ""),
        ("all due wake-ups", "wake-up latency"),
        ("whole, ", "whole request of "),
    ];
    let begin = begins.iter().find_map(|(of, name)| Some((label.strip_prefix(of)?, name)));
    let name = begin.map_or_else(|| label.clone(), |(rest, name)| format!("{name}{rest}"));
    Printable(&name).to_string()
}

/// Is trust in what one of the sides holds poor? Of one recording on both sides all that is told is true.
fn is_spoilt(of: &Comparison) -> bool {
    let is_same = |caution: &&Caution| matches!(caution, Caution::SameRecording { .. });
    let mut others = of.cautions.iter().filter(|caution| !is_same(caution));
    others.any(|caution| caution.level() == Level::Poor)
}

fn headline(of: &Comparison, pairs: &[Known]) -> Sentence {
    let Some((pair, compared)) = pairs.first() else { return nothing(of) };
    let name = name(pair);
    let spoilt = is_spoilt(of).then(|| Sentence::from("Trust is poor: "));
    let begin = if spoilt.is_some() { str::to_owned } else { trusted::upper };
    if let Some(lost) = &compared.lost_share {
        return sentence![spoilt, lost_share(Told::of(name), lost)];
    }
    let shown = |verdict: Option<Verdict>| verdict.filter(|of| *of != Verdict::NoDifferenceShown);
    let found = compared.quantiles.iter().find(|of| shown(of.verdict).is_some());
    let found = found.or(compared.quantiles.iter().find(|of| of.difference.is_some()));
    let Some((found, spread)) = found.and_then(|of| Some((of, of.difference?))) else {
        return if pair.is_timed_out(50.0) {
            sentence![Told::of(name), ": so many timed out that nothing tells the percentiles."]
        } else {
            sentence!["Too few samples of ", Told::of(name), " to compare."]
        };
    };
    let what = Told::of(format_args!("{} {}", begin(&name), super::series::name(found.percent)));
    let what = sentence![spoilt, what];
    let (a, b) = (Cell::from(found.before), Cell::from(found.after));
    let ends = sentence![" (95% CI ", table::difference(&spread, Value::Time).ends(), ")."];
    match shown(found.verdict) {
        Some(verdict) => {
            let way = if verdict == Verdict::ALower { " rose to " } else { " fell to " };
            sentence![what, way, b, " in B from ", a, ends]
        }
        None => sentence![what, ": no change is shown, ", a, " and ", b, ends],
    }
}

fn lost_share(who: Told, lost: &NumberDifference) -> Sentence {
    let [a, b] = sides(lost, Value::Share);
    let by = table::difference(&lost.difference, Value::Share);
    let ends = Sentence::unitless(by.ends());
    let by = sentence![" (", Sentence::unitless(by), " points, 95% CI ", ends, ")."];
    match lost.verdict {
        Verdict::ALower => sentence![who, " lost more in B: ", b, " against ", a, by],
        Verdict::AHigher => sentence![who, " lost less in B: ", b, " against ", a, by],
        Verdict::NoDifferenceShown => {
            sentence![who, ": no change is shown; it lost ", a, " in A and ", b, " in B", by]
        }
    }
}

/// Why nothing was compared.
fn nothing(of: &Comparison) -> Sentence {
    let results = || of.pairs.iter().map(|pair| (pair, &pair.result));
    if results().any(|(_, result)| matches!(result, PairResult::SideBySide)) {
        return "Both sides are shown as asked, without judging what differs.".into();
    }
    let unlike = results().filter_map(|(pair, result)| match result {
        PairResult::Unlike { fields } => Some((pair, fields)),
        _ => None,
    });
    let unlike = unlike.min_by_key(|(pair, _)| place_of(pair));
    let reason = results().find_map(|(_, result)| match result {
        PairResult::NoData { reason } => Some(reason),
        _ => None,
    });
    let why = match (unlike, reason) {
        (Some((pair, fields)), _) => {
            Told::of(format_args!("{} differs in {}", name(pair), differing(fields)))
        }
        (None, Some(reason)) => Told::of(Printable(reason)),
        (None, None) => return apart(of),
    };
    sentence!["Nothing was compared: ", why, "."]
}

/// What the sides measured, which have no series in common.
fn apart(of: &Comparison) -> Sentence {
    let none = "The two sides have no series in common";
    let measured = [of.before.first(), of.after.first()].map(|run| {
        let run = run?;
        let directory = run.directory.trim_end_matches('/').rsplit('/').next()?;
        let what = trusted::lower(&run.measured);
        (!what.is_empty()).then(|| (Name::cut(directory, DIRECTORY), what))
    });
    match measured {
        [Some((a, of_a)), Some((b, of_b))] if of_a != of_b => {
            let of_a = sentence![": ", a, " measured ", Told::of(of_a)];
            sentence![none, of_a, ", ", b, " ", Told::of(of_b), "."]
        }
        _ => sentence![none, "."],
    }
}

/// What the sides differ in, with the values of each.
fn differing(fields: &[Difference]) -> String {
    let said = fields.iter().take(DIFFERING).map(|of| {
        let [a, b] = both(of);
        format!("{} ({a} and {b})", Printable(&of.name))
    });
    let said = said.collect::<Vec<_>>().join(", ");
    match fields.len().saturating_sub(DIFFERING) {
        0 => said,
        more => format!("{said} and {more} more"),
    }
}

/// Both values, as far as they have room.
fn both(of: &Difference) -> [String; 2] {
    let shown = |text: &String| shorter(&Printable(text).to_string(), LETTERS);
    [&of.left, &of.right].map(shown)
}

/// What to do where series are not one; none where all are.
fn instead(of: &Comparison) -> Option<Sentence> {
    let unlike = of.pairs.iter().filter_map(|pair| match &pair.result {
        PairResult::Unlike { fields } => Some(fields),
        _ => None,
    });
    let fields: Vec<&Vec<Difference>> = unlike.collect();
    let first = fields.first()?;
    let across = allowed_by(first)
        .map(|names| sentence!["--across ", Told::of(names), " compares them all the same, "]);
    let how = sentence![across, "--side-by-side shows both."];
    if fields.len() == of.pairs.len() {
        return Some(how);
    }
    let series = if fields.len() == 1 { " series is" } else { " series are" };
    Some(sentence![fields.len(), series, " not compared: ", how])
}

/// Which cause took another share of the time. That it is most of the change is said of a part that is half of it
/// or more, and no more than all of it.
fn cause(of: &CauseChange, whole: Option<&NumberDifference>) -> Option<Sentence> {
    let CauseChange::Shown { cause, class, is_largest, share } = of else { return None };
    let points = |of: &NumberDifference| table::difference(&of.difference, Value::Share);
    let by = Sentence::unitless(points(share));
    let cause = Told::of(class.clone().unwrap_or_else(|| Printable(cause).to_string()));
    if !is_largest {
        return Some(sentence!["The share of ", cause, " changed: ", by, " points."]);
    }
    let part = share.difference.difference;
    // Without a change of the whole it is a part of nothing.
    let (all, same) = whole.map_or((0.0, false), |of| {
        (of.difference.difference, points(of).said() == points(share).said())
    });
    let is_one_way = part * all > 0.0;
    let is_more = (!is_one_way || part.abs() > all.abs()) && !same;
    if is_one_way && !is_more && part.abs() >= all.abs() / 2.0 {
        return Some(sentence!["Most of the change is by ", cause, ": ", by, " points."]);
    }
    let more = (is_one_way && is_more).then(|| Sentence::from(", more than the whole"));
    Some(sentence!["Largest change by cause: ", cause, ", ", by, " points", more, "."])
}

/// What has to be known beside the numbers.
fn notes(of: &Comparison, pairs: &[Known]) -> Vec<String> {
    let mut notes = Vec::new();
    let across = pairs.iter().find(|(_, of)| !of.across.is_empty());
    notes.extend(across.map(|(pair, of)| {
        format!("As asked, {} is compared across {}.", name(pair), differing(&of.across))
    }));
    let above = pairs.iter().filter_map(|(_, of)| of.above).max();
    notes.extend(above.map(|above| {
        let above = Cell::from(above).said();
        format!("Only stalls of at least {above}, the larger of the two thresholds, are compared.")
    }));
    let renamed = renamed(&of.differences);
    notes.extend(renamed.map(|of| {
        let [a, b] = both(of);
        format!("Only the name of the machine differs ({a} and {b}): it may be the same one.")
    }));
    let rest = of.differences.iter().filter(|of| renamed != Some(*of));
    let differing: Vec<Difference> = rest.map(plain).collect();
    if !differing.is_empty() {
        notes.push(format!("Also differs: {}.", self::differing(&differing)));
    }
    notes
}

/// A setting by its own name.
fn plain(of: &Difference) -> Difference {
    let name = of.name.strip_prefix("setting ").unwrap_or(&of.name);
    let name = if name == HOST_NAME { "machine" } else { name }.to_owned();
    Difference { name, ..of.clone() }
}
