//! Departures of a constant rate beside those of trafgen, as one and the same capture sees them come in.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::reflect::Reflected;

use crate::needed;
use crate::peers::netsniff::{captured, send_by_trafgen};
use crate::requests::logged;
use crate::site::Site;
use crate::told::off_pace;
use crate::tool::Service;

/// Packets a second, and how far apart they should be.
const RATE: u64 = 100_000;
const DISTANCE_NS: f64 = 10_000.0;
/// Into the next second: trafgen's rate is that of seconds.
const PACKETS: u64 = 150_000;

const fn told(claim: &'static str) -> Row {
    Row { claim, unit: "ns", bound: Bound::Told }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "departures_beside_trafgen",
    method: "100 000 packets a second by trafgen and by ours through a bed, captured by netsniff-ng",
    rows: &[
        told("trafgen's distances off 10 us, median"),
        told("trafgen's distances off 10 us, p99"),
        told("our distances off 10 us, median"),
        told("our distances off 10 us, p99"),
        told("our own lateness, p99"),
        told("our own lateness without what long turns of the sender explain, p99"),
    ],
    rounds: 6,
    seconds: 2.7,
    most_taken: None,
    needs: || needed::two_ends(&["ip", "trafgen", "netsniff-ng", "stdbuf", "taskset"]),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let site = Site::in_a_bed();
    let send = || send_by_trafgen(&site, RATE, PACKETS);
    let theirs = captured(&site, "ether proto 0x88b5", send);
    assert!(theirs.len() as u64 > PACKETS / 2, "{} packets captured", theirs.len());
    let bed = &site.bed.as_ref().expect("it is in one").0;
    // The capture has the server's CPU: what counts the messages sleeps meanwhile.
    let words = format!("reflect --bed {bed} --wait block --cpu {}", site.server);
    let reflector = Service::start(&words, "listening on");
    let at = site.free_place();
    let mut asked = None;
    let ours = captured(&site, "udp and dst port 11111", || {
        asked = Some(site.ask(&at, "--one-way --rate 100kpps --warmup 50ms --duration 300ms"));
    });
    let told: Reflected = serde_json::from_str(&reflector.stop()).unwrap();
    assert!(told.one_way > 0 && !ours.is_empty(), "{told:?}");
    let asked = asked.expect("it was asked");
    let run = crate::program::read(&asked.directory);
    assert!(run.flows[0].departures.pacing.is_some(), "a constant rate is intended");
    let reading = |value: Option<f64>| {
        value.map_or_else(|| Reading::Absent("nothing is known of it".to_owned()), Reading::Value)
    };
    let mut readings = Vec::new();
    for times in [&theirs, &ours] {
        let off = off_pace(times, DISTANCE_NS);
        let at = |percent: usize| off.get(off.len() * percent / 100).copied();
        readings.extend([50, 99].map(|percent| reading(at(percent))));
    }
    let p99 = |name| logged(&asked.directory, name).value_at(99.0).map(|ns| ns as f64);
    readings.extend(["rtt-lateness", "rtt-lateness-uninterrupted"].map(|of| reading(p99(of))));
    Ok(readings)
}
