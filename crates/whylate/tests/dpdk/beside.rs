//! Round trips over our own AF_XDP beside those over DPDK's `net_af_xdp`: one server, link, queue, rate and
//! way to wait, the same client around them, in interleaved rounds with DPDK against itself as control.
//!
//! Both have the kernel copy frames. What is promised is of the median; the p99 stands beside it.

use std::thread;
use std::time::Duration;

use whylate_model::CpuId;

use crate::pairs::{Against, Promise, say, wanted};
use crate::place::Bed;
use crate::tool::{Measured, Service};
use crate::{alone, cpus};

/// Times the round trip over `net_af_xdp`, at most.
const WITHIN: Promise = Promise::AtMost(1.05);
/// How whylate waits, and the budget that makes DPDK's driver wait the same way: without one it does not
/// have the kernel's driver polled.
const WAYS: [(&str, &str, usize); 2] = [("spin", "0", 8), ("busy-poll", "64", 4)];
/// Rounds are added so long, and as many as stand beside the ways are made anyhow, which is enough for a
/// claim, unless a number of them is asked for.
const BUDGET: Duration = Duration::from_secs(15);
/// The kernel gives back a queue a little after its socket was closed.
const SETTLED: Duration = Duration::from_millis(200);

/// The median and the p99 of round trips by these words, in nanoseconds.
fn asked(bed: &Bed, cpu: CpuId, words: &str, device: &str) -> [f64; 2] {
    let duration = if wanted().is_some() { "2s" } else { "400ms" };
    let words = format!(
        "198.18.0.2:11111 {words} --from 198.18.0.11 --rate 5kpps --warmup 200ms --duration {duration}"
    );
    let measured = bed.near.inside(|| Measured::new(&words, cpu));
    let frames = measured.flow().way.frames.as_ref().expect("a port of frames");
    assert_eq!(frames.interface, device);
    let packets = measured.flow().packets;
    assert!(packets.add_up() && packets.received > 0, "{packets:?}");
    thread::sleep(SETTLED);
    let times = measured.times();
    [50.0, 99.0].map(|percent| times.value_at(percent).map_or(f64::NAN, |ns| ns as f64))
}

#[test]
#[ignore = "live figure: to accept"]
fn round_trips_by_xdp_stand_beside_those_by_af_xdp_of_dpdk() {
    let _alone = alone();
    let Some((first, last)) = cpus() else { return };
    let Some(bed) = Bed::new() else { return };
    let words = format!("reflect --listen 198.18.0.2:11111 --wait spin --cpu {first} --idle 60s");
    let reflector = bed.far.inside(|| Service::start(&words, "listening on"));
    for (wait, budget, least) in WAYS {
        let theirs = || {
            let device = format!("net_af_xdp0,iface=near,force_copy=1,busy_budget={budget}");
            let words = format!("--port dpdk --vdev {device} --pages ordinary");
            asked(&bed, last, &words, "net_af_xdp0")
        };
        let ours = || {
            let words = format!("--port xdp --interface near --copying copy --wait {wait}");
            asked(&bed, last, &words, "near")
        };
        let (peer, names) = ("net_af_xdp", ["p50", "p99"]);
        let of = Against { peer, names, budget: BUDGET, least, cpus: &[first, last] };
        say(&format!("xdp waiting by {wait}, net_af_xdp with busy_budget={budget}:"));
        let [median, _] = of.claims(|_| [theirs(), ours(), theirs()]);
        WITHIN.shown_by(median.as_ref(), &format!("xdp waiting by {wait} beside {peer}"));
    }
    reflector.stop();
}
