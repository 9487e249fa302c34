//! Requests and replies of a stream that share a segment or need several: their stamps, and where what lies
//! between two halves is found.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::breakdown::{Breakdown, Point, Station};
use whylate_model::run::Run;

use super::fewest;
use crate::needed;
use crate::program::Recorded;
use crate::requests::flow;
use crate::segments::{
    AT_ONCE, NEVER, against, of_several_segments, over_a_slow_link, stamps_of_sendings,
};

/// What lies between the two halves of a reply, as the server sleeps it and longer.
const HALVES_APART_NS: f64 = 300e3;

const fn row(claim: &'static str, unit: &'static str, bound: Bound) -> Row {
    Row { claim, unit, bound }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "shared_segments",
    method: "requests over TCP to a server that puts replies into one segment or one into two, over a slow \
             link, and of three segments each",
    rows: &[
        row("answered by such servers", "share", Bound::AtLeast(0.9)),
        row("replies of one segment are told as merged", "rounds", Bound::Always),
        row("what lies between halves is in one part, at the server", "rounds", Bound::Always),
        row("stamps of sendings that came", "share", Bound::AtLeast(0.9)),
        row("of each burst one is merged, and more", "rounds", Bound::Always),
        row("of several segments: paired by the tap", "share", Bound::AtLeast(0.9)),
    ],
    rounds: 3,
    seconds: 9.0,
    most_taken: Some(0.05),
    needs: || needed::traced(&["ip", "tc", "python3"]),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let merge = "--arrivals burst(8) --rate 400pps --duration 1s";
    let merged = against("merge", NEVER, merge).ok_or("there is no server")?;
    let split = "--rate 200pps --duration 1s";
    let split = against("split", NEVER, split).ok_or("there is no server")?;
    let slow = over_a_slow_link().ok_or("there is no bed")?;
    let cut = of_several_segments().ok_or("there is no bed")?;
    let answered = [&merged, &split].map(|of| {
        let packets = &flow(&of.run).packets;
        (packets.received, packets.sent)
    });
    let replies = breakdown(&merged.run).stamps.iter().find(|of| of.stamp == "rx software");
    let came = [&slow, &cut].map(stamps);
    let tap = breakdown(&cut.run).tap.as_deref().expect("the bed has a tap");
    Ok(vec![
        fewest(answered),
        Reading::held(replies.is_some_and(|of| of.merged > 0)),
        Reading::held(is_in_one_part(breakdown(&split.run))),
        fewest(came.into_iter().flatten()),
        Reading::held(is_merged(breakdown(&slow.run))),
        fewest([(tap.counts.paired, breakdown(&cut.run).requests)]),
    ])
}

fn breakdown(run: &Run) -> &Breakdown {
    flow(run).breakdown.as_deref().expect("requests were taken apart")
}

fn stamps(recorded: &Recorded) -> Vec<(u64, u64)> {
    let stamps = stamps_of_sendings(breakdown(&recorded.run));
    stamps.into_iter().map(|of| (of.came, of.asked)).collect()
}

/// Of each burst some share a segment.
fn is_merged(of: &Breakdown) -> bool {
    stamps_of_sendings(of).iter().all(|of| {
        let bursts = of.asked / u64::from(AT_ONCE);
        bursts > 0 && of.merged >= bursts
    })
}

/// What lay between the halves of each reply is in one part, between the server's driver that took the
/// request in and the client's that took the reply in, and in no other.
fn is_in_one_part(of: &Breakdown) -> bool {
    let long = of.all.parts.iter().filter(|part| part.mean_ns >= HALVES_APART_NS / 2.0);
    let long: Vec<_> = long.collect();
    let [part] = long[..] else { return false };
    let (from, to) = (Point::there(Station::Arrived), Point::back(Station::Arrived));
    let at_the_server = part.part.from >= from && part.part.to <= to;
    at_the_server && part.mean_ns >= HALVES_APART_NS
}
