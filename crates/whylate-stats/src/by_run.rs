//! How far runs lie apart at a percentile, and what that does to its limits.
//!
//! A few runs say little of how runs differ: taken as blocks of a binomial limit, three of them are a variance
//! with two degrees of freedom that is believed as if it were known, too wide where they happen to differ and
//! too narrow where they happen to agree. So each run has its own quantile, and the limits of the pooled
//! samples reach at least as far as Student's t puts the mean of those.

use crate::quantile;
use crate::sample::{Blocks, Counts, Sample};
use crate::student::{Spread, critical_of};

/// Runs that say how far runs lie apart.
pub const FEWEST_RUNS: usize = 3;
/// Values beyond a percentile, on either side, that a single run needs to have one.
pub const FEWEST_BEYOND: f64 = 5.0;

/// The values of each run, by bins.
#[derive(Debug, Clone, Default)]
pub struct ByRun {
    runs: Vec<Counts>,
}

impl ByRun {
    /// Those of a sample.
    #[must_use]
    pub fn of(sample: &Sample) -> Self {
        Self { runs: sample.runs().iter().map(Blocks::pooled).collect() }
    }

    /// Is this percentile one of each run, and are there runs enough?
    #[must_use]
    pub fn is_told(&self, percent: f64) -> bool {
        self.spread(percent).is_some()
    }

    /// How far the mean of the runs' quantiles may lie from the truth, to either side with all but the
    /// probability `tail`, by how far they lie apart, ns. None where there are too few of them, or one of them
    /// is too short for this percentile.
    #[must_use]
    pub fn apart(&self, percent: f64, tail: f64) -> Option<f64> {
        Some(self.error(percent)? * self.errors(tail))
    }

    /// The standard error of the mean of the runs' quantiles; none as for [`ByRun::apart`].
    pub(crate) fn error(&self, percent: f64) -> Option<f64> {
        Some(self.spread(percent)?.variance.sqrt())
    }

    /// How many standard errors a limit reaches that fails with the probability `tail`.
    pub(crate) fn errors(&self, tail: f64) -> f64 {
        critical_of(self.runs.len() as f64 - 1.0, 2.0 * tail)
    }

    fn spread(&self, percent: f64) -> Option<Spread> {
        if self.runs.len() < FEWEST_RUNS {
            return None;
        }
        let each: Option<Vec<f64>> = self.runs.iter().map(|run| at(run, percent)).collect();
        Spread::of_mean(&each?)
    }
}

/// The value of a percentile of one run, by its bin's name; none of a run that is too short for it.
fn at(run: &[(u64, u64)], percent: f64) -> Option<f64> {
    let n: u64 = run.iter().map(|(_, count)| count).sum();
    let rarer = (percent / 100.0).min(1.0 - percent / 100.0);
    // A share of a whole number, in binary.
    if (n as f64) * rarer < FEWEST_BEYOND - 1e-6 {
        return None;
    }
    let rank = quantile::rank(n, percent)?;
    let mut before = 0;
    let found = run.iter().find(|(_, count)| {
        before += count;
        before >= rank
    });
    found.map(|(bin, _)| *bin as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;

    fn runs(shifts: &[u64]) -> ByRun {
        let mut sample = Sample::new();
        for shift in shifts {
            let values: Histogram = (1..=1_000_u64).map(|value| value + shift).collect();
            sample.push_intervals(&[values]);
        }
        ByRun::of(&sample)
    }

    #[test]
    fn the_distance_of_few_runs_is_students_and_grows_with_the_confidence() {
        let of = runs(&[0, 30, 60]);
        // Medians of 500, 530 and 560: a standard error of 30/sqrt(3), and 4.303 of those at two degrees of
        // freedom.
        let half = of.apart(50.0, 0.025).unwrap();
        assert!((half - 4.302_653 * 30.0 / 3.0_f64.sqrt()).abs() < 0.01, "{half}");
        assert!(of.apart(50.0, 0.000_5).unwrap() > 7.0 * half);
        assert!(runs(&[7; 5]).apart(90.0, 0.025).unwrap() < 1e-9);
    }

    #[test]
    fn five_runs_reach_a_quarter_as_far_as_three_at_the_share_of_one_of_many_limits() {
        // By the closed forms of Student's distribution at two and at four degrees of freedom.
        let tail = 0.000_364_83;
        let (three, five) = (runs(&[0, 30, 60]), runs(&[0, 15, 30, 45, 60]));
        assert!((three.errors(tail) - 37.0).abs() < 0.1, "{}", three.errors(tail));
        assert!((five.errors(tail) - 9.346).abs() < 0.05, "{}", five.errors(tail));
        let reach = |of: &ByRun| of.apart(50.0, tail).unwrap();
        assert!(reach(&five) < 0.25 * reach(&three));
    }

    #[test]
    fn runs_that_are_too_few_or_too_short_say_nothing() {
        assert_eq!(runs(&[0, 30]).apart(50.0, 0.025), None);
        let of = runs(&[0, 30, 60]);
        // Of a thousand one lies beyond p99.9, and ten beyond p99 and below p1.
        assert!(of.is_told(99.0) && of.is_told(1.0));
        assert!(!of.is_told(99.9) && !of.is_told(0.1));
        assert!(!ByRun::default().is_told(50.0));
    }

    #[test]
    fn a_run_has_a_percentile_from_five_values_beyond_it_on() {
        assert_eq!(at(&[(10, 5), (20, 5)], 50.0), Some(10.0));
        assert_eq!(at(&[(10, 4), (20, 1), (30, 5)], 50.0), Some(20.0));
        assert_eq!(at(&[(10, 4), (20, 6)], 50.0), Some(20.0));
        assert_eq!(at(&[(10, 9)], 50.0), None);
    }
}
