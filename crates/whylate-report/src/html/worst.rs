//! The longest gaps with their parts and events.

use minijinja::Value;
use serde::Serialize;
use whylate_model::cause::{Cause, WorstGap};
use whylate_model::{Hertz, Ticks, TicksDelta};

use super::events;
use super::machine::time_of_day;
use super::template::raw;
use super::{Report, measured};
use crate::numbers::count;
use crate::svg::Table;
use crate::svg::gap::{self, Mark, Picture};
use crate::svg::shares::numbered;
use crate::timeline::start_of;

/// Rows of the table.
const MOST_GAPS: usize = 64;
/// Parts and events shown of one gap.
const MOST_PARTS: usize = 48;
const MOST_EVENTS: usize = 48;
/// Bytes for single gaps with their parts and events: a quarter of the page.
const MOST_BYTES: usize = 120_000;

/// The section of the page.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    table: Option<Table>,
    gaps: Vec<Detail>,
    /// Gaps without a picture of their own.
    more: usize,
}

/// One gap on the page.
#[derive(Debug, Serialize)]
struct Detail {
    heading: String,
    svg: Value,
    parts: Table,
    events: Table,
    left_out: Option<String>,
    evidence: String,
}

/// The section, and what the script draws on the timeline.
pub(super) struct All {
    pub(super) shown: Shown,
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
    let mut gaps = Vec::new();
    let mut pictures = Vec::new();
    let mut bytes = 0;
    for (index, gap) in run.worst.iter().take(MOST_GAPS).enumerate() {
        let detail = detail(report, index, gap);
        let cells = |table: &Table| table.rows.iter().flatten().map(|c| c.len() + 9).sum::<usize>();
        bytes += detail.0.svg.as_str().map_or(0, str::len) * 3 / 2;
        bytes += cells(&detail.0.parts) + cells(&detail.0.events);
        if bytes > MOST_BYTES && index > 0 {
            break;
        }
        let lane = run.gaps.iter().position(|gaps| gaps.cpu == gap.cpu_before);
        let lane = lane.and_then(|thread| {
            report.timeline.lanes.iter().position(|lane| usize::from(lane.thread) == thread)
        });
        if let Some(lane) = lane {
            let start_ns = since_start(report, gap.start);
            pictures.push(OnTimeline { index, lane, start_ns, picture: detail.1 });
        }
        gaps.push(detail.0);
    }
    let more = run.worst.len() - gaps.len();
    let table = (!run.worst.is_empty()).then(|| table(report));
    All { shown: Shown { table, gaps, more }, pictures }
}

fn table(report: &Report) -> Table {
    let head = ["", "at", "UTC", "length", "CPU", "cause", "parts"];
    let mut table = Table::new("Each with what its parts took, by cause", &head);
    table.left = vec![5, 6];
    let rows = report.run.worst.iter().enumerate().map(|(index, gap)| {
        let wall = report.run.clock.realtime_ns(gap.start);
        vec![
            (index + 1).to_string(),
            format!("{:.6}s", since_start(report, gap.start) / 1e9),
            wall.map_or("-".to_owned(), time_of_day),
            gap.length.to_string(),
            cpus(gap),
            cause(gap),
            parts(gap, report.run.clock.hz),
        ]
    });
    table.rows = measured::capped(rows.collect(), MOST_GAPS);
    table
}

pub(super) fn cause(gap: &WorstGap) -> String {
    match gap.rule {
        Some(rule) => format!("{} ({rule})", gap.cause),
        None => gap.cause.to_string(),
    }
}

/// The causes that took most of a gap, with what they took: `host 3.98ms in 2 parts`.
fn parts(gap: &WorstGap, hz: Hertz) -> String {
    let mut sums: Vec<(&Cause, TicksDelta, usize)> = Vec::new();
    for part in &gap.parts {
        match sums.iter_mut().find(|(cause, ..)| **cause == part.cause) {
            Some((_, length, times)) => {
                *length = *length + part.length;
                *times += 1;
            }
            None => sums.push((&part.cause, part.length, 1)),
        }
    }
    sums.sort_by_key(|(_, length, _)| std::cmp::Reverse(*length));
    let words = sums.iter().take(3).map(|(cause, length, times)| {
        let length = length.to_nanos(hz);
        if *times == 1 {
            format!("{cause} {length}")
        } else {
            format!("{cause} {length} in {times} parts")
        }
    });
    words.collect::<Vec<_>>().join(", ")
}

pub(super) fn cpus(gap: &WorstGap) -> String {
    if gap.cpu_before == gap.cpu_after {
        gap.cpu_before.to_string()
    } else {
        format!("{} to {}", gap.cpu_before, gap.cpu_after)
    }
}

fn since_start(report: &Report, at: Ticks) -> f64 {
    at.since(start_of(report.run)).to_nanos(report.run.clock.hz).0 as f64
}

fn detail(report: &Report, index: usize, gap: &WorstGap) -> (Detail, Picture) {
    let picture = picture(report, index, gap);
    let mut parts = Table::new("Parts, in order", &["at", "length", "what", "sent by"]);
    parts.left = vec![2, 3];
    parts.rows = gap
        .parts
        .iter()
        .zip(&picture.parts)
        .map(|(part, drawn)| {
            vec![
                nanos(drawn.from_ns),
                nanos(drawn.length_ns),
                numbered(drawn.colour, &drawn.label),
                part.sender.as_ref().map_or(String::new(), ToString::to_string),
            ]
        })
        .collect();
    let mut events = Table::new("Events, in order", &["at", "CPU", "what"]);
    events.left = vec![2];
    events.rows = gap
        .events
        .iter()
        .zip(&picture.events)
        .map(|(event, mark)| vec![nanos(mark.at_ns), event.cpu.to_string(), mark.label.clone()])
        .collect();
    let missing = (gap.parts.len() - parts.rows.len(), gap.events.len() - events.rows.len());
    let detail = Detail {
        heading: picture.title.clone(),
        svg: raw(&gap::svg(&picture)),
        parts,
        events,
        left_out: left_out(missing),
        evidence: evidence(gap),
    };
    (detail, picture)
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
         after the gap; involuntary switches: {switches}.",
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
            "Gap {}: {} on CPU {}, {}, at {:.6}s",
            index + 1,
            gap.length,
            cpus(gap),
            gap.cause,
            since_start(report, gap.start) / 1e9
        ),
        length_ns: gap.length.0 as f64,
        parts: parts.collect(),
        events: events.collect(),
    }
}

/// An offset in a gap, to the nanosecond; before the gap where it is negative.
fn nanos(ns: f64) -> String {
    let sign = if ns < 0.0 { "-" } else { "" };
    let shown = match ns.abs() {
        ..1e6 => format!("{:.3}us", ns.abs() / 1e3),
        _ => format!("{:.3}ms", ns.abs() / 1e6),
    };
    format!("{sign}{shown}")
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
