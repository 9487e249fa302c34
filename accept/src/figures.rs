//! All figures, one file each.

#![expect(clippy::unnecessary_wraps, reason = "a round may say why it is left out; most need not")]

use accept::figure::Figure;

mod wake_beside_cyclictest;

/// All of them, in the order in which they are taken and told.
pub(crate) const ALL: &[&Figure] = &[&wake_beside_cyclictest::FIGURE];
