//! All figures, one file each.

#![expect(clippy::unnecessary_wraps, reason = "a round may say why it is left out; most need not")]

use accept::figure::Figure;

mod departures_beside_trafgen;
mod forward_beside_testpmd;
mod forward_by_xdp_beside_packet;
mod gaps_beside_oslat;
mod rtt_beside_qperf;
mod rtt_beside_sockperf;
mod rtt_by_xdp_at_both_ends;
mod short_requests_all_come;
mod wake_beside_cyclictest;

/// All of them, in the order in which they are taken and told.
pub(crate) const ALL: &[&Figure] = &[
    &departures_beside_trafgen::FIGURE,
    &forward_beside_testpmd::FIGURE,
    &forward_by_xdp_beside_packet::FIGURE,
    &gaps_beside_oslat::FIGURE,
    &rtt_beside_qperf::FIGURE,
    &rtt_beside_sockperf::FIGURE,
    &rtt_by_xdp_at_both_ends::FIGURE,
    &short_requests_all_come::FIGURE,
    &wake_beside_cyclictest::FIGURE,
];
