//! The inverse question: how much release jitter did a run have?
//!
//! A release that is always late by the same time is no jitter: it moves the schedule. So jitter is
//! the distance of the latest release from the earliest, each against its nominal instant, and the
//! least lateness stands beside it. The largest of a sample says nothing of what a longer run would
//! show; the 99.9th percentile comes with the number of samples that it needs.

use whylate_model::Nanos;
use whylate_stats::quantile;

/// The rare quantile that stands beside the largest.
const RARE: f64 = 0.999;

/// How late releases were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Releases.
    pub n: u64,
    /// The least lateness: all releases were at least so late.
    pub least: Nanos,
    /// The largest beyond it.
    pub jitter: Nanos,
    /// What 99.9 % of them did not exceed beyond the least; none where the sample does not bound it.
    pub p999: Option<Nanos>,
}

/// How late releases were, each given by its nominal instant and its arrival in nanoseconds of one
/// clock; an arrival before its instant counts as punctual. None without releases.
#[must_use]
pub fn estimate(releases: &[(Nanos, Nanos)]) -> Option<Estimate> {
    let mut late: Vec<u64> =
        releases.iter().map(|(nominal, arrival)| arrival.0.saturating_sub(nominal.0)).collect();
    late.sort_unstable();
    let (least, most) = (*late.first()?, *late.last()?);
    let n = late.len() as u64;
    let supported = quantile::ranks(n, RARE).high.is_some();
    let rank = (n - n / 1_000) as usize;
    let p999 = late.get(rank.saturating_sub(1)).filter(|_| supported);
    Some(Estimate {
        n,
        least: Nanos(least),
        jitter: Nanos(most - least),
        p999: p999.map(|late| Nanos(late - least)),
    })
}

#[cfg(test)]
mod tests {
    use whylate_stats::rng::Rng;

    use super::*;

    #[test]
    fn a_constant_delay_is_no_jitter() {
        let releases: Vec<_> = (0..100).map(|k| (Nanos(k * 8), Nanos(k * 8 + 5))).collect();
        let found = estimate(&releases).unwrap();
        assert_eq!((found.n, found.least, found.jitter), (100, Nanos(5), Nanos(0)));
        assert_eq!(found.p999, None, "a hundred releases do not show one in a thousand");
        assert_eq!(estimate(&[]), None);
    }

    #[test]
    fn planted_jitter_is_found_with_its_rare_quantile() {
        let mut rng = Rng::new(3);
        let mut releases: Vec<_> = (0..10_000_u64)
            .map(|k| (Nanos(k * 10_000), Nanos(k * 10_000 + 70 + rng.below(1_000))))
            .collect();
        releases[77].1 = Nanos(releases[77].0.0 + 70 + 8_000);
        releases[78].1 = Nanos(releases[78].0.0 + 70);
        let found = estimate(&releases).unwrap();
        assert_eq!((found.least, found.jitter), (Nanos(70), Nanos(8_000)));
        let rare = found.p999.unwrap().0;
        assert!((990..=1_000).contains(&rare), "{rare}");
    }

    #[test]
    fn an_arrival_before_its_instant_counts_as_punctual() {
        let found = estimate(&[(Nanos(10), Nanos(7)), (Nanos(20), Nanos(24))]).unwrap();
        assert_eq!((found.least, found.jitter), (Nanos(0), Nanos(4)));
    }
}
