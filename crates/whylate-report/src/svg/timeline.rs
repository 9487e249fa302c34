//! Gaps over time, one lane for each measuring thread.
//!
//! The upper part of a lane shows which share of each stretch of time was lost, by cause; all lanes
//! have one scale. The lower part is the gray-box map of Hourglass (Figure 3 of its paper), with all
//! of the time as its height: a gap at least as wide as a column is a box of its own, shorter ones
//! fill the share of their column that they took, coloured by the cause that took most of it. What
//! is grey is time that the thread had: no gap is drawn wider than it was.

use super::Figure;
use super::axis::{Axis, below, share_label, time_label};
use super::path::Path;
use super::shares::{class, numbered};
use super::writer::{GLYPH, Svg, WIDTH};
use crate::doc::Table;
use crate::numbers::{self, percent};
use crate::timeline::{Lane, NAMED, NOT_ATTRIBUTED, OTHERS, SLOTS, Single, Timeline};

const LEFT: f64 = 78.0;
/// Half of a tick's label lies beyond it.
const RIGHT: f64 = 608.0;
/// Columns of all lanes together: what a picture of some 50 kB can hold.
const MOST_COLUMNS: usize = 2_400;
/// Height of the upper part of a lane: of few lanes and of many.
const TALL: f64 = 56.0;
const LOW: f64 = 18.0;
/// Lanes from which on they are low.
const MANY: usize = 6;
/// Height of the lower part.
const STRIP: f64 = 14.0;
/// Lower columns of it are not seen.
const LOWEST: f64 = 0.05;
const SPACE: f64 = 12.0;
/// Height of the name of a lane, above it.
const NAME: f64 = 22.0;
const ROW: f64 = 24.0;

/// The figure.
#[must_use]
pub fn figure(timeline: &Timeline, title: &str) -> Figure {
    let table = table(timeline, title);
    if timeline.lanes.is_empty() {
        let mut svg = Svg::new(60.0, title, "no stalls");
        let why = "Nothing to draw: no single stalls are stored in this run.";
        svg.words((WIDTH / 2.0, 34.0), "note mid", why);
        return Figure { svg: svg.finish(), table };
    }
    let columns = (MOST_COLUMNS / timeline.lanes.len()).clamp(75, 280);
    let coarse = timeline.coarsened(columns);
    let tall = if timeline.lanes.len() >= MANY { LOW } else { TALL };
    let lane_height = NAME + tall + STRIP + SPACE;
    let bottom = lane_height * timeline.lanes.len() as f64 + 4.0;
    let legend = Legend::of(timeline);
    let mut svg = Svg::new(bottom + 48.0 + legend.height(), title, &describe(timeline));
    let x = Axis::linear((0.0, coarse.length_ns()), (LEFT, RIGHT));
    let full = coarse.largest_share();
    time_axis(&mut svg, &x, bottom, timeline.time_label());
    for (index, lane) in coarse.lanes.iter().enumerate() {
        let top = lane_height * index as f64 + NAME;
        let y = Axis::linear((0.0, full), (top + tall, top));
        svg.open("g", &[]);
        head(&mut svg, lane, &y, full, index == 0 || tall > LOW);
        stacks(&mut svg, lane, &coarse, &x, &y);
        Strip { coarse: &coarse, x: &x, top: top + tall + 2.0 }.draw(&mut svg, timeline, index);
        svg.close();
    }
    legend.draw(&mut svg, timeline, bottom + 48.0);
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

fn time_axis(svg: &mut Svg, x: &Axis, bottom: f64, label: &str) {
    below(svg, &x.ticks(8), Some((NAME, bottom - SPACE + 4.0)), bottom + 6.0, time_label);
    let middle = f64::midpoint(LEFT, RIGHT);
    svg.words((middle, bottom + 30.0), "label mid", label);
}

fn head(svg: &mut Svg, lane: &Lane, y: &Axis, full: f64, scale: bool) {
    let (top, base) = (y.at(full), y.at(0.0));
    svg.words((LEFT, top - 5.0), "lane", &lane.label);
    if scale && full > 0.0 {
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
    let width = timeline.bin_ns();
    let at = |bin: usize| x.at(bin as f64 * width);
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

/// The gray-box map of one lane.
struct Strip<'a> {
    /// A bin is a column.
    coarse: &'a Timeline,
    x: &'a Axis,
    top: f64,
}

impl Strip<'_> {
    const HEIGHT: f64 = STRIP - 2.0;

    fn draw(&self, svg: &mut Svg, timeline: &Timeline, lane: usize) {
        let end = self.x.at(self.coarse.length_ns());
        svg.rect("ran", (LEFT, self.top), (end - LEFT, Self::HEIGHT));
        let wide: Vec<&Single> = timeline
            .longest
            .iter()
            .filter(|gap| gap.lane == lane && gap.length_ns >= self.coarse.bin_ns())
            .collect();
        let mut paths: [Path; SLOTS] = std::array::from_fn(|_| Path::default());
        self.columns(&mut paths, &self.without(lane, &wide));
        for gap in wide {
            let (from, to) = (self.x.at(gap.start_ns), self.x.at(gap.start_ns + gap.length_ns));
            paths[gap.slot].rect((from, self.top), (to - from, Self::HEIGHT));
        }
        for (slot, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
            svg.path(&fill(slot), path.as_str());
        }
    }

    /// The lane's columns less the gaps that are drawn by themselves.
    fn without(&self, lane: usize, wide: &[&Single]) -> Vec<[f64; SLOTS]> {
        let mut cells = self.coarse.lanes[lane].cells.clone();
        let width = self.coarse.bin_ns();
        for gap in wide {
            let (mut at, end) = (gap.start_ns, gap.start_ns + gap.length_ns);
            while at < end {
                let bin = (at / width) as usize;
                let Some(cell) = cells.get_mut(bin) else { break };
                let next = ((bin + 1) as f64 * width).min(end);
                // Where rounding keeps a step from going on, nothing is left to take away.
                if next <= at {
                    break;
                }
                cell[gap.slot] = (cell[gap.slot] - (next - at)).max(0.0);
                at = next;
            }
        }
        cells
    }

    /// Each column filled to its share of lost time, from the bottom.
    fn columns(&self, paths: &mut [Path; SLOTS], cells: &[[f64; SLOTS]]) {
        let width = self.coarse.bin_ns();
        for (bin, cell) in cells.iter().enumerate() {
            let height = (cell.iter().sum::<f64>() / width).min(1.0) * Self::HEIGHT;
            let most = (0..SLOTS).max_by(|a, b| cell[*a].total_cmp(&cell[*b]));
            let (Some(most), true) = (most, height >= LOWEST) else { continue };
            let (from, to) = (self.x.at(bin as f64 * width), self.x.at((bin + 1) as f64 * width));
            let top = self.top + Self::HEIGHT - height;
            paths[most].rect((from, top), (to - from, height));
        }
    }
}

/// Slots with time in them, in two columns of words where they are short.
struct Legend {
    shown: Vec<usize>,
    columns: usize,
}

impl Legend {
    fn of(timeline: &Timeline) -> Self {
        let shown = slots(timeline);
        let room = ((WIDTH / 2.0 - 32.0) / GLYPH) as usize;
        let short = |slot: &usize| timeline.names[*slot].chars().count() + 4 <= room;
        let columns = if shown.iter().all(short) { 2 } else { 1 };
        Self { shown, columns }
    }

    fn height(&self) -> f64 {
        ROW * self.shown.len().div_ceil(self.columns) as f64
    }

    fn draw(&self, svg: &mut Svg, timeline: &Timeline, top: f64) {
        for (index, &slot) in self.shown.iter().enumerate() {
            let x = 8.0 + WIDTH / 2.0 * (index % self.columns) as f64;
            let y = top + ROW * ((index / self.columns) as f64 + 0.5);
            svg.rect(&fill(slot), (x, y - 6.0), (12.0, 12.0));
            let words = numbered(colour(slot), &timeline.names[slot]);
            svg.words((x + 20.0, y + 4.0), "legend", &words);
        }
    }
}

fn describe(timeline: &Timeline) -> String {
    let lanes: Vec<String> = timeline
        .lanes
        .iter()
        .map(|lane| {
            let lost: f64 = lane.cells.iter().flatten().sum();
            format!("{}: {} lost", lane.label, numbers::time(lost))
        })
        .collect();
    format!("{} stalls. {}", timeline.gaps, lanes.join("; "))
}

/// Lost time by thread and cause.
fn table(timeline: &Timeline, title: &str) -> Table {
    let shown = slots(timeline);
    let time = |ns: f64| numbers::time(ns.round());
    let row = |lane: &Lane| {
        let of = |slot: usize| lane.cells.iter().map(|cell| cell[slot]).sum::<f64>();
        let all: f64 = (0..SLOTS).map(of).sum();
        let of_elapsed = percent(all / timeline.length_ns());
        let mut cells = vec![lane.label.clone(), time(all), of_elapsed];
        cells.extend(shown.iter().map(|slot| time(of(*slot))));
        cells
    };
    let caption = format!("{title}: lost time by thread and cause");
    let causes = shown.iter().map(|&slot| numbered(colour(slot), &timeline.names[slot]));
    let table = Table::new(caption, &["thread", "lost", "of elapsed"])
        .columns(causes)
        .with(timeline.lanes.iter().map(row));
    // Few threads with many causes are columns rather than rows.
    if table.rows.len() < shown.len() { table.transposed() } else { table }
}

const _: () = assert!(OTHERS + 1 == NOT_ATTRIBUTED && NOT_ATTRIBUTED + 1 == SLOTS);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::tests::{add, gap, quiet};
    use crate::timeline::{Builder, Start};

    #[test]
    fn a_lane_shows_its_gaps_under_their_causes() {
        let mut builder = Builder::new(&quiet(), Start::OfAll);
        add(&mut builder, &gap(101_000, 50_000, Some("host")));
        add(&mut builder, &gap(401_000, 20_000, Some("<b>thread")));
        add(&mut builder, &gap(801_000, 5_000, None));
        let figure = figure(&builder.finish(), "Stalls over time");
        insta::assert_snapshot!(figure.svg.replace("><", ">\n<"));
        let texts = figure.table.texts();
        assert_eq!(texts[0], ["", "CPU 1"]);
        let first: Vec<&str> = texts[1..].iter().map(|row| row[1].as_str()).collect();
        assert_eq!(first, ["75 µs", "7.5%", "50 µs", "20 µs", "5 µs"]);
    }

    /// The boxes of the strip by their class: x, width and height.
    fn boxes(timeline: &Timeline) -> Vec<(String, f64, f64, f64)> {
        let mut svg = Svg::new(20.0, "", "");
        let coarse = timeline.coarsened(280);
        let x = Axis::linear((0.0, coarse.length_ns()), (LEFT, RIGHT));
        Strip { coarse: &coarse, x: &x, top: 0.0 }.draw(&mut svg, timeline, 0);
        let svg = svg.finish();
        let paths = svg.split("<path class=\"").skip(1).map(|path| path.split('"'));
        paths
            .flat_map(|mut path| {
                let class = path.next().unwrap().to_owned();
                let boxes: Vec<_> = path.nth(1).unwrap().split('M').skip(1).collect();
                boxes.into_iter().map(move |b| {
                    let (at, size) = b.split_once('h').unwrap();
                    let (width, rest) = size.split_once('v').unwrap();
                    let x = at.split(' ').next().unwrap().parse().unwrap();
                    let height = rest.split('h').next().unwrap().parse().unwrap();
                    (class.clone(), x, width.parse().unwrap(), height)
                })
            })
            .collect()
    }

    #[test]
    fn short_gaps_fill_their_share_of_a_column_and_never_hide_that_the_thread_ran() {
        let mut builder = Builder::new(&quiet(), Start::OfAll);
        // 1 % of the time in gaps of 10 ns, each in a column with others.
        for n in 0..1_000_u64 {
            add(&mut builder, &gap(1_000 + n * 1_000, 10, Some("host")));
        }
        let boxes = boxes(&builder.finish());
        assert!(boxes.len() > 100, "{}", boxes.len());
        assert!(boxes.iter().all(|(_, _, _, height)| *height <= 0.2), "{boxes:?}");
    }

    #[test]
    fn a_column_has_the_colour_of_what_took_most_of_its_time_and_a_long_gap_its_own_box() {
        let mut builder = Builder::new(&quiet(), Start::OfAll);
        add(&mut builder, &gap(11_000, 900, Some("long")));
        for n in 0..20_u64 {
            add(&mut builder, &gap(12_000 + n * 20, 5, Some("short")));
        }
        add(&mut builder, &gap(501_000, 100_000, Some("wide")));
        let boxes = boxes(&builder.finish());
        let classes: Vec<&str> = boxes.iter().map(|(class, ..)| class.as_str()).collect();
        assert_eq!(classes, ["f0", "f2"], "{boxes:?}");
        let (_, x, width, height) = &boxes[1];
        assert!((x - 343.0).abs() < 0.11 && (width - 53.0).abs() < 0.11, "{boxes:?}");
        assert!((height - Strip::HEIGHT).abs() < 1e-9 && boxes[0].3 < height / 2.0, "{boxes:?}");
    }

    #[test]
    fn ten_thousand_gaps_make_a_small_picture() {
        let mut run = quiet();
        run.gaps[0].end = whylate_model::Ticks(10_000_000_000);
        let mut builder = Builder::new(&run, Start::OfAll);
        for n in 0..100_000_u64 {
            let cause = format!("cause {}", n * 7 % 13);
            add(&mut builder, &gap(2_000 + n * 90_000, 100 + n * n % 40_000, Some(&cause)));
        }
        let svg = figure(&builder.finish(), "").svg;
        assert!(svg.len() < 60_000, "{}", svg.len());
    }

    #[test]
    fn no_gaps_are_no_picture_and_a_quiet_run_is_an_empty_one() {
        let quiet_figure = figure(&Builder::new(&quiet(), Start::OfAll).finish(), "");
        assert!(quiet_figure.svg.contains("CPU 1"));
        let mut run = quiet();
        run.gaps.clear();
        let nothing = figure(&Builder::new(&run, Start::OfAll).finish(), "");
        assert!(nothing.svg.contains("Nothing to draw") && nothing.table.rows.is_empty());
    }
}
