//! Bounds of the time in a box: a band over the percentile, what was measured through the box above it,
//! and the box's own log as a line where it keeps one.

use super::Figure;
use super::axis::{Axis, time, time_label};
use super::ccdf::mark;
use super::path::Path;
use super::tail_axis::TailAxis;
use super::writer::{Key, Svg, WIDTH};
use crate::doc::Table;

const LEFT: f64 = 78.0;
const RIGHT: f64 = 620.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 260.0;

/// One size in one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct Band {
    /// What it is called.
    pub name: String,
    /// Samples of what was measured.
    pub n: u64,
    /// What was measured through the box.
    pub measured: Vec<Known>,
    /// The bounds, in the order of percentiles.
    pub bounds: Vec<Bound>,
    /// What the box wrote down; empty where it keeps no log.
    pub logged: Vec<Known>,
}

/// A percentile with its value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known {
    /// Which, in percent.
    pub percent: f64,
    /// The value.
    pub ns: f64,
}

/// Bounds of a percentile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// Which, in percent.
    pub percent: f64,
    /// Not below this.
    pub low: Option<f64>,
    /// Not above this.
    pub high: Option<f64>,
}

/// The figure of one; `table` has its numbers.
#[must_use]
pub(crate) fn figure(band: &Band, title: &str, table: Table) -> Figure {
    let keys = keys(band);
    let height = BOTTOM + 50.0 + keys.iter().map(Key::height).sum::<f64>();
    let described = format!(
        "{}: percentiles measured through the box, bounds of the time in it{}.",
        band.name,
        if band.logged.is_empty() { "" } else { ", and its own log" }
    );
    let mut svg = Svg::new(height, title, &described);
    let values = || values(band).filter(|(_, ns)| ns.is_finite() && *ns > 0.0);
    if values().next().is_none() {
        let why = "Nothing to draw: no percentile is known.";
        svg.words((WIDTH / 2.0, BOTTOM / 2.0), "note mid", why);
        return Figure { svg: svg.finish(), table };
    }
    let ends = values()
        .fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), (_, ns)| (low.min(ns), high.max(ns)));
    let x = TailAxis::around(values().map(|(percent, _)| percent), (LEFT, RIGHT));
    let y = Axis::log(ends, (BOTTOM, TOP));
    for tick in y.ticks(7) {
        svg.line("grid", (LEFT, tick.at), (RIGHT, tick.at));
        svg.words((LEFT - 8.0, tick.at + 4.0), "tick end", &time_label(tick.value));
    }
    svg.line("axis", (LEFT, TOP), (LEFT, BOTTOM));
    x.draw(&mut svg, (TOP, BOTTOM));
    bounds(&mut svg, &x, &y, &band.bounds);
    line(&mut svg, &x, &y, (&band.measured, 0));
    line(&mut svg, &x, &y, (&band.logged, 1));
    legend(&mut svg, &keys);
    Figure { svg: svg.finish(), table }
}

/// Every value that is drawn, with its percentile.
fn values(band: &Band) -> impl Iterator<Item = (f64, f64)> {
    let known = band.measured.iter().chain(&band.logged).map(|of| (of.percent, of.ns));
    let bounds = band
        .bounds
        .iter()
        .flat_map(|of| [of.low, of.high].into_iter().flatten().map(|ns| (of.percent, ns)));
    known.chain(bounds)
}

/// The area between the bounds, and each of them as a whisker: between percentiles nothing is known.
fn bounds(svg: &mut Svg, x: &TailAxis, y: &Axis, all: &[Bound]) {
    let both: Vec<(f64, f64, f64)> =
        all.iter().filter_map(|of| Some((x.at(of.percent), of.low?, of.high?))).collect();
    svg.open("g", &[]);
    svg.titled("the time in the box lies here, all percentiles together with 95% confidence");
    if both.len() > 1 {
        let mut path = Path::default();
        for (at, _, high) in &both {
            path.line_to((*at, y.at(*high)));
        }
        for (at, low, _) in both.iter().rev() {
            path.line_to((*at, y.at(*low)));
        }
        path.close();
        svg.path("band f2", path.as_str());
    }
    for of in all {
        let at = x.at(of.percent);
        let ends = [of.low, of.high].map(|end| end.map(|ns| y.at(ns)));
        if let [Some(low), Some(high)] = ends {
            svg.line("whisker s2", (at, low), (at, high));
        }
        // One bound alone is a bar without a stroke to the other.
        for end in ends.into_iter().flatten() {
            svg.line("whisker s2", (at - 6.0, end), (at + 6.0, end));
        }
    }
    svg.close();
}

fn line(svg: &mut Svg, x: &TailAxis, y: &Axis, (points, index): (&[Known], usize)) {
    if points.is_empty() {
        return;
    }
    let mut path = Path::default();
    let places: Vec<(f64, f64)> = points
        .iter()
        .filter(|of| of.ns.is_finite())
        .map(|of| (x.at(of.percent), y.at(of.ns)))
        .collect();
    for place in &places {
        path.line_to(*place);
    }
    svg.path(&format!("curve s{index} d{index}"), path.as_str());
    for place in places {
        mark(svg, place, index);
    }
}

fn keys(band: &Band) -> Vec<Key> {
    let n = crate::numbers::count(band.n);
    let largest =
        band.measured.last().map_or(String::new(), |of| format!(", up to {}", time(of.ns)));
    let mut keys = vec![Key::new(&format!("measured through the box: n = {n}{largest}"))];
    keys.push(Key::new("bounds of the time in the box, 95% together"));
    if !band.logged.is_empty() {
        keys.push(Key::new("what the box itself wrote down"));
    }
    keys
}

fn legend(svg: &mut Svg, keys: &[Key]) {
    let mut top = BOTTOM + 50.0;
    for (number, key) in keys.iter().enumerate() {
        let (from, to) = key.draw(svg, top);
        if number == 1 {
            svg.rect("band f2", (from.0, from.1 - 6.0), (to.0 - from.0, 12.0));
        } else {
            let index = number.min(1);
            svg.line(&format!("curve s{index} d{index}"), from, to);
            mark(svg, to, index);
        }
        top += key.height();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn band() -> Band {
        let known = |values: &[(f64, f64)]| {
            values.iter().map(|(percent, ns)| Known { percent: *percent, ns: *ns }).collect()
        };
        Band {
            name: "64 B there".to_owned(),
            n: 100_000,
            measured: known(&[(50.0, 9_000.0), (99.0, 12_000.0), (99.9, 30_000.0)]),
            bounds: vec![
                Bound { percent: 50.0, low: Some(5_000.0), high: Some(6_000.0) },
                Bound { percent: 99.0, low: Some(6_000.0), high: Some(9_000.0) },
                Bound { percent: 99.9, low: None, high: Some(27_000.0) },
            ],
            logged: known(&[(50.0, 5_600.0), (99.0, 7_000.0)]),
        }
    }

    #[test]
    fn the_band_what_was_measured_and_the_log_are_drawn_and_named() {
        let drawn = figure(&band(), "Bounds", Table::default()).svg;
        // Two strokes, five bars.
        assert_eq!(drawn.matches("class=\"whisker s2\"").count(), 7);
        // The band, and its key.
        assert_eq!(drawn.matches("class=\"band f2\"").count(), 2);
        for words in
            ["measured through the box: n = 100", "what the box itself", ">p99.9<", ">10 µs<"]
        {
            assert!(drawn.contains(words), "no `{words}` in {drawn}");
        }
        let alone = Band { logged: Vec::new(), ..band() };
        assert!(!figure(&alone, "Bounds", Table::default()).svg.contains("wrote down"));
    }

    #[test]
    fn bounds_are_drawn_as_they_were_found() {
        let drawn = figure(&band(), "Bounds", Table::default()).svg;
        insta::assert_snapshot!(drawn.replace("><", ">\n<"));
    }

    #[test]
    fn nothing_to_draw_is_said_and_hostile_numbers_stay_on_the_figure() {
        let empty = Band { measured: vec![], bounds: vec![], logged: vec![], ..band() };
        assert!(figure(&empty, "t", Table::default()).svg.contains("no percentile is known"));
        let mut hostile = band();
        hostile.name = "<b>".to_owned();
        hostile.measured.push(Known { percent: f64::NAN, ns: f64::NAN });
        hostile.bounds.push(Bound { percent: 1e9, low: Some(f64::NEG_INFINITY), high: Some(-5.0) });
        let drawn = figure(&hostile, "t", Table::default()).svg;
        assert!(
            !drawn.contains("NaN") && !drawn.contains("inf\"") && !drawn.contains("<b>"),
            "{drawn}"
        );
    }
}
