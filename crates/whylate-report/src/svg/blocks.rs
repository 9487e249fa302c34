//! A percentile in ten equal blocks of time: does it move during the run?

use super::axis::{Axis, time, time_label};
use super::ccdf::mark;
use super::path::Path;
use super::writer::{Key, Svg, WIDTH};
use super::{COLOURS, Figure};
use crate::doc::Table;
use crate::numbers::{ABSENT, p_value};

const LEFT: f64 = 78.0;
const RIGHT: f64 = 620.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 190.0;

/// Lines of a figure; more are not told apart. The table holds them all.
pub const MOST_LINES: usize = COLOURS;

/// One percentile over the blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Series and percentile: `gaps, CPU 1: p99`.
    pub label: String,
    /// Its value in each block; none where the block has too few samples.
    pub values_ns: Vec<Option<f64>>,
    /// p-value of the test for a trend.
    pub trend: Option<f64>,
}

/// The figure of some lines.
#[must_use]
pub fn figure(lines: &[Line], title: &str) -> Figure {
    let table = table(lines, title);
    let known = |line: &Line| line.values_ns.iter().flatten().any(|v| v.is_finite());
    let drawn: Vec<&Line> = lines.iter().filter(|line| known(line)).take(MOST_LINES).collect();
    let key = |line: &&Line| Key::new(&format!("{}, {}", line.label, trend(line.trend)));
    let keys: Vec<Key> = drawn.iter().map(key).collect();
    let height = BOTTOM + 48.0 + keys.iter().map(Key::height).sum::<f64>();
    let words: Vec<&str> = drawn.iter().map(|line| line.label.as_str()).collect();
    let mut svg = Svg::new(height, title, &words.join("; "));
    if drawn.is_empty() {
        let why = "Nothing to draw: too few samples for ten blocks of time.";
        svg.words((WIDTH / 2.0, BOTTOM / 2.0), "note mid", why);
        return Figure { svg: svg.finish(), table };
    }
    let values = || drawn.iter().flat_map(|line| line.values_ns.iter().flatten());
    let low = values().copied().fold(f64::INFINITY, f64::min);
    let high = values().copied().fold(0.0, f64::max);
    let y = Axis::log((low.max(1.0), high.max(1.0)), (BOTTOM, TOP));
    let blocks = drawn.iter().map(|line| line.values_ns.len()).max().unwrap_or(1);
    let x = Axis::linear((0.0, blocks as f64), (LEFT, RIGHT));
    grid(&mut svg, &y, &x, blocks);
    for (index, line) in drawn.iter().enumerate() {
        draw(&mut svg, &x, &y, line, index);
    }
    legend(&mut svg, &keys);
    Figure { svg: svg.finish(), table }
}

fn grid(svg: &mut Svg, y: &Axis, x: &Axis, blocks: usize) {
    for tick in y.ticks(6) {
        svg.line("grid", (LEFT, tick.at), (RIGHT, tick.at));
        svg.words((LEFT - 8.0, tick.at + 4.0), "tick end", &time_label(tick.value));
    }
    for block in 0..blocks {
        let at = x.at(block as f64 + 0.5);
        svg.words((at, BOTTOM + 17.0), "tick mid", &(block + 1).to_string());
    }
    svg.line("axis", (LEFT, BOTTOM), (RIGHT, BOTTOM));
    svg.line("axis", (LEFT, TOP), (LEFT, BOTTOM));
    let middle = f64::midpoint(LEFT, RIGHT);
    svg.words((middle, BOTTOM + 37.0), "label mid", "block of time, each a tenth of the run");
}

fn draw(svg: &mut Svg, x: &Axis, y: &Axis, line: &Line, index: usize) {
    let mut path = Path::default();
    let mut broken = true;
    svg.open("g", &[]);
    svg.titled(&line.label);
    for (block, value) in line.values_ns.iter().enumerate() {
        let Some(value) = value.filter(|v| v.is_finite()) else {
            broken = true;
            continue;
        };
        let at = (x.at(block as f64 + 0.5), y.at(value));
        if broken {
            path.move_to(at);
        } else {
            path.line_to(at);
        }
        broken = false;
        mark(svg, at, index);
    }
    svg.path(&format!("curve s{0} d{0}", index % COLOURS), path.as_str());
    svg.close();
}

fn legend(svg: &mut Svg, keys: &[Key]) {
    let mut top = BOTTOM + 48.0;
    for (index, key) in keys.iter().enumerate() {
        let (from, to) = key.draw(svg, top);
        svg.line(&format!("curve s{0} d{0}", index % COLOURS), from, to);
        mark(svg, to, index);
        top += key.height();
    }
}

fn trend(p: Option<f64>) -> String {
    match p {
        Some(p) => format!("trend: p {}", p_value(p)),
        None => "trend not tested".to_owned(),
    }
}

fn table(lines: &[Line], title: &str) -> Table {
    let blocks = lines.iter().map(|line| line.values_ns.len()).max().unwrap_or(0);
    let row = |line: &Line| {
        let mut cells = vec![line.label.clone()];
        cells.extend((0..blocks).map(|block| {
            let value = line.values_ns.get(block).copied().flatten();
            value.map_or_else(|| ABSENT.to_owned(), time)
        }));
        cells.push(line.trend.map_or_else(|| ABSENT.to_owned(), p_value));
        cells
    };
    Table::new(title, &["series"])
        .columns((1..=blocks).map(|block| block.to_string()))
        .columns(["trend p"])
        .with(lines.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_without_enough_samples_break_the_line() {
        let line = Line {
            label: "stalls, CPU 1: p50".to_owned(),
            values_ns: vec![Some(1_000.0), Some(2_000.0), None, Some(8_000.0)],
            trend: Some(0.0123),
        };
        let figure = figure(&[line], "p50 and p99 over time");
        insta::assert_snapshot!(figure.svg.replace("><", ">\n<"));
        assert_eq!(
            figure.table.rows[0],
            ["stalls, CPU 1: p50", "1 µs", "2 µs", "–", "8 µs", "0.012"]
        );
    }

    #[test]
    fn no_line_at_all_is_said() {
        let empty = Line { label: String::new(), values_ns: vec![None; 10], trend: None };
        assert!(figure(&[empty], "").svg.contains("too few samples"));
        assert!(figure(&[], "").svg.contains("too few samples"));
    }
}
