//! All figures, one file each.

#![expect(clippy::unnecessary_wraps, reason = "a round may say why it is left out; most need not")]

use accept::figure::{Figure, Reading};

mod agreement_of_sources;
mod pacing_beside_hog;
mod planted_hog;
mod planted_server_delay;
mod planted_softirq;
mod planted_tokens;
mod points_that_come;
mod quiet_tail;
mod shared_segments;
mod tail_causes;
mod tap_between_stamps;
mod wake_beside_cyclictest;
mod watched_servers;

/// All of them, in the order in which they are taken and told.
pub(crate) const ALL: &[&Figure] = &[
    &agreement_of_sources::FIGURE,
    &pacing_beside_hog::FIGURE,
    &planted_hog::FIGURE,
    &planted_server_delay::FIGURE,
    &planted_softirq::FIGURE,
    &planted_tokens::FIGURE,
    &points_that_come::FIGURE,
    &quiet_tail::FIGURE,
    &shared_segments::FIGURE,
    &tail_causes::FIGURE,
    &tap_between_stamps::FIGURE,
    &wake_beside_cyclictest::FIGURE,
    &watched_servers::FIGURE,
];

/// The smallest of some shares.
fn fewest(shares: impl IntoIterator<Item = (u64, u64)>) -> Reading {
    let share = |of: &(u64, u64)| of.0 as f64 / of.1.max(1) as f64;
    let least = shares.into_iter().min_by(|a, b| share(a).total_cmp(&share(b)));
    let (hits, of) = least.expect("at least one");
    Reading::Share { hits: hits.min(of), of }
}
