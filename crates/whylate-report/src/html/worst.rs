//! The longest stalls with their parts and events.

use whylate_model::Ticks;
use whylate_model::cause::WorstGap;

use super::Report;
use super::events;
use crate::causes;
use crate::doc::{self, Block, Fold, Section, Table};
use crate::numbers::{Value, count, exact, instant};
use crate::svg::gap::{self, Mark, Picture};
use crate::svg::shares::numbered;
use crate::timeline::start_of;

/// Gaps that may have a picture.
const MOST_GAPS: usize = 64;
/// Parts and events shown of one gap.
const MOST_PARTS: usize = 48;
const MOST_EVENTS: usize = 48;
/// Bytes for single gaps with their parts and events: a quarter of the page.
const MOST_BYTES: usize = 120_000;

/// The section, and what the script draws on the timeline.
pub(super) struct All {
    pub(super) section: Option<Section>,
    pub(super) pictures: Vec<OnTimeline>,
}

/// A gap with its place on the timeline.
pub(super) struct OnTimeline {
    /// Which of the gaps shown.
    pub(super) index: usize,
    pub(super) lane: usize,
    pub(super) start_ns: f64,
    pub(super) picture: Picture,
}

pub(super) fn of(report: &Report) -> All {
    let run = report.run;
    let mut blocks = vec![Block::Table(causes::longest(run))];
    let mut pictures = Vec::new();
    let mut bytes = 0;
    for (index, gap) in run.worst.iter().take(MOST_GAPS).enumerate() {
        let picture = picture(report, index, gap);
        let (fold, taken) = detail(index, gap, &picture);
        bytes += taken;
        if bytes > MOST_BYTES && index > 0 {
            break;
        }
        let lane = run.gaps.iter().position(|gaps| gaps.cpu == gap.cpu_before);
        let lane = lane.and_then(|thread| {
            report.timeline.lanes.iter().position(|lane| usize::from(lane.thread) == thread)
        });
        if let Some(lane) = lane {
            let start_ns = since_start(report, gap.start);
            pictures.push(OnTimeline { index, lane, start_ns, picture });
        }
        blocks.push(Block::Fold(fold));
    }
    let more = run.worst.len() + 1 - blocks.len();
    if more > 0 {
        blocks.push(Block::How(format!("Parts and events of {more} more are in run.json.")));
    }
    let section = Section::new("worst", "The longest stalls", blocks);
    All { section: (!run.worst.is_empty()).then_some(section), pictures }
}

fn since_start(report: &Report, at: Ticks) -> f64 {
    at.since(start_of(report.run)).to_nanos(report.run.clock.hz).0 as f64
}

/// A gap with its picture, parts and events, and how many bytes of the page it takes.
fn detail(index: usize, gap: &WorstGap, picture: &Picture) -> (Fold, usize) {
    let mut parts =
        Table::new("Parts, in order", &["at", "length", "what", "sent by"]).words(&[2, 3]);
    for (part, drawn) in gap.parts.iter().zip(&picture.parts) {
        parts.row([
            exact(drawn.from_ns),
            exact(drawn.length_ns),
            numbered(drawn.colour, &drawn.label),
            part.sender.as_ref().map_or(String::new(), ToString::to_string),
        ]);
    }
    let mut events = Table::new("Events, in order", &["at", "CPU", "what"]).words(&[2]);
    for (event, mark) in gap.events.iter().zip(&picture.events) {
        events.row([exact(mark.at_ns), event.cpu.to_string(), mark.label.clone()]);
    }
    let missing = (gap.parts.len() - parts.rows.len(), gap.events.len() - events.rows.len());
    let how: Vec<String> = [evidence(gap)].into_iter().chain(left_out(missing)).collect();
    let svg = gap::svg(picture);
    let cells = |table: &Table| {
        table.rows.iter().flatten().map(|cell| cell.to_string().len() + 9).sum::<usize>()
    };
    let bytes = svg.len() * 3 / 2 + cells(&parts) + cells(&events);
    let drawn = doc::Picture::still(svg, &how.join(" "));
    let blocks = vec![Block::Figure(drawn), Block::Table(parts), Block::Table(events)];
    (Fold { heading: picture.title.clone(), gap: Some(index), blocks }, bytes)
}

/// What of a gap is not on the page; nothing where all is.
fn left_out((parts, events): (usize, usize)) -> Option<String> {
    let words = |count: usize, what: &str| match count {
        0 => None,
        1 => Some(format!("1 more {what}")),
        more => Some(format!("{more} more {what}s")),
    };
    let left: Vec<String> =
        [words(parts, "part"), words(events, "event")].into_iter().flatten().collect();
    match (left.len(), parts + events) {
        (0, _) => None,
        (_, 1) => Some(format!("{} is in run.json.", left[0])),
        _ => Some(format!("{} are in run.json.", left.join(" and "))),
    }
}

fn evidence(gap: &WorstGap) -> String {
    let switches = gap.involuntary_switches.map_or("not read".to_owned(), |n| count(n.into()));
    format!(
        "Strokes above the picture are events on this CPU, below it on others. The rseq word was {} \
         after the stall; involuntary switches: {switches}.",
        gap.rseq
    )
}

fn picture(report: &Report, index: usize, gap: &WorstGap) -> Picture {
    let hz = report.run.clock.hz;
    let offset = |at: Ticks| {
        let later = at.since(gap.start).to_nanos(hz).0 as f64;
        later - gap.start.since(at).to_nanos(hz).0 as f64
    };
    let parts = gap.parts.iter().take(MOST_PARTS).map(|part| {
        let label = part.cause.to_string();
        gap::Part {
            from_ns: offset(part.start),
            length_ns: part.length.to_nanos(hz).0 as f64,
            colour: report.timeline.slot_of(&label),
            label,
        }
    });
    let events = gap.events.iter().take(MOST_EVENTS).map(|event| Mark {
        at_ns: offset(event.ticks),
        label: events::describe(event),
        elsewhere: event.cpu != gap.cpu_before && event.cpu != gap.cpu_after,
    });
    Picture {
        title: format!(
            "Stall {}: {} on CPU {}, {}, at {}",
            index + 1,
            Value::from(gap.length),
            causes::cpus(gap),
            gap.cause,
            instant(gap.start.since(start_of(report.run)).to_nanos(report.run.clock.hz))
        ),
        length_ns: gap.length.0 as f64,
        parts: parts.collect(),
        events: events.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted_and_nothing_else_is_said() {
        let said = |left| left_out(left).unwrap_or_default();
        assert_eq!(said((0, 0)), "");
        assert_eq!(said((0, 34)), "34 more events are in run.json.");
        assert_eq!(said((1, 0)), "1 more part is in run.json.");
        assert_eq!(said((1, 2)), "1 more part and 2 more events are in run.json.");
    }
}
