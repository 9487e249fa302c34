//! `whylate rtt --compare-backends` with a device of DPDK among the backends: it has its row beside sockets
//! and AF_XDP, in rounds that are interleaved with theirs.

use whylate_model::backends::{BackendRole, Backends};

use crate::place::Bed;
use crate::tool::{Measured, Service, run, said};
use crate::{alone, cpus};

const ROUNDS: usize = 3;
const BACKENDS: [&str; 4] = ["udp spin", "udp spin", "xdp spin", "dpdk spin"];

#[test]
fn a_device_of_dpdk_has_its_row_beside_sockets_and_af_xdp_in_interleaved_rounds() {
    let _alone = alone();
    let Some(cpus) = cpus() else { return };
    let Some(bed) = Bed::new() else { return };
    let words =
        format!("reflect --listen 198.18.0.2:11111 --wait spin --cpu {} --idle 60s", cpus.0);
    let reflector = bed.far.inside(|| Service::start(&words, "listening on"));
    let words = format!(
        "198.18.0.2:11111 --compare-backends udp:spin,xdp:spin,dpdk:spin --interface near --from \
         198.18.0.1 --vdev net_af_packet0,iface=near,qdisc_bypass=1 --pages ordinary --rounds {ROUNDS} \
         --duration 3600ms --warmup 1200ms --rate 1kpps --seed 5"
    );
    let measured = bed.near.inside(|| Measured::new(&words, cpus.1));
    let of: &Backends = measured.run.backends.as_deref().expect("a comparison");
    let names: Vec<&str> = of.rows.iter().map(|row| row.backend.as_str()).collect();
    assert_eq!(names, BACKENDS);
    for row in &of.rows {
        assert_eq!(row.reason, None, "{}", row.backend);
        let got = row.measured.as_ref().unwrap_or_else(|| panic!("nothing of {}", row.backend));
        assert_eq!(got.rounds.len(), ROUNDS, "{}", row.backend);
        assert!(got.packets.add_up() && got.packets.received > 0, "{}: {got:?}", row.backend);
        assert!(got.rounds.iter().all(|round| round.n > 0), "{}: {got:?}", row.backend);
        // What there is to be saved is told against the first alone.
        assert_eq!(row.saved.is_empty(), row.role == BackendRole::First, "{}", row.backend);
    }
    // Each round has each of them once.
    assert_eq!(of.order.len(), ROUNDS);
    for order in &of.order {
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3], "{:?}", of.order);
    }
    reflector.stop();
}

#[test]
fn a_driver_that_keeps_its_queue_is_refused_in_a_comparison_with_what_to_do_instead() {
    let _alone = alone();
    let output =
        run("rtt 198.18.0.2:9 --compare-backends udp:spin,dpdk:spin --from 198.18.0.9 --vdev \
         net_af_xdp0,iface=lo -o unused");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("in runs of its own"), "{}", said(&output));
}
