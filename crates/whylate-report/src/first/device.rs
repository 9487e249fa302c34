//! What a box between two ports adds to the time of frames.

use whylate_model::Printable;
use whylate_model::device::{
    BoundsAtPercent, Device, DeviceAtSize, FanIn, ForwardingKind, TwoCaptures,
};
use whylate_model::run::Run;
use whylate_model::series::Quantile;
use whylate_model::trust::TOO_FEW_ROUNDS;

use super::{COMPARE, Screen, series};
use crate::device::{UNKNOWN, bounded, came_and_lost, words};
use crate::doc::Table;
use crate::numbers::{Cell, Value};
use crate::spans::{Name, Sentence, sentence};
use crate::terminal::Style;

/// Percentiles of the time in the box.
const BOX: [f64; 2] = [50.0, 99.0];

/// Is it a measurement of a box?
pub(super) fn is_it(run: &Run) -> bool {
    run.device.is_some() && !run.is_merged()
}

pub(super) fn screen(run: &Run, style: Style) -> Screen {
    let Some(of) = run.device.as_deref() else { return Screen::default() };
    let mut answer = vec![headline(of)];
    answer.extend(second(of));
    let mut notes: Vec<String> = unbounded(of).into_iter().collect();
    if of.sizes.iter().any(|one| !one.bounds.is_empty()) {
        notes.push(
            "Box: the time between its ports, bounded with 95% confidence; the rest is the client's."
                .to_owned(),
        );
        notes.extend(not_bounded(of));
    }
    notes.extend(of.notes.first().map(|note| {
        let note = Printable(note).to_string();
        format!("{}.", super::trusted::upper(&note))
    }));
    let tables = [latencies(of, style)].into_iter().chain(of.fan_in.first().map(shares)).collect();
    Screen { answer, tables, notes, more: vec![COMPARE.to_owned()], ..Screen::default() }
}

/// How long frames are, as somebody asked.
fn bytes(of: u32) -> Sentence {
    Sentence::asked(Value::Count(of.into()))
}

fn headline(of: &Device) -> Sentence {
    if let Some(captures) = &of.captures {
        return captured(captures);
    }
    let box_name = Name::of(&of.name);
    let Some(first) = of.sizes.iter().find(|one| one.n > 0) else {
        return match of.fan_in.first() {
            Some(one) => fair(one),
            None => sentence!["Nothing came through ", box_name, "."],
        };
    };
    // What is more than all of it, or at least nothing, bounds nothing.
    let measured = first.measured.iter().find(|of| series::is(of, 50.0)).and_then(|of| of.value);
    let ends = first.bound(50.0).map(|of| BoundsAtPercent {
        low_ns: of.low_ns.filter(|low| *low > 0.0),
        high_ns: of.high_ns.filter(|high| measured.is_some_and(|all| *high <= all.0 as f64)),
        ..of
    });
    let within = match ends.map(|of| (of.low_ns.is_some(), of.high_ns.is_some())) {
        Some((true, true)) => sentence![", ", bounded(ends), " of it in the box"],
        Some((false, true)) => {
            sentence![", at most ", Sentence::bound(bounded(ends)), " of it in the box"]
        }
        Some((true, false)) => {
            sentence![", at least ", Sentence::bound(bounded(ends)), " of it in the box"]
        }
        _ => Sentence::default(),
    };
    let (bytes, median) = (bytes(first.frame_bytes), at(&first.measured, 50.0));
    let takes = sentence!["A frame of ", bytes, " bytes takes ", median];
    sentence![takes, " through ", box_name, " (p50)", within, "."]
}

/// How it forwards, and how much it carries.
fn second(of: &Device) -> Option<Sentence> {
    let kind = of.forwarding.iter().find(|one| one.kind != ForwardingKind::NotTold);
    let kind = kind.map(|one| sentence!["It is ", words(one.kind)]);
    let carried = of.throughput.iter().find_map(|one| {
        let per_second = Sentence::unitless(Value::Rate(one.highest_pps?));
        let least = if one.is_limited_by_the_client() { "at least " } else { "" };
        let frames = sentence![" frames of ", bytes(one.frame_bytes), " bytes a second"];
        Some(sentence!["carries ", least, per_second, frames, " without loss"])
    });
    match (kind, carried) {
        (Some(kind), Some(carried)) => Some(sentence![kind, " and ", carried, "."]),
        (Some(kind), None) => Some(sentence![kind, "."]),
        (None, carried) => carried.map(|carried| sentence!["It ", carried, "."]),
    }
}

fn captured(of: &TwoCaptures) -> Sentence {
    let (came, lost, share) = came_and_lost(of);
    let both = sentence![Value::Count(came), " frames are in both captures; "];
    sentence![both, Value::Count(lost), " went in and did not come out (", share, ")."]
}

fn fair(of: &FanIn) -> Sentence {
    let ports = of.sources.len();
    match of.fairness() {
        Some(fairness) => sentence![
            ports,
            " ports that sent to one shared it with a fairness of ",
            Value::Ratio(fairness),
            " (",
            Sentence::asked(Value::Count(1)),
            " is equal shares)."
        ],
        None => sentence!["Of ", ports, " ports that sent to one, nothing came."],
    }
}

/// A percentile; of one that the sample does not support the lower bound.
fn at(quantiles: &[Quantile], percent: f64) -> Cell {
    let of = quantiles.iter().find(|of| (of.percent - percent).abs() < 1e-9);
    Cell::from(of.map_or(Value::Absent, series::value))
}

/// What a row is of: `64 B outbound, local`.
fn label(of: &DeviceAtSize) -> String {
    let way = of.direction.name();
    let configuration = of.configuration.as_deref().map_or(String::new(), |of| format!(", {of}"));
    format!("{} B {way}{configuration}", of.frame_bytes)
}

/// A row for each size, direction and configuration.
fn latencies(of: &Device, style: Style) -> Table {
    let percents: Vec<f64> = style.percentiles.percents().collect();
    let bounded = of.sizes.iter().any(|one| !one.bounds.is_empty());
    let boxes: &[f64] = if bounded { &BOX } else { &[] };
    let heads = ["latency by frame size", "n", "lost"].map(str::to_owned).into_iter();
    let heads = heads.chain(percents.iter().map(|percent| series::name(*percent)));
    let heads: Vec<String> =
        heads.chain(boxes.iter().map(|of| format!("box {}", series::name(*of)))).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table = Table::new("", &heads);
    for one in &of.sizes {
        let first = [
            Cell::from(label(one)),
            Value::Count(one.n).into(),
            one.loss().map(Value::Share).into(),
        ];
        let measured = percents.iter().map(|percent| at(&one.measured, *percent));
        let bounds = boxes.iter().map(|percent| in_the_box(one, *percent));
        table.row(first.into_iter().chain(measured).chain(bounds));
    }
    table
}

/// The bounds of its own time at a percentile.
fn in_the_box(of: &DeviceAtSize, percent: f64) -> Cell {
    bounded(of.bound(percent))
}

/// Why a bound of the table is not known; of sizes without any it stands with the trust.
fn not_bounded(of: &Device) -> Option<String> {
    let unknown =
        |one: &&DeviceAtSize| BOX.iter().any(|percent| in_the_box(one, *percent) == UNKNOWN);
    let runs = of.sizes.iter().filter(|one| one.is_bounded()).find(unknown)?.runs;
    Some(format!("Unknown: {runs} {TOO_FEW_ROUNDS}; record more (--rounds)."))
}

/// Why sizes lack some of their bounds, by the first of them.
fn unbounded(of: &Device) -> Option<String> {
    let some = of.sizes.iter().filter(|one| one.is_bounded());
    let mut without = some.filter_map(|one| Some((one, one.no_bounds.as_ref()?)));
    let (first, why) = without.next()?;
    let more = match without.count() {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    Some(format!("No bounds for {}: {}{more}.", label(first), Printable(why)))
}

/// What each of several ports got of one.
fn shares(of: &FanIn) -> Table {
    let mut table = Table::new("", &["senders to one port", "sent", "received", "share", "95% CI"]);
    for one in &of.sources {
        let ends = one.low.zip(one.high);
        let ends = ends.map(|(low, high)| (Value::Share(low), Value::Share(high)));
        let share = Cell::from(Value::Share(one.share)).within(ends);
        table.row([
            Cell::from(Printable(&one.from).to_string()),
            Value::Count(one.sent).into(),
            Value::Count(one.received).into(),
            share.clone(),
            share.ends(),
        ]);
    }
    table
}
