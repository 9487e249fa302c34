//! What looking at requests changed on the host, and what was dropped meanwhile, in sentences.

use std::collections::BTreeSet;

use whylate_model::breakdown::{Breakdown, CardTold, Differences, Reasoned, Source};

use super::{listed, named, reasons};
use crate::numbers::count;

/// What is to be said of it.
pub(super) fn said(of: &Breakdown) -> Vec<String> {
    let card = of.card.iter().map(card).chain(other_card(of));
    card.chain(dropped(&of.dropped)).chain(not_asked(of)).collect()
}

/// Where the client's card stamps: that the other one does not.
fn other_card(of: &Breakdown) -> Option<String> {
    of.points.iter().any(|facts| facts.source == Source::Hardware).then(|| {
        "the other end's card is not stamped: between the client's card and the other end's driver, \
         either way, that card is in the same part as the wire"
            .to_owned()
    })
}

/// What was dropped; nothing where nothing was.
fn dropped(all: &[Reasoned]) -> Option<String> {
    let sum: u64 = all.iter().map(|of| of.count).sum();
    (sum > 0).then(|| format!("{} were dropped on their way here{}", count(sum), reasons(all)))
}

/// Points that were not asked for in some requests.
fn not_asked(of: &Breakdown) -> Option<String> {
    let some = of.points.iter().filter(|facts| facts.not_asked > 0);
    let some = some.map(|facts| format!("{} in {}", named(facts), count(facts.not_asked)));
    let asides = of.asides.iter().filter(|aside| aside.not_asked > 0);
    let asides = asides.map(|aside| format!("{} in {}", aside.stamp, count(aside.not_asked)));
    let all: Vec<String> = some.chain(asides).collect();
    (!all.is_empty()).then(|| {
        format!(
            "not asked for, and neither came nor missing, as one request in some is stamped or the \
             card has room for few: {}",
            listed(&all)
        )
    })
}

/// Two sources that contradict each other in more requests than a few, one by one; one sentence where
/// none do, nothing where no point has two.
pub(super) fn contradictions(of: &Breakdown) -> Vec<String> {
    let points = of.agreements.iter().map(|of| (of.point.to_string(), &of.told));
    let parts = of.part_agreements.iter().map(|of| (of.part.to_string(), &of.told));
    let wrong = points.chain(parts).filter(|(_, told)| told.is_contradiction());
    let wrong: Vec<String> = wrong.map(|(what, told)| contradiction(&what, told)).collect();
    if wrong.is_empty() && !of.agreements.is_empty() {
        vec![format!(
            "points that two sources tell: {}, and parts: {}; each of them agrees, or is in order, in \
             99 of 100 requests and more",
            of.agreements.len(),
            of.part_agreements.len()
        )]
    } else {
        wrong
    }
}

fn contradiction(what: &str, told: &Differences) -> String {
    format!(
        "{what} by {} and by {} contradict each other in {} of {} requests: they neither agree nor stand \
         at their places; a clock is off, or a stamp is another message's",
        told.used,
        told.beside,
        count(told.out_of_order()),
        count(told.requests)
    )
}

/// What looking costs: that it was not measured, and how to have it or why nobody can; otherwise in which
/// turns it was, and of what it is not told, with the reason.
pub(super) fn cost(of: &Breakdown, watched: bool) -> Vec<String> {
    let Some(cost) = &of.cost else {
        let why = if watched {
            "cost of looking: not measured: requests to a watched process are sent by others, and cannot \
             be sent in turns with the trace and without"
        } else {
            "cost of looking: not measured; `whylate rtt --breakdown --breakdown-cost` measures it"
        };
        return vec![why.to_owned()];
    };
    let orders: BTreeSet<&[String]> = cost.order.iter().map(Vec::as_slice).collect();
    let turns = (!orders.is_empty()).then(|| {
        format!(
            "cost of looking: {} rounds, everything in turns, in {} different orders",
            cost.order.len(),
            orders.len()
        )
    });
    let untold = cost.untold.iter().map(|of| {
        let (by, why) = (&of.by, &of.why);
        format!("cost of looking by {by}: not told, because {why}")
    });
    turns.into_iter().chain(untold).collect()
}

/// What the card was told, and whether that was put back.
fn card(of: &CardTold) -> String {
    let told = &of.told;
    match (of.changed, of.put_back) {
        (true, true) => format!("for the measurement: {told}; put back in the end"),
        (true, false) => format!("for the measurement: {told}; NOT put back: see the warnings"),
        (false, _) => format!("nothing was changed for the measurement: {told}"),
    }
}
