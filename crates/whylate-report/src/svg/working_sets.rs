//! Working set against the penalty of a context switch: Figure 5 of the Hourglass paper.
//!
//! Marks with their 95% intervals, and a second line for what filling the caches again should take.
//! Caches stand as lines at their sizes. Both axes are logarithmic: what lies at zero or below has no
//! place on the upward one and is drawn at its foot; the table has its number.

use whylate_model::switch_cost::{Cache, IndirectRow, SwitchCost};

use super::Figure;
use super::axis::{Axis, time_label};
use super::ccdf::{legend, mark};
use super::path::Path;
use super::writer::{Key, Svg, WIDTH};
use crate::doc::Table;
use crate::switch_cost::{penalties, size};

const LEFT: f64 = 78.0;
const RIGHT: f64 = 620.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 250.0;
/// Below this no penalty is told from nothing.
const LEAST_NS: f64 = 100.0;

/// The figure of what was found.
#[must_use]
pub fn figure(found: &SwitchCost, title: &str) -> Figure {
    let table = penalties(found).unwrap_or_else(|| Table::new(title, &["working set"]));
    let rows: Vec<&IndirectRow> = found.indirect.iter().filter(|row| row.bytes > 0).collect();
    let measured = rows.iter().any(|row| row.penalty.is_some());
    let keys = [
        Key::new("measured: penalty of a switch, with its 95% interval"),
        Key::new("predicted: filling the caches again, by size and read bandwidth"),
    ];
    let height = BOTTOM + 48.0 + keys.iter().map(Key::height).sum::<f64>();
    let words = "Penalty of a context switch by working set, measured and predicted.";
    let mut svg = Svg::new(height, title, words);
    if !measured {
        let why = "Nothing to draw: no working set has a penalty.";
        svg.words((WIDTH / 2.0, BOTTOM / 2.0), "note mid", why);
        return Figure { svg: svg.finish(), table };
    }
    let (x, y) = axes(&rows);
    grid(&mut svg, &x, &y, &rows);
    caches(&mut svg, &x, &found.caches);
    inside(&mut svg, &y, found);
    svg.open("g", &[]);
    svg.titled("measured");
    let points = rows.iter().filter_map(|row| Some((row.bytes, row.penalty.as_ref()?)));
    let mut path = Path::default();
    for (bytes, penalty) in points {
        let (low, high) = penalty.interval_ns;
        let at = (x.at(bytes as f64), y.at(penalty.mean_ns));
        path.line_to(at);
        svg.line("whisker s0", (at.0, y.at(low)), (at.0, y.at(high)));
        mark(&mut svg, at, 0);
    }
    svg.path("curve s0 d0", path.as_str());
    svg.close();
    svg.open("g", &[]);
    svg.titled("predicted");
    let points = rows.iter().filter_map(|row| Some((row.bytes, row.refill?)));
    let mut path = Path::default();
    for (bytes, refill) in points {
        let at = (x.at(bytes as f64), y.at(refill.predicted_ns));
        path.line_to(at);
        mark(&mut svg, at, 1);
    }
    svg.path("curve s1 d1", path.as_str());
    svg.close();
    legend(&mut svg, BOTTOM + 48.0, &keys);
    Figure { svg: svg.finish(), table }
}

fn axes(rows: &[&IndirectRow]) -> (Axis, Axis) {
    let sizes = || rows.iter().map(|row| row.bytes as f64);
    let (smallest, largest) = (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max));
    let penalties = rows.iter().filter_map(|row| row.penalty.as_ref());
    let values = penalties.flat_map(|of| [of.mean_ns, of.interval_ns.1]);
    let refills = rows.iter().filter_map(|row| Some(row.refill?.predicted_ns));
    let highest = values.chain(refills).filter(|ns| ns.is_finite()).fold(LEAST_NS, f64::max);
    let x = Axis::log((smallest, largest), (LEFT, RIGHT));
    (x, Axis::log((LEAST_NS, highest), (BOTTOM, TOP)))
}

fn grid(svg: &mut Svg, x: &Axis, y: &Axis, rows: &[&IndirectRow]) {
    for tick in y.ticks(6) {
        svg.line("grid", (LEFT, tick.at), (RIGHT, tick.at));
        svg.words((LEFT - 8.0, tick.at + 4.0), "tick end", &time_label(tick.value));
    }
    let mut last = f64::NEG_INFINITY;
    for row in rows {
        let at = x.at(row.bytes as f64);
        if at - last > 56.0 {
            svg.words((at, BOTTOM + 17.0), "tick mid", &size(row.bytes));
            last = at;
        }
    }
    svg.line("axis", (LEFT, BOTTOM), (RIGHT, BOTTOM));
    svg.line("axis", (LEFT, TOP), (LEFT, BOTTOM));
    let middle = f64::midpoint(LEFT, RIGHT);
    svg.words((middle, BOTTOM + 37.0), "label mid", "working set of each runner");
}

fn caches(svg: &mut Svg, x: &Axis, caches: &[Cache]) {
    for cache in caches {
        let at = x.at(cache.bytes as f64);
        // At an end of the axis the size is not on it.
        if at > LEFT && at < RIGHT {
            svg.line("limit", (at, TOP), (at, BOTTOM));
            let label = format!("L{} {}", cache.level, size(cache.bytes));
            svg.words((at, TOP - 8.0), "tick mid", &label);
        }
    }
}

/// The mean of the working sets inside the first-level cache: what larger ones are set beside.
fn inside(svg: &mut Svg, y: &Axis, found: &SwitchCost) {
    let mean = found.growth.as_ref().and_then(|growth| growth.inside_ns);
    if let Some(mean) = mean.filter(|mean| *mean > LEAST_NS) {
        let at = y.at(mean);
        svg.line("limit", (LEFT, at), (RIGHT, at));
        svg.words((RIGHT, at - 5.0), "tick end", "mean inside the first-level cache");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch_cost::tests::planted;

    #[test]
    fn the_figure_has_both_lines_their_intervals_and_the_caches() {
        let figure = figure(&planted(), "Working sets");
        assert_eq!(figure.svg.matches("whisker").count(), 2);
        assert!(figure.svg.contains("L1 32 KiB"));
        assert!(figure.svg.contains("d=\"M") || figure.svg.contains("d=\"m"));
        assert!(!figure.svg.contains("NaN") && !figure.svg.contains("inf\""));
        assert_eq!(figure.table.rows.len(), 3);
    }

    #[test]
    fn what_larger_sets_are_set_beside_is_a_line_where_it_lies_on_the_axis() {
        let mut found = planted();
        let words = "mean inside the first-level cache";
        assert!(!figure(&found, "t").svg.contains(words), "below zero");
        if let Some(growth) = &mut found.growth {
            growth.inside_ns = Some(1_500.0);
        }
        assert!(figure(&found, "t").svg.contains(words));
    }

    #[test]
    fn nothing_to_draw_is_said() {
        let mut nothing = planted();
        nothing.indirect.truncate(0);
        assert!(figure(&nothing, "t").svg.contains("no working set has a penalty"));
    }

    #[test]
    fn hostile_numbers_stay_on_the_figure() {
        let mut hostile = planted();
        for row in &mut hostile.indirect {
            row.bytes = u64::MAX;
            if let Some(penalty) = &mut row.penalty {
                (penalty.mean_ns, penalty.interval_ns) = (f64::NAN, (f64::NEG_INFINITY, f64::MAX));
            }
        }
        let drawn = figure(&hostile, "t").svg;
        assert!(!drawn.contains("NaN") && !drawn.contains("inf\""), "{drawn}");
    }
}
