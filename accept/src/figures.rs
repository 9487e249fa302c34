//! All figures, one file each.

#![expect(clippy::unnecessary_wraps, reason = "a round may say why it is left out; most need not")]

use accept::figure::Figure;

mod busy_beside_hog;
mod chain_loop_cost;
mod hourglass_beside_kernel;
mod rate_monotonic_misses;
mod reserved;
mod rt_app_examples;
mod rt_app_periods;
mod rta_jitter;
mod runaway_set;
mod selftest;
mod switch_kinds;
mod wake_beside_cyclictest;
mod wake_named;
mod wake_stalls;
mod working_set_growth;
mod working_sets;

/// All of them, in the order in which they are taken and told.
pub(crate) const ALL: &[&Figure] = &[
    &busy_beside_hog::FIGURE,
    &chain_loop_cost::FIGURE,
    &hourglass_beside_kernel::FIGURE,
    &rate_monotonic_misses::FIGURE,
    &reserved::FIGURE,
    &rt_app_examples::FIGURE,
    &rt_app_periods::FIGURE,
    &rta_jitter::FIGURE,
    &runaway_set::FIGURE,
    &selftest::FIGURE,
    &switch_kinds::FIGURE,
    &wake_beside_cyclictest::FIGURE,
    &wake_named::FIGURE,
    &wake_stalls::FIGURE,
    &working_set_growth::FIGURE,
    &working_sets::FIGURE,
];
