//! Times written so that they read back as they were: whole numbers of the largest unit that fits.

use std::fmt;

use whylate_model::Nanos;

/// A time without rounding: `8ms`, `3100us`, `33333333ns`; `0s` for none.
///
/// [`Nanos`] itself prints three digits, for tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exact(pub Nanos);

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.0;
        let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
        match units.iter().find(|(scale, _)| ns.is_multiple_of(*scale)) {
            Some((scale, unit)) => write!(f, "{}{unit}", ns / scale),
            None => write!(f, "{ns}ns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_largest_unit_that_fits_is_chosen() {
        for (ns, text) in [
            (0, "0s"),
            (8_000_000, "8ms"),
            (3_100_000, "3100us"),
            (12, "12ns"),
            (60_000_000_000, "60s"),
        ] {
            assert_eq!(Exact(Nanos(ns)).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn an_exact_time_reads_back(ns in 0..=1_000_000_000_000_000u64) {
            prop_assert_eq!(Exact(Nanos(ns)).to_string().parse(), Ok(Nanos(ns)));
        }
    }
}
