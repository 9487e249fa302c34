//! The stamps of a breakdown, kind by kind: what the host has, what came of those of the measurement, and
//! those that lie beside the way.

use whylate_model::Nanos;
use whylate_model::breakdown::{Aside, Breakdown, CountedStamps, FarStamps, Probed};

use super::{OF_CARD, listed};
use crate::doc::Table;
use crate::numbers::{Value, count};

/// How the probes are to be read.
pub(super) const PROBES: &str = "Packets were sent to find out, for each kind alone, after some that warm \
     up: a flag that the kernel takes is no stamp yet. A card's stamps are by its own clock, and are parts \
     where that can be read beside the counter.";

/// The same of the stamps of the measurement.
pub(super) const STAMPS: &str = "Of the client's sockets, in its warm-up and its measurement; what was \
     asked for came or is missing. Skipped: missing, while one of a later message came. Nobody's: for a \
     message that was not sent, or too long ago. Merged and cut: of messages that shared a segment of TCP, \
     and of parts of one; of rx, merged are missing: their replies were read together with later ones.";

/// The same of those at the other end.
pub(super) const FAR_STAMPS: &str = "Of the other end's sockets, one of each kind for each measured request \
     that it told of; what was asked for came or is missing, by what it told and by nothing else: why is \
     not told.";

/// The same of stamps that lie not on the way.
pub(super) const ASIDES: &str = "From the client's reading before the call that sent a request to a stamp \
     that divides no part. tx ack: this machine's kernel had the other end's word that its kernel has all of \
     the request. tx completion: the driver had the card's word that it is out; of AF_XDP, the kernel had let go \
     of its frame. Missing, in order, dropped: as of points.";

/// What came of the stamps that were asked for; none without stamps.
pub(super) fn probes(of: &Breakdown) -> Option<Table> {
    let head = ["stamp", "taken", "sent", "came", "step", "read cost", "why not"];
    let shown = |time: Option<Nanos>| Value::from(time).to_string();
    let row = |probed: &Probed| {
        vec![
            probed.stamp.clone(),
            if probed.accepted { "yes" } else { "no" }.to_owned(),
            count(probed.sent),
            count(probed.delivered),
            shown(probed.step),
            shown(probed.read_cost),
            probed.reason.clone().unwrap_or_default(),
        ]
    };
    Table::new("Stamps, before anything was measured", &head)
        .words(&[1, 6])
        .with(of.probes.iter().map(row))
        .filled()
}

/// What became of the stamps that the client asked for; none without stamps.
pub(super) fn stamps(of: &Breakdown) -> Option<Table> {
    let head = [
        "stamp", "asked", "came", "missing", "skipped", "twice", "nobody's", "timeless", "merged",
        "cut",
    ];
    let row = |of: &CountedStamps| {
        let counts = [
            of.asked, of.came, of.missing, of.skipped, of.twice, of.unknown, of.zero, of.merged,
            of.split,
        ];
        counted(&of.stamp, &counts)
    };
    Table::new("Stamps of the measurement", &head).with(of.stamps.iter().map(row)).filled()
}

/// The same at the other end, where that was started with the client.
pub(super) fn far_stamps(of: &Breakdown) -> Option<Table> {
    let head = ["stamp", "asked", "came", "missing", "twice", "nobody's"];
    // It tells the stamps that came, and not what else became of those that did not.
    let row =
        |of: &FarStamps| counted(&of.stamp, &[of.asked, of.came, of.missing, of.twice, of.unknown]);
    Table::new("Stamps of the other end", &head).with(of.far_stamps.iter().map(row)).filled()
}

/// A row of counts of a kind of stamp.
fn counted(stamp: &str, counts: &[u64]) -> Vec<String> {
    std::iter::once(stamp.to_owned()).chain(counts.iter().copied().map(count)).collect()
}

/// Stamps that lie not on the way; none where none were asked for.
pub(super) fn asides(of: &Breakdown) -> Option<Table> {
    let head = [
        "stamp", "sent", "came", "missing", "in order", "dropped", "median", "p99", "most", "bound",
    ];
    let shown = |time: Option<Nanos>| Value::from(time).to_string();
    let row = |of: &Aside| {
        vec![
            of.stamp.clone(),
            count(of.requests),
            count(of.came),
            count(of.missing),
            count(of.unordered),
            count(of.contradicted),
            shown(of.median),
            shown(of.p99),
            shown(of.most),
            Value::from(of.bound).to_string(),
        ]
    };
    Table::new("Sent to stamped, beside the way", &head).with(of.asides.iter().map(row)).filled()
}

/// Kinds of stamps that the kernel took and that never came.
pub(super) fn never_delivered(of: &Breakdown) -> Option<String> {
    let never = |probed: &&Probed| probed.accepted && probed.sent > 0 && probed.delivered == 0;
    let named = |probed: &Probed| match probed.reason.as_deref() {
        // Said by itself.
        Some(why) if why.starts_with(OF_CARD) => probed.stamp.clone(),
        why => {
            format!("{} ({})", probed.stamp, why.unwrap_or("none came"))
        }
    };
    let never: Vec<String> = of.probes.iter().filter(never).map(named).collect();
    (!never.is_empty())
        .then(|| format!("stamps that the kernel takes and never delivers: {}", listed(&never)))
}
