//! Round trips by backend: a row each, with the median, the 99th percentile and their intervals.

use super::Figure;
use super::axis::{Axis, time_label};
use super::ccdf::mark;
use super::writer::{Key, Svg, WIDTH};
use crate::doc::Table;

const LEFT: f64 = 190.0;
const RIGHT: f64 = 620.0;
const TOP: f64 = 12.0;
/// Height of a row: a line for each percentile.
const ROW: f64 = 36.0;

/// A value with its interval, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// The value.
    pub ns: f64,
    /// Its interval, where it has one.
    pub interval: Option<(f64, f64)>,
}

/// One backend.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// What it is called.
    pub label: String,
    /// Median and 99th percentile, where they are known.
    pub values: [Option<Value>; 2],
}

/// The figure of these rows; `table` has their numbers.
#[must_use]
pub(crate) fn figure(bars: &[Bar], title: &str, table: Table) -> Figure {
    let bottom = TOP + ROW * bars.len().max(1) as f64;
    let keys = [
        Key::new("median round trip, with its 95% interval"),
        Key::new("99th percentile, with its 95% interval"),
    ];
    let height = bottom + 48.0 + keys.iter().map(Key::height).sum::<f64>();
    let mut svg = Svg::new(height, title, "Round trips by backend: median and 99th percentile.");
    let known = || bars.iter().flat_map(|bar| bar.values).flatten();
    if known().next().is_none() {
        let why = "Nothing to draw: no backend was measured.";
        svg.words((WIDTH / 2.0, TOP + ROW / 2.0), "note mid", why);
        return Figure { svg: svg.finish(), table };
    }
    let ends = |value: Value| {
        let (low, high) = value.interval.unwrap_or((value.ns, value.ns));
        [low.min(value.ns), high.max(value.ns)]
    };
    let all = || known().flat_map(ends).filter(|ns| ns.is_finite() && *ns > 0.0);
    let (lowest, highest) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    let x = Axis::log((lowest, highest), (LEFT, RIGHT));
    for tick in x.ticks(6) {
        svg.line("grid", (tick.at, TOP), (tick.at, bottom));
        svg.words((tick.at, bottom + 17.0), "tick mid", &time_label(tick.value));
    }
    svg.line("axis", (LEFT, bottom), (RIGHT, bottom));
    svg.words((f64::midpoint(LEFT, RIGHT), bottom + 37.0), "label mid", "round trip");
    for (number, bar) in bars.iter().enumerate() {
        row(&mut svg, &x, TOP + ROW * number as f64, bar);
    }
    let mut top = bottom + 48.0;
    for (index, key) in keys.iter().enumerate() {
        let (from, to) = key.draw(&mut svg, top);
        svg.line(&format!("whisker s{index}"), from, to);
        mark(&mut svg, to, index);
        top += key.height();
    }
    Figure { svg: svg.finish(), table }
}

fn row(svg: &mut Svg, x: &Axis, top: f64, bar: &Bar) {
    svg.open("g", &[]);
    svg.titled(&bar.label);
    svg.words((LEFT - 8.0, top + ROW / 2.0 + 4.0), "tick end", &bar.label);
    for (index, value) in bar.values.iter().enumerate() {
        let y = top + ROW * (index as f64 + 1.0) / 3.0;
        let Some(value) = value else { continue };
        if let Some((low, high)) = value.interval {
            svg.line(&format!("whisker s{index}"), (x.at(low), y), (x.at(high), y));
        }
        mark(svg, (x.at(value.ns), y), index);
    }
    if bar.values.iter().all(Option::is_none) {
        svg.words((LEFT + 8.0, top + ROW / 2.0 + 4.0), "tick", "not measured");
    }
    svg.close();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(label: &str, of: Option<f64>) -> Bar {
        let value = |ns: f64| Value { ns, interval: Some((ns * 0.9, ns * 1.1)) };
        let values = [of, of.map(|ns| 2.0 * ns)].map(|of| of.map(value));
        Bar { label: label.to_owned(), values }
    }

    #[test]
    fn each_backend_has_a_row_with_both_intervals_and_one_without_numbers_says_so() {
        let bars = [bar("udp spin", Some(1e4)), bar("xdp spin", Some(5e3)), bar("packet", None)];
        let drawn = figure(&bars, "Round trips", Table::default()).svg;
        // Two of each of two rows, two in the legend.
        assert_eq!(drawn.matches("whisker").count(), 6);
        assert!(drawn.contains("xdp spin") && drawn.contains("not measured"));
        assert!(!drawn.contains("NaN") && !drawn.contains("inf\""), "{drawn}");
    }

    #[test]
    fn nothing_to_draw_is_said_and_hostile_numbers_stay_on_the_figure() {
        let drawn = figure(&[bar("a", None)], "t", Table::default()).svg;
        assert!(drawn.contains("no backend was measured"));
        let mut hostile = bar("<b>", Some(f64::NAN));
        hostile.values[1] =
            Some(Value { ns: f64::MAX, interval: Some((f64::NEG_INFINITY, f64::NAN)) });
        let drawn = figure(&[hostile], "t", Table::default()).svg;
        assert!(!drawn.contains("NaN") && !drawn.contains("inf\"") && !drawn.contains("<b>"));
    }
}
