//! All figures, one file each.

#![expect(clippy::unnecessary_wraps, reason = "a round may say why it is left out; most need not")]

use accept::figure::Figure;

mod clock_sources;
mod reservation_shares;
mod rseq_word;
mod wake_beside_cyclictest;

/// All of them, in the order in which they are taken and told.
pub(crate) const ALL: &[&Figure] = &[
    &clock_sources::FIGURE,
    &reservation_shares::FIGURE,
    &rseq_word::FIGURE,
    &wake_beside_cyclictest::FIGURE,
];
