//! All figures, one file each.

#![expect(clippy::unnecessary_wraps, reason = "a round may say why it is left out; most need not")]

use accept::figure::{Figure, Reading};

mod aarch64_under_qemu;
mod accounts_of_many_packets;
mod agreement_of_sources;
mod busy_beside_hog;
mod calibrated_backends;
mod calibration_plants;
mod card_in_a_guest;
mod chain_loop_cost;
mod clients_of_others;
mod clock_sources;
mod delay_beside_forward;
mod delay_over_dpdk;
mod delay_steps;
mod departure_process;
mod departures_beside_trafgen;
mod device_bounds;
mod device_fan_in;
mod flows_side_by_side;
mod forward_beside_testpmd;
mod forward_by_xdp_beside_packet;
mod forward_memif_beside_testpmd;
mod gaps_beside_oslat;
mod hourglass2002_repeated;
mod hourglass2002_timers;
mod hourglass_beside_kernel;
mod killer2017_tools;
mod load_arrives;
mod messages_over_dpdk_all_come;
mod one_in_ten_thousand;
mod one_way_below_there_and_back;
mod pacing_beside_hog;
mod page_drawn;
mod page_of_many_gaps;
mod pam2017_repeated;
mod pass_beside_testpmd;
mod planted_hog;
mod planted_server_delay;
mod planted_softirq;
mod planted_tokens;
mod points_that_come;
mod quiet_tail;
mod rate_monotonic_misses;
mod reservation_shares;
mod reserved;
mod residence_in_the_round_trip;
mod residence_of_planted_work;
mod rseq_word;
mod rt_app_examples;
mod rt_app_periods;
mod rta_jitter;
mod rtt_beside_qperf;
mod rtt_beside_sockperf;
mod rtt_by_xdp_at_both_ends;
mod rtt_by_xdp_beside_net_af_xdp;
mod rtt_memory;
mod rtt_own_thread;
mod rtt_ways_to_wait;
mod runaway_set;
mod selftest;
mod send_beside_testpmd_and_trafgen;
mod shared_segments;
mod short_requests_all_come;
mod sink_distances;
mod stalled_server;
mod stamps_of_passing;
mod switch_kinds;
mod tail_causes;
mod tap_between_stamps;
mod wait_in_the_ring;
mod wake_beside_cyclictest;
mod wake_named;
mod wake_stalls;
mod watched_servers;
mod working_set_growth;
mod working_sets;

/// All of them, in the order in which they are taken and told.
pub(crate) const ALL: &[&Figure] = &[
    &agreement_of_sources::FIGURE,
    &busy_beside_hog::FIGURE,
    &calibrated_backends::FIGURE,
    &calibration_plants::FIGURE,
    &card_in_a_guest::FIGURE,
    &chain_loop_cost::FIGURE,
    &clients_of_others::FIGURE,
    &clock_sources::FIGURE,
    &delay_beside_forward::FIGURE,
    &delay_over_dpdk::FIGURE,
    &delay_steps::FIGURE,
    &departure_process::FIGURE,
    &departures_beside_trafgen::FIGURE,
    &device_fan_in::FIGURE,
    &flows_side_by_side::FIGURE,
    &forward_beside_testpmd::FIGURE,
    &forward_by_xdp_beside_packet::FIGURE,
    &forward_memif_beside_testpmd::FIGURE,
    &gaps_beside_oslat::FIGURE,
    &hourglass2002_repeated::FIGURE,
    &hourglass2002_timers::FIGURE,
    &hourglass_beside_kernel::FIGURE,
    &load_arrives::FIGURE,
    &messages_over_dpdk_all_come::FIGURE,
    &one_way_below_there_and_back::FIGURE,
    &pacing_beside_hog::FIGURE,
    &page_drawn::FIGURE,
    &pam2017_repeated::FIGURE,
    &pass_beside_testpmd::FIGURE,
    &planted_hog::FIGURE,
    &planted_server_delay::FIGURE,
    &planted_softirq::FIGURE,
    &planted_tokens::FIGURE,
    &points_that_come::FIGURE,
    &quiet_tail::FIGURE,
    &rate_monotonic_misses::FIGURE,
    &reservation_shares::FIGURE,
    &reserved::FIGURE,
    &residence_in_the_round_trip::FIGURE,
    &residence_of_planted_work::FIGURE,
    &rseq_word::FIGURE,
    &rt_app_examples::FIGURE,
    &rt_app_periods::FIGURE,
    &rta_jitter::FIGURE,
    &rtt_beside_qperf::FIGURE,
    &rtt_beside_sockperf::FIGURE,
    &rtt_by_xdp_at_both_ends::FIGURE,
    &rtt_by_xdp_beside_net_af_xdp::FIGURE,
    &rtt_memory::FIGURE,
    &rtt_own_thread::FIGURE,
    &rtt_ways_to_wait::FIGURE,
    &runaway_set::FIGURE,
    &selftest::FIGURE,
    &send_beside_testpmd_and_trafgen::FIGURE,
    &shared_segments::FIGURE,
    &short_requests_all_come::FIGURE,
    &sink_distances::FIGURE,
    &stalled_server::FIGURE,
    &stamps_of_passing::FIGURE,
    &switch_kinds::FIGURE,
    &tail_causes::FIGURE,
    &tap_between_stamps::FIGURE,
    &wait_in_the_ring::FIGURE,
    &wake_beside_cyclictest::FIGURE,
    &wake_named::FIGURE,
    &wake_stalls::FIGURE,
    &watched_servers::FIGURE,
    &working_set_growth::FIGURE,
    &working_sets::FIGURE,
];

/// Those that are taken by their whole names alone: they take long, or need what few machines have.
pub(crate) const BY_NAME: &[&Figure] = &[
    &aarch64_under_qemu::FIGURE,
    &accounts_of_many_packets::FIGURE,
    &device_bounds::FIGURE,
    &killer2017_tools::FIGURE,
    &one_in_ten_thousand::FIGURE,
    &page_of_many_gaps::FIGURE,
];

/// The smallest of some shares.
fn fewest(shares: impl IntoIterator<Item = (u64, u64)>) -> Reading {
    let share = |of: &(u64, u64)| of.0 as f64 / of.1.max(1) as f64;
    let least = shares.into_iter().min_by(|a, b| share(a).total_cmp(&share(b)));
    let (hits, of) = least.expect("at least one");
    Reading::Share { hits: hits.min(of), of }
}
