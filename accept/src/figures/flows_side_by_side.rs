//! Flows that share a bed, messages that ask for no reply, and 50 000 requests a second through a bed: how
//! many of them come.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::flow::Flow;
use whylate_model::run::Run;

use crate::needed;
use crate::plant;
use crate::program::{record_ending, record_words};

/// Of what is intended.
const MOST: Bound = Bound::AtLeast(0.9);

const fn row(claim: &'static str) -> Row {
    Row { claim, unit: "share", bound: MOST }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "flows_side_by_side",
    method: "three flows in a bed for 1 s, 5 000 messages one way, and 20 000 requests at 50 000 a second",
    rows: &[
        row("answered of 1 000, beside a load and a flow back"),
        row("came of the 4 000 of the load"),
        row("answered of the 500 back"),
        row("came of 5 000 that ask for no reply"),
        Row {
            claim: "these came at 0.9 to 1.1 of the rate at which they left",
            unit: "share",
            bound: Bound::Always,
        },
        row("answered of 20 000 through a bed"),
    ],
    rounds: 3,
    seconds: 4.0,
    // A buffer of messages overflows where an end is stopped for 20 ms.
    most_taken: Some(0.05),
    needs: || needed::two_ends(&["ip"]),
    round,
};

fn flow<'a>(run: &'a Run, name: &str) -> &'a Flow {
    run.flows.iter().find(|flow| flow.name == name).expect("the flow is there")
}

fn came(run: &Run, name: &str, of: u64) -> Reading {
    let packets = &flow(run, name).packets;
    assert!(packets.add_up(), "{name}: {packets:?}");
    Reading::Share { hits: packets.received, of }
}

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let bed = plant::bed("flows")?;
    let three = ["rtt", "--bed", &bed.0, "--rate", "1kpps", "--duration", "1s", "--wait", "block"];
    let beside =
        ["--flow", "load: rate=4kpps size=1400 one-way", "--flow", "back: rate=500pps back"];
    let three = record_words(&[&three[..], &["--warmup", "100ms"], &beside].concat(), &[0, 4]).run;
    let mut readings = [("rtt", 1_000), ("load", 4_000), ("back", 500)]
        .map(|(name, of)| came(&three, name, of))
        .to_vec();
    let one_way =
        record_ending("rtt --one-way --rate 5kpps --duration 1s --warmup 100ms", &[0, 4]).run;
    readings.push(came(&one_way, "rtt", 5_000));
    let of = flow(&one_way, "rtt");
    let receptions = of.other_end.and_then(|of| of.receptions);
    let rates = receptions.and_then(|of| of.per_second).zip(of.departures.per_second);
    readings.push(match rates {
        Some((came, left)) => Reading::held((0.9..1.1).contains(&(came / left))),
        None => Reading::Absent("the other end gave no account".to_owned()),
    });
    let words =
        format!("rtt --bed {} --rate 50kpps --duration 400ms --warmup 100ms --no-trace", bed.0);
    readings.push(came(&record_ending(&words, &[0, 4]).run, "rtt", 20_000));
    Ok(readings)
}
