//! Gaps over time, one lane for each measuring thread.
//!
//! The upper part of a lane shows which share of each stretch of time was lost, by cause; all lanes
//! have one scale. The lower part is the gray-box map of Hourglass (Figure 3 of its paper): grey
//! where the thread ran, coloured where the longest gaps were.

use whylate_model::Nanos;

use super::axis::{Axis, share_label, time_label};
use super::path::Path;
use super::shares::{class, numbered};
use super::writer::{Svg, WIDTH};
use super::{Figure, Table};
use crate::terminal::percent;
use crate::timeline::{Lane, NAMED, NOT_ATTRIBUTED, OTHERS, SLOTS, Timeline};

const LEFT: f64 = 78.0;
const RIGHT: f64 = 628.0;
/// Columns of all lanes together: what a picture of some 50 kB can hold.
const MOST_COLUMNS: usize = 2_400;
/// Height of the upper part of a lane: of few lanes and of many.
const TALL: f64 = 56.0;
const LOW: f64 = 18.0;
/// Lanes from which on they are low.
const MANY: usize = 6;
/// Height of the lower part.
const STRIP: f64 = 12.0;
const SPACE: f64 = 16.0;
const ROW: f64 = 21.0;

/// The figure.
#[must_use]
pub fn figure(timeline: &Timeline, title: &str) -> Figure {
    let table = table(timeline, title);
    if timeline.lanes.is_empty() {
        let mut svg = Svg::new(60.0, title, "no gaps");
        let why = "Nothing to draw: no single gaps are stored in this run.";
        svg.words((WIDTH / 2.0, 34.0), "note mid", why);
        return Figure { svg: svg.finish(), table };
    }
    let columns = (MOST_COLUMNS / timeline.lanes.len()).clamp(75, 280);
    let coarse = timeline.coarsened(columns);
    let tall = if timeline.lanes.len() >= MANY { LOW } else { TALL };
    let lane_height = tall + STRIP + SPACE;
    let bottom = lane_height * timeline.lanes.len() as f64 + 4.0;
    let shown = slots(timeline);
    let height = bottom + 46.0 + ROW * shown.len().div_ceil(2) as f64;
    let mut svg = Svg::new(height, title, &describe(timeline));
    let (low, high) = coarse.span_ns();
    let x = Axis::linear((low, high), (LEFT, RIGHT));
    let full = coarse.largest_share();
    time_axis(&mut svg, &x, bottom);
    for (index, lane) in coarse.lanes.iter().enumerate() {
        let top = lane_height * index as f64 + 4.0;
        let y = Axis::linear((0.0, full), (top + tall, top));
        svg.open("g", &[]);
        head(&mut svg, lane, &y, full, index == 0 || tall > LOW);
        stacks(&mut svg, lane, &coarse, &x, &y);
        strip(&mut svg, timeline, index, &x, top + tall);
        svg.close();
    }
    legend(&mut svg, timeline, &shown, bottom + 46.0);
    Figure { svg: svg.finish(), table }
}

/// The colour of a slot; none for grey.
pub(crate) fn colour(slot: usize) -> Option<usize> {
    (slot < NAMED).then_some(slot)
}

/// The class of a slot: that of its colour, and two greys.
fn fill(slot: usize) -> String {
    if slot == NOT_ATTRIBUTED { "unnamed".to_owned() } else { class(colour(slot)) }
}

/// Slots with time in them.
fn slots(timeline: &Timeline) -> Vec<usize> {
    let lost = |slot: usize| timeline.lanes.iter().flat_map(|l| &l.cells).any(|c| c[slot] > 0.0);
    (0..SLOTS).filter(|slot| lost(*slot)).collect()
}

fn time_axis(svg: &mut Svg, x: &Axis, bottom: f64) {
    for (index, tick) in x.ticks(8).into_iter().enumerate() {
        svg.line("grid", (tick.at, 4.0), (tick.at, bottom - SPACE + 4.0));
        let class = if index % 2 == 1 { "tick mid minor" } else { "tick mid" };
        svg.words((tick.at, bottom + 6.0), class, &time_label(tick.value));
    }
    let middle = f64::midpoint(LEFT, RIGHT);
    svg.words((middle, bottom + 28.0), "label mid", "time since the clock's epoch");
}

fn head(svg: &mut Svg, lane: &Lane, y: &Axis, full: f64, scale: bool) {
    let (top, base) = (y.at(full), y.at(0.0));
    svg.words((4.0, base + STRIP - 1.0), "lane", &lane.label);
    if scale {
        svg.words((LEFT - 8.0, top + 9.0), "tick end", &rounded(full));
    }
    svg.line("grid", (LEFT, top), (RIGHT, top));
    svg.line("axis", (LEFT, base), (RIGHT, base));
}

/// A share with two digits at most: it labels a scale.
fn rounded(share: f64) -> String {
    let step = 10f64.powf((share.max(1e-12).log10() - 1.0).floor());
    share_label((share / step).round() * step)
}

/// The shares of each column, one cause upon the other, the first at the bottom.
fn stacks(svg: &mut Svg, lane: &Lane, timeline: &Timeline, x: &Axis, y: &Axis) {
    let (start, _) = timeline.span_ns();
    let width = timeline.bin_ns();
    let at = |bin: usize| x.at(start + bin as f64 * width);
    let base = y.at(0.0);
    // The whole stack is drawn in the colour of its top, and again without that: no seams.
    for slot in (0..SLOTS).rev() {
        if lane.cells.iter().all(|cell| cell[slot] <= 0.0) {
            continue;
        }
        let mut path = Path::default();
        path.move_to((at(0), base));
        for (bin, cell) in lane.cells.iter().enumerate() {
            let height = y.at(cell[..=slot].iter().sum::<f64>() / width);
            path.step_to((at(bin), height));
            path.step_to((at(bin + 1), height));
        }
        path.step_to((at(lane.cells.len()), base));
        path.close();
        svg.path(&fill(slot), path.as_str());
    }
}

/// The gray-box map.
fn strip(svg: &mut Svg, timeline: &Timeline, lane: usize, x: &Axis, top: f64) {
    let (low, high) = timeline.span_ns();
    svg.rect("ran", (x.at(low), top + 2.0), (x.at(high) - x.at(low), STRIP - 2.0));
    let mut paths: [Path; SLOTS] = std::array::from_fn(|_| Path::default());
    let mut ends = [f64::MIN; SLOTS];
    for gap in timeline.longest.iter().filter(|gap| gap.lane == lane) {
        let (from, to) = (x.at(gap.start_ns), x.at(gap.start_ns + gap.length_ns));
        let to = to.max(from + 0.6);
        // What lies on the pixel of the gap before it cannot be seen.
        if to > ends[gap.slot] + 0.5 {
            ends[gap.slot] = to;
            paths[gap.slot].rect((from, top + 2.0), (to - from, STRIP - 2.0));
        }
    }
    for (slot, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
        svg.path(&fill(slot), path.as_str());
    }
}

fn legend(svg: &mut Svg, timeline: &Timeline, shown: &[usize], top: f64) {
    for (index, &slot) in shown.iter().enumerate() {
        let x = LEFT - 70.0 + 316.0 * (index % 2) as f64;
        let y = top + ROW * ((index / 2) as f64 + 0.5);
        svg.rect(&fill(slot), (x, y - 6.0), (12.0, 12.0));
        let words = numbered(colour(slot), &timeline.names[slot]);
        svg.words((x + 20.0, y + 4.0), "legend", &words);
    }
}

fn describe(timeline: &Timeline) -> String {
    let lanes: Vec<String> = timeline
        .lanes
        .iter()
        .map(|lane| {
            let lost: f64 = lane.cells.iter().flatten().sum();
            format!("{}: {} lost", lane.label, Nanos(lost.round() as u64))
        })
        .collect();
    format!("{} gaps. {}", timeline.gaps, lanes.join("; "))
}

/// Lost time by thread and cause.
fn table(timeline: &Timeline, title: &str) -> Table {
    let shown = slots(timeline);
    let (low, high) = timeline.span_ns();
    let mut head = vec!["thread".to_owned(), "lost".to_owned(), "of elapsed".to_owned()];
    head.extend(shown.iter().map(|&slot| numbered(colour(slot), &timeline.names[slot])));
    let time = |ns: f64| Nanos(ns.round() as u64).to_string();
    let rows = timeline
        .lanes
        .iter()
        .map(|lane| {
            let of = |slot: usize| lane.cells.iter().map(|cell| cell[slot]).sum::<f64>();
            let all: f64 = (0..SLOTS).map(of).sum();
            let mut cells = vec![lane.label.clone(), time(all), percent(all / (high - low))];
            cells.extend(shown.iter().map(|slot| time(of(*slot))));
            cells
        })
        .collect();
    Table { caption: format!("{title}: lost time by thread and cause"), head, rows, left: vec![] }
}

const _: () = assert!(OTHERS + 1 == NOT_ATTRIBUTED && NOT_ATTRIBUTED + 1 == SLOTS);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Builder;
    use crate::timeline::tests::{gap, quiet};

    #[test]
    fn a_lane_shows_its_gaps_under_their_causes() {
        let mut builder = Builder::new(&quiet());
        builder.add(&gap(101_000, 50_000, Some("host")));
        builder.add(&gap(401_000, 20_000, Some("<b>thread")));
        builder.add(&gap(801_000, 5_000, None));
        let figure = figure(&builder.finish(), "Gaps over time");
        insta::assert_snapshot!(figure.svg.replace("><", ">\n<"));
        assert_eq!(figure.table.rows, [["CPU 1", "75.0us", "7.50%", "50.0us", "20.0us", "5.00us"]]);
    }

    #[test]
    fn ten_thousand_gaps_make_a_small_picture() {
        let mut run = quiet();
        run.gaps[0].end = whylate_model::Ticks(10_000_000_000);
        let mut builder = Builder::new(&run);
        for n in 0..100_000_u64 {
            let cause = format!("cause {}", n * 7 % 13);
            builder.add(&gap(2_000 + n * 90_000, 100 + n * n % 40_000, Some(&cause)));
        }
        let svg = figure(&builder.finish(), "").svg;
        assert!(svg.len() < 60_000, "{}", svg.len());
    }

    #[test]
    fn no_gaps_are_no_picture_and_a_quiet_run_is_an_empty_one() {
        let quiet_figure = figure(&Builder::new(&quiet()).finish(), "");
        assert!(quiet_figure.svg.contains("CPU 1"));
        let mut run = quiet();
        run.gaps.clear();
        let nothing = figure(&Builder::new(&run).finish(), "");
        assert!(nothing.svg.contains("Nothing to draw") && nothing.table.rows.is_empty());
    }
}
