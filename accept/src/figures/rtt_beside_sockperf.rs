//! Round trips beside those of sockperf.
//!
//! Both clients ask one and the same server from the same CPU, with messages of the same size at the same
//! rate and one under way, and neither sleeps; compared is a single packet's time from its send to its
//! reply.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::reflect::Reflected;

use crate::needed;
use crate::peers::sockperf::{self, LEFT_OUT_MS};
use crate::requests::logged;
use crate::site::{At, Site};
use crate::tool::Service;

/// Requests a second of both clients, and seconds that sockperf runs.
const RATE: u64 = 5_000;
const SECONDS: u64 = 1;
/// Sizes of messages: a small one to our reflector, and one that fills a frame to sockperf's server.
const SMALL: u64 = 64;
const FRAME: u64 = 1_400;
const PER_MILLE: [usize; 3] = [500, 990, 999];

/// Ours are no longer.
const fn median(claim: &'static str) -> Row {
    Row { claim, unit: "ratio", bound: Bound::AtMost(1.0) }
}

/// Some milliseconds of a second decide on it: sockperf does not agree with itself there.
const fn tail(claim: &'static str) -> Row {
    Row { claim, unit: "ratio", bound: Bound::Told }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "rtt_beside_sockperf",
    method: "round trips of 5 000 requests a second to one server, between two runs of sockperf's client",
    rows: &[
        median("p50 over sockperf's, 64 bytes to our reflector"),
        tail("p99 over sockperf's, 64 bytes to our reflector"),
        tail("p99.9 over sockperf's, 64 bytes to our reflector"),
        median("p50 over sockperf's, 1 400 bytes through a bed"),
        tail("p99 over sockperf's, 1 400 bytes through a bed"),
        tail("p99.9 over sockperf's, 1 400 bytes through a bed"),
    ],
    rounds: 8,
    seconds: 7.2,
    // More than that is no p99 of ours or theirs.
    most_taken: Some(0.05),
    needs: || needed::two_ends(&["ip", "taskset", "sockperf"]),
    round,
};

fn round(round: Round) -> Result<Vec<Reading>, String> {
    let to_our_reflector = to_our_reflector(&Site::loopback(), round.number);
    let site = Site::in_a_bed();
    let at = site.free_place();
    let _server = sockperf::server(&site, &at);
    let through_a_bed = beside(&site, &at, FRAME, round.number);
    Ok([to_our_reflector, through_a_bed].concat())
}

fn to_our_reflector(site: &Site, seed: usize) -> [Reading; 3] {
    let at = site.free_place();
    let words = format!(
        "reflect --listen {}:{} --protocol sockperf --wait spin --cpu {}",
        at.0, at.1, site.server
    );
    let server = Service::start(&words, "listening on");
    let readings = beside(site, &at, SMALL, seed);
    let told: Reflected = serde_json::from_str(&server.stop()).unwrap();
    assert!(told.answered > 0, "{told:?}");
    readings
}

fn beside(site: &Site, at: &At, bytes: u64, seed: usize) -> [Reading; 3] {
    let peer = theirs(site, at, bytes);
    let ours = ours(site, at, bytes, seed);
    let again = theirs(site, at, bytes);
    std::array::from_fn(|of| match (peer[of], ours[of], again[of]) {
        (Some(peer), Some(ours), Some(again)) => Reading::Beside { peer, ours, again },
        _ => Reading::Absent("a request was lost, and so no quantile is known".to_owned()),
    })
}

/// The quantiles in nanoseconds, as far as they are known; they are in order.
type Quantiles = [Option<f64>; 3];

fn in_order(quantiles: Quantiles) -> Quantiles {
    let known: Vec<f64> = quantiles.iter().flatten().copied().collect();
    assert!(known.is_sorted(), "{quantiles:?}");
    quantiles
}

fn theirs(site: &Site, at: &At, bytes: u64) -> Quantiles {
    let times = sockperf::round_trips(site, at, [RATE, bytes, SECONDS]);
    in_order(PER_MILLE.map(|of| Some(*times.get(times.len() * of / 1_000)? as f64)))
}

fn ours(site: &Site, at: &At, bytes: u64, seed: usize) -> Quantiles {
    let words = format!(
        "--protocol sockperf --wait spin --outstanding 1 --rate {RATE}pps --size {bytes} --warmup \
         200ms --duration {}ms --seed {seed}",
        SECONDS * 1_000 - LEFT_OUT_MS
    );
    let asked = site.ask(at, &words);
    let service = logged(&asked.directory, "rtt-service");
    in_order(PER_MILLE.map(|of| Some(service.value_at(of as f64 / 10.0)? as f64)))
}
