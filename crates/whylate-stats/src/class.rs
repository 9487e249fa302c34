//! The Good, the Bad and the Ugly of the PAM paper, by the p99.9 of what was measured.
//!
//! For gaps that is the *time-weighted* p99.9 ([`crate::weighted::time_weighted_percentile`]): the
//! one over iterations is some 10 ns on any machine. The class says nothing about the far tail;
//! print the events over [`UGLY_ABOVE_NS`] beside it, always.

/// From here on a p99.9 is not Good.
pub const BAD_FROM_NS: u64 = 1_000;

/// Above this a p99.9 is Ugly, and an event belongs to the tail.
pub const UGLY_ABOVE_NS: u64 = 100_000;

/// The class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Below 1 us.
    Good,
    /// From 1 us to 100 us.
    Bad,
    /// Above 100 us.
    Ugly,
}

/// The class of a p99.9.
#[must_use]
pub fn class(p999_ns: u64) -> Class {
    match p999_ns {
        ..BAD_FROM_NS => Class::Good,
        BAD_FROM_NS..=UGLY_ABOVE_NS => Class::Bad,
        _ => Class::Ugly,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_changes_at_one_and_above_a_hundred_microseconds() {
        let classes = [0, 999, 1_000, 100_000, 100_001, u64::MAX].map(class);
        let expected = [Class::Good, Class::Good, Class::Bad, Class::Bad, Class::Ugly, Class::Ugly];
        assert_eq!(classes, expected);
    }
}
