//! Are the departures those of the process that was asked for?
//!
//! Of few departures little can be said: the largest of 300 is no p99.9, and distances of 1 000 that a
//! true Poisson process draws are some 0.03 of the distribution function away from it. So a process is
//! called disturbed only where chance does not explain it, and where nothing can be told, that is told.

use whylate_model::Nanos;
use whylate_model::flow::{Distribution, Flow, OutOf, Process, ProcessVerdict};
use whylate_model::series::Series;
use whylate_net::open_loop::OpenOutcome;
use whylate_stats::Histogram;
use whylate_stats::quantile::estimate;
use whylate_stats::uniformity::{Distance, Uniformity};

/// Below this share of the intended departures the rate was not held: curves whose achieved rates
/// differ by more are not compared either.
const HELD: f64 = 0.99;
/// Distances of Poisson departures whose distribution function differs by no more are like one,
/// whatever a test of many says.
const LIKE_POISSON: f64 = 0.02;
/// The p99.9 of fewer departures is the largest.
const FEWEST: u64 = 1_000;

/// What left, as far as the verdict depends on it.
struct Left<'a> {
    closed: bool,
    share_in_time: Option<f64>,
    lateness: &'a Histogram,
    /// From here on no lateness is known for what it is.
    above: Option<Nanos>,
    distribution: Option<Distribution>,
}

/// The process of departures, whose p99.9 may be so late.
pub(super) fn of(tolerance: Nanos, outcome: &OpenOutcome) -> Process {
    let departures = &outcome.departures;
    let distance = departures.uniformity.as_ref().and_then(Uniformity::distance);
    let distribution = distance.map(|of| Distribution {
        n: of.n,
        largest: of.largest,
        a_squared: of.a_squared,
        effect: of.effect(),
    });
    let left = Left {
        closed: outcome.closed,
        share_in_time: departures.share_in_time(),
        lateness: &outcome.latencies.lateness,
        above: outcome.given_up.lateness_above,
        distribution,
    };
    Process {
        verdict: left.verdict(tolerance),
        lateness_p999: left.lateness_p999(),
        tolerance,
        beyond_tolerance: left.beyond(tolerance),
        distribution,
    }
}

impl Left<'_> {
    /// Of what was never sent only a lower bound is known, and that is no p99.9.
    fn lateness_p999(&self) -> Option<Nanos> {
        let known = |late: &Nanos| self.above.is_none_or(|above| *late < above);
        let enough = self.lateness.len() >= FEWEST;
        self.lateness.value_at(99.9).map(Nanos).filter(|late| enough && known(late))
    }

    fn beyond(&self, tolerance: Nanos) -> Option<OutOf> {
        let (count, of) = (self.lateness.count_above(tolerance.0), self.lateness.len());
        (!self.closed && of > 0).then_some(OutOf { count, of })
    }

    fn verdict(&self, tolerance: Nanos) -> ProcessVerdict {
        if self.closed {
            return ProcessVerdict::ClosedLoop;
        }
        if self.share_in_time.is_some_and(|share| share < HELD) {
            return ProcessVerdict::Saturated;
        }
        if self.distribution.is_some_and(|of| is_another(&of)) {
            return ProcessVerdict::Disturbed;
        }
        if self.lateness.len() >= FEWEST {
            let held = self.lateness_p999().is_some_and(|late| late <= tolerance);
            return if held { ProcessVerdict::Held } else { ProcessVerdict::Disturbed };
        }
        let all_in_time = self.lateness.max().is_some_and(|late| Nanos(late) <= tolerance);
        if all_in_time && self.above.is_none() {
            return ProcessVerdict::Held;
        }
        // So many are late that a p99.9 within the tolerance does not explain it.
        let low = estimate(self.lateness, 99.9, self.lateness.len() as f64).low;
        if low.is_some_and(|low| Nanos(low) > tolerance) {
            ProcessVerdict::Disturbed
        } else {
            ProcessVerdict::TooFew
        }
    }
}

/// Are the distances those of another process, by an amount that matters and not by chance?
fn is_another(of: &Distribution) -> bool {
    of.largest > LIKE_POISSON && of.a_squared > Distance::A_SQUARED_1_PERCENT
}

/// In what the departures of a disturbed process are not those asked for.
pub(super) fn disturbed(flow: &Flow, series: &[Series]) -> String {
    let apart = uninterrupted_p999(flow, series);
    reasons(&flow.departures.process, apart).join("; ")
}

fn reasons(process: &Process, apart: Option<Nanos>) -> Vec<String> {
    let (mut reasons, tolerance) = (Vec::new(), process.tolerance);
    if let Some(of) = process.distribution.filter(is_another) {
        reasons.push(format!(
            "their distances differ from a Poisson process by {:.3} of the distribution function",
            of.largest
        ));
    }
    match process.lateness_p999 {
        Some(late) if late > tolerance => {
            reasons.extend(sent_late(process));
            let apart = apart.map(|of| format!(", {of} apart from long turns of its loop"));
            let apart = apart.unwrap_or_default();
            reasons.push(format!("the p99.9 left {late} late{apart}, tolerance {tolerance}"));
        }
        Some(_) => (),
        None => {
            if let Some(late) = sent_late(process) {
                reasons.push(late);
            } else if reasons.is_empty() {
                reasons.push("how late the p99.9 left is not known".to_owned());
            }
        }
    }
    reasons
}

/// How many were late; none where none was.
fn sent_late(process: &Process) -> Option<String> {
    let OutOf { count, of } = process.beyond_tolerance.filter(|late| late.count > 0)?;
    let tolerance = process.tolerance;
    Some(format!("{count} of {of} left later than the tolerance of {tolerance}, or never"))
}

fn uninterrupted_p999(flow: &Flow, series: &[Series]) -> Option<Nanos> {
    let name = flow.departures.pacing.as_ref().filter(|of| of.excluded > 0)?.lateness.as_ref()?;
    series.iter().find(|series| series.name == *name)?.at(99.9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use whylate_stats::rng::Rng;

    const TOLERANCE: Nanos = Nanos(50_000);

    fn latenesses(in_time: u64, late: u64) -> Histogram {
        let mut lateness = Histogram::new();
        for _ in 0..in_time {
            lateness.record(1_000);
        }
        for _ in 0..late {
            lateness.record(200_000);
        }
        lateness
    }

    fn verdict(lateness: &Histogram, distribution: Option<Distribution>) -> ProcessVerdict {
        let left =
            Left { closed: false, share_in_time: Some(1.0), lateness, above: None, distribution };
        left.verdict(TOLERANCE)
    }

    fn distribution(values: impl Iterator<Item = f64>) -> Distribution {
        let mut uniformity = Uniformity::new();
        for value in values {
            uniformity.push(value);
        }
        let of = uniformity.distance().unwrap();
        let (largest, a_squared) = (of.largest, of.a_squared);
        Distribution { n: of.n, largest, a_squared, effect: of.effect() }
    }

    #[test]
    fn a_true_poisson_process_of_few_departures_is_not_called_disturbed() {
        let lateness = latenesses(300, 0);
        let (mut disturbed, mut beyond) = (0, 0);
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let of = distribution((0..300).map(|_| rng.unit()));
            beyond += u32::from(of.largest > LIKE_POISSON);
            disturbed += u32::from(verdict(&lateness, Some(of)) == ProcessVerdict::Disturbed);
        }
        // One of a hundred is expected; by the distance alone most would be.
        assert!(disturbed <= 10 && beyond > 100, "{disturbed} disturbed, {beyond} beyond");
    }

    #[test]
    fn distances_of_another_process_are_found_among_few_and_named_before_the_lateness() {
        let lateness = latenesses(300, 0);
        // A constant rate: every distance is the mean, where the distribution function is 1 - 1/e.
        let of = distribution(std::iter::repeat_n(0.632, 300));
        assert_eq!(verdict(&lateness, Some(of)), ProcessVerdict::Disturbed);
        // Of many, a difference that is certain and does not matter.
        let near = |i: u32| ((f64::from(i) + 0.5) / 1e5).powf(1.02);
        let of = distribution((0..100_000).map(near));
        assert!(of.a_squared > Distance::A_SQUARED_1_PERCENT, "{of:?}");
        assert_eq!(verdict(&latenesses(100_000, 0), Some(of)), ProcessVerdict::Held);
        let process = |largest, a_squared, lateness_p999| Process {
            verdict: ProcessVerdict::Disturbed,
            lateness_p999,
            tolerance: TOLERANCE,
            beyond_tolerance: Some(OutOf { count: 20, of: 5_000 }),
            distribution: Some(Distribution { n: 5_000, largest, a_squared, effect: 0.0 }),
        };
        let said = |process: &Process| reasons(process, None).join("; ");
        // The lateness alone is off, and it is not known: nothing is said of the distances.
        let only_late = said(&process(0.005, 1.0, None));
        assert!(only_late.contains("20 of 5000 left later"), "{only_late}");
        assert!(!only_late.contains("Poisson"), "{only_late}");
        let both = said(&process(0.4, 900.0, Some(Nanos(200_000))));
        assert!(
            both.starts_with("their distances differ from a Poisson process by 0.400"),
            "{both}"
        );
        assert!(both.contains("the p99.9 left 200"), "{both}");
    }

    #[test]
    fn the_largest_of_few_is_no_p999_and_many_late_ones_of_few_are_told_all_the_same() {
        let of = |in_time, late| verdict(&latenesses(in_time, late), None);
        assert_eq!(of(300, 0), ProcessVerdict::Held);
        assert_eq!(of(299, 1), ProcessVerdict::TooFew);
        assert_eq!(of(290, 10), ProcessVerdict::Disturbed);
        assert_eq!(of(0, 0), ProcessVerdict::TooFew);
        assert_eq!(of(9_995, 5), ProcessVerdict::Held);
        assert_eq!(of(9_980, 20), ProcessVerdict::Disturbed);
        let few = latenesses(299, 1);
        let left = Left {
            closed: false,
            share_in_time: None,
            lateness: &few,
            above: None,
            distribution: None,
        };
        assert_eq!(left.lateness_p999(), None);
        let many = latenesses(9_980, 20);
        let known = Left { lateness: &many, ..left };
        assert!(known.lateness_p999().is_some_and(|late| late > TOLERANCE));
        assert_eq!(known.beyond(TOLERANCE), Some(OutOf { count: 20, of: 10_000 }));
        let none = Histogram::new();
        assert_eq!(Left { lateness: &none, ..left }.beyond(TOLERANCE), None);
        assert_eq!(Left { closed: true, ..known }.beyond(TOLERANCE), None);
        let never = Left { above: Some(Nanos(150_000)), ..known };
        assert_eq!(never.lateness_p999(), None);
        assert_eq!(never.verdict(TOLERANCE), ProcessVerdict::Disturbed);
    }
}
