//! The figures of a scenario, from the run directories of its parts.

use std::path::Path;

use whylate_model::directory::RunDir;
use whylate_model::paper::{Scenario, StackedBar};
use whylate_model::{ModelError, Nanos};

use super::distributions;
use crate::doc::Table;
use crate::execution::Window;
use crate::execution::recorded::Recorded;
use crate::html;
use crate::numbers::{ABSENT, percent};
use crate::svg::composition::{self, Bar, Piece};
use crate::svg::{COLOURS, Figure, execution};

/// Parts that are drawn, of one scenario.
const MOST_RUNS: usize = 16;
/// Stacked bars of one scenario, and pieces of each.
const MOST_BARS: usize = 8;
const MOST_PIECES: usize = 24;
/// The segment of Figure 3.
const SEGMENT: Nanos = Nanos(500_000_000);
/// The segment of its last trace.
const DETAIL: Nanos = Nanos(100_000_000);

/// Directories of the parts: names of this directory only, whatever the file says.
pub(super) fn names(scenario: &Scenario) -> impl Iterator<Item = &str> {
    let plain = |name: &&str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
        !name.is_empty() && !name.starts_with('.') && name.chars().all(allowed)
    };
    scenario.runs.iter().map(String::as_str).filter(plain).take(MOST_RUNS)
}

/// The figures of the scenario and of its parts, and what of them cannot be read or was changed since.
pub(super) fn of(directory: &Path, scenario: &Scenario) -> (Vec<Figure>, Vec<String>) {
    let (mut figures, mut unread): (Vec<Figure>, _) =
        (stacked(scenario).into_iter().collect(), Vec::new());
    figures.extend(distributions::figures(scenario));
    for name in names(scenario) {
        match of_run(&directory.join(name), name) {
            Ok((mut of, problems)) => {
                figures.append(&mut of);
                unread.extend(problems.iter().map(|what| format!("figures of {name}: {what}")));
            }
            Err(error) => unread.push(format!("no figure of {name}: {error}")),
        }
    }
    (figures, unread)
}

/// What times consist of, as bars below each other; none where nothing is known of that.
fn stacked(scenario: &Scenario) -> Option<Figure> {
    let bars = &scenario.bars[..scenario.bars.len().min(MOST_BARS)];
    let mut labels: Vec<&str> = Vec::new();
    for piece in bars.iter().flat_map(|bar| &bar.pieces) {
        if !labels.contains(&&*piece.label) && labels.len() < MOST_PIECES {
            labels.push(&piece.label);
        }
    }
    let colour = |label: &str| {
        labels.iter().position(|known| *known == label).filter(|place| *place < COLOURS)
    };
    let total = |bar: &StackedBar| bar.pieces.iter().map(|piece| piece.ns).sum::<f64>();
    let drawn: Vec<Bar> = bars
        .iter()
        .map(|bar| Bar {
            label: bar.label.clone(),
            total_ns: total(bar),
            pieces: bar
                .pieces
                .iter()
                .take(MOST_PIECES)
                .map(|piece| Piece {
                    label: piece.label.clone(),
                    ns: piece.ns,
                    colour: colour(&piece.label),
                })
                .collect(),
        })
        .collect();
    let share = |bar: &StackedBar, label: &str| {
        let own = bar.pieces.iter().filter(|piece| piece.label == label).map(|piece| piece.ns);
        let own: f64 = own.sum();
        if own > 0.0 && total(bar) > 0.0 { percent(own / total(bar)) } else { ABSENT.to_owned() }
    };
    let row = |label: &&str| {
        let shares = bars.iter().map(|bar| share(bar, label)).collect::<Vec<_>>();
        std::iter::once((*label).to_owned()).chain(shares)
    };
    let table = Table::new("What the time consists of", &[""])
        .columns(drawn.iter().map(|bar| bar.label.as_str()))
        .with(labels.iter().map(row));
    (!drawn.is_empty()).then(|| composition::figure(&drawn, "What the time consists of", table))
}

/// The figures of a part, and what is wrong with its files.
fn of_run(path: &Path, name: &str) -> Result<(Vec<Figure>, Vec<String>), ModelError> {
    let directory = RunDir::open(path)?;
    let run = directory.read_checked()?;
    let mut figures = html::switch_figures(&directory, &run);
    figures.extend(html::breakdown_figures(&run));
    figures.extend(html::error_figures(&run));
    figures.extend(html::bounds_figures(&run));
    let window = window(name);
    if let Some(recorded) = Recorded::read(&directory, &run, window)
        && let Some(rows) = recorded.rows()
    {
        let title = format!("Execution trace of {name}");
        figures.push(execution::figure(rows, recorded.window(), &title));
    }
    Ok((figures, run.files.problems))
}

/// Those of Figure 3 have the paper's lengths; others are drawn around the first missed deadline.
fn window(name: &str) -> Option<Window> {
    let of = |length| Some(Window { from: Nanos::SECOND, length });
    match name {
        "figure-3a" => of(SEGMENT),
        "figure-3d" => of(DETAIL),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use whylate_model::paper::StackedPiece;

    use super::*;

    fn bar(label: &str, pieces: &[(&str, f64)]) -> StackedBar {
        let piece =
            |(label, ns): &(&str, f64)| StackedPiece { label: (*label).to_owned(), ns: *ns };
        StackedBar { label: label.to_owned(), pieces: pieces.iter().map(piece).collect() }
    }

    #[test]
    fn stacked_bars_stand_beside_the_papers_with_a_colour_for_each_piece_and_no_bars_draw_nothing()
    {
        let mut scenario = Scenario {
            place: "4".to_owned(),
            title: String::new(),
            commands: Vec::new(),
            runs: Vec::new(),
            rows: Vec::new(),
            bars: vec![
                bar("the paper", &[("kernel", 3_000.0), ("rest", 1_000.0)]),
                bar("this <machine>", &[("kernel", 10_000.0), ("program", 10_000.0)]),
            ],
            tables: Vec::new(),
            distributions: Vec::new(),
            effects: Vec::new(),
            notes: Vec::new(),
        };
        let figure = stacked(&scenario).unwrap();
        assert_eq!(
            figure.table.rows,
            [["kernel", "75%", "50%"], ["rest", "25%", "–"], ["program", "–", "50%"]]
        );
        assert!(!figure.svg.contains("<host>") && figure.svg.contains("program"));
        scenario.bars[0].pieces[0].ns = f64::NAN;
        assert!(!stacked(&scenario).unwrap().svg.contains("NaN"));
        scenario.bars.clear();
        assert!(stacked(&scenario).is_none());
    }
}
