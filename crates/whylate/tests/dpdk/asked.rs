//! `whylate rtt` over devices of DPDK: answered by `whylate reflect` over one, and by one with an ordinary
//! socket.

use whylate_model::reflect::{Reflected, ReflectedEnd};

use crate::place::Bed;
use crate::tool::Measured;
use crate::ways::{asked_by_af_packet, asked_by_memif};
use crate::{alone, cpus};

/// A reflector that told this has answered what was received, and once each.
pub(crate) fn has_answered(told: &str, measured: &Measured) -> Reflected {
    let told: Reflected = serde_json::from_str(told).unwrap();
    let packets = measured.flow().packets;
    let answered = packets.received..=packets.sent;
    assert!(answered.contains(&told.answered), "{told:?} {packets:?}");
    assert_eq!(told.foreign, 0, "{told:?}");
    told
}

#[test]
fn requests_over_shared_memory_are_answered_by_a_reflector_over_dpdk() {
    let _alone = alone();
    let Some(cpus) = cpus() else { return };
    let (told, measured) = asked_by_memif(cpus);
    let told = has_answered(&told, &measured);
    assert!(told.backend.contains("dpdk"), "{told:?}");
    // Its client may have taken the link along.
    assert!(matches!(told.ended, ReflectedEnd::Stopped | ReflectedEnd::Lost), "{told:?}");
}

#[test]
fn requests_over_af_packet_of_dpdk_are_answered_by_a_reflector_with_a_socket() {
    let _alone = alone();
    let Some(cpus) = cpus() else { return };
    let Some(bed) = Bed::new() else { return };
    let (told, measured) = asked_by_af_packet(&bed, cpus);
    let told = has_answered(&told, &measured);
    assert!(told.backend.contains("udp"), "{told:?}");
}
