//! The penalty of a switch from the work of paired trials: Hourglass, section 5.2.
//!
//! Pure: counts and times in, a mean with its interval out.

use whylate_model::Nanos;
use whylate_model::switch_cost::Penalty;
use whylate_stats::student::Spread;

use super::breaks::is_the_hosts;

/// Trials of which longer breaks took shares of time that differ by more than this are not compared:
/// what others took would be taken for the cost of switching.
pub(super) const BREAKS_APART: f64 = 0.005;

/// What came of one trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Worked {
    /// Passes over working sets, of all runners.
    pub(super) passes: f64,
    /// Context switches.
    pub(super) switches: u64,
    /// Share of the time that longer breaks took, in which none of the runners had the CPU.
    pub(super) break_share: f64,
    /// What the kernel counted as stolen from the CPU meanwhile, ns; none where it does not count.
    pub(super) stolen_ns: Option<f64>,
}

/// What a pair of trials is good for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Judged {
    /// The penalty of a switch, ns.
    Good(f64),
    /// Longer breaks took more of one than of the other.
    Discarded {
        /// The kernel's count of stolen time says that it was the host.
        by_host: bool,
    },
    /// Nobody switched, or nothing was read.
    Empty,
}

/// Judges a pair of trials of equal length; `unit_ns` is that of the count of stolen time.
pub(super) fn judge(alone: &Worked, together: &Worked, length: Nanos, unit_ns: f64) -> Judged {
    let apart = (alone.break_share - together.break_share).abs();
    if apart > BREAKS_APART {
        let more_alone = alone.break_share > together.break_share;
        let (more, less) = if more_alone { (alone, together) } else { (together, alone) };
        let stolen = (more.stolen_ns, less.stolen_ns);
        return Judged::Discarded {
            by_host: is_the_hosts(apart * length.0 as f64, stolen, unit_ns),
        };
    }
    if alone.passes <= 0.0 || together.switches == 0 {
        return Judged::Empty;
    }
    let lost = (alone.passes - together.passes) / alone.passes;
    Judged::Good(lost * length.0 as f64 / together.switches as f64)
}

/// Good pairs, each with its penalty.
#[derive(Debug, Clone, Default)]
pub(super) struct Pairs {
    good: Vec<(f64, Worked, Worked)>,
}

impl Pairs {
    pub(super) fn add(&mut self, penalty_ns: f64, alone: Worked, together: Worked) {
        self.good.push((penalty_ns, alone, together));
    }

    pub(super) fn len(&self) -> usize {
        self.good.len()
    }

    /// Their mean; none with fewer than two.
    pub(super) fn penalty(&self) -> Option<Penalty> {
        let of_pairs_ns: Vec<f64> = self.good.iter().map(|(penalty, _, _)| *penalty).collect();
        let spread = Spread::of_mean(&of_pairs_ns)?;
        let n = of_pairs_ns.len() as f64;
        let mean_ns = of_pairs_ns.iter().sum::<f64>() / n;
        let interval = spread.around(mean_ns);
        let mean_of =
            |of: fn(&(f64, Worked, Worked)) -> f64| self.good.iter().map(of).sum::<f64>() / n;
        Some(Penalty {
            pairs: self.good.len() as u32,
            mean_ns,
            interval_ns: (interval.low, interval.high),
            passes_alone: mean_of(|(_, alone, _)| alone.passes),
            passes_together: mean_of(|(_, _, together)| together.passes),
            switches: mean_of(|(_, _, together)| together.switches as f64),
            of_pairs_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steal is counted in hundredths of a second.
    const UNIT: f64 = 1e7;

    fn worked(passes: f64, switches: u64, break_share: f64) -> Worked {
        Worked { passes, switches, break_share, stolen_ns: Some(0.0) }
    }

    fn judge(alone: &Worked, together: &Worked, length: Nanos) -> Judged {
        super::judge(alone, together, length, UNIT)
    }

    #[test]
    fn the_papers_formula_on_planted_work() {
        // A fifth of the work lost in 1 s with 1000 switches: 200 us each.
        let judged = judge(&worked(1_000.0, 0, 0.0), &worked(800.0, 1_000, 0.0), Nanos::SECOND);
        assert_eq!(judged, Judged::Good(200_000.0));
    }

    #[test]
    fn more_work_together_than_alone_is_a_negative_penalty() {
        let judged = judge(&worked(100.0, 0, 0.0), &worked(110.0, 100, 0.0), Nanos(1_000_000));
        let Judged::Good(penalty) = judged else { panic!("{judged:?}") };
        assert!((penalty + 1_000.0).abs() < 1e-9, "{penalty}");
    }

    #[test]
    fn a_pair_of_which_breaks_took_one_trial_is_discarded_and_only_stolen_time_is_the_hosts() {
        let quiet = worked(100.0, 50, 0.001);
        for (share, discarded) in [(0.002, false), (0.0059, false), (0.0061, true), (0.3, true)] {
            let judged = judge(&quiet, &worked(90.0, 50, share), Nanos::SECOND);
            let unnamed = Judged::Discarded { by_host: false };
            assert_eq!(judged == unnamed, discarded, "{share}: {judged:?}");
        }
        // 300 ms of the second were breaks, and as many the kernel counts as stolen of that trial.
        let stopped = Worked { stolen_ns: Some(3e8), ..worked(70.0, 50, 0.301) };
        let by_host = Judged::Discarded { by_host: true };
        assert_eq!(judge(&quiet, &stopped, Nanos::SECOND), by_host);
        assert_eq!(judge(&stopped, &quiet, Nanos::SECOND), by_host);
        // Stolen of the other one: whoever had this one, it was not the host by that count.
        let quiet = Worked { stolen_ns: Some(3e8), ..quiet };
        let other = judge(&quiet, &worked(70.0, 50, 0.301), Nanos::SECOND);
        assert_eq!(other, Judged::Discarded { by_host: false });
        // Of both the same was taken: that is no reason.
        let both = worked(70.0, 50, 0.3);
        assert!(matches!(judge(&both, &both, Nanos::SECOND), Judged::Good(_)));
    }

    #[test]
    fn trials_without_switches_or_work_say_nothing() {
        let (quiet, some) = (worked(100.0, 0, 0.0), worked(90.0, 7, 0.0));
        assert_eq!(judge(&quiet, &worked(90.0, 0, 0.0), Nanos::SECOND), Judged::Empty);
        assert_eq!(judge(&worked(0.0, 0, 0.0), &some, Nanos::SECOND), Judged::Empty);
    }

    #[test]
    fn the_interval_is_students_over_the_pairs() {
        let mut pairs = Pairs::default();
        assert_eq!(pairs.penalty(), None);
        for penalty in [10.0, 12.0, 14.0, 16.0, 18.0] {
            pairs.add(penalty, worked(100.0, 0, 0.0), worked(90.0, 20, 0.0));
        }
        let found = pairs.penalty().unwrap();
        // Standard error sqrt(10 / 5), t of 4 degrees 2.776445.
        let half = 2.776_445 * 2.0_f64.sqrt();
        assert!((found.mean_ns - 14.0).abs() < 1e-9);
        assert!((found.interval_ns.0 - (14.0 - half)).abs() < 1e-4, "{found:?}");
        assert!((found.interval_ns.1 - (14.0 + half)).abs() < 1e-4, "{found:?}");
        assert!(found.is_shown() && found.pairs == 5);
        assert!((found.passes_together - 90.0).abs() < 1e-9 && (found.switches - 20.0) < 1e-9);
    }
}
