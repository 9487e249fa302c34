//! What share of the samples lies at or below x: values on a logarithmic axis, shares on a linear one.
//!
//! It shows the body of a distribution; the tail is in the complementary one ([`super::ccdf`]), whose
//! curves these are. A curve of n samples goes no closer to 1 than its last step. Curves differ by dash
//! and by the mark at their median, not by colour alone.

use super::axis::{Axis, below, share_label, time, time_label};
use super::ccdf::{Curve, MOST_CURVES, Point, Share, key, legend, mark};
use super::path::Path;
use super::writer::{Key, Svg, WIDTH};
use super::{COLOURS, Figure};
use crate::doc::Table;

const LEFT: f64 = 78.0;
const RIGHT: f64 = 620.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 300.0;
/// Where a curve has its mark.
const HALF: f64 = 0.5;

/// What a figure says beside its curves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What is shown, in a few words.
    pub title: String,
    /// What lies along x.
    pub of: String,
    /// What the share is a share of: `of the frames`.
    pub share_of: String,
}

/// The figure of some curves, which may be none; `table` has their numbers.
#[must_use]
pub(crate) fn figure(curves: &[Curve], options: &Options, table: Table) -> Figure {
    let steps = |curve: &Curve| curve.shown(Share::OfSamples).collect::<Vec<Point>>();
    let drawn: Vec<(&Curve, Vec<Point>)> = curves
        .iter()
        .map(|curve| (curve, steps(curve)))
        .filter(|(_, points)| !points.is_empty())
        .take(MOST_CURVES)
        .collect();
    let keys: Vec<Key> = drawn.iter().map(|(curve, _)| key(curve)).collect();
    let height = BOTTOM + 52.0 + keys.iter().map(Key::height).sum::<f64>();
    let mut svg = Svg::new(height, &options.title, &describe(&drawn, options));
    if drawn.is_empty() {
        let why = "Nothing to draw: there are no samples.";
        svg.words((WIDTH / 2.0, BOTTOM / 2.0), "note mid", why);
        return Figure { svg: svg.finish(), table };
    }
    let (x, y) = axes(&drawn);
    frame(&mut svg, (&x, &y), options);
    for (index, (curve, points)) in drawn.iter().enumerate() {
        one(&mut svg, (&x, &y), (curve, points), index);
    }
    legend(&mut svg, BOTTOM + 52.0, &keys);
    Figure { svg: svg.finish(), table }
}

fn axes(drawn: &[(&Curve, Vec<Point>)]) -> (Axis, Axis) {
    let values = || drawn.iter().flat_map(|(_, points)| points).map(|p| p.value_ns.max(1.0));
    let lowest = values().fold(f64::INFINITY, f64::min);
    let highest = values().fold(0.0, f64::max);
    (Axis::log((lowest, highest), (LEFT, RIGHT)), Axis::linear((0.0, 1.0), (BOTTOM, TOP)))
}

fn frame(svg: &mut Svg, (x, y): (&Axis, &Axis), options: &Options) {
    for tick in y.ticks(5) {
        svg.line("grid", (LEFT, tick.at), (RIGHT, tick.at));
        svg.words((LEFT - 8.0, tick.at + 4.0), "tick end", &share_label(tick.value));
    }
    below(svg, &x.ticks(9), Some((TOP, BOTTOM)), BOTTOM + 20.0, time_label);
    svg.line("axis", (LEFT, BOTTOM), (RIGHT, BOTTOM));
    svg.line("axis", (LEFT, TOP), (LEFT, BOTTOM));
    svg.words((f64::midpoint(LEFT, RIGHT), BOTTOM + 40.0), "label mid", &options.of);
    let up = format!("share {} at most as long", options.share_of);
    svg.words((RIGHT - 6.0, BOTTOM - 8.0), "note end", &up);
}

/// A staircase: at a value it rises to the share that is not above it.
fn one(svg: &mut Svg, (x, y): (&Axis, &Axis), (curve, points): (&Curve, &[Point]), index: usize) {
    let mut path = Path::default();
    let mut median = None;
    let mut level = 0.0;
    for (at, point) in points.iter().enumerate() {
        // Of what is at or above the next value, nothing is at or below this one.
        let reached = 1.0 - points.get(at + 1).map_or(point.share, |next| next.share);
        let place = x.at(point.value_ns);
        if path.is_empty() {
            path.move_to((place, y.at(0.0)));
        } else {
            path.step_to((place, y.at(level)));
        }
        level = reached.max(level);
        path.step_to((place, y.at(level)));
        if level >= HALF && median.is_none() {
            median = Some((place, y.at(HALF)));
        }
    }
    svg.open("g", &[]);
    svg.titled(&format!("{}, n = {}", curve.label, curve.n));
    svg.path(&format!("curve s{0} d{0}", index % COLOURS), path.as_str());
    if let Some(median) = median {
        mark(svg, median, index);
    }
    svg.close();
}

fn describe(drawn: &[(&Curve, Vec<Point>)], options: &Options) -> String {
    let words: Vec<String> = drawn
        .iter()
        .map(|(curve, points)| {
            let least = points.first().map_or(0.0, |p| p.value_ns);
            format!("{}: n = {}, smallest {}", curve.label, curve.n, time(least))
        })
        .collect();
    format!("Share {} at or below each {}. {}", options.share_of, options.of, words.join("; "))
}

#[cfg(test)]
mod tests {
    use whylate_stats::Histogram;
    use whylate_stats::dependence::Exceedances;

    use super::*;

    fn options() -> Options {
        Options {
            title: "Latency".to_owned(),
            of: "latency".to_owned(),
            share_of: "of the frames".to_owned(),
        }
    }

    fn curve(values: impl IntoIterator<Item = u64>) -> Curve {
        let histogram: Histogram = values.into_iter().collect();
        Curve::of_histogram("<b>xdp</b>", &histogram, &Exceedances::new(), 10.0)
    }

    #[test]
    fn a_curve_rises_from_nothing_to_nearly_all_and_is_marked_at_its_median() {
        let drawn = figure(&[curve((1..=100).map(|n| n * 100))], &options(), Table::default()).svg;
        let path = drawn.split("class=\"curve s0 d0\" d=\"").nth(1).unwrap();
        let path = path.split('"').next().unwrap();
        assert!(path.starts_with('M'), "{path}");
        let start: Vec<&str> = path[1..].split(['H', 'V', ' ']).collect();
        assert_eq!(start[1], "300", "from the bottom: {path}");
        // The last of a hundred lies at 99 %.
        let end: f64 = path.rsplit('V').next().unwrap().split('H').next().unwrap().parse().unwrap();
        assert!((end - (TOP + 0.01 * (BOTTOM - TOP))).abs() < 1.0, "{end}");
        assert_eq!(drawn.matches("class=\"mark f0\"").count(), 2, "the curve's and the legend's");
        assert!(!drawn.contains("<b>") && drawn.contains("n = 100"));
    }

    #[test]
    fn none_one_and_hostile_values_make_a_figure() {
        assert!(figure(&[], &options(), Table::default()).svg.contains("Nothing to draw"));
        let empty = figure(&[curve([])], &options(), Table::default()).svg;
        assert!(empty.contains("Nothing to draw"));
        let mut hostile = curve([5, 5, 700]);
        hostile.points.push(Point { value_ns: f64::NAN, share: 0.4, low: 0.4, high: 0.4 });
        hostile.points.push(Point { value_ns: f64::MAX, share: 7.0, low: 0.0, high: 9.0 });
        for curves in [vec![hostile], vec![curve([7])], vec![curve([0, 0]), curve([u64::MAX])]] {
            let drawn = figure(&curves, &options(), Table::default()).svg;
            assert!(drawn.ends_with("</svg>"));
            assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
        }
    }
}
