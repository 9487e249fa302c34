//! Times written so that they read back as they were, and lists of CPUs.

use std::fmt;

use whylate_model::{CpuId, Nanos};

use crate::task_set::MOST_CPUS;

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

/// Reads a list of CPUs as the kernel writes it: `2`, `2-5,8`. Sorted, each once.
pub fn cpu_list(text: &str) -> Result<Vec<CpuId>, String> {
    let wrong = |word: &str| format!("`{word}` is no CPU: write a list such as 2 or 2-5,8");
    let mut cpus = Vec::new();
    for word in text.split(',').map(str::trim) {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else {
            return Err(wrong(word));
        };
        if first > last {
            return Err(format!("`{word}` ends before it begins: write the smaller CPU first"));
        }
        if last >= MOST_CPUS {
            return Err(format!("`{word}`: no kernel numbers CPUs beyond {}", MOST_CPUS - 1));
        }
        cpus.extend((first..=last).map(CpuId));
        cpus.sort_unstable();
        cpus.dedup();
    }
    Ok(cpus)
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

    #[test]
    fn cpu_lists_are_those_of_the_kernel() {
        let list = |text: &str| cpu_list(text).map(|cpus| cpus.iter().map(|c| c.0).collect());
        assert_eq!(list("2"), Ok(vec![2]));
        assert_eq!(list("2-5,8"), Ok(vec![2, 3, 4, 5, 8]));
        assert_eq!(list("8, 3,2,3"), Ok(vec![2, 3, 8]));
        for text in ["", "a", "5-2", "1,,2", "-1", "8192", "0-4294967295", "1-"] {
            assert!(cpu_list(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_exact_time_reads_back(ns in 0..=1_000_000_000_000_000u64) {
            prop_assert_eq!(Exact(Nanos(ns)).to_string().parse(), Ok(Nanos(ns)));
        }
    }
}
