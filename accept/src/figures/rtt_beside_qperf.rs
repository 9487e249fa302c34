//! Round trips beside those of qperf: one after the other, both ends asleep between.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::reflect::Reflected;

use crate::needed;
use crate::peers::qperf::Qperf;
use crate::program;
use crate::requests::series;
use crate::site::Site;
use crate::tool::Service;

pub(crate) const FIGURE: Figure = Figure {
    name: "rtt_beside_qperf",
    method: "a closed loop of 64 bytes over loopback for a second, between two runs of qperf's udp_lat",
    rows: &[
        Row {
            claim: "qperf's mean round trip over the latency that it tells",
            unit: "ratio",
            bound: Bound::Within(1.9, 2.1),
        },
        // The two differ in what they do between a reply and the next request.
        Row { claim: "mean round trip over qperf's", unit: "ratio", bound: Bound::Told },
    ],
    rounds: 6,
    seconds: 4.5,
    most_taken: None,
    needs: || needed::two_ends(&["taskset", "qperf"]),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let site = Site::loopback();
    let qperf = Qperf::new(&site);
    let at = site.free_place();
    let words = format!("reflect --listen {}:{} --wait block --cpu {}", at.0, at.1, site.server);
    let reflector = Service::start(&words, "listening on");
    let (peer, told) = qperf.ask();
    let words = "--arrivals closed --wait block --size 64 --warmup 100ms --duration 1s";
    let asked = site.ask(&at, words);
    let (again, _) = qperf.ask();
    let told_of_us: Reflected = serde_json::from_str(&reflector.stop()).unwrap();
    assert!(told_of_us.answered > 0 && peer > 0.0 && again > 0.0, "{told_of_us:?}");
    let run = program::read(&asked.directory);
    let mean = series(&run, "rtt-service").expect("something was answered").mean_ns;
    let beside = match mean {
        Some(ours) => Reading::Beside { peer, ours, again },
        None => Reading::Absent("a request was lost, and so no mean is known".to_owned()),
    };
    Ok(vec![Reading::Value(peer / told), beside])
}
