//! Debian's testpmd as a forwarder over `net_af_xdp`, with one queue a port, rings of 2048 and copies by the
//! kernel, as ours.

use std::thread;

use whylate_model::CpuId;

use crate::between::Bed;
use crate::plant::flood::{Carried, SETTLED, Theirs, flooded, passes, received};
use crate::told::testpmds_handed_over;

/// One of so many frames that it hands over may be lost for a fair comparison, beside those that wait in its
/// rings at its end, at most, and never leave.
const LOST: u64 = 100;
const MOST_WAITING: u64 = 4_096;

/// What it carries, with this budget of its driver: without one it does not have the driver polled. Where the
/// kernel did not take what it handed over, why a comparison would not be fair.
pub(crate) fn forwarded(
    bed: &Bed,
    [first, last]: [CpuId; 2],
    budget: &str,
) -> Result<Carried, String> {
    let lcores = format!("--lcores=0@{first},1@{last}");
    let [a, b] = [(0, "a"), (1, "b")].map(|(number, interface)| {
        format!("net_af_xdp{number},iface={interface},force_copy=1,busy_budget={budget}")
    });
    let mut words = vec!["dpdk-testpmd", &lcores, "--vdev", &a, "--vdev", &b];
    words.extend(["--in-memory", "-m", "256", "--iova-mode=va", "--no-pci"]);
    words.extend(["--no-telemetry", "--", "--forward-mode=io", "--burst=32"]);
    // Buffers that have room for what the driver takes a frame for, and as many as both ports' rings.
    words.extend(["--mbuf-size=2304", "--total-num-mbufs=16384"]);
    let before = received(bed).0;
    let mut testpmd = Theirs::new(&bed.between, &words);
    passes(bed, || testpmd.ended());
    let carried = flooded(bed);
    // Its first CPU waits for a line: it sleeps until then.
    testpmd.hang_up();
    thread::sleep(SETTLED);
    // What its driver handed over, the kernel took: descriptors that it refuses go nowhere.
    let said = testpmd.said();
    let handed =
        testpmds_handed_over(&said).unwrap_or_else(|| panic!("testpmd tells no number: {said}"));
    let arrived = received(bed).0 - before;
    if handed > arrived + arrived / LOST + MOST_WAITING {
        return Err(format!(
            "testpmd handed {handed} frames over, of which {arrived} arrived: the comparison is not fair"
        ));
    }
    Ok(carried)
}
