//! `whylate rtt` over devices of DPDK: answered by `whylate reflect` over one, and by one with an ordinary
//! socket.

use whylate_model::reflect::{Reflected, ReflectedEnd};

use crate::place::Bed;
use crate::tool::{Measured, Service, memif};
use crate::{alone, cpus};

const SHORT: &str = "--rate 500pps --warmup 200ms --duration 1s --pages ordinary";

/// Ends a reflector, which has answered all that was measured.
pub(crate) fn has_answered(reflector: Service, measured: &Measured) -> Reflected {
    let told: Reflected = serde_json::from_str(&reflector.stop()).unwrap();
    assert_eq!(told.answered, measured.flow().packets.received, "{told:?}");
    assert_eq!((told.foreign, told.unsent), (0, 0), "{told:?}");
    told
}

#[test]
#[ignore = "live figure: to accept"]
fn requests_over_shared_memory_are_answered_by_a_reflector_over_dpdk() {
    let _alone = alone();
    let Some(cpus) = cpus() else { return };
    let server = memif("asked", 0, "server");
    let words = format!(
        "reflect --port dpdk --vdev {server} --pages ordinary --listen 198.18.9.2:11111 --cpu {} --idle \
         60s",
        cpus.0
    );
    let reflector = Service::start(&words, "listening on");
    let client = memif("asked", 0, "client");
    let words = format!("198.18.9.2:11111 --port dpdk --vdev {client} --from 198.18.9.1 {SHORT}");
    let measured = Measured::new(&words, cpus.1);
    measured.is_whole_by("net_memif0");
    let told = has_answered(reflector, &measured);
    assert!(told.backend.contains("dpdk"), "{told:?}");
    // Its client may have taken the link along.
    assert!(matches!(told.ended, ReflectedEnd::Stopped | ReflectedEnd::Lost), "{told:?}");
}

#[test]
#[ignore = "live figure: to accept"]
fn requests_over_af_packet_of_dpdk_are_answered_by_a_reflector_with_a_socket() {
    let _alone = alone();
    let Some(cpus) = cpus() else { return };
    let Some(bed) = Bed::new() else { return };
    let words =
        format!("reflect --listen 198.18.0.2:11111 --wait block --cpu {} --idle 60s", cpus.0);
    let reflector = bed.far.inside(|| Service::start(&words, "listening on"));
    let words = format!(
        "198.18.0.2:11111 --port dpdk --vdev net_af_packet0,iface=near,qdisc_bypass=1 --from 198.18.0.11 \
         {SHORT}"
    );
    let measured = bed.near.inside(|| Measured::new(&words, cpus.1));
    measured.is_whole_by("net_af_packet0");
    let told = has_answered(reflector, &measured);
    assert!(told.backend.contains("udp"), "{told:?}");
}
