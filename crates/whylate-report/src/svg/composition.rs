//! What requests consist of, as stacked bars: one for all of them, one for the slow ones.
//!
//! Each bar is as wide as the picture, whatever its total: the slow ones take many times what the
//! others do, and shares are what is compared. The total stands above the bar; times of the pieces show
//! where the pointer rests, and in the table.

use super::Figure;
use super::axis::{Axis, share_label, time};
use super::shares::{class, numbered};
use super::writer::{GLYPH, Svg, WIDTH};
use crate::doc::Table;
use crate::numbers::percent;

const LEFT: f64 = 16.0;
/// Half of a tick's label lies beyond it.
const RIGHT: f64 = WIDTH - 32.0;
/// Height of the words above a bar.
const NAME: f64 = 22.0;
const BAR: f64 = 34.0;
const ROW: f64 = NAME + BAR + 10.0;
/// Height of a line of the legend.
const LINE: f64 = 24.0;

/// A bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Whose.
    pub label: String,
    /// What all of it is, in nanoseconds.
    pub total_ns: f64,
    /// From left to right.
    pub pieces: Vec<Piece>,
}

/// A piece of a bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// What took it.
    pub label: String,
    /// How long, in nanoseconds.
    pub ns: f64,
    /// Its colour among [`super::COLOURS`]; none for grey.
    pub colour: Option<usize>,
}

/// The bars with a legend below; `table` has their numbers.
#[must_use]
pub(crate) fn figure(bars: &[Bar], title: &str, table: Table) -> Figure {
    let known: Vec<&Bar> =
        bars.iter().filter(|bar| bar.total_ns.is_finite() && bar.total_ns > 0.0).collect();
    let legend = legend(&known);
    let bottom = 4.0 + ROW * known.len().max(1) as f64;
    let height = bottom + 48.0 + LINE * legend.len() as f64;
    let words: Vec<String> =
        known.iter().map(|bar| format!("{}: {}", bar.label, time(bar.total_ns))).collect();
    let mut svg = Svg::new(height, title, &words.join("; "));
    if known.is_empty() {
        let why = "Nothing to draw: no request was taken apart.";
        svg.words((WIDTH / 2.0, ROW / 2.0), "note mid", why);
        return Figure { svg: svg.finish(), table };
    }
    let x = Axis::linear((0.0, 1.0), (LEFT, RIGHT));
    for tick in x.ticks(5) {
        svg.line("grid", (tick.at, 4.0), (tick.at, bottom));
        svg.words((tick.at, bottom + 14.0), "tick mid", &share_label(tick.value));
    }
    svg.words((f64::midpoint(LEFT, RIGHT), bottom + 34.0), "label mid", "share of the total");
    for (number, bar) in known.iter().enumerate() {
        let top = 4.0 + ROW * number as f64;
        svg.words((LEFT, top + 14.0), "lane", &bar.label);
        svg.words((RIGHT, top + 14.0), "legend end", &time(bar.total_ns));
        stack(&mut svg, &x, top + NAME, bar);
    }
    for (number, (colour, label)) in legend.iter().enumerate() {
        let y = bottom + 48.0 + LINE * number as f64;
        svg.rect(&class(*colour), (LEFT, y + 4.0), (14.0, 14.0));
        svg.words((LEFT + 24.0, y + 16.0), "legend", &numbered(*colour, label));
    }
    Figure { svg: svg.finish(), table }
}

fn stack(svg: &mut Svg, x: &Axis, top: f64, bar: &Bar) {
    let mut from = 0.0;
    for piece in &bar.pieces {
        let share = if piece.ns.is_finite() { piece.ns.max(0.0) / bar.total_ns } else { 0.0 };
        let (left, right) = (x.at(from), x.at(from + share));
        from += share;
        svg.open("g", &[]);
        svg.titled(&format!("{}: {}, {}", piece.label, time(share * bar.total_ns), percent(share)));
        svg.rect(&class(piece.colour), (left, top), (right - left, BAR));
        let label = piece.colour.map(|colour| format!("[{}]", colour + 1)).unwrap_or_default();
        if !label.is_empty() && right - left > (label.len() as f64 + 0.5) * GLYPH {
            let middle = f64::midpoint(left, right);
            svg.words((middle, top + BAR / 2.0 + 4.0), "inside mid", &label);
        }
        svg.close();
    }
}

/// Colours with their names in the order of the first bar that has them; grey is one line.
fn legend(bars: &[&Bar]) -> Vec<(Option<usize>, String)> {
    let mut lines: Vec<(Option<usize>, String)> = Vec::new();
    let mut grey = false;
    for piece in bars.iter().flat_map(|bar| &bar.pieces) {
        match piece.colour {
            None => grey = true,
            colour if lines.iter().any(|(known, _)| *known == colour) => {}
            colour => lines.push((colour, piece.label.clone())),
        }
    }
    lines.sort_by_key(|(colour, _)| *colour);
    if grey {
        lines.push((None, "others, in the table".to_owned()));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(label: &str, pieces: &[(&str, f64, Option<usize>)]) -> Bar {
        let piece = |(label, ns, colour): &(&str, f64, Option<usize>)| Piece {
            label: (*label).to_owned(),
            ns: *ns,
            colour: *colour,
        };
        let total_ns = pieces.iter().map(|(_, ns, _)| ns).sum();
        Bar { label: label.to_owned(), total_ns, pieces: pieces.iter().map(piece).collect() }
    }

    /// Begin and width of every rectangle that fills a piece of this class.
    fn drawn(svg: &str, class: &str) -> Vec<(f64, f64)> {
        let of = |rect: &str, name: &str| -> f64 {
            let after = rect.split(&format!(" {name}=\"")).nth(1).unwrap();
            after.split('"').next().unwrap().parse().unwrap()
        };
        let rects = svg.split("<rect ").skip(1);
        let rects = rects.filter(|rect| rect.starts_with(&format!("class=\"{class}\"")));
        let rects = rects.filter(|rect| rect.contains("height=\"34\""));
        rects.map(|rect| (of(rect, "x"), of(rect, "width"))).collect()
    }

    #[test]
    fn pieces_are_as_wide_as_their_shares_and_lie_side_by_side() {
        let all = [("send", 1_000.0, Some(0)), ("server", 3_000.0, Some(1))];
        let slow = [("send", 1_000.0, Some(0)), ("server", 9_000.0, Some(1))];
        let svg = figure(&[bar("all", &all), bar("slow", &slow)], "t", Table::default()).svg;
        let (sends, servers) = (drawn(&svg, "f0"), drawn(&svg, "f1"));
        let width = RIGHT - LEFT;
        for (at, send) in [0.25, 0.1].into_iter().enumerate() {
            assert!((sends[at].1 - send * width).abs() < 0.1, "{sends:?}");
            assert!((servers[at].0 - sends[at].0 - sends[at].1).abs() < 0.2, "{servers:?}");
            assert!((servers[at].1 - (1.0 - send) * width).abs() < 0.2, "{servers:?}");
        }
        assert!(svg.contains("server: 9 µs, 90%") && svg.contains("[2] server"), "{svg}");
        assert!(svg.contains("4 µs") && svg.contains("10 µs"));
    }

    #[test]
    fn nothing_to_draw_is_said_and_hostile_text_and_numbers_stay_in_the_figure() {
        assert!(figure(&[], "t", Table::default()).svg.contains("no request was taken apart"));
        let mut odd = bar("<b>", &[("<i>", f64::NAN, None), ("x", f64::INFINITY, Some(3))]);
        odd.total_ns = 5.0;
        let svg = figure(&[odd], "t", Table::default()).svg;
        assert!(!svg.contains("NaN\"") && !svg.contains("inf\"") && !svg.contains("<b>"), "{svg}");
        assert!(svg.contains("others, in the table"));
    }
}
