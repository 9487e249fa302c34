//! Round trips over our own AF_XDP beside those over DPDK's `net_af_xdp`: one server, link, queue, rate and
//! way to wait, the same client around them, and DPDK beside itself.
//!
//! Both have the kernel copy frames. What is promised is of the median; the p99 stands beside it.

use std::thread;
use std::time::Duration;

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::CpuId;

use crate::over_dpdk::{self, bed, cpus};
use crate::place::Bed;
use crate::tool::{Measured, Service};

/// How whylate waits, and the budget that makes DPDK's driver wait the same way: without one it does not
/// have the kernel's driver polled.
const WAYS: [(&str, &str); 2] = [("spin", "0"), ("busy-poll", "64")];
/// The kernel gives back a queue a little after its socket was closed.
const SETTLED: Duration = Duration::from_millis(200);
/// Times the round trip over `net_af_xdp`, at most.
const WITHIN: Bound = Bound::AtMost(1.05);

const fn row(claim: &'static str, bound: Bound) -> Row {
    Row { claim, unit: "ratio", bound }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "rtt_by_xdp_beside_net_af_xdp",
    method: "round trips of 5 000 requests a second through a virtual link, between two recordings over net_af_xdp",
    rows: &[
        row("p50 by xdp over net_af_xdp's, both spinning", WITHIN),
        row("p99 by xdp over net_af_xdp's, both spinning", Bound::Told),
        row("p50 by xdp over net_af_xdp's, both having the driver polled", WITHIN),
        row("p99 by xdp over net_af_xdp's, both having the driver polled", Bound::Told),
    ],
    rounds: 6,
    seconds: 9.0,
    most_taken: Some(0.05),
    needs: over_dpdk::program,
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let (first, last) = cpus();
    let bed = bed()?;
    let words = format!("reflect --listen 198.18.0.2:11111 --wait spin --cpu {first} --idle 60s");
    let reflector = bed.far.inside(|| Service::start(&words, "listening on"));
    let mut readings = Vec::new();
    for (wait, budget) in WAYS {
        let theirs = || {
            let device = format!("net_af_xdp0,iface=near,force_copy=1,busy_budget={budget}");
            let words = format!("--port dpdk --vdev {device} --pages ordinary");
            asked(&bed, last, &words, "net_af_xdp0")
        };
        let words = format!("--port xdp --interface near --copying copy --wait {wait}");
        let (peer, ours, again) = (theirs(), asked(&bed, last, &words, "near"), theirs());
        readings.extend((0..2).map(|of| match (peer[of], ours[of], again[of]) {
            (Some(peer), Some(ours), Some(again)) => Reading::Beside { peer, ours, again },
            _ => Reading::Absent("too little came".to_owned()),
        }));
    }
    reflector.stop();
    Ok(readings)
}

/// The median and the p99 of round trips by these words, in nanoseconds.
fn asked(bed: &Bed, cpu: CpuId, words: &str, device: &str) -> [Option<f64>; 2] {
    let words = format!(
        "198.18.0.2:11111 {words} --from 198.18.0.11 --rate 5kpps --warmup 200ms --duration 500ms"
    );
    let measured = bed.near.inside(|| Measured::new(&words, cpu));
    measured.is_accounted_by(device);
    thread::sleep(SETTLED);
    let times = measured.times();
    [50.0, 99.0].map(|percent| Some(times.value_at(percent)? as f64))
}
