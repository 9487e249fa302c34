//! How much CPU time to reserve, from what jobs were measured to need.
//!
//! The paper reserved 0.1 ms more than a thread needs and says that one would rather tune it to how
//! much the execution time varies and how much a miss matters (Hourglass, 5.6). Here the user says
//! how often a job may need more than is reserved, and the samples say the rest:
//!
//! ```text
//! amount = upper end of the 95 % interval of the (1 - miss) quantile of the execution times
//! ```
//!
//! by order statistics ([`whylate_stats::quantile`]): no distribution is assumed. Where interrupts
//! and the host take time out of a reservation, their time in each job is a second sample. Each
//! then gets half of `miss` and the two bounds are added (Bonferroni): the sum is exceeded by no
//! more than `miss` of the jobs, however the two depend on each other.
//!
//! The upper end alone holds with 97.5 %; two together with 95 %. Samples that come in bursts are
//! worth fewer ([`whylate_stats::dependence`]). What a sample cannot show is refused. Jobs of
//! another kind than those measured are outside of what any of this can promise.

use std::fmt;

use whylate_model::Nanos;
use whylate_stats::{dependence, quantile};

/// What is proposed, and what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggestion {
    /// CPU time to reserve for each job.
    pub amount: Nanos,
    /// The reservation over what a job needs on average; 1.1 reserves a tenth too much.
    pub over_reservation: f64,
    /// How often a job may need more, at most; a fraction.
    pub miss: f64,
    /// How surely; a fraction.
    pub confidence: f64,
    /// What the jobs need.
    pub execution: Bound,
    /// What is taken from them, where it was measured.
    pub taken: Option<Bound>,
}

/// The upper confidence bound of one quantile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// Which quantile; a fraction.
    pub quantile: f64,
    /// Its upper confidence bound.
    pub bound: Nanos,
    /// Jobs measured.
    pub n: u64,
    /// Independent ones they are worth.
    pub n_eff: f64,
    /// Mean, ns.
    pub mean: f64,
}

/// One of the two samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sample {
    /// Execution times.
    Execution,
    /// Time of interrupts and the host in each job.
    Taken,
}

impl fmt::Display for Suggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "reserve {} in each period, {:.3} times the mean of {} jobs: at most {} of them need \
             more, at {:.1} % confidence",
            self.amount,
            self.over_reservation,
            self.execution.n,
            percent(self.miss),
            self.confidence * 100.0,
        )
    }
}

/// Why nothing can be proposed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SuggestError {
    /// Not a share of misses.
    #[error(
        "{0} is no share of jobs that may miss: write one above 0 and up to 0.5, such as 0.001"
    )]
    Miss(f64),
    /// The sample cannot show the quantile.
    #[error(
        "{n} {sample}, worth {n_eff:.0} independent ones, do not show what {} of the jobs exceed: \
         at least {needed} are needed; measure longer, or allow more misses", percent(*.beyond)
    )]
    TooFew {
        /// Which sample.
        sample: Sample,
        /// Jobs measured.
        n: u64,
        /// Independent ones they are worth.
        n_eff: f64,
        /// The share that may lie beyond; a fraction.
        beyond: f64,
        /// Jobs needed, if they depend on each other as these do.
        needed: u64,
    },
}

/// Proposes a reservation for jobs that were measured to need `execution`, in their order, so that
/// at most a share `miss` of such jobs needs more. `taken` is the time of interrupts and the host
/// in each job; empty where none was measured.
pub fn suggest(
    execution: &[Nanos],
    taken: &[Nanos],
    miss: f64,
) -> Result<Suggestion, SuggestError> {
    /// Rarer misses need more jobs than a year at a kilohertz has.
    const RAREST: f64 = 1e-9;
    if !(RAREST..=0.5).contains(&miss) {
        return Err(SuggestError::Miss(miss));
    }
    let parts = if taken.is_empty() { 1.0 } else { 2.0 };
    let quantile = 1.0 - miss / parts;
    let execution = bound(Sample::Execution, execution, quantile)?;
    let taken = match taken {
        [] => None,
        taken => Some(bound(Sample::Taken, taken, quantile)?),
    };
    let amount = Nanos(execution.bound.0.saturating_add(taken.map_or(0, |taken| taken.bound.0)));
    let outside = (1.0 - quantile::CONFIDENCE) / 2.0;
    Ok(Suggestion {
        amount,
        over_reservation: amount.0 as f64 / execution.mean.max(1.0),
        miss,
        confidence: 1.0 - outside * parts,
        execution,
        taken,
    })
}

fn bound(sample: Sample, values: &[Nanos], quantile: f64) -> Result<Bound, SuggestError> {
    let n = values.len() as u64;
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let at = |rank: u64| sorted.get(rank.saturating_sub(1) as usize).copied();
    let estimate = at(((quantile * n as f64).ceil() as u64).min(n)).unwrap_or_default();
    let series: Vec<f64> = values.iter().map(|value| value.0 as f64).collect();
    let n_eff =
        if n == 0 { 0.0 } else { dependence::effective_n_of_series(&series, estimate.0 as f64) };
    let independent = n_eff as u64;
    // The i-th of m independent values stands for the ranks up to i n/m of the n.
    let stretched = quantile::ranks(independent, quantile)
        .high
        .map(|rank| (u128::from(rank) * u128::from(n)).div_ceil(u128::from(independent)) as u64);
    let Some(bound) = stretched.and_then(at) else {
        let dependence = if n_eff > 0.0 { n as f64 / n_eff } else { 1.0 };
        let needed = (quantile::smallest_n(quantile) as f64 * dependence).ceil() as u64;
        return Err(SuggestError::TooFew { sample, n, n_eff, beyond: 1.0 - quantile, needed });
    };
    let mean = values.iter().map(|value| value.0 as f64).sum::<f64>() / n as f64;
    Ok(Bound { quantile, bound, n, n_eff, mean })
}

fn percent(fraction: f64) -> String {
    // 1 - 0.999 is not 0.001 to the last digit.
    let percent = format!("{:.7}", fraction * 100.0);
    format!("{} %", percent.trim_end_matches('0').trim_end_matches('.'))
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Execution => "execution times",
            Self::Taken => "times taken from jobs",
        })
    }
}

#[cfg(test)]
mod tests {
    use whylate_stats::rng::Rng;

    use super::*;

    fn exponential(rng: &mut Rng, mean: f64, n: usize) -> Vec<Nanos> {
        (0..n).map(|_| Nanos(rng.exponential(mean).round() as u64)).collect()
    }

    /// Trials of each simulation.
    const TRIALS: usize = 500;
    /// Of 500 trials this many may fail at 97.5 %, and at 95 %, in all but one of 1000 such tests.
    const MAY_FAIL: (usize, usize) = (24, 41);

    /// Trials whose suggestion misses more often than it says. A sample barely large enough is now
    /// and then refused, for neighbouring long jobs look like a burst; that may not be the rule.
    fn failures(mut trial: impl FnMut(&mut Rng) -> Option<bool>) -> usize {
        let mut rng = Rng::new(42);
        let trials: Vec<bool> = (0..TRIALS).filter_map(|_| trial(&mut rng)).collect();
        assert!(trials.len() > TRIALS * 9 / 10, "only {} suggestions", trials.len());
        trials.iter().filter(|failed| **failed).count()
    }

    #[test]
    fn the_amount_is_enough_as_often_as_stated() {
        for (n, miss) in [(400, 0.01), (2_000, 0.01), (100, 0.1)] {
            let failed = failures(|rng| {
                let got = suggest(&exponential(rng, 1e6, n), &[], miss).ok()?;
                assert!((got.confidence - 0.975).abs() < 1e-12);
                Some((-(got.amount.0 as f64) / 1e6).exp() > miss)
            });
            assert!(failed <= MAY_FAIL.0, "n {n}, miss {miss}: {failed} of {TRIALS}");
        }
    }

    #[test]
    fn the_sum_of_two_samples_is_enough_as_often_as_stated() {
        let (execution, taken) = (1e6, 4e5);
        let failed = failures(|rng| {
            let jobs = exponential(rng, execution, 1_500);
            let got = suggest(&jobs, &exponential(rng, taken, 1_500), 0.01).ok()?;
            assert!((got.confidence - 0.95).abs() < 1e-12);
            // That the sum of two exponential times exceeds the amount.
            let a = got.amount.0 as f64;
            let beyond = (execution * (-a / execution).exp() - taken * (-a / taken).exp())
                / (execution - taken);
            Some(beyond > 0.01)
        });
        assert!(failed <= MAY_FAIL.1, "{failed} of {TRIALS}");
    }

    #[test]
    fn the_sum_is_enough_where_long_jobs_are_those_interrupted_most() {
        let failed = failures(|rng| {
            let jobs = exponential(rng, 1e6, 1_500);
            let got = suggest(&jobs, &jobs, 0.01).ok()?;
            Some((-(got.amount.0 as f64) / 2e6).exp() > 0.01)
        });
        assert!(failed <= MAY_FAIL.1, "{failed} of {TRIALS}");
    }

    #[test]
    fn rare_delays_in_different_jobs_are_both_reserved_for() {
        let mut rng = Rng::new(46);
        // Eight of a thousand jobs are long, and eight others are interrupted for long: each alone
        // stays below one in a hundred, the two together do not.
        let (mut jobs, mut interrupts) = (Vec::new(), Vec::new());
        for _ in 0..20_000 {
            let dice = rng.below(1_000);
            jobs.push(Nanos(if dice < 8 { 5_000 } else { 1_000 }));
            interrupts.push(Nanos(if dice >= 992 { 400 } else { 10 }));
        }
        assert_eq!(suggest(&jobs, &[], 0.01).unwrap().amount, Nanos(1_000));
        assert_eq!(suggest(&jobs, &interrupts, 0.01).unwrap().amount, Nanos(5_400));
    }

    #[test]
    fn a_sample_too_small_is_refused_with_the_number_needed() {
        let jobs =
            |n: u64| (0..n).map(|i| Nanos(3_000_000 + i * 7_919 % 1_000)).collect::<Vec<_>>();
        assert!(suggest(&jobs(368), &[], 0.01).is_ok());
        let text = suggest(&jobs(367), &[], 0.01).unwrap_err().to_string();
        assert!(text.starts_with("367 execution times, worth 367 independent"), "{text}");
        assert!(text.contains("what 1 % of the jobs exceed: at least 368 are needed"), "{text}");
        let text = suggest(&jobs(5_000), &jobs(100), 0.01).unwrap_err().to_string();
        assert!(text.contains("100 times taken") && text.contains("0.5 %"), "{text}");
        let text = suggest(&[], &[], 0.001).unwrap_err().to_string();
        assert!(text.contains("at least 3688 are needed"), "{text}");
        for miss in [0.0, -0.1, 0.6, 1e-12, f64::NAN] {
            assert!(suggest(&jobs(5_000), &[], miss).is_err(), "{miss}");
        }
    }

    #[test]
    fn jobs_that_come_in_bursts_are_worth_fewer() {
        let mut rng = Rng::new(45);
        let single = exponential(&mut rng, 1e6, 100);
        let bursts: Vec<Nanos> = single.iter().flat_map(|&job| [job; 20]).collect();
        let error = suggest(&bursts, &[], 0.01).unwrap_err();
        let SuggestError::TooFew { n, n_eff, needed, .. } = error else { panic!("{error}") };
        assert_eq!(n, 2_000);
        assert!(n_eff < 250.0 && needed > 2_000, "{n_eff} {needed}");
    }

    #[test]
    fn over_reservation_is_the_amount_over_the_mean() {
        let got = suggest(&vec![Nanos(3_000_000); 1_000], &vec![Nanos(300_000); 1_000], 0.01);
        let got = got.unwrap();
        assert_eq!(got.amount, Nanos(3_300_000));
        assert!((got.over_reservation - 1.1).abs() < 1e-12);
        assert_eq!((got.execution.n, got.taken.unwrap().n), (1_000, 1_000));
    }
}
