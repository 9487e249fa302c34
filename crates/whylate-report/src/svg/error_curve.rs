//! The error of an instrument over the percentile, with the tolerance as a band and each curve's limit of
//! trust as a line.
//!
//! Up lies the error: within the tolerance on an even scale, beyond it by decades, on both sides of zero.
//! So a tail of milliseconds and a tolerance of a microsecond are in one picture.

use super::axis::time;
use super::ccdf::{legend, mark};
use super::path::Path;
use super::tail_axis::TailAxis;
use super::writer::{Key, Svg, WIDTH};
use super::{COLOURS, Figure};
use crate::doc::Table;

const LEFT: f64 = 84.0;
const RIGHT: f64 = 620.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 260.0;
/// Decades beyond the tolerance on one side at most: from 1 us they end at 1000 s.
const MOST_DECADES: i32 = 9;

/// One curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What it is called: `as it is`.
    pub label: String,
    /// Its points, in the order of percentiles.
    pub points: Vec<At>,
    /// Up to where it may be trusted; none where nowhere.
    pub limit: Option<f64>,
}

/// The error at a percentile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct At {
    /// Which, in percent.
    pub percent: f64,
    /// The error, ns.
    pub ns: f64,
    /// Its interval, where it has one.
    pub interval: Option<(f64, f64)>,
}

/// The figure of these curves; `table` has their numbers.
#[must_use]
pub(crate) fn figure(lines: &[Line], tolerance_ns: f64, title: &str, table: Table) -> Figure {
    let keys: Vec<Key> = lines.iter().map(key).collect();
    let height = BOTTOM + 50.0 + keys.iter().map(Key::height).sum::<f64>();
    let mut svg = Svg::new(height, title, &described(lines, tolerance_ns));
    let points = || lines.iter().flat_map(|line| &line.points).filter(|at| at.ns.is_finite());
    if points().next().is_none() {
        let why = "Nothing to draw: no percentile has an error.";
        svg.words((WIDTH / 2.0, BOTTOM / 2.0), "note mid", why);
        return Figure { svg: svg.finish(), table };
    }
    let x = TailAxis::around(points().map(|at| at.percent), (LEFT, RIGHT));
    let y = Errors::around(points(), tolerance_ns);
    y.draw(&mut svg);
    x.draw(&mut svg, (TOP, BOTTOM));
    for (index, line) in lines.iter().enumerate() {
        limit(&mut svg, &x, line, index);
    }
    for (index, line) in lines.iter().enumerate() {
        curve(&mut svg, &x, &y, (line, index));
    }
    legend(&mut svg, BOTTOM + 50.0, &keys);
    Figure { svg: svg.finish(), table }
}

/// The scale of errors: even within the tolerance, by decades beyond.
struct Errors {
    tolerance: f64,
    /// Ends in steps: one step is the tolerance, or a decade beyond it.
    low: f64,
    high: f64,
}

impl Errors {
    fn around<'a>(points: impl Iterator<Item = &'a At>, tolerance_ns: f64) -> Self {
        let tolerance = if tolerance_ns.is_finite() { tolerance_ns.max(1.0) } else { 1.0 };
        let mut scale = Self { tolerance, low: -1.0, high: 1.0 };
        for at in points {
            let (low, high) = at.interval.unwrap_or((at.ns, at.ns));
            for ns in [at.ns, low, high] {
                let step = scale.step(ns);
                scale.low = scale.low.min(step.floor());
                scale.high = scale.high.max(step.ceil());
            }
        }
        scale
    }

    /// So many steps from zero.
    fn step(&self, ns: f64) -> f64 {
        let size = ns.abs() / self.tolerance;
        let steps = if size <= 1.0 { size } else { 1.0 + size.log10() };
        let most = f64::from(MOST_DECADES) + 1.0;
        if steps.is_nan() { 0.0 } else { steps.min(most).copysign(ns) }
    }

    fn at(&self, ns: f64) -> f64 {
        let share = (self.step(ns) - self.low) / (self.high - self.low);
        BOTTOM - share.clamp(0.0, 1.0) * (BOTTOM - TOP)
    }

    fn draw(&self, svg: &mut Svg) {
        let (top, bottom) = (self.at(self.tolerance), self.at(-self.tolerance));
        svg.open("g", &[]);
        svg.titled(&format!("within the tolerance of {}", time(self.tolerance)));
        svg.rect("band f2", (LEFT, top), (RIGHT - LEFT, bottom - top));
        svg.close();
        let last = self.low.abs().max(self.high) as i32;
        for step in -last..=last {
            let ns = match step {
                0 => 0.0,
                _ => (self.tolerance * 10f64.powi(step.abs() - 1)).copysign(f64::from(step)),
            };
            let inside = self.low <= f64::from(step) && f64::from(step) <= self.high;
            if !inside {
                continue;
            }
            let y = self.at(ns);
            let class = if step == 0 { "axis" } else { "grid" };
            svg.line(class, (LEFT, y), (RIGHT, y));
            svg.words((LEFT - 8.0, y + 4.0), "tick end", &shown(ns));
        }
        svg.line("axis", (LEFT, TOP), (LEFT, BOTTOM));
        svg.words((RIGHT, TOP - 8.0), "note end", "error: measured less the truth");
    }
}

fn curve(svg: &mut Svg, x: &TailAxis, y: &Errors, (line, index): (&Line, usize)) {
    let mut path = Path::default();
    svg.open("g", &[]);
    svg.titled(&line.label);
    // Beside one another, where several curves have whiskers at the same percentiles.
    let aside = |percent: f64| x.at(percent) + 4.0 * index as f64;
    for at in line.points.iter().filter(|at| at.ns.is_finite()) {
        path.line_to((aside(at.percent), y.at(at.ns)));
    }
    svg.path(&format!("curve s{0} d{0}", index % COLOURS), path.as_str());
    for at in line.points.iter().filter(|at| at.ns.is_finite()) {
        if let Some((low, high)) = at.interval {
            let (from, to) = ((aside(at.percent), y.at(low)), (aside(at.percent), y.at(high)));
            svg.line(&format!("whisker s{}", index % COLOURS), from, to);
        }
        mark(svg, (aside(at.percent), y.at(at.ns)), index);
    }
    svg.close();
}

/// The limit of trust of a curve, with its name.
fn limit(svg: &mut Svg, x: &TailAxis, line: &Line, index: usize) {
    let Some(percent) = line.limit else { return };
    let at = x.at(percent) + 4.0 * index as f64;
    svg.line("limit", (at, TOP), (at, BOTTOM));
    let words = format!("{}: up to p{percent}", line.label);
    // Names stand below one another: limits may be the same.
    svg.words((at - 5.0, BOTTOM - 8.0 - 14.0 * index as f64), "note end", &words);
}

fn key(line: &Line) -> Key {
    let limit = match line.limit {
        Some(percent) => format!("trusted up to p{percent}"),
        None => "trusted nowhere".to_owned(),
    };
    Key::new(&format!("{}: {limit}", line.label))
}

fn described(lines: &[Line], tolerance_ns: f64) -> String {
    let words: Vec<String> = lines
        .iter()
        .map(|line| {
            let limit = line.limit.map_or("nowhere".to_owned(), |of| format!("up to p{of}"));
            format!("{} {limit}", line.label)
        })
        .collect();
    format!(
        "Error at each percentile, with its 95% interval. Within {} of zero: {}.",
        time(tolerance_ns),
        words.join("; ")
    )
}

/// A signed time for a tick.
fn shown(ns: f64) -> String {
    if ns.abs() < 0.5 {
        return "0".to_owned();
    }
    crate::numbers::difference(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(label: &str, shift: f64, limit: Option<f64>) -> Line {
        let at = |(percent, ns): (f64, f64)| At {
            percent,
            ns: ns - shift,
            interval: Some((ns - shift - 50.0, ns - shift + 50.0)),
        };
        let points = [(50.0, 3_200.0), (99.0, 3_400.0), (99.99, 54_000.0)].map(at).to_vec();
        Line { label: label.to_owned(), points, limit }
    }

    #[test]
    fn both_curves_their_limits_and_the_tolerance_are_drawn() {
        let lines = [line("as it is", 0.0, None), line("less the path", 3_200.0, Some(99.0))];
        let drawn = figure(&lines, 1_000.0, "Errors", Table::default()).svg;
        assert_eq!(drawn.matches("class=\"whisker").count(), 6);
        for words in [
            "within the tolerance of 1 µs",
            "less the path: up to p99<",
            "as it is: trusted nowhere",
            ">+10 µs<",
            ">+1 µs<",
            ">−1 µs<",
            ">0<",
            ">p99.99<",
            ">p50<",
        ] {
            assert!(drawn.contains(words), "no `{words}` in {drawn}");
        }
        assert_eq!(drawn.matches("class=\"limit\"").count(), 1);
    }

    #[test]
    fn errors_are_drawn_as_they_were_found() {
        let lines = [line("as it is", 0.0, None), line("less the path", 3_200.0, Some(99.0))];
        let drawn = figure(&lines, 1_000.0, "Errors", Table::default()).svg;
        insta::assert_snapshot!(drawn.replace("><", ">\n<"));
    }

    #[test]
    fn the_scale_is_even_within_the_tolerance_and_by_decades_beyond() {
        let points = [At { percent: 50.0, ns: 100_000.0, interval: None }];
        let scale = Errors::around(points.iter(), 1_000.0);
        let step = scale.at(0.0) - scale.at(1_000.0);
        for (from, to) in [(1_000.0, 10_000.0), (10_000.0, 100_000.0), (-1_000.0, 0.0)] {
            assert!((scale.at(from) - scale.at(to) - step).abs() < 1e-6, "{from} {to}");
        }
        assert!((scale.at(500.0) - f64::midpoint(scale.at(0.0), scale.at(1_000.0))).abs() < 1e-6);
    }

    #[test]
    fn nothing_to_draw_is_said_and_hostile_numbers_stay_on_the_figure() {
        let drawn = figure(&[], 1_000.0, "t", Table::default()).svg;
        assert!(drawn.contains("no percentile has an error"));
        let mut hostile = line("<b>", f64::NAN, Some(f64::INFINITY));
        hostile.points.push(At {
            percent: f64::NAN,
            ns: f64::MAX,
            interval: Some((f64::NEG_INFINITY, f64::NAN)),
        });
        let drawn = figure(&[hostile], f64::NAN, "t", Table::default()).svg;
        assert!(!drawn.contains("NaN") && !drawn.contains("<b>"), "{drawn}");
        assert!(drawn.ends_with("</svg>"));
    }
}
