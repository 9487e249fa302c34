//! The execution trace: which thread had the CPU when, as in Figures 3 and 6 of the Hourglass paper.
//!
//! One row for each thread. A box is a continuous stretch of CPU time, at its place and as long as it
//! was; time without a box is time without the CPU. Stretches shorter than a column fill the share of
//! their column that they took, from the bottom, and at least so much that they are seen. Gaps too
//! short to be seen between two boxes are marked below them.

use super::Figure;
use super::axis::{Axis, below, time};
use super::path::Path;
use super::writer::{GLYPH, Svg, WIDTH};
use crate::doc::Table;
use crate::execution::{Received, ThreadRow, Window};
use crate::numbers::{ABSENT, count, percent};

const LEFT: f64 = 16.0;
/// Half of a tick's label lies beyond it.
const RIGHT: f64 = WIDTH - 32.0;
/// Height of the name of a row, above it.
const NAME: f64 = 20.0;
const BOX: f64 = 18.0;
/// Height of the marks below the boxes.
const MARK: f64 = 4.0;
const SPACE: f64 = 8.0;
/// Height of a note below the picture.
const NOTE: f64 = 22.0;
const ROW: f64 = NAME + BOX + MARK + SPACE;
/// Rows of a picture; more have no height left. The table has them all.
const MOST_ROWS: usize = 64;
/// Width of a column: shorter stretches are not boxes of their own.
const COLUMN: f64 = 0.5;
/// A stretch that is shorter is drawn this high.
const LOWEST: f64 = 5.0;
/// Narrower gaps between boxes are not seen.
const SEEN: f64 = 0.4;

/// The figure of some threads in a window.
#[must_use]
pub fn figure(rows: &[ThreadRow], window: Window, title: &str) -> Figure {
    let received: Vec<Received> = rows.iter().map(|row| row.received(window)).collect();
    let table = table(rows, &received, window, title);
    let words: Vec<String> = rows
        .iter()
        .zip(&received)
        .map(|(row, received)| format!("{}: {}", row.label, share(received, window)))
        .collect();
    let drawn = rows.len().min(MOST_ROWS);
    let bottom = ROW * drawn as f64;
    if received.iter().all(|received| received.blocks == 0) {
        let mut svg = Svg::new(60.0, title, &words.join("; "));
        let why = "Nothing to draw: no thread had a CPU in this window.";
        svg.words((WIDTH / 2.0, 34.0), "note mid", why);
        return Figure { svg: svg.finish(), table };
    }
    let x = Axis::linear((window.begin_ns(), window.end_ns()), (LEFT, RIGHT));
    let top = |index: usize| ROW * index as f64 + NAME;
    let lanes: Vec<Lane> = (0..drawn).map(|i| Lane::of(&rows[i], window, &x, top(i))).collect();
    let notes = notes(&lanes, rows.len() - drawn);
    let height = bottom + 40.0 + NOTE * notes.len() as f64;
    let mut svg = Svg::new(height, title, &words.join("; "));
    time_axis(&mut svg, &x, bottom);
    for (index, row) in rows.iter().take(drawn).enumerate() {
        let top = top(index);
        svg.open("g", &[]);
        svg.titled(&words[index]);
        let value = share(&received[index], window);
        let room = (RIGHT - LEFT) / GLYPH - value.len() as f64 - 1.0;
        svg.words((LEFT, top - 5.0), "lane", &shortened(&row.label, room as usize));
        svg.words((RIGHT, top - 5.0), "legend end", &value);
        svg.line("axis", (LEFT, top + BOX), (RIGHT, top + BOX));
        lanes[index].draw(&mut svg);
        svg.close();
    }
    for (number, note) in notes.iter().enumerate() {
        let y = bottom + 56.0 + NOTE * number as f64;
        svg.words((WIDTH / 2.0, y), "note mid", note);
    }
    Figure { svg: svg.finish(), table }
}

fn time_axis(svg: &mut Svg, x: &Axis, bottom: f64) {
    let ticks = x.ticks(8);
    let step = match ticks.as_slice() {
        [first, second, ..] => second.value - first.value,
        _ => 1e6,
    };
    let label = |value| milliseconds(value, step);
    below(svg, &ticks, Some((NAME, bottom - SPACE + 4.0)), bottom + 10.0, label);
    let middle = f64::midpoint(LEFT, RIGHT);
    svg.words((middle, bottom + 32.0), "label mid", "ms since the beginning of the run");
}

/// What the picture needs said below it.
fn notes(lanes: &[Lane], more: usize) -> Vec<String> {
    let mut notes = Vec::new();
    if lanes.iter().any(|lane| !lane.marks.is_empty()) {
        notes.push("Marks below a box: stalls too short to draw.".to_owned());
    }
    if lanes.iter().any(|lane| lane.low) {
        notes.push("Low boxes: stretches too short to draw at their width.".to_owned());
    }
    if more > 0 {
        notes.push(format!("{more} more threads are in the table."));
    }
    notes
}

/// A time in ms with as many decimals as tell it from the next tick.
pub(crate) fn milliseconds(ns: f64, step_ns: f64) -> String {
    let decimals = (-(step_ns / 1e6).log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{:.decimals$}", ns / 1e6)
}

/// One row, made of boxes, columns and marks.
struct Lane {
    boxes: Path,
    marks: Path,
    /// Are there stretches too short for a box of their own?
    low: bool,
}

impl Lane {
    fn of(row: &ThreadRow, window: Window, x: &Axis, top: f64) -> Self {
        let mut lane = Self { boxes: Path::default(), marks: Path::default(), low: false };
        let columns = ((RIGHT - LEFT) / COLUMN).round() as usize;
        let mut short = vec![0.0; columns];
        let mut open: Option<(f64, f64)> = None;
        let mut marked = f64::NEG_INFINITY;
        for span in row.within(window) {
            let (from, to) = (x.at(span.from_ns), x.at(span.to_ns));
            if to - from < COLUMN {
                spread(&mut short, from - LEFT, to - LEFT);
                continue;
            }
            open = Some(match open {
                Some((begin, end)) if from - end < SEEN => {
                    // One mark stands for all that share its place.
                    if end - marked >= COLUMN {
                        lane.marks.move_to((end, top + BOX + 1.0));
                        lane.marks.line_to((end, top + BOX + 1.0 + MARK));
                        marked = end;
                    }
                    (begin, to)
                }
                Some((begin, end)) => {
                    lane.boxes.rect((begin, top), (end - begin, BOX));
                    (from, to)
                }
                None => (from, to),
            });
        }
        if let Some((begin, end)) = open {
            lane.boxes.rect((begin, top), (end - begin, BOX));
        }
        lane.columns(&short, top);
        lane
    }

    /// Columns of short stretches; neighbours of one height are one.
    fn columns(&mut self, short: &[f64], top: f64) {
        let height = |share: f64| match share {
            share if share <= 0.0 => 0.0,
            share => ((share.min(1.0) * BOX).max(LOWEST) * 10.0).round() / 10.0,
        };
        let mut at = 0;
        for columns in short.chunk_by(|a, b| (height(*a) - height(*b)).abs() < 0.05) {
            let high = height(columns[0]);
            if high > 0.0 {
                self.low = true;
                let begin = LEFT + at as f64 * COLUMN;
                let width = columns.len() as f64 * COLUMN;
                self.boxes.rect((begin, top + BOX - high), (width, high));
            }
            at += columns.len();
        }
    }

    fn draw(&self, svg: &mut Svg) {
        if !self.boxes.is_empty() {
            svg.path("rest", self.boxes.as_str());
        }
        if !self.marks.is_empty() {
            svg.path("event", self.marks.as_str());
        }
    }
}

/// Adds a stretch to the shares of the columns it lies in.
fn spread(columns: &mut [f64], from: f64, to: f64) {
    let first = (from / COLUMN) as usize;
    for (index, share) in columns.iter_mut().enumerate().skip(first).take(2) {
        let (begin, end) = (index as f64 * COLUMN, (index + 1) as f64 * COLUMN);
        *share += (to.min(end) - from.max(begin)).max(f64::MIN_POSITIVE) / COLUMN;
        if to <= end {
            break;
        }
    }
}

/// As many letters as there is room for.
fn shortened(label: &str, room: usize) -> String {
    if label.chars().count() <= room {
        return label.to_owned();
    }
    let head: String = label.chars().take(room.saturating_sub(3)).collect();
    format!("{head}...")
}

fn share(received: &Received, window: Window) -> String {
    percent(received.time_ns / window.length_ns())
}

/// What each thread had in the window.
pub(crate) fn table(
    rows: &[ThreadRow],
    received: &[Received],
    window: Window,
    title: &str,
) -> Table {
    let caption = format!(
        "{title}: CPU time from {} to {} ms",
        milliseconds(window.begin_ns(), window.length_ns() / 1e3),
        milliseconds(window.end_ns(), window.length_ns() / 1e3)
    );
    let head = ["thread", "CPU time", "of window", "blocks", "longest", "longest off CPU"];
    let row = |(row, received): (&ThreadRow, &Received)| {
        let gap = match received.blocks {
            0 | 1 => ABSENT.to_owned(),
            _ => time(received.longest_gap_ns),
        };
        [
            row.label.clone(),
            time(received.time_ns),
            share(received, window),
            count(received.blocks),
            time(received.longest_ns),
            gap,
        ]
    };
    Table::new(caption, &head).with(rows.iter().zip(received).map(row))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use whylate_model::Nanos;

    use super::*;
    use crate::execution::Span;

    fn row(label: &str, spans_us: &[(u32, u32)]) -> ThreadRow {
        let span = |&(from, to): &(u32, u32)| Span {
            from_ns: f64::from(from) * 1e3,
            to_ns: f64::from(to) * 1e3,
        };
        ThreadRow { label: label.to_owned(), spans: spans_us.iter().map(span).collect() }
    }

    fn window(from_us: u64, length_us: u64) -> Window {
        Window { from: Nanos(from_us * 1_000), length: Nanos(length_us * 1_000) }
    }

    #[test]
    fn boxes_lie_where_threads_ran() {
        let rows = [
            row("0 audio", &[(0, 3_000), (8_000, 11_000), (16_000, 19_000), (24_000, 24_499)]),
            row("1 <video>", &[(3_002, 8_000), (11_002, 16_000), (19_002, 24_000)]),
            row("2 late", &[(24_500, 24_501), (25_100, 25_101)]),
            row("3 never", &[]),
        ];
        let figure = figure(&rows, window(0, 25_000), "Execution trace");
        insta::assert_snapshot!(figure.svg.replace("><", ">\n<"));
        let expected = ["0 audio", "9.50 ms", "38%", "4", "3 ms", "5 ms"];
        assert_eq!(figure.table.rows[0], expected);
        assert_eq!(figure.table.rows[2][3..], ["1", "1 µs", "–"]);
        assert_eq!(figure.table.rows[3][1..], ["0 ns", "0%", "0", "0 ns", "–"]);
        assert_eq!(figure.table.caption, "Execution trace: CPU time from 0.00 to 25.00 ms");
    }

    #[test]
    fn a_window_without_a_thread_says_so() {
        let svg = figure(&[row("a", &[(0, 10)])], window(20, 10), "t").svg;
        assert!(svg.contains("no thread had a CPU"));
        assert!(figure(&[], window(0, 0), "t").svg.contains("no thread had a CPU"));
    }

    #[test]
    fn a_short_gap_is_marked_and_a_seen_one_is_not() {
        let marks = |gap: u32| {
            let rows = [row("a", &[(0, 50_000), (50_000 + gap, 100_000)])];
            figure(&rows, window(0, 100_000), "t").svg.matches("class=\"event\"").count()
        };
        // A unit of the picture is 169 us here.
        assert_eq!((marks(10), marks(60), marks(100)), (1, 1, 0));
    }

    #[test]
    fn many_short_stretches_fill_the_share_that_they_took() {
        // Half of the time, in stretches of 1 us: a column is 8.4 us.
        let spans: Vec<(u32, u32)> = (0..5_000).map(|i| (2 * i, 2 * i + 1)).collect();
        let svg = figure(&[row("a", &spans)], window(0, 10_000), "t").svg;
        let heights: Vec<f64> = svg
            .split("class=\"rest\" d=\"")
            .nth(1)
            .and_then(|path| path.split('"').next())
            .unwrap_or_default()
            .split('v')
            .skip(1)
            .filter_map(|rest| rest.split('h').next()?.parse().ok())
            .collect();
        assert!(heights.len() > 10 && heights.iter().all(|high| (7.0..11.0).contains(high)));
    }

    #[test]
    fn a_long_trace_is_a_small_picture() {
        let spans: Vec<(u32, u32)> = (0..300_000).map(|i| (10 * i, 10 * i + 9)).collect();
        for length in [3_000, 300_000, 3_000_000] {
            let svg = figure(&[row("a", &spans)], window(0, length), "t").svg;
            assert!(svg.len() < 60_000, "{length} us: {}", svg.len());
        }
    }

    #[test]
    fn ticks_far_into_a_run_differ() {
        let rows = [row("a", &[(12_000_000, 12_000_500)])];
        let svg = figure(&rows, window(12_000_000, 500), "t").svg;
        assert!(svg.contains(">12000.0<") && svg.contains(">12000.1<"), "{svg}");
        let rows: Vec<ThreadRow> = (0..70).map(|i| row(&i.to_string(), &[(0, 10)])).collect();
        assert!(figure(&rows, window(0, 10), "t").svg.contains("6 more threads"));
    }

    proptest! {
        #[test]
        fn no_box_leaves_the_picture(
            spans in prop::collection::vec((0..2_000_000u32, 0..5_000u32), 0..60),
            from in 0..2_000_000u64,
            length in 0..1_000_000u64,
        ) {
            let mut spans: Vec<(u32, u32)> = spans.iter().map(|&(a, l)| (a, a + l)).collect();
            spans.sort_unstable();
            let svg = figure(&[row("a", &spans)], window(from, length), "t").svg;
            prop_assert!(!svg.contains("NaN") && !svg.contains("inf"));
            for rect in svg.split("class=\"rest\" d=\"").nth(1).unwrap_or_default().split('M') {
                let Some((x, rest)) = rect.split_once(' ') else { continue };
                let width = rest.split(['h', 'v']).nth(1).unwrap_or("0");
                if let (Ok(x), Ok(width)) = (x.parse::<f64>(), width.parse::<f64>()) {
                    prop_assert!(x >= LEFT - 0.1 && x + width <= RIGHT + 0.6, "{x} {width}");
                }
            }
        }
    }
}
