//! Having a flow told of: stamps asked for, and what cannot be had said.

use std::cell::OnceCell;

use whylate_breakdown::tap::Settings;
use whylate_model::breakdown::Probed;
use whylate_model::warning::Warning;
use whylate_net::Cookie;
use whylate_net::probe_stamps::{Probing, probe};
use whylate_port::{PortError, StampKind, StampWish};

use super::asked::{self, Sources, TakeApart};
use super::card;
use super::of_flow::{Far, FlowParts, Hand};
use crate::RecordError;
use crate::rtt::ends::{self, Ends, Wish};
use crate::rtt::request::{FlowRequest, Request};
use crate::rtt::tap::Followed;
use crate::workbench::Workbench;

/// What is asked of the client's sockets: what lies on the way, and of its card where that stamps. Frames
/// that are sent pass neither a queueing discipline nor the stack.
fn wish(every: u32, sources: Sources) -> StampWish {
    StampWish {
        sched: !sources.metadata,
        software: !sources.metadata,
        hardware: sources.card_sent || sources.card_received,
        ack: sources.acks,
        completion: sources.completions,
        receive: true,
        every,
    }
}

/// What is asked to find out which stamps this host has: all, each kind by itself. The kernel takes the wish
/// for stamps that no card here makes; only packets that are sent for it show that none comes.
const EVERY_KIND: StampWish = StampWish {
    sched: true,
    software: true,
    hardware: true,
    ack: true,
    completion: true,
    receive: true,
    every: 1,
};

/// Opens what tells of this flow. Stamps that are refused are done without.
pub(in crate::rtt) fn open(
    request: &Request,
    asked: &TakeApart,
    (number, flow): (usize, &FlowRequest),
    (bench, cookie, probes): (&Workbench, Cookie, &[Probed]),
    ends: &mut Ends,
    warnings: &mut Vec<Warning>,
) -> (FlowParts, Option<Hand>) {
    let mut sources = asked.sources(flow);
    // A kernel that does not know the flag takes none beside it.
    let completes =
        |probed: &Probed| probed.stamp == StampKind::Completion.word() && probed.delivered > 0;
    sources.completions = probes.iter().any(completes);
    // Why there is none the probe has told.
    let any = sources.stamps || sources.metadata;
    let card = any.then(|| card::of_client(flow, &bench.journal, &*ends.near));
    let mut card = card.and_then(Result::ok).map(|(card, stamped)| {
        (sources.card_sent, sources.card_received) = (stamped.sent, stamped.received);
        card
    });
    if any && let Err(error) = ends.near.stamp(&wish(asked.stamp_every, sources)) {
        card = None;
        let Sources { far_stamps, trace, told, tap, .. } = sources;
        sources = Sources { far_stamps, trace, told, tap, ..Sources::default() };
        let part = format!("the kernel's stamps of {}", flow.name);
        warnings.push(Warning::PartLeftOut { part, reason: error.to_string() });
    }
    let far = Far {
        reflector: ends.reflector(),
        visits: ends.visits.take(),
        followed: Followed {
            settings: Settings::numbered(None),
            protocol: flow.protocol,
            cookie: Some(cookie),
        },
        bed: asked.tapped_bed(flow).cloned(),
        card,
    };
    FlowParts::open(request, (number, flow), bench, (sources, far))
}

/// What each kind of stamp comes to, before anything is measured, also those of a card, which no part is
/// made of: by ports and other ends of its own, which go when it is known.
pub(in crate::rtt) fn probed(
    request: &Request,
    asked: &TakeApart,
    flow: &FlowRequest,
    bench: &Workbench,
) -> Result<Vec<Probed>, RecordError> {
    let protocol = flow.protocol.with(Cookie::fresh());
    if !asked.stamps {
        return Ok(Vec::new());
    }
    let sources = asked.sources(flow);
    let with = Wish { frames: sources.metadata, ..Wish::default() };
    // One after the other: several that spin would share a CPU.
    let (mut other, mut failed) = (None, None);
    // Told what to stamp until its stamps were looked for, too.
    let card = OnceCell::new();
    let mut open = || {
        drop(other.take());
        let ends = match ends::open(request, flow, (bench, with), protocol.framing()) {
            Ok(ends) => ends,
            Err(error) => {
                failed = Some(error);
                return Err(PortError::StampsNotHere { backend: "a port that cannot be opened" });
            }
        };
        card.get_or_init(|| card::of_client(flow, &bench.journal, &*ends.near));
        let (near, far) = ends.apart();
        other = far;
        Ok(near)
    };
    let probing = Probing {
        open: &mut open,
        protocol: &*protocol,
        bytes: flow.bytes,
        counter: bench.counter,
        rate: bench.rate,
    };
    let probed = probe(probing, &EVERY_KIND);
    if let Some(error) = failed {
        return Err(error);
    }
    let mut probed = probed?;
    let mut because = |kinds: &[StampKind], why: &str| {
        let of = |one: &&mut Probed| kinds.iter().any(|kind| kind.word() == one.stamp);
        probed.iter_mut().filter(of).for_each(|one| one.reason = Some(why.to_owned()));
    };
    match card.get() {
        Some(Err(why)) => because(&[StampKind::Hardware, StampKind::ReceivedHardware], why),
        Some(Ok((_, stamped))) => stamped.missing().for_each(|(kind, why)| because(&[kind], why)),
        None => {}
    }
    if let Some(why) = asked::no_acks(flow) {
        because(&[StampKind::Ack], why);
    }
    Ok(probed)
}
