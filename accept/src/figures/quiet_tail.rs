//! Slow requests of runs beside which nothing was planted: nothing is claimed that nothing bears out.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::cause::Cause;
use whylate_model::tail::TailCause;

use crate::borne_out::Evidence;
use crate::hog;
use crate::needed;
use crate::needs::Taken;
use crate::plant;
use crate::program::recorded;

pub(crate) const FIGURE: Figure = Figure {
    name: "quiet_tail",
    method: "what is claimed of slow requests where nothing was planted, against stolen and used time as the \
             kernel counts them",
    rows: &[
        Row {
            claim: "nothing is claimed, or the kernel's counts bear it out",
            unit: "share",
            bound: Bound::AtLeast(0.2),
        },
        Row { claim: "nothing is claimed that others plant", unit: "rounds", bound: Bound::Always },
        Row { claim: "requests that were looked at", unit: "share", bound: Bound::AtLeast(0.98) },
    ],
    rounds: 6,
    seconds: 3.5,
    most_taken: None,
    needs: || needed::traced(&[]),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let seat = plant::seat();
    let taken = Taken::now(&[seat.client, seat.other]);
    let recorded = recorded(&format!("rtt --rate 2kpps --duration 2500ms --warmup 200ms {seat}"));
    let flow = &recorded.run.flows[0];
    let tail = flow.tail.as_ref().expect("slow requests were looked at");
    let claims: Vec<&TailCause> = tail.claimed().collect();
    assert!(!claims.iter().any(|of| of.cause == Cause::Whylate), "its own time is no cause");
    let evidence = Evidence::of(&claims, &taken);
    let by_host = evidence.host_ns == 0.0 || taken.by_the_host_ns() >= evidence.host_ns;
    let planted = |of: &TailCause| match &of.cause {
        Cause::Stopped => true,
        Cause::Thread { comm, .. } => comm == hog::NAME,
        _ => false,
    };
    let packets = &flow.packets;
    let all = packets.sent + packets.refused + packets.never_sent;
    Ok(vec![
        Reading::held(evidence.others && by_host),
        Reading::held(!claims.iter().any(|of| planted(of))),
        Reading::Share { hits: tail.requests + tail.by_whylate, of: all },
    ])
}
