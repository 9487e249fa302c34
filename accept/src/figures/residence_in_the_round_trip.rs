//! How long a forwarder keeps a frame or a datagram in either direction is a part of the round trip through
//! both.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::Nanos;
use whylate_model::forward::Forward;
use whylate_model::reflect::Residence;

use crate::between::{Bed, Forwarding, asked, closes, reflecting};
use crate::needed;
use crate::program::Recorded;
use crate::requests::{flow, series};

const WORDS: &str = "--rate 500pps --duration 1s";

pub(crate) const FIGURE: Figure = Figure {
    name: "residence_in_the_round_trip",
    method: "medians of what a forwarder keeps there and back, and of 500 round trips through both",
    rows: &[
        Row {
            claim: "directions by packet below the round trip",
            unit: "share",
            bound: Bound::Always,
        },
        Row {
            claim: "directions by xdp below the round trip",
            unit: "share",
            bound: Bound::Always,
        },
        Row {
            claim: "directions by udp below the round trip",
            unit: "share",
            bound: Bound::Always,
        },
    ],
    rounds: 4,
    seconds: 6.5,
    most_taken: None,
    needs: || needed::as_root(&["ip"]),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let mut readings = Vec::new();
    for backend in ["packet", "xdp"] {
        let bed = Bed::asking().ok_or("no links in network namespaces here")?;
        let forwarding = bed.forward(&format!("--port {backend}"));
        let recorded = bed.asked(WORDS);
        readings.push(below(&forwarding.stop(), &recorded));
    }
    let (reflector, to) = reflecting("127.0.0.1:0".parse().unwrap());
    let (forwarding, at) = Forwarding::of_datagrams(to, "");
    let recorded = asked(at, WORDS);
    readings.push(below(&forwarding.stop(), &recorded));
    drop(reflector);
    Ok(readings)
}

/// Directions in which the median of what was kept is below that of the round trips.
fn below(told: &Forward, recorded: &Recorded) -> Reading {
    closes(told);
    let service = flow(&recorded.run).service.as_ref().unwrap();
    let round_trip = series(&recorded.run, service).unwrap().quantiles[0].value.unwrap();
    let kept = told.directions.iter().map(|of| median(of.residence.as_ref()));
    let hits = kept.filter(|kept| *kept < round_trip).count() as u64;
    Reading::Share { hits, of: 2 }
}

/// The median of a residence.
pub(super) fn median(of: Option<&Residence>) -> Nanos {
    let percentiles = &of.expect("residence").percentiles;
    percentiles.iter().find(|one| (one.percent - 50.0).abs() < 1e-9).unwrap().value.unwrap()
}
