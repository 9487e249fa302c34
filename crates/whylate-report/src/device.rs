//! What a box does to latency.

mod captured;
mod configured;
mod section;
mod throughput;

use whylate_model::device::{
    BoundsAtPercent, Device, DeviceAtSize, FanIn, FanInShare, Forwarding, ForwardingKind,
    PacketPoint,
};
use whylate_model::flow::Direction;

use crate::calibration::quantile;
use crate::doc::Table;
use crate::numbers::{ABSENT, Cell, Value, count, number, percent, rate, with_ends};
use crate::spans::{Sentence, sentence};
use crate::svg::bounds::{Band, Bound, Known};
use crate::trusted::marked;

pub(crate) use captured::came_and_lost;
use captured::{captured_ways, captures};
use configured::{BOUGHT, bought, configured};
pub(crate) use section::{figure, section};
use throughput::{CARRIED, carried};

/// How the bounds are to be read.
const BOUNDS: &str = "Time in the box lies between the two, all of them together with 95% confidence, \
     however the client's own part E depends on it: not above what was measured less the smallest E, and not \
     below a lower percentile of what was measured less a higher one of E, the best of those tried. A box that \
     keeps a log of its own stands below its bounds: it is inside, or marked. Unknown: no bound is better than \
     nothing and all that was measured.";
/// What stands where a part was judged, and may be nothing or all of it.
pub(crate) const UNKNOWN: &str = "unknown";
/// How frames offered by several ports shared one.
const SHARES: &str = "Share: of the frames that came. Fairness is Jain's index: 1 when all got the \
     same, one over the number of ports when one got everything.";

const PERCENTS: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// The title of the section.
pub(crate) fn title(of: &Device) -> String {
    format!("What {} does to latency", of.name)
}

fn fair(of: &FanIn) -> Sentence {
    sentence!["the fairness is ", Cell::from(of.fairness().map(Value::Ratio)), "."]
}

/// Who measured what, by which way.
fn circumstances(of: &Device) -> Vec<String> {
    let mut said = vec![format!("{}; measured by {}", of.description, of.backend)];
    match &of.error {
        // Captures have no client.
        None if of.captures.is_some() => {}
        None => {
            said.push(
                "what the client adds was not measured: there are no lower bounds".to_owned(),
            );
        }
        Some(error) => {
            said.push(format!(
                "E, what the client and its way add: percentiles {}, the smallest {}",
                error.quantiles_by, error.least_by
            ));
            if let Some(unfit) = &error.unfit {
                said.push(format!("no bounds where rates lie more than 1 % apart: {unfit}"));
            }
        }
    }
    said.extend(points(of));
    said.extend(of.notes.iter().cloned());
    said
}

/// Which points of a packet the latencies are between; one sentence for each way of counting.
fn points(of: &Device) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    for one in &of.sizes {
        let point = in_words(one.point);
        let text = format!("latency from {} to {}; {point}", one.from, one.to);
        if !said.contains(&text) {
            said.push(text);
        }
    }
    said
}

/// Which points of a packet a latency is between.
fn in_words(point: PacketPoint) -> &'static str {
    match point {
        PacketPoint::EndToEnd => {
            "end of the packet to its end: the time on the link into the box is not in it"
        }
        PacketPoint::StartToStart => {
            "start of the packet to its start: the time on the link is in it once for each store"
        }
        PacketPoint::EndToStart => {
            "end of the packet in to its start out: below zero for cut-through"
        }
        PacketPoint::StartToEnd => "start of the packet in to its end out",
        PacketPoint::Unknown => "nobody knows which point of the packet the stamps are of",
    }
}

/// Latency, rate and loss, a row for each size, direction and configuration.
pub(crate) fn latencies(of: &Device) -> Table {
    let head = ["", "rate", "L2 Mbit/s", "lost", "n", "p50", "p99", "p99.9"];
    let row = |one: &DeviceAtSize| {
        vec![
            name(one),
            rate(one.achieved_pps),
            number(one.l2_bits_per_second() / 1e6),
            one.loss().map_or(ABSENT.to_owned(), percent),
            count(one.n),
            measured(one, 50.0),
            measured(one, 99.0),
            measured(one, 99.9),
        ]
    };
    Table::new("Latency through it", &head).with(of.sizes.iter().map(row))
}

/// What was measured at a percentile, marked where it lies beyond what may be trusted.
fn measured(of: &DeviceAtSize, percent: f64) -> String {
    marked(quantile(&of.measured, percent), of.is_beyond(percent))
}

/// Bounds of the time in the box, its own log below each row where it keeps one; none without any.
fn bounds(of: &Device) -> Option<Table> {
    let names = PERCENTS.iter().map(|percent| format!("p{percent}"));
    let mut table = Table::new("Time in the box", &[""]).columns(names);
    for one in of.sizes.iter().filter(|one| !one.bounds.is_empty()) {
        let mut cells = vec![name(one)];
        cells.extend(PERCENTS.iter().map(|percent| bounded(one.bound(*percent)).to_string()));
        table.row(cells);
        if let Some(log) = &one.residence {
            let mut cells = vec![format!("  its log, n = {}", count(log.n))];
            cells.extend(PERCENTS.iter().map(|percent| logged(one, *percent)));
            table.row(cells);
        }
    }
    table.filled()
}

/// What the box's own log says at a percentile; marked where it lies outside the bounds.
fn logged(of: &DeviceAtSize, percent: f64) -> String {
    let shown =
        of.residence.as_ref().map_or(ABSENT.to_owned(), |log| quantile(&log.quantiles, percent));
    if of.contained(percent) == Some(false) { format!("{shown} OUTSIDE") } else { shown }
}

/// How many bounds hold what the box's log says, where it keeps one; and why bounds are missing.
fn checked(of: &Device) -> Vec<String> {
    let mut said = Vec::new();
    let all = of.sizes.iter().flat_map(|one| PERCENTS.map(|percent| one.contained(percent)));
    let judged: Vec<bool> = all.flatten().collect();
    if !judged.is_empty() {
        let inside = judged.iter().filter(|inside| **inside).count();
        said.push(format!(
            "{inside} of {} bounds hold what the box itself wrote down",
            judged.len()
        ));
    }
    let logs = of.sizes.iter().filter_map(|one| one.residence.as_ref());
    let mut by: Vec<String> = logs.map(|log| format!("its log: {}", log.by)).collect();
    by.dedup();
    said.extend(by);
    for one in &of.sizes {
        if let Some(why) = &one.no_bounds {
            said.push(format!("{}: {}", name(one), why));
        }
    }
    said
}

/// Store-and-forward or cut-through; none where that was not asked.
fn forwarding(of: &Device) -> Option<Table> {
    let head = ["", "ns for a byte", "95% interval", "the link's", "it is"];
    let row = |one: &Forwarding| {
        let slope = one.slope.as_ref();
        let ends = slope.and_then(|of| of.low.zip(of.high));
        let ends = ends.map(|(low, high)| (Value::Ratio(low), Value::Ratio(high)));
        let [value, ends] = with_ends(slope.map(|of| Value::Ratio(of.value)).into(), ends);
        vec![
            way(one.configuration.as_deref(), one.direction),
            value,
            ends,
            Value::from(one.link_bps.map(|bps| Value::Ratio(8e9 / bps))).to_string(),
            words(one.kind).to_owned(),
        ]
    };
    Table::new("Does it wait for the whole frame?", &head)
        .words(&[4])
        .with(of.forwarding.iter().map(row))
        .filled()
}

/// Why it is taken for what it is.
fn reasons(of: &Device) -> Vec<String> {
    let said = |one: &Forwarding| {
        let way = way(one.configuration.as_deref(), one.direction);
        format!("{way}: {}", one.why)
    };
    of.forwarding.iter().map(said).collect()
}

pub(crate) fn words(kind: ForwardingKind) -> &'static str {
    match kind {
        ForwardingKind::StoreAndForward => "store-and-forward",
        ForwardingKind::CutThrough => "cut-through",
        ForwardingKind::NotTold => "not told",
    }
}

/// What each of several ports got of one, a table for each set of ports.
fn fan_in(of: &Device) -> Vec<Table> {
    of.fan_in.iter().map(fan_in_table).collect()
}

fn fan_in_table(of: &FanIn) -> Table {
    let caption = format!(
        "{} ports into {}{}, each offering {}: {}",
        of.sources.len(),
        of.to,
        of.takes.as_ref().map_or(String::new(), |takes| format!(" ({takes})")),
        rate(of.offered_pps),
        fair(of).without_stop()
    );
    let row = |one: &FanInShare| {
        // A share of nothing is none.
        let share = Value::from((of.received > 0).then_some(Value::Share(one.share)));
        let ends = one.low.zip(one.high);
        let ends = ends.map(|(low, high)| (Value::Share(low), Value::Share(high)));
        let [share, ends] = with_ends(share, ends);
        vec![one.from.clone(), count(one.sent), count(one.received), share, ends]
    };
    Table::new(caption, &["from", "sent", "came", "share", "95% interval"])
        .with(of.sources.iter().map(row))
}

/// What is drawn of a size.
fn band(of: &DeviceAtSize) -> Band {
    let known = |of: &[whylate_model::series::Quantile]| -> Vec<Known> {
        let one = |of: &whylate_model::series::Quantile| {
            Some(Known { percent: of.percent, ns: of.value?.0 as f64 })
        };
        of.iter().filter_map(one).collect()
    };
    let drawn = |one: &BoundsAtPercent| {
        let of = of.bound(one.percent)?;
        Some(Bound { percent: of.percent, low: of.low_ns, high: of.high_ns })
    };
    Band {
        name: name(of),
        n: of.n,
        measured: known(&of.measured),
        bounds: of.bounds.iter().filter_map(drawn).collect(),
        logged: of.residence.as_ref().map_or(Vec::new(), |log| known(&log.quantiles)),
    }
}

/// What a row is called: `64 B outbound, local`.
pub(crate) fn name(of: &DeviceAtSize) -> String {
    format!("{} B {}", of.frame_bytes, way(of.configuration.as_deref(), of.direction))
}

fn way(configuration: Option<&str>, direction: Direction) -> String {
    let way = direction.name();
    configuration.map_or(way.to_owned(), |name| format!("{way}, {name}"))
}

/// Both bounds; of what was judged and has none that it is not known.
pub(crate) fn bounded(of: Option<BoundsAtPercent>) -> Cell {
    match of {
        None => Value::Absent.into(),
        Some(BoundsAtPercent { low_ns: None, high_ns: None, .. }) => UNKNOWN.into(),
        Some(BoundsAtPercent { low_ns, high_ns, .. }) => {
            let time = |ns: Option<f64>| ns.map_or(Value::Absent, Value::Time);
            Cell::from(Value::Absent).within(Some((time(low_ns), time(high_ns)))).ends().bounding()
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use whylate_model::Nanos;
    use whylate_model::calibration::Slope;
    use whylate_model::device::{ErrorSource, ResidenceLog};
    use whylate_model::series::Quantile;

    use super::*;
    use crate::doc::Block;

    fn answer(of: &Device) -> String {
        crate::answer(&whylate_model::run::Run {
            device: Some(Box::new(of.clone())),
            gaps: Vec::new(),
            ..crate::timeline::tests::recorded()
        })
    }

    fn quantiles(values: &[(f64, u64)]) -> Vec<Quantile> {
        let one = |(percent, ns): &(f64, u64)| Quantile {
            percent: *percent,
            value: Some(Nanos(*ns)),
            low: Some(Nanos(ns - 10)),
            high: Some(Nanos(ns + 10)),
            n_eff: 1e5,
        };
        values.iter().map(one).collect()
    }

    pub(crate) fn at_size() -> DeviceAtSize {
        let bound = |percent, low_ns, high_ns| BoundsAtPercent { percent, low_ns, high_ns };
        DeviceAtSize {
            configuration: Some("local".to_owned()),
            direction: Direction::There,
            frame_bytes: 64,
            point: PacketPoint::EndToEnd,
            from: "before the send".to_owned(),
            to: "after the reception".to_owned(),
            asked_pps: Some(10_000.0),
            achieved_pps: 10_000.0,
            sent: 100_000,
            received: 99_900,
            lost: 100,
            runs: 5,
            n: 99_900,
            min: Some(Nanos(8_000)),
            measured: quantiles(&[(50.0, 9_000), (90.0, 9_500), (99.0, 12_000), (99.9, 30_000)]),
            error_min_ns: Some(3_000.0),
            error_quantiles: Vec::new(),
            bounds: vec![
                bound(50.0, Some(5_200.0), Some(6_000.0)),
                bound(90.0, Some(5_500.0), Some(6_500.0)),
                bound(99.0, Some(6_000.0), Some(9_000.0)),
                bound(99.9, None, Some(27_000.0)),
                bound(99.99, None, None),
            ],
            no_bounds: None,
            residence: Some(ResidenceLog {
                by: "whylate forward, ring to ring".to_owned(),
                n: 99_950,
                quantiles: quantiles(&[
                    (50.0, 5_600),
                    (90.0, 5_900),
                    (99.0, 9_100),
                    (99.9, 20_000),
                ]),
            }),
            series: Some("box-local-64-there".to_owned()),
            trust: None,
        }
    }

    pub(crate) fn device() -> Device {
        let source = |from: &str, received: u64, share: f64| FanInShare {
            from: from.to_owned(),
            sent: 1_000,
            received,
            share,
            low: Some(share - 0.01),
            high: Some(share + 0.01),
        };
        Device {
            name: "bridge".to_owned(),
            description: "a bridge of the kernel in a namespace".to_owned(),
            backend: "packet spin".to_owned(),
            error: Some(ErrorSource {
                quantiles_by: "through the delay line (af_packet, 10 µs)".to_owned(),
                least_by: "back to back".to_owned(),
                unfit: None,
            }),
            sizes: vec![at_size()],
            forwarding: vec![Forwarding {
                configuration: None,
                direction: Direction::There,
                kind: ForwardingKind::StoreAndForward,
                slope: Some(Slope {
                    of: "ns of the median over bytes".to_owned(),
                    method: "Theil-Sen".to_owned(),
                    value: 8.1,
                    low: Some(7.9),
                    high: Some(8.3),
                    intercept: 4_000.0,
                    points: 7,
                }),
                link_bps: Some(1e9),
                why: "a byte takes what the link takes for it".to_owned(),
            }],
            throughput: Vec::new(),
            configurations: Vec::new(),
            bought: Vec::new(),
            order: Vec::new(),
            fan_in: vec![FanIn {
                to: "p4".to_owned(),
                offered_pps: 500_000.0,
                sources: vec![source("p1", 900, 0.75), source("p2", 300, 0.25)],
                takes: None,
                received: 1_200,
            }],
            captures: None,
            notes: vec!["remote was refused: this machine has one NUMA node\u{1b}[31m".to_owned()],
            doubts: Vec::new(),
        }
    }

    #[test]
    fn a_bound_above_the_whole_is_none_and_a_box_without_any_is_unknown() {
        let mut of = at_size();
        let ends = |of: &DeviceAtSize| bounded(of.bound(50.0)).to_string();
        assert_eq!(ends(&of), "5.2–6.0 µs");
        // All of it took at most 9.01 µs.
        of.bounds[0].high_ns = Some(9_011.0);
        assert_eq!(ends(&of), "≥5.2 µs");
        of.bounds[0].low_ns = Some(0.0);
        assert_eq!(ends(&of), UNKNOWN);
        of.bounds[0].high_ns = Some(9_010.0);
        assert_eq!(ends(&of), "0–10 µs", "an upper bound of 9.01 µs is none of 9");
        (of.bounds[0].low_ns, of.bounds[0].high_ns) = (Some(4_074.0), Some(6_031.0));
        assert_eq!(ends(&of), "4.0–6.1 µs");
        of.bounds.clear();
        assert_eq!(ends(&of), "–");
    }

    #[test]
    fn a_device_is_answered_with_bounds_and_its_own_log_is_checked() {
        let of = device();
        assert_eq!(
            answer(&of),
            "A frame of 64 bytes takes 9 µs through bridge (p50), 5.2–6.0 µs of it in the box. It is \
             store-and-forward."
        );
        let rows = bounds(&of).unwrap().rows;
        assert_eq!(
            rows[0],
            ["64 B outbound, local", "5.2–6.0 µs", "5.5–6.5 µs", "6.0–9.0 µs", "≤27 µs", "unknown"]
        );
        assert_eq!(
            rows[1],
            ["  its log, n = 99,950", "5.6 µs", "5.9 µs", "9.1 µs OUTSIDE", "20 µs", "–"]
        );
        assert!(checked(&of)[0].starts_with("3 of 4 bounds hold"), "{:?}", checked(&of));
        assert_eq!(latencies(&of).rows[0][3], "0.1%");
        assert_eq!(latencies(&of).rows[0][2], "5.12");
        assert_eq!(forwarding(&of).unwrap().rows[0][3..], ["8.00", "store-and-forward"]);
        let shares = &fan_in(&of)[0];
        assert!(
            shares.caption.ends_with("each offering 500,000/s: the fairness is 0.80"),
            "{shares:?}"
        );
        assert_eq!(shares.rows[0][3], "75.0%");
        let told = crate::render::terminal::told([Block::Items(circumstances(&of))]);
        assert!(!told.contains('\u{1b}'), "{told:?}");
    }

    #[test]
    fn a_share_of_nothing_that_came_is_no_share() {
        let mut of = device().fan_in.remove(0);
        assert!(fan_in_table(&of).rows.iter().all(|row| row[3].to_string().contains('%')));
        of.received = 0;
        for source in &mut of.sources {
            (source.received, source.share, source.low, source.high) = (0, 0.0, None, None);
        }
        assert!(fan_in_table(&of).rows.iter().all(|row| row[3..] == [ABSENT, ABSENT]));
    }

    #[test]
    fn what_was_not_measured_is_said() {
        let mut of = Device { error: None, sizes: Vec::new(), forwarding: Vec::new(), ..device() };
        assert_eq!(
            answer(&of),
            "2 ports that sent to one shared it with a fairness of 0.80 (1 is equal shares)."
        );
        of.fan_in.clear();
        assert_eq!(answer(&of), "Nothing came through bridge.");
        assert!(circumstances(&of).iter().any(|said| said.contains("no lower bounds")));
        assert!(bounds(&of).is_none() && forwarding(&of).is_none() && checked(&of).is_empty());
        let mut size = at_size();
        size.bounds.clear();
        size.no_bounds = Some("the sample is too small".to_owned());
        of.sizes.push(size);
        assert!(bounds(&of).is_none());
        assert!(checked(&of).iter().any(|said| said.ends_with("the sample is too small")));
    }
}
