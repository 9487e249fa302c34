//! The load of tasks against the one CPU that there is: below, exactly, or above, without rounding
//! where that can decide.

use std::cmp::Ordering;

use super::task::{Releases, Task};

/// A sum of shares, exact as long as its denominator fits, and beside it two sums between which it
/// lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    exact: Option<(u128, u128)>,
    low: u128,
    high: u128,
}

/// One in the unit of the bounds.
const ONE: u128 = 1 << 64;

impl Load {
    pub(crate) const NONE: Self = Self { exact: Some((0, 1)), low: 0, high: 0 };

    /// Adds `part` of `whole`, which is not 0.
    pub(crate) fn add(&mut self, part: u64, whole: u64) {
        let scaled = u128::from(part) << 64;
        let whole = u128::from(whole.max(1));
        self.low = self.low.saturating_add(scaled / whole);
        self.high = self.high.saturating_add(scaled.div_ceil(whole));
        self.exact = self.exact.and_then(|sum| plus(sum, (u128::from(part), whole)));
    }

    /// Beside the whole CPU; none where it is so near that only more digits would tell.
    pub(super) fn beside_one(&self) -> Option<Ordering> {
        self.beside(1)
    }

    /// Beside so many CPUs; none where it is so near that only more digits would tell.
    pub(crate) fn beside(&self, cpus: u64) -> Option<Ordering> {
        let times = |(part, whole): (u128, u128)| Some((part, whole.checked_mul(cpus.into())?));
        if let Some((part, all)) = self.exact.and_then(times) {
            return Some(part.cmp(&all));
        }
        let all = ONE * u128::from(cpus);
        match (self.low > all, self.high < all) {
            (true, _) => Some(Ordering::Greater),
            (_, true) => Some(Ordering::Less),
            _ => None,
        }
    }

    /// As a fraction of the CPU, for whoever reads it.
    pub(crate) fn share(&self) -> f64 {
        f64::midpoint(self.low as f64, self.high as f64) / ONE as f64
    }
}

/// The share of the CPU that tasks ask for; one that never blocks takes what is left, and asks for
/// none.
#[must_use]
pub fn utilisation(tasks: &[Task]) -> f64 {
    of(tasks).share()
}

/// The load of tasks that are released by time.
pub(super) fn of(tasks: &[Task]) -> Load {
    let mut load = Load::NONE;
    for task in tasks.iter().filter(|task| task.releases == Releases::Periodic) {
        load.add(task.execution.0, task.period.0);
    }
    load
}

fn plus((a, b): (u128, u128), (c, d): (u128, u128)) -> Option<(u128, u128)> {
    let shared = divisor(b, d);
    let whole = b.checked_mul(d / shared)?;
    let part = a.checked_mul(d / shared)?.checked_add(c.checked_mul(b / shared)?)?;
    let shared = divisor(part, whole);
    Some((part / shared, whole / shared))
}

/// The greatest common divisor; 1 for two zeros.
pub(super) fn divisor(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(shares: &[(u64, u64)]) -> Option<Ordering> {
        let mut load = Load::NONE;
        for (part, whole) in shares {
            load.add(*part, *whole);
        }
        load.beside_one()
    }

    #[test]
    fn thirds_that_make_a_whole_are_told_from_those_that_do_not() {
        assert_eq!(beside(&[(1, 3), (1, 3), (1, 3)]), Some(Ordering::Equal));
        assert_eq!(beside(&[(1, 3), (2, 3), (1, u64::MAX)]), Some(Ordering::Greater));
        assert_eq!(beside(&[(3, 8), (17, 33)]), Some(Ordering::Less));
        assert_eq!(beside(&[]), Some(Ordering::Less));
    }

    #[test]
    fn several_cpus_are_told_as_exactly_as_one() {
        let load = |shares: &[(u64, u64)]| {
            let mut load = Load::NONE;
            for (part, whole) in shares {
                load.add(*part, *whole);
            }
            load
        };
        let thirds = load(&[(2, 3); 3]);
        assert_eq!(thirds.beside(2), Some(Ordering::Equal));
        assert_eq!(
            (thirds.beside(1), thirds.beside(3)),
            (Some(Ordering::Greater), Some(Ordering::Less))
        );
        let more = load(&[(2, 3), (2, 3), (2, 3), (1, u64::MAX)]);
        assert_eq!(more.beside(2), Some(Ordering::Greater));
        assert_eq!(more.beside(u64::MAX), Some(Ordering::Less));
    }

    #[test]
    fn sums_whose_denominator_does_not_fit_are_bounded_and_undecided_near_one() {
        // Six primes near 2^64 have a product of 384 bits.
        let primes = [59, 83, 95, 179, 189, 257].map(|below| u64::MAX - (below - 1));
        let mut sixths: Vec<_> = primes.iter().map(|prime| (prime / 6, *prime)).collect();
        sixths[5].0 = primes[5] - 5 * (primes[5] / 6);
        assert_eq!(beside(&sixths), None);
        let halves: Vec<_> = primes.iter().map(|prime| (prime / 2, *prime)).collect();
        assert_eq!(beside(&halves), Some(Ordering::Greater));
        let tenths: Vec<_> = primes.iter().map(|prime| (prime / 10, *prime)).collect();
        assert_eq!(beside(&tenths), Some(Ordering::Less));
        assert_eq!(beside(&[(u64::MAX, 1), (u64::MAX, 1)]), Some(Ordering::Greater));
    }
}
