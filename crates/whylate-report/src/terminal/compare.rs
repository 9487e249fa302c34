//! A comparison in words and tables, for the terminal and for the page.

use whylate_model::Nanos;
use whylate_model::difference::Difference;
use whylate_model::series::Quantile;

use super::Style;
use crate::compare::{
    Basis, CauseChange, Compared, Comparison, NumberDifference, Outcome, Pair, PairResult,
    RunFacts, Shown, Side, Spread, Verdict, allowed_by, points, runs,
};
use crate::numbers::{count, difference, percent, rate};
use crate::render::terminal::Page;
use crate::svg::Table;

/// Runs of a side that are named; the others are counted.
const MOST_RUNS: usize = 3;

/// The comparison, at most `style.width` columns wide.
#[must_use]
pub fn render(comparison: &Comparison, style: Style) -> String {
    let mut page = Page::new(style);
    page.title("A against B: differences are B less A");
    for (letter, runs) in [(Side::A, &comparison.before), (Side::B, &comparison.after)] {
        page.item(&side(letter, runs));
    }
    for pair in &comparison.pairs {
        page.section(&heading(pair));
        for line in lines(pair) {
            page.item(&line);
        }
        draw(&mut page, &table(pair));
        for line in footnotes(pair) {
            page.item(&line);
        }
    }
    if comparison.pairs.is_empty() {
        page.blank();
        page.bad("The two sides have no series in common.");
    }
    alone(&mut page, comparison);
    let differences = differences(comparison);
    page.section("What else differs");
    if differences.rows.is_empty() {
        page.paragraph("Nothing that is known of machines, tool and settings.");
    }
    draw(&mut page, &differences);
    if !comparison.cautions.is_empty() {
        page.section("To be careful about");
    }
    for caution in &comparison.cautions {
        page.note(&caution.to_string());
        page.advice(caution.advice());
    }
    limits(&mut page, comparison);
    page.finish()
}

fn draw(page: &mut Page, table: &Table) {
    if !table.rows.is_empty() {
        let head: Vec<&str> = table.head.iter().map(String::as_str).collect();
        page.table(&head, &table.rows, &table.left);
    }
}

fn alone(page: &mut Page, comparison: &Comparison) {
    for (letter, text) in [(Side::A, "Only in A"), (Side::B, "Only in B")] {
        let names = comparison.unpaired.iter().filter(|one| one.only_in == letter);
        let names: Vec<String> =
            names.map(|one| whylate_model::Printable(&one.series).to_string()).collect();
        if !names.is_empty() {
            page.blank();
            page.paragraph(&format!("{text}: {}", names.join(", ")));
        }
    }
}

fn limits(page: &mut Page, comparison: &Comparison) {
    if comparison.limits.is_empty() {
        return;
    }
    page.section("Limits");
    for judged in &comparison.limits {
        let text = judged.sentence();
        match judged.outcome {
            Outcome::Held { .. } | Outcome::NothingToExceed { .. } => page.good(&text),
            Outcome::NotShown { .. } => page.note(&text),
            Outcome::Exceeded { .. } | Outcome::CannotBeJudged { .. } => page.bad(&text),
        }
    }
}

/// Which runs a side is.
pub(crate) fn side(letter: Side, runs: &[RunFacts]) -> String {
    let named: Vec<String> = runs
        .iter()
        .take(MOST_RUNS)
        .map(|run| {
            let host = whylate_model::Printable(&run.hostname);
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
    let label = |shown: &Shown| whylate_model::Printable(&shown.label).to_string();
    let (a, b) = (label(&pair.before), label(&pair.after));
    let name = whylate_model::Printable(&pair.series);
    if a == b { format!("{a} ({name})") } else { format!("{a} and {b} ({name})") }
}

/// What was measured, and whether it can be compared.
pub(crate) fn lines(pair: &Pair) -> Vec<String> {
    let (a, b) = (&pair.before, &pair.after);
    let from_to = |shown: &Shown| {
        let text = format!(
            "{}, from {} to {}, by {}",
            shown.definition, shown.from, shown.to, shown.clock
        );
        whylate_model::Printable(&text).to_string()
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
                format!("gaps of at least {above} on both sides, the larger of the two thresholds")
            }));
        }
    }
    if a.name != b.name {
        let names = format!("{} of A against {} of B, as --series pairs them", a.name, b.name);
        lines.push(whylate_model::Printable(&names).to_string());
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
pub(crate) fn table(pair: &Pair) -> Table {
    let mut table = Table::new("Quantiles", &["", "A", "B", "B - A", "95 % interval", ""]);
    match &pair.result {
        PairResult::Compared(compared) => {
            table.left = vec![5];
            let quantiles =
                compared.quantiles.iter().filter(|q| q.before.is_some() || q.after.is_some());
            table.rows = quantiles
                .map(|q| {
                    let name = format!("p{}", q.percent);
                    row(name, (q.before, q.after), q.difference.as_ref(), q.verdict)
                })
                .collect();
            let max = &compared.max;
            table.rows.push(row(
                "max".to_owned(),
                (max.before, max.after),
                max.difference.as_ref(),
                max.verdict,
            ));
        }
        PairResult::SideBySide => {
            table.head.truncate(3);
            let find = |shown: &Shown, percent: f64| {
                shown
                    .quantiles
                    .iter()
                    .find(|q| (q.percent - percent).abs() < 1e-9)
                    .and_then(|q| q.value)
            };
            let both = |name: String, a, b| vec![name, cell(a), cell(b)];
            table.rows.push(both("min".to_owned(), pair.before.min, pair.after.min));
            for Quantile { percent, .. } in &pair.before.quantiles {
                let (a, b) = (find(&pair.before, *percent), find(&pair.after, *percent));
                if a.is_some() || b.is_some() {
                    table.rows.push(both(format!("p{percent}"), a, b));
                }
            }
            table.rows.push(both("max".to_owned(), pair.before.max, pair.after.max));
        }
        PairResult::Unlike { .. } | PairResult::NoData { .. } => {}
    }
    table
}

fn row(
    name: String,
    (a, b): (Option<Nanos>, Option<Nanos>),
    spread: Option<&Spread>,
    verdict: Option<Verdict>,
) -> Vec<String> {
    let (by, interval) = spread.map_or(("-".to_owned(), "-".to_owned()), |d| {
        (
            difference(d.difference),
            format!("{} .. {}", difference(d.interval.0), difference(d.interval.1)),
        )
    });
    let words = match (verdict, spread) {
        (Some(verdict), Some(spread)) => in_words(verdict, spread),
        (None, Some(_)) => "beyond trust".to_owned(),
        (_, None) if name == "max" => "one run tells no spread".to_owned(),
        (_, None) => "not supported".to_owned(),
    };
    vec![name, cell(a), cell(b), by, interval, words]
}

/// With one run a side a difference is one of those two runs.
fn in_words(verdict: Verdict, spread: &Spread) -> String {
    match spread.between {
        None if verdict != Verdict::NoDifferenceShown => format!("these runs: {verdict}"),
        _ => verdict.to_string(),
    }
}

fn cell(value: Option<Nanos>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
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
            "rank test: a value of B is the larger one with probability {:.3} ({:.3} .. {:.3}), \
             p = {}; {basis}",
            rank.superiority,
            rank.interval.0,
            rank.interval.1,
            p_value(rank.p_value),
        ));
    }
    if let Some(lost) = &compared.lost_share {
        let shown = [lost.before, lost.after].map(percent);
        notes.push(number("lost share of the elapsed time", &shown, lost, points));
    }
    notes.extend(compared.causes.as_ref().map(of_causes));
    for one in &compared.rates {
        if one.per_second.before > 0.0 || one.per_second.after > 0.0 {
            let what = format!("gaps of at least {}", one.at_least);
            let shown = |value: f64, below: Option<f64>| match below {
                Some(below) => format!("none (below {})", rate(below)),
                None => rate(value),
            };
            let values = [
                shown(one.per_second.before, one.before_below),
                shown(one.per_second.after, one.after_below),
            ];
            notes.push(number(&what, &values, &one.per_second, signed_rate));
        }
    }
    notes.extend(between(compared));
    notes
}

/// Which cause took another share of the time.
fn of_causes(of: &CauseChange) -> String {
    match of {
        CauseChange::Shown { cause, share, .. } => {
            let what = format!("most of the change by cause: {}", whylate_model::Printable(cause));
            number(&what, &[share.before, share.after].map(percent), share, points)
        }
        CauseChange::NotShown => {
            "no cause is shown to have taken another share of the time".to_owned()
        }
        CauseChange::NotKnown { reason } => {
            format!("causes are not compared: {}", whylate_model::Printable(reason))
        }
    }
}

fn relative(compared: &Compared) -> Option<String> {
    let words: Vec<String> = compared
        .quantiles
        .iter()
        .filter_map(|q| Some(format!("p{} {:+.1}%", q.percent, q.difference?.relative? * 100.0)))
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
                format!("{:.1}x", (between / within).powi(2))
            } else {
                "-".to_owned()
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

fn number(
    what: &str,
    [before, after]: &[String; 2],
    found: &NumberDifference,
    signed: fn(f64) -> String,
) -> String {
    let (low, high) = found.difference.interval;
    format!(
        "{what}: {before} and {after}, {} ({} .. {}): {}",
        signed(found.difference.difference),
        signed(low),
        signed(high),
        in_words(found.verdict, &found.difference),
    )
}

fn signed_rate(per_second: f64) -> String {
    // Less than rate() has digits for.
    if per_second.abs() < 5e-5 {
        return "0/s".to_owned();
    }
    format!("{}{}", if per_second < 0.0 { "-" } else { "+" }, rate(per_second.abs()))
}

fn p_value(p: f64) -> String {
    if p < 0.001 { format!("{p:.1e}") } else { format!("{p:.3}") }
}

/// Hosts, tool, settings.
pub(crate) fn differences(comparison: &Comparison) -> Table {
    let mut table = Table::new("Machines, tool and settings", &["", "A", "B"]);
    table.left = vec![1, 2];
    let rows = comparison.differences.iter();
    table.rows = rows.map(|d| vec![d.name.clone(), d.left.clone(), d.right.clone()]).collect();
    table
}
