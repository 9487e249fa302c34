//! One gap with its parts and the events in it.

use super::axis::{Axis, below, time, time_label};
use super::path::Path;
use super::shares::piece;
use super::writer::{Svg, WIDTH};

const LEFT: f64 = 16.0;
/// Half of a tick's label lies beyond it.
const RIGHT: f64 = WIDTH - 32.0;
const TOP: f64 = 20.0;
const HEIGHT: f64 = 34.0;
const BOTTOM: f64 = TOP + HEIGHT + 22.0;

/// A gap to draw; times count from its start.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// In a few words, for those who cannot see it.
    pub title: String,
    /// Length.
    pub length_ns: f64,
    /// In order.
    pub parts: Vec<Part>,
    /// In order.
    pub events: Vec<Mark>,
}

/// A part of a gap.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Begin.
    pub from_ns: f64,
    /// Length.
    pub length_ns: f64,
    /// What took it.
    pub label: String,
    /// Its colour; none for grey.
    pub colour: Option<usize>,
}

/// An event in a gap.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// When; before the gap where it led to it.
    pub at_ns: f64,
    /// What.
    pub label: String,
    /// On another CPU?
    pub elsewhere: bool,
}

/// The picture of a gap.
#[must_use]
pub fn svg(gap: &Picture) -> String {
    let words: Vec<String> =
        gap.parts.iter().map(|part| format!("{} {}", part.label, time(part.length_ns))).collect();
    let mut svg = Svg::new(BOTTOM + 40.0, &gap.title, &words.join("; "));
    let x = Axis::linear((0.0, gap.length_ns), (LEFT, RIGHT));
    below(&mut svg, &x.ticks(8), Some((TOP - 8.0, BOTTOM)), BOTTOM + 16.0, time_label);
    svg.rect("ran", (LEFT, TOP), (RIGHT - LEFT, HEIGHT));
    for (part, words) in gap.parts.iter().zip(&words) {
        let ends = (x.at(part.from_ns), x.at(part.from_ns + part.length_ns));
        piece(&mut svg, ends, (TOP, HEIGHT), (part.colour, &part.label), words);
    }
    for (elsewhere, y, class) in [(false, TOP - 10.0, "event"), (true, TOP + HEIGHT + 3.0, "sent")]
    {
        let mut path = Path::default();
        for mark in gap.events.iter().filter(|mark| mark.elsewhere == elsewhere) {
            let at = x.at(mark.at_ns);
            path.move_to((at, y));
            path.line_to((at, y + 9.0));
        }
        if !path.is_empty() {
            svg.path(class, path.as_str());
        }
    }
    let since = "time since the start of the stall";
    svg.words((WIDTH / 2.0, BOTTOM + 35.0), "label mid", since);
    svg.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_drawn_with_its_parts_and_events() {
        let part = |from_ns, length_ns, label: &str, colour| Part {
            from_ns,
            length_ns,
            label: label.to_owned(),
            colour,
        };
        let mark = |at_ns, elsewhere| Mark { at_ns, label: "event".to_owned(), elsewhere };
        let gap = Picture {
            title: "a stall".to_owned(),
            length_ns: 1_000.0,
            parts: vec![
                part(0.0, 50.0, "IRQ entry", None),
                part(50.0, 900.0, "timer tick", Some(0)),
                part(950.0, 50.0, "IRQ exit", None),
            ],
            events: vec![mark(-20.0, true), mark(50.0, false), mark(950.0, false)],
        };
        insta::assert_snapshot!(svg(&gap).replace("><", ">\n<"));
    }
}
