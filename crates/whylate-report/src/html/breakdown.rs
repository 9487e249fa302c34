//! Where requests spent their time, drawn: stacked bars, and slow requests one by one.

use whylate_model::breakdown::{Beside, Breakdown, Journey, Leg, Part, Point, Station};
use whylate_model::event::EventKind;
use whylate_model::run::Run;
use whylate_model::tail::End;
use whylate_model::{Hertz, Ticks};

use super::events;
use crate::breakdown::{self, Pictures, Taken};
use crate::doc::{self, Block, Fold, Table};
use crate::numbers::{Value, count};
use crate::svg::Figure;
use crate::svg::composition::{self, Bar, Piece};
use crate::svg::journey::{self, Mark, Picture};

/// Requests drawn in a section, and events of one.
const MOST_JOURNEYS: usize = 8;
const MOST_EVENTS: usize = 64;
/// Lanes of the picture of a request.
const CLIENT: usize = 0;
const NETWORK: usize = 1;
const SERVER: usize = 2;

/// How the pictures are to be read.
const PICTURES: &str = "Strokes below a lane are events of the kernel, on the CPUs of that end where it \
     is known; softirqs stand with the network.";

/// The pictures of what was taken apart.
pub(super) fn pictures(taken: &Taken) -> Pictures {
    let of = taken.of;
    let journeys = of.slowest.iter().take(MOST_JOURNEYS);
    Pictures {
        bars: (of.requests > 0).then(|| bars(taken).svg),
        journeys: journeys.map(|journey| detail(of, journey, taken.rate)).collect(),
    }
}

/// What requests consist of, flow by flow, as bars; none of a run whose requests were not taken apart.
pub(super) fn figures(run: &Run) -> Vec<Figure> {
    let all = breakdown::of_run(run);
    all.iter().filter(|taken| taken.of.requests > 0).map(bars).collect()
}

/// What all requests and the slow ones consist of.
fn bars(taken: &Taken) -> Figure {
    let of = taken.of;
    let colours = breakdown::colours(of);
    let bar = |label: String, all: &whylate_model::breakdown::Composition| Bar {
        label,
        total_ns: all.total_mean_ns,
        pieces: all
            .parts
            .iter()
            .map(|share| Piece {
                label: breakdown::part_words(of, share.part),
                ns: share.mean_ns,
                colour: colour(&colours, share.part),
            })
            .collect(),
    };
    let mut all = vec![bar(format!("all {}", count(of.all.requests)), &of.all)];
    all.extend(of.slow.iter().map(|slow| {
        let label = format!(
            "{} slow, from {} on",
            count(slow.composition.requests),
            Value::from(slow.from)
        );
        bar(label, &slow.composition)
    }));
    composition::figure(&all, &taken.heading, breakdown::parts(taken))
}

fn colour(colours: &[(Part, Option<usize>)], part: Part) -> Option<usize> {
    colours.iter().find(|(of, _)| *of == part).and_then(|(_, colour)| *colour)
}

fn detail(of: &Breakdown, journey: &Journey, rate: Hertz) -> Block {
    let picture = picture(of, journey, rate);
    let mut events = Table::new("Events, in order", &["at", "CPU", "what"]).words(&[2]);
    for (beside, mark) in journey.beside.iter().zip(&picture.events) {
        events.row([
            Value::Time(mark.at_ns),
            beside.event.cpu.to_string().into(),
            mark.label.as_str().into(),
        ]);
    }
    let more = journey.events_left_out + journey.beside.len().saturating_sub(MOST_EVENTS) as u64;
    let left_out = left_out(more, journey.events_gone);
    let how = [Some(PICTURES.to_owned()), left_out].into_iter().flatten().collect::<Vec<_>>();
    Block::Fold(Fold {
        heading: picture.title.clone(),
        gap: None,
        blocks: vec![
            Block::Figure(doc::Picture::still(journey::svg(&picture), &how.join(" "))),
            Block::Table(breakdown::journey(journey, rate)),
            Block::Table(events),
        ],
    })
}

/// What a request's table of events lacks; none where it has all of them.
fn left_out(more: u64, gone: bool) -> Option<String> {
    let more = (more > 0)
        .then(|| format!("{} more events, with which shorter stretches began.", count(more)));
    let gone =
        gone.then(|| "Others may have been thrown away before it was known to be slow.".to_owned());
    let all: Vec<String> = more.into_iter().chain(gone).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

/// A request as it is drawn.
fn picture(of: &Breakdown, journey: &Journey, rate: Hertz) -> Picture {
    let begin = breakdown::began(journey);
    let since = |at: Ticks| at.since(begin).to_nanos(rate).0 as f64;
    let colours = breakdown::colours(of);
    let parts: Vec<journey::Part> = journey
        .passed
        .windows(2)
        .filter_map(|pair| {
            let [from, to] = pair else { return None };
            let part = Part { from: from.point, to: to.point };
            Some(journey::Part {
                lane: lane(part),
                from_ns: since(from.at),
                length_ns: to.at.since(from.at).to_nanos(rate).0 as f64,
                label: part.words(),
                colour: colour(&colours, part),
            })
        })
        .collect();
    let mark = |beside: &Beside| Mark {
        lane: lane_of_event(beside),
        at_ns: since(beside.event.ticks),
        label: events::describe(&beside.event),
    };
    let last = journey.passed.iter().map(|passed| passed.at).max().unwrap_or_default();
    Picture {
        title: breakdown::heading(journey, rate),
        length_ns: since(last),
        parts,
        events: journey.beside.iter().take(MOST_EVENTS).map(mark).collect(),
    }
}

/// Where a part's time is spent: at the sender until the driver has the message, on the network until
/// it is delivered, at the reader from then on. What reaches over two of them is the network's.
fn lane(part: Part) -> usize {
    let Part { from, to } = part;
    let (sender, reader) = match from.leg {
        Leg::Request => (CLIENT, SERVER),
        Leg::Reply => (SERVER, CLIENT),
    };
    let at_sender = Point { leg: from.leg, station: Station::Driver };
    let delivered = Point { leg: from.leg, station: Station::Delivered };
    match () {
        () if to <= at_sender => sender,
        () if from >= delivered => reader,
        () => NETWORK,
    }
}

fn lane_of_event(beside: &Beside) -> usize {
    let softirq =
        matches!(beside.event.kind, EventKind::SoftirqEntry { .. } | EventKind::SoftirqExit { .. });
    match beside.end {
        Some(End::Client) if !softirq => CLIENT,
        Some(End::Other) if !softirq => SERVER,
        _ => NETWORK,
    }
}

#[cfg(test)]
mod tests {
    use whylate_model::directory::RunDir;

    use super::*;
    use crate::breakdown::tests::{planted, run, watching};

    fn page(run: &Run) -> String {
        let home = tempfile::tempdir().unwrap();
        let directory = RunDir::create(home.path().join("run")).unwrap();
        super::super::render(&directory, run)
    }

    #[test]
    fn the_page_has_bars_tables_and_the_slowest_request_with_its_events() {
        let page = page(&run(planted(2_000)));
        for part in [
            "id=\"breakdown\"",
            "Where requests spent their time: rtt",
            "the server: 5 µs, 50%",
            "2 slow, from 90 µs on",
            "never came: request wire out (card)",
            "Sent to stamped, beside the way",
            "The same point by two sources",
            "What looking costs, over 12 rounds",
            "network and softirq",
            "softirq net_rx begins",
            "2 more events",
            "thrown away before it was known to be slow",
        ] {
            assert!(page.contains(part), "{part} is missing");
        }
        assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    }

    #[test]
    fn what_a_slow_request_lacks_is_said_and_nothing_else_is() {
        assert_eq!(left_out(0, false), None);
        let (more, gone) = (left_out(3, false).unwrap(), left_out(0, true).unwrap());
        assert!(
            more.starts_with("3 more events") && gone.starts_with("Others may"),
            "{more} {gone}"
        );
        assert_eq!(left_out(3, true), Some(format!("{more} {gone}")));
    }

    #[test]
    fn a_watched_process_has_a_section_and_a_run_without_has_none() {
        let watched = page(&watching(planted(2_000)));
        assert!(watched.contains("(77), port 7000") && !watched.contains('\u{1b}'));
        let mut plain = run(planted(10));
        plain.flows[0].breakdown = None;
        assert!(!page(&plain).contains("id=\"breakdown\""));
    }

    #[test]
    fn each_part_lies_in_the_lane_where_its_time_is_spent() {
        let there = |from, to| Part { from: Point::there(from), to: Point::there(to) };
        let back = |from, to| Part { from: Point::back(from), to: Point::back(to) };
        let server = Part { from: Point::there(Station::Read), to: Point::back(Station::Sent) };
        for (part, wanted) in [
            (there(Station::Sent, Station::Queued), CLIENT),
            (there(Station::Queued, Station::Driver), CLIENT),
            (there(Station::Driver, Station::Arrived), NETWORK),
            (there(Station::Arrived, Station::Delivered), NETWORK),
            (there(Station::Sent, Station::Read), NETWORK),
            (there(Station::Delivered, Station::Woken), SERVER),
            (server, SERVER),
            (back(Station::Sent, Station::Driver), SERVER),
            (back(Station::Arrived, Station::Delivered), NETWORK),
            (back(Station::Running, Station::Read), CLIENT),
        ] {
            assert_eq!(lane(part), wanted, "{part}");
        }
    }
}
