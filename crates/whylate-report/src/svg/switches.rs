//! Histograms of context-switch times, one below the other on one axis: Figure 4 of the Hourglass
//! paper.
//!
//! Each panel has its own scale of counts, for systems switch at different rates. A line
//! stands at the cost to expect. What is longer than the last bin is not drawn but counted.

use super::axis::{Axis, below, time, time_label};
use super::path::Path;
use super::shares::class;
use super::writer::{GLYPH, Key, Svg, WIDTH};
use super::{COLOURS, Figure};
use crate::doc::Table;
use crate::numbers::{ABSENT, Value, count, percent, rate};
use whylate_model::execution::SwitchTimes;

const LEFT: f64 = 78.0;
const RIGHT: f64 = 608.0;
const TALL: f64 = 90.0;
const SPACE: f64 = 14.0;
/// Room above a panel for the word at its expected cost.
const WORD: f64 = 18.0;

/// Panels of a figure; more are not compared by eye. The table has them all.
pub const MOST_PANELS: usize = COLOURS;

/// The switches of one system, or of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// Of what: `involuntary, Linux 6.18`.
    pub label: String,
    /// Their histogram.
    pub times: SwitchTimes,
}

/// The figure of some panels.
#[must_use]
pub fn figure(panels: &[Panel], title: &str) -> Figure {
    let table = table(panels, title);
    let usable = |panel: &&Panel| panel.times.n > 0 && !panel.times.bins.is_empty();
    let drawn: Vec<&Panel> = panels.iter().filter(usable).take(MOST_PANELS).collect();
    let keys: Vec<Key> = drawn.iter().map(|panel| Key::new(&sentence(panel))).collect();
    let heights: Vec<f64> = keys.iter().map(|key| key.height() + WORD + TALL + SPACE).collect();
    let bottom: f64 = heights.iter().sum::<f64>() + 8.0;
    let words: Vec<String> = drawn.iter().map(|panel| sentence(panel)).collect();
    let mut svg = Svg::new(bottom + 36.0, title, &words.join(" "));
    let bins = || drawn.iter().flat_map(|panel| &panel.times.bins);
    let Some(low) = bins().map(|bin| bin.from).min() else {
        let why = "Nothing to draw: there was no context switch.";
        svg.words((WIDTH / 2.0, 26.0), "note mid", why);
        return Figure { svg: svg.finish(), table };
    };
    let high = bins().map(|bin| bin.to).max().unwrap_or(low);
    let x = Axis::linear((low.0 as f64, high.0 as f64), (LEFT, RIGHT));
    let mut top = 0.0;
    for (index, (panel, key)) in drawn.iter().zip(&keys).enumerate() {
        svg.open("g", &[]);
        svg.titled(&words[index]);
        let ((left, y), _) = key.draw(&mut svg, top);
        svg.rect(&class(Some(index)), (left, y - 6.0), (40.0, 12.0));
        draw(&mut svg, &x, panel, index, top + key.height() + WORD);
        svg.close();
        top += heights[index];
    }
    below(&mut svg, &x.ticks(8), None, top + 6.0, time_label);
    let middle = f64::midpoint(LEFT, RIGHT);
    svg.words((middle, top + 28.0), "label mid", "time of a context switch");
    Figure { svg: svg.finish(), table }
}

fn draw(svg: &mut Svg, x: &Axis, panel: &Panel, index: usize, top: f64) {
    let bottom = top + TALL;
    let most = panel.times.bins.iter().map(|bin| bin.count).max().unwrap_or(1);
    let y = Axis::linear((0.0, most as f64), (bottom, top + 6.0));
    for tick in x.ticks(8) {
        svg.line("grid", (tick.at, top), (tick.at, bottom));
    }
    for tick in y.ticks(3).into_iter().filter(|tick| tick.value.fract() == 0.0) {
        svg.line("grid", (LEFT, tick.at), (RIGHT, tick.at));
        svg.words((LEFT - 8.0, tick.at + 4.0), "tick end", &count(tick.value as u64));
    }
    let mut path = Path::default();
    for bin in panel.times.bins.iter().filter(|bin| bin.count > 0) {
        let (from, to) = (x.at(bin.from.0 as f64), x.at(bin.to.0 as f64));
        // A bin with a single switch is seen beside one with a million.
        let height = (bottom - y.at(bin.count as f64)).max(1.0);
        path.rect((from, bottom - height), (to - from, height));
    }
    svg.path(&class(Some(index)), path.as_str());
    if let Some(expected) = panel.times.expected {
        let at = x.at(expected.0 as f64);
        svg.line("event", (at, top - 3.0), (at, bottom));
        let room = 5.0 * GLYPH;
        svg.words((at.clamp(LEFT + room, RIGHT - room), top - 6.0), "tick mid", "expected");
    }
    svg.line("axis", (LEFT, bottom), (RIGHT, bottom));
}

/// What rule R1 makes of the switches, in a sentence.
pub(crate) fn sentence(panel: &Panel) -> String {
    let times = &panel.times;
    let cost = match (times.expected, times.contaminated) {
        (Some(expected), Some(contaminated)) => format!(
            "expected {} (median of {} close together), {} contaminated",
            Value::from(expected),
            count(times.in_cluster),
            percent(contaminated as f64 / times.n as f64)
        ),
        _ => "no cost to expect: they do not lie together".to_owned(),
    };
    let beyond = match times.beyond {
        0 => String::new(),
        beyond => format!("; {} beyond the axis", count(beyond)),
    };
    format!(
        "{}: n = {} ({}), fastest {}, {cost}{beyond}",
        panel.label,
        count(times.n),
        rate(per_second(times)),
        Value::from(times.shortest)
    )
}

fn per_second(times: &SwitchTimes) -> f64 {
    times.n as f64 * 1e9 / (times.over.0.max(1)) as f64
}

/// The numbers of `process_ctx`, a row for each panel.
pub(crate) fn table(panels: &[Panel], title: &str) -> Table {
    let head = ["switches", "n", "rate", "fastest", "expected", "mean", "longest", "contaminated"];
    let row = |Panel { label, times }: &Panel| {
        let absent = || ABSENT.to_owned();
        let share = |contaminated: u64| percent(contaminated as f64 / times.n.max(1) as f64);
        [
            label.clone(),
            count(times.n),
            rate(per_second(times)),
            Value::from(times.shortest).to_string(),
            Value::from(times.expected).to_string(),
            time(times.mean_ns),
            Value::from(times.longest).to_string(),
            times.contaminated.map_or_else(absent, share),
        ]
    };
    Table::new(title, &head).with(panels.iter().map(row))
}

#[cfg(test)]
pub(crate) mod tests {
    use whylate_model::{Hertz, Nanos};

    use super::*;
    use crate::execution::switch_times;
    use crate::execution::tests::turns;

    pub(crate) fn panel(label: &str) -> Panel {
        let times = switch_times(&turns(), Hertz(2e9)).unwrap().unwrap();
        Panel { label: label.to_owned(), times }
    }

    #[test]
    fn the_histogram_shows_cost_and_contamination() {
        let figure = figure(&[panel("involuntary"), panel("<b>")], "Context switches");
        insta::assert_snapshot!(figure.svg.replace("><", ">\n<"));
        let row = &figure.table.rows[0];
        assert_eq!(row[..4], ["involuntary", "499", "49.9/s", "1.5 µs"]);
        assert_eq!(row[4..], ["2.09 µs", "3.39 µs", "15.2 µs", "10%"]);
    }

    #[test]
    fn no_switch_and_no_cluster_are_said() {
        assert!(figure(&[], "t").svg.contains("no context switch"));
        let mut one = panel("a");
        (one.times.expected, one.times.contaminated) = (None, None);
        let figure = figure(&[one], "t");
        assert!(figure.svg.contains("no cost to expect") && !figure.svg.contains(">expected<"));
        assert_eq!(figure.table.rows[0][7], "–");
    }

    #[test]
    fn a_single_switch_is_seen_beside_a_million() {
        let mut one = panel("a");
        one.times.bins[1].count = 1_000_000;
        one.times.longest = Nanos(20_000);
        assert!(figure(&[one], "t").svg.contains("v1h"));
    }
}
