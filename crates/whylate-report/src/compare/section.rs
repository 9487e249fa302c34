//! A comparison in words and tables.

use whylate_model::difference::Difference;
use whylate_model::series::{Quantile, shown_label};
use whylate_model::trust::Level;

use super::{
    Basis, CauseChange, Caution, Compared, Comparison, Judged, NumberDifference, Outcome, Pair,
    PairResult, RunFacts, Shown, Side, Spread, TIMED_OUT, Verdict, allowed_by, renamed, runs,
};
use crate::doc::{Block, Document, Picture, Section, Table, Warning, Where};
use crate::first;
use crate::numbers::{self, ABSENT, Cell, Value, count, p_value, rate};
use crate::series::at_least;

/// Runs of a side that are named; the others are counted.
const MOST_RUNS: usize = 3;
/// Rows of a table.
const MOST_ROWS: usize = 256;

/// All of a comparison, with a figure for each pair that there is one of.
pub(crate) fn document(of: &Comparison, mut figures: Vec<Option<String>>) -> Document {
    figures.resize_with(of.pairs.len(), || None);
    let sides = [side(Side::A, &of.before), side(Side::B, &of.after)].to_vec();
    let pairs = of.pairs.iter().zip(figures).map(|(pair, figure)| section(pair, figure));
    let document = Document::new("A against B: differences are B less A")
        .naming(of)
        .with([Block::Text(first::of_comparison(of)), Block::Items(sides)])
        .sections(pairs)
        .with(alone(of))
        .about("What else differs", differences(of))
        .about("Warnings", cautions(of));
    document.about("Limits", of.limits.iter().map(limit).collect())
}

fn section(pair: &Pair, figure: Option<String>) -> Section {
    let mut blocks = vec![Block::Items(lines(pair))];
    let figure = figure.map(|svg| vec![Block::Figure(Picture::still(svg, ""))]);
    blocks.extend(figure.map(|figure| Block::Only(Where::Page, figure)));
    blocks.extend([Block::Table(table(pair)), Block::Items(footnotes(pair))]);
    Section::new("", heading(pair), blocks).headed()
}

/// Series that only one side has.
fn alone(of: &Comparison) -> Vec<Block> {
    let mut said = Vec::new();
    if of.pairs.is_empty() {
        let none = "The two sides have no series in common.".to_owned();
        said.extend([Block::apart(), Block::Judged(Level::Poor, none)]);
    }
    for (letter, text) in [(Side::A, "Only in A"), (Side::B, "Only in B")] {
        let names = of.unpaired.iter().filter(|one| one.only_in == letter);
        let names: Vec<&str> = names.map(|one| one.series.as_str()).collect();
        if !names.is_empty() {
            said.extend([Block::apart(), Block::Text(format!("{text}: {}", names.join(", ")))]);
        }
    }
    said
}

fn cautions(of: &Comparison) -> Vec<Block> {
    let warning = |caution: &Caution| Warning {
        text: caution.to_string(),
        advice: caution.advice().to_owned(),
        level: caution.level(),
    };
    let all: Vec<Warning> = of.cautions.iter().map(warning).collect();
    if all.is_empty() { Vec::new() } else { vec![Block::Warnings(all)] }
}

fn limit(of: &Judged) -> Block {
    let level = match of.outcome {
        Outcome::Held { .. } | Outcome::NothingToExceed { .. } => Level::Good,
        Outcome::NotShown { .. } => Level::Limited,
        Outcome::Exceeded { .. } | Outcome::CannotBeJudged { .. } => Level::Poor,
    };
    Block::Judged(level, of.sentence())
}

/// Which runs a side is.
fn side(letter: Side, runs: &[RunFacts]) -> String {
    let named: Vec<String> = runs
        .iter()
        .take(MOST_RUNS)
        .map(|run| {
            let host = &run.hostname;
            match run.recordings {
                1 => format!("{} ({host})", run.directory),
                many => format!("{} ({many} recordings)", run.directory),
            }
        })
        .collect();
    let more = match runs.len().saturating_sub(MOST_RUNS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{letter:?}: {}{more}", named.join(", "))
}

/// What the pair is.
pub(crate) fn heading(pair: &Pair) -> String {
    let [a, b] = [&pair.before, &pair.after].map(|side| shown_label(&side.label));
    let name = &pair.series;
    if a == b { format!("{a} ({name})") } else { format!("{a} and {b} ({name})") }
}

/// What was measured, and whether it can be compared.
fn lines(pair: &Pair) -> Vec<String> {
    let (a, b) = (&pair.before, &pair.after);
    let from_to = |shown: &Shown| {
        // As it is stored a stall is a gap, of which the definition before it says what it is.
        let from = shown.from.replace("before the gap", "before it");
        format!("{}, from {from} to {}, by {}", shown.definition, shown.to, shown.clock)
    };
    let size = |shown: &Shown| format!("n = {} in {}", count(shown.n), runs(shown.runs));
    let mut lines = match &pair.result {
        PairResult::Unlike { .. } | PairResult::SideBySide => {
            vec![
                format!("A: {}; {}", from_to(a), size(a)),
                format!("B: {}; {}", from_to(b), size(b)),
            ]
        }
        PairResult::Compared(_) | PairResult::NoData { .. } => {
            vec![format!("{}; A: {}; B: {}", from_to(a), size(a), size(b))]
        }
    };
    match &pair.result {
        PairResult::Unlike { fields } => {
            for field in fields {
                lines.push(format!(
                    "NOT ALIKE in `{}`: A has {}, B has {}",
                    field.name, field.left, field.right
                ));
            }
            lines.push(instead(fields));
        }
        PairResult::SideBySide => lines.push("beside each other, without a verdict".to_owned()),
        PairResult::NoData { reason } => lines.push(format!("nothing to compare: {reason}")),
        PairResult::Compared(compared) => {
            lines.extend(compared.across.iter().map(|field| {
                format!(
                    "across `{}`, as asked: A has {}, B has {}",
                    field.name, field.left, field.right
                )
            }));
            lines.extend(compared.above.map(|above| {
                format!(
                    "stalls of at least {above} on both sides, the larger of the two thresholds"
                )
            }));
        }
    }
    if a.name != b.name {
        lines.push(format!("{} of A against {} of B, as --series pairs them", a.name, b.name));
    }
    lines
}

/// What to do where two series are not one.
fn instead(fields: &[Difference]) -> String {
    let side_by_side = "--side-by-side shows both without a verdict";
    match allowed_by(fields) {
        None => format!("nothing is computed; {side_by_side}"),
        Some(names) => {
            format!("nothing is computed; {side_by_side}, --across {names} compares all the same")
        }
    }
}

/// The numbers.
fn table(pair: &Pair) -> Table {
    let head = ["", "A", "B", "B - A", "95% interval", ""];
    match &pair.result {
        PairResult::Compared(compared) => {
            let mut table = Table::new("Quantiles", &head).words(&[5]).captioned_on_the_page();
            let known =
                compared.quantiles.iter().filter(|q| q.before.is_some() || q.after.is_some());
            for q in known {
                let spread = q.difference.as_ref();
                let name = format!("p{}", q.percent);
                let timed_out = pair.is_timed_out(q.percent);
                let without = if timed_out { TIMED_OUT } else { "not supported" };
                let both = (q.before.into(), q.after.into());
                table.row(row(name, both, spread, q.verdict, without));
            }
            let (max, spread) = (&compared.max, compared.max.difference.as_ref());
            let without = if pair.gave_up() { TIMED_OUT } else { "not known from one run" };
            let both = (pair.before.largest(), pair.after.largest());
            table.row(row("max".to_owned(), both, spread, max.verdict, without));
            table
        }
        PairResult::SideBySide => {
            let mut table = Table::new("Quantiles", &head[..3]).captioned_on_the_page();
            let (a, b) = (&pair.before, &pair.after);
            let mut both = |name: &str, a: Value, b: Value| {
                table.row([Value::from(name), a, b]);
            };
            let find = |shown: &Shown, percent: f64| {
                let found = shown.quantiles.iter().find(|q| (q.percent - percent).abs() < 1e-9);
                found.map_or(Value::Absent, at_least)
            };
            both("min", a.min.into(), b.min.into());
            for Quantile { percent, .. } in &a.quantiles {
                let (of_a, of_b) = (find(a, *percent), find(b, *percent));
                if [&of_a, &of_b].iter().any(|of| **of != Value::Absent) {
                    both(&format!("p{percent}"), of_a, of_b);
                }
            }
            both("max", a.largest(), b.largest());
            table
        }
        PairResult::Unlike { .. } | PairResult::NoData { .. } => Table::new("", &[]),
    }
}

fn row(
    name: String,
    (a, b): (Value, Value),
    spread: Option<&Spread>,
    verdict: Option<Verdict>,
    without: &str,
) -> [Cell; 6] {
    let words = match (verdict, spread) {
        (Some(verdict), Some(spread)) => in_words(verdict, spread),
        (None, Some(_)) => "beyond trust".to_owned(),
        (_, None) => without.to_owned(),
    };
    let by = Value::from(spread.map(|d| Value::Time(d.difference)));
    let ends = spread.map(|d| d.interval);
    let ends = ends.map(|(low, high)| (Value::Time(low), Value::Time(high)));
    let by = Cell::from(by).within(ends).signed();
    [name.into(), a.into(), b.into(), by.alone(), by.ends(), words.into()]
}

/// With one run a side a difference is one of those two runs.
fn in_words(verdict: Verdict, spread: &Spread) -> String {
    match spread.between {
        None if verdict != Verdict::NoDifferenceShown => {
            format!("{verdict} (these two runs)")
        }
        _ => verdict.to_string(),
    }
}

/// What else was computed.
pub(crate) fn footnotes(pair: &Pair) -> Vec<String> {
    let PairResult::Compared(compared) = &pair.result else { return Vec::new() };
    let mut notes = Vec::new();
    notes.extend(relative(compared));
    if let Some(rank) = &compared.rank {
        let basis = match rank.basis {
            Basis::Samples => "samples taken as independent",
            Basis::Blocks => "spread between blocks of time",
            Basis::Runs => "spread between runs",
        };
        notes.push(format!(
            "rank test: a value of B is the larger one with probability {}, \
             p {}; {basis}",
            Cell::from(Value::Ratio(rank.superiority))
                .within(Some((Value::Ratio(rank.interval.0), Value::Ratio(rank.interval.1)))),
            p_value(rank.p_value),
        ));
    }
    if let Some(lost) = &compared.lost_share {
        let shown = sides(lost, Value::Share).map(|of| of.to_string());
        notes.push(number("lost share of the elapsed time", &shown, lost, POINTS));
    }
    notes.extend(compared.causes.as_ref().map(of_causes));
    for one in &compared.rates {
        if one.per_second.before > 0.0 || one.per_second.after > 0.0 {
            let what = format!("stalls of at least {}", Value::from(one.at_least));
            let shown = |value: f64, below: Option<f64>| match below {
                Some(below) => format!("none (below {})", rate(below)),
                None => rate(value),
            };
            let values = [
                shown(one.per_second.before, one.before_below),
                shown(one.per_second.after, one.after_below),
            ];
            notes.push(number(&what, &values, &one.per_second, (Value::Rate, "")));
        }
    }
    notes.extend(between(compared));
    notes
}

/// Which cause took another share of the time.
fn of_causes(of: &CauseChange) -> String {
    match of {
        CauseChange::Shown { cause, share, is_largest, .. } => {
            let most = if *is_largest { "largest change by cause" } else { "change by cause" };
            let what = format!("{most}: {cause}");
            number(&what, &sides(share, Value::Share).map(|of| of.to_string()), share, POINTS)
        }
        CauseChange::NotShown => {
            "no cause is shown to have taken another share of the time".to_owned()
        }
        CauseChange::NotKnown { reason } => {
            format!("causes are not compared: {reason}")
        }
    }
}

fn relative(compared: &Compared) -> Option<String> {
    let words: Vec<String> = compared
        .quantiles
        .iter()
        .filter_map(|q| Some(format!("p{} {}", q.percent, by_share(q.difference?.relative?))))
        .collect();
    (!words.is_empty()).then(|| format!("B relative to A: {}", words.join(", ")))
}

/// How much of the uncertainty is between runs.
fn between(compared: &Compared) -> Option<String> {
    let words: Vec<String> = compared
        .quantiles
        .iter()
        .filter_map(|q| {
            let spread = q.difference?;
            let half = |(low, high): (f64, f64)| (high - low) / 2.0;
            let (between, within) = (half(spread.between?), half(spread.within?));
            let ratio = if within > 0.0 {
                format!("{}x", numbers::number((between / within).powi(2)))
            } else {
                ABSENT.to_owned()
            };
            Some(format!("p{} {ratio}", q.percent))
        })
        .collect();
    (!words.is_empty()).then(|| {
        format!(
            "spread between runs over spread within them (squares; the wider interval is shown): {}",
            words.join(", ")
        )
    })
}

/// Both sides of a number, with no fewer places than their difference.
pub(crate) fn sides(of: &NumberDifference, value: fn(f64) -> Value) -> [Cell; 2] {
    [of.before, of.after].map(|side| Cell::from(value(side)).compared(of.difference.interval))
}

fn number(
    what: &str,
    [before, after]: &[String; 2],
    found: &NumberDifference,
    (value, behind): (fn(f64) -> Value, &str),
) -> String {
    let (low, high) = found.difference.interval;
    let ends = Some((value(low), value(high)));
    let found_by = Cell::from(value(found.difference.difference)).within(ends).signed();
    format!(
        "{what}: {before} and {after}, {found_by}{behind}: {}",
        in_words(found.verdict, &found.difference),
    )
}

/// Percentage points, of which a difference of shares is.
const POINTS: (fn(f64) -> Value, &str) = (|share| Value::Ratio(share * 100.0), " points");

/// By what part it is more or less.
fn by_share(share: f64) -> Cell {
    Cell::from(Value::Share(share)).signed()
}

/// What a host name that alone differs may mean.
const ONLY_THE_NAME: &str =
    "Of the machines only the name differs: one that was renamed, or two that are alike.";

/// Machines, tool, settings.
fn differences(of: &Comparison) -> Vec<Block> {
    if of.differences.is_empty() {
        return vec![Block::Text("Machine, whylate version and settings are the same.".to_owned())];
    }
    let mut table = Table::new("Machines, tool and settings", &["", "A", "B"])
        .words(&[1, 2])
        .captioned_on_the_page()
        .most(MOST_ROWS);
    for one in &of.differences {
        table.row([&*one.name, &one.left, &one.right]);
    }
    let alone = renamed(&of.differences).map(|_| Block::Text(ONLY_THE_NAME.to_owned()));
    std::iter::once(Block::Table(table)).chain(alone).collect()
}
