//! All figures, one file each.

#![expect(clippy::unnecessary_wraps, reason = "a round may say why it is left out; most need not")]

use accept::figure::Figure;

mod delay_over_dpdk;
mod departures_beside_trafgen;
mod forward_beside_testpmd;
mod forward_by_xdp_beside_packet;
mod forward_memif_beside_testpmd;
mod gaps_beside_oslat;
mod messages_over_dpdk_all_come;
mod pass_beside_testpmd;
mod rtt_beside_qperf;
mod rtt_beside_sockperf;
mod rtt_by_xdp_at_both_ends;
mod rtt_by_xdp_beside_net_af_xdp;
mod send_beside_testpmd_and_trafgen;
mod short_requests_all_come;
mod stamps_of_passing;
mod wake_beside_cyclictest;

/// All of them, in the order in which they are taken and told.
pub(crate) const ALL: &[&Figure] = &[
    &delay_over_dpdk::FIGURE,
    &departures_beside_trafgen::FIGURE,
    &forward_beside_testpmd::FIGURE,
    &forward_by_xdp_beside_packet::FIGURE,
    &forward_memif_beside_testpmd::FIGURE,
    &gaps_beside_oslat::FIGURE,
    &messages_over_dpdk_all_come::FIGURE,
    &pass_beside_testpmd::FIGURE,
    &rtt_beside_qperf::FIGURE,
    &rtt_beside_sockperf::FIGURE,
    &rtt_by_xdp_at_both_ends::FIGURE,
    &rtt_by_xdp_beside_net_af_xdp::FIGURE,
    &send_beside_testpmd_and_trafgen::FIGURE,
    &short_requests_all_come::FIGURE,
    &stamps_of_passing::FIGURE,
    &wake_beside_cyclictest::FIGURE,
];
