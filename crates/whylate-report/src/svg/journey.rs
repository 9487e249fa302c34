//! One request on its way: what took its time in lanes, from the client over the network to the server
//! and back, with the kernel's events beside it.

use super::axis::{Axis, below, time, time_label};
use super::shares::piece;
use super::writer::{Svg, WIDTH};

const LEFT: f64 = 16.0;
/// Half of a tick's label lies beyond it.
const RIGHT: f64 = WIDTH - 32.0;
/// Height of a lane's name.
const NAME: f64 = 18.0;
const BAR: f64 = 22.0;
/// Height of the strokes for events, below the bars.
const STROKE: f64 = 9.0;
const LANE: f64 = NAME + BAR + STROKE + 8.0;

/// The lanes, from top to bottom.
pub const LANES: [&str; 3] = ["client", "network and softirq", "server"];

/// A request to draw; times count from its begin.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// In a few words, for those who cannot see it.
    pub title: String,
    /// From its first point to its last.
    pub length_ns: f64,
    /// In order.
    pub parts: Vec<Part>,
    /// In order.
    pub events: Vec<Mark>,
}

/// What took a stretch of its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Which of [`LANES`].
    pub lane: usize,
    /// Begin.
    pub from_ns: f64,
    /// Length.
    pub length_ns: f64,
    /// What.
    pub label: String,
    /// Its colour; none for grey.
    pub colour: Option<usize>,
}

/// Something that the kernel did.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// Which of [`LANES`].
    pub lane: usize,
    /// When.
    pub at_ns: f64,
    /// What.
    pub label: String,
}

/// The picture of a request.
#[must_use]
pub fn svg(request: &Picture) -> String {
    let words: Vec<String> = request
        .parts
        .iter()
        .map(|part| format!("{} {}", part.label, time(part.length_ns)))
        .collect();
    let bottom = LANE * LANES.len() as f64;
    let mut svg = Svg::new(bottom + 42.0, &request.title, &words.join("; "));
    let x = Axis::linear((0.0, request.length_ns), (LEFT, RIGHT));
    below(&mut svg, &x.ticks(8), Some((4.0, bottom)), bottom + 16.0, time_label);
    let since = "time since the request began";
    svg.words((f64::midpoint(LEFT, RIGHT), bottom + 36.0), "label mid", since);
    for (lane, name) in LANES.into_iter().enumerate() {
        let top = LANE * lane as f64 + NAME;
        svg.words((LEFT, top - 4.0), "lane", name);
        svg.rect("ran", (LEFT, top), (RIGHT - LEFT, BAR));
        for (part, words) in request.parts.iter().zip(&words).filter(|(part, _)| part.lane == lane)
        {
            let ends = (x.at(part.from_ns), x.at(part.from_ns + part.length_ns));
            piece(&mut svg, ends, (top, BAR), (part.colour, &part.label), words);
        }
        for mark in request.events.iter().filter(|mark| mark.lane == lane) {
            let at = x.at(mark.at_ns);
            svg.open("g", &[]);
            svg.titled(&format!("{}: {}", time(mark.at_ns), mark.label));
            svg.line("event", (at, top + BAR + 1.0), (at, top + BAR + 1.0 + STROKE));
            svg.close();
        }
    }
    svg.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planted() -> Picture {
        let part = |lane, from_ns, length_ns, label: &str, colour| Part {
            lane,
            from_ns,
            length_ns,
            label: label.to_owned(),
            colour,
        };
        Picture {
            title: "Request 3".to_owned(),
            length_ns: 1_000.0,
            parts: vec![
                part(0, 0.0, 100.0, "send", Some(0)),
                part(1, 100.0, 50.0, "driver to driver", None),
                part(2, 150.0, 850.0, "the server", Some(1)),
            ],
            events: vec![Mark { lane: 2, at_ns: 500.0, label: "softirq <net_rx>".to_owned() }],
        }
    }

    #[test]
    fn parts_and_events_lie_in_their_lanes_at_their_times() {
        let svg = svg(&planted());
        assert!(LANES.iter().all(|name| svg.contains(name)));
        // The server's bar: from 15 % of the width, in the third lane.
        let begin = LEFT + 0.15 * (RIGHT - LEFT);
        let rect = format!(
            "class=\"f1\" x=\"{}\" y=\"{}\"",
            super::super::writer::Coordinate(begin),
            2.0 * LANE + NAME
        );
        assert!(svg.contains(&rect), "{rect} in {svg}");
        assert!(svg.contains("500 ns: softirq &lt;net_rx&gt;"), "{svg}");
        assert_eq!(svg.matches("class=\"event\"").count(), 1);
        assert!(svg.contains(">the server</text>") && svg.contains(">send</text>"), "{svg}");
    }

    #[test]
    fn hostile_numbers_are_drawn_nowhere_outside() {
        let mut odd = planted();
        odd.length_ns = f64::NAN;
        odd.parts[0].from_ns = f64::INFINITY;
        odd.events[0].at_ns = f64::NEG_INFINITY;
        let svg = svg(&odd);
        assert!(!svg.contains("NaN\"") && !svg.contains("inf\""), "{svg}");
    }
}
