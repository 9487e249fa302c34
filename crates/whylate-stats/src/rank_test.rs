//! Are the values of one side larger? A rank test on binned values that does not take a burst for
//! many witnesses.
//!
//! Mann and Whitney's U counts the pairs in which the value of the second side is the larger one,
//! ties as a half; U over the number of pairs is the *probability of superiority*: 0.5 when neither
//! side is larger. Its classical p-value ([`mann_whitney`]: normal, with correction for ties and
//! continuity) takes every value as independent. Latencies are not: late ones come together, and
//! two recordings of one and the same thing then "differ" most of the time. So the variance is taken
//! between blocks of time (DeLong, DeLong and Clarke-Pearson 1988 for the parts of the variance,
//! Obuchowski 1997 for clusters), and between runs where each side has several; the larger of the
//! p-values and the wider of the intervals are given.

use crate::bootstrap::Interval;
use crate::sample::{Blocks, Counts, Sample, pooled};
use crate::special;
use crate::student::Spread;

/// With fewer blocks than this on a side, nothing is known of dependence.
pub const FEWEST_BLOCKS: usize = 3;

/// Mann and Whitney's U of the second side, and the p-value of independent samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MannWhitney {
    /// Pairs in which the second side's value is larger, ties as a half.
    pub u: f64,
    /// Two-sided p-value: normal, corrected for ties and continuity.
    pub p_value: f64,
}

/// The rank test of two samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankTest {
    /// Probability that a value of the second side is larger than one of the first, ties as a half.
    pub superiority: f64,
    /// Its 95 % interval.
    pub interval: Interval,
    /// The two-sided p-value of "neither is larger".
    pub p_value: f64,
    /// What it would be if all samples were independent.
    pub p_value_if_independent: f64,
    /// What the spread was taken from.
    pub basis: Basis,
}

/// What the spread of a rank test was taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Single samples, taken as independent: there were too few blocks to know better.
    Samples,
    /// Blocks of time within the runs.
    Blocks,
    /// Runs.
    Runs,
}

/// Mann and Whitney's test of two samples that are given by their bins. None when a side is empty.
#[must_use]
pub fn mann_whitney(first: &[(u64, u64)], second: &[(u64, u64)]) -> Option<MannWhitney> {
    let count = |side: &[(u64, u64)]| side.iter().map(|(_, count)| *count as f64).sum::<f64>();
    let (n1, n2) = (count(first), count(second));
    if n1 == 0.0 || n2 == 0.0 {
        return None;
    }
    let (mut u, mut ties, mut below) = (0.0, 0.0, 0.0);
    for (c1, c2) in side_by_side(first, second) {
        u += c2 * (below + c1 / 2.0);
        below += c1;
        let t = c1 + c2;
        ties += t * (t * t - 1.0);
    }
    let n = n1 + n2;
    let variance = n1 * n2 / 12.0 * ((n + 1.0) - ties / (n * (n - 1.0)));
    let off = ((u - n1 * n2 / 2.0).abs() - 0.5).max(0.0);
    let p_value =
        if variance > 0.0 { special::normal_two_sided(off / variance.sqrt()) } else { 1.0 };
    Some(MannWhitney { u, p_value })
}

/// The rank test, with dependence between neighbouring values accounted for. None when a side has
/// no values.
#[must_use]
pub fn rank_test(first: &Sample, second: &Sample) -> Option<RankTest> {
    let all = [first, second].map(|side| pooled(side.blocks()));
    let classical = mann_whitney(&all[0], &all[1])?;
    let placements = Placements::new(&all[0], &all[1]);
    let theta = placements.superiority;
    let independent =
        placements.variance_of_values(0, &all[0]) + placements.variance_of_values(1, &all[1]);
    let mut best = RankTest {
        superiority: theta,
        interval: wald(theta, independent),
        p_value: classical.p_value,
        p_value_if_independent: classical.p_value,
        basis: Basis::Samples,
    };
    let blocks = [first, second].map(|side| side.blocks().cloned().collect::<Vec<Counts>>());
    let runs =
        [first, second].map(|side| side.runs().iter().map(Blocks::pooled).collect::<Vec<Counts>>());
    for (clusters, fewest, basis) in
        [(blocks, FEWEST_BLOCKS, Basis::Blocks), (runs, 2, Basis::Runs)]
    {
        let Some(spread) = placements.spread(&clusters, fewest) else { continue };
        let spread = Spread { variance: spread.variance.max(independent), ..spread };
        let p_value = spread.p_value(theta, 0.5).max(best.p_value_if_independent);
        let around = spread.around(theta);
        let interval = Interval { low: around.low.max(0.0), high: around.high.min(1.0) };
        if best.basis == Basis::Samples || interval.half_width() > best.interval.half_width() {
            (best.interval, best.basis) = (interval, basis);
        }
        best.p_value = best.p_value.max(p_value);
    }
    Some(best)
}

/// Where each value stands among those of the other side.
struct Placements {
    superiority: f64,
    /// For each side: (bin, share of the pairs with the other side that speak for the second).
    of: [Vec<(u64, f64)>; 2],
}

impl Placements {
    fn new(first: &[(u64, u64)], second: &[(u64, u64)]) -> Self {
        let total = |side: &[(u64, u64)]| side.iter().map(|(_, c)| *c as f64).sum::<f64>();
        let (n1, n2) = (total(first), total(second));
        let mut values: Vec<u64> = first.iter().chain(second).map(|(value, _)| *value).collect();
        values.sort_unstable();
        values.dedup();
        let (mut below1, mut below2, mut u) = (0.0, 0.0, 0.0);
        let mut of = [Vec::new(), Vec::new()];
        for (value, (c1, c2)) in values.into_iter().zip(side_by_side(first, second)) {
            // Of the second side, what lies above this value; of the first, what lies below it.
            of[0].push((value, (n2 - below2 - c2 / 2.0) / n2));
            of[1].push((value, (below1 + c1 / 2.0) / n1));
            u += c2 * (below1 + c1 / 2.0);
            below1 += c1;
            below2 += c2;
        }
        Self { superiority: u / n1 / n2, of }
    }

    /// What a value of one side speaks for.
    fn at(&self, side: usize, value: u64) -> f64 {
        let found = self.of[side].binary_search_by_key(&value, |(v, _)| *v);
        found.map_or(0.5, |index| self.of[side][index].1)
    }

    /// Variance of the superiority that comes from the values of one side, were they independent.
    fn variance_of_values(&self, side: usize, counts: &[(u64, u64)]) -> f64 {
        let n: f64 = counts.iter().map(|(_, count)| *count as f64).sum();
        let squares: f64 = counts
            .iter()
            .map(|(value, count)| {
                let off = self.at(side, *value) - self.superiority;
                *count as f64 * off * off
            })
            .sum();
        if n > 1.0 { squares / n / (n - 1.0) } else { 0.0 }
    }

    /// Variance of the superiority that comes from one side, between its clusters.
    fn variance_of_clusters(&self, side: usize, clusters: &[Counts]) -> f64 {
        let (mut squares, mut n, mut filled) = (0.0, 0.0, 0.0);
        for cluster in clusters.iter().filter(|cluster| !cluster.is_empty()) {
            let (mut off, mut own) = (0.0, 0.0);
            for (value, count) in cluster {
                off += *count as f64 * (self.at(side, *value) - self.superiority);
                own += *count as f64;
            }
            squares += off * off;
            n += own;
            filled += 1.0;
        }
        if filled > 1.0 { squares / (n * n) * (filled / (filled - 1.0)) } else { 0.0 }
    }

    /// Spread between clusters; none when a side has fewer than `fewest`.
    fn spread(&self, clusters: &[Vec<Counts>; 2], fewest: usize) -> Option<Spread> {
        let used = |side: &Vec<Counts>| side.iter().filter(|cluster| !cluster.is_empty()).count();
        if clusters.iter().any(|side| used(side) < fewest) {
            return None;
        }
        let [first, second] = [0, 1].map(|side| Spread {
            variance: self.variance_of_clusters(side, &clusters[side]),
            degrees: (used(&clusters[side]) - 1) as f64,
        });
        Some(first.of_difference(second))
    }
}

fn wald(theta: f64, variance: f64) -> Interval {
    let half = 1.96 * variance.sqrt();
    Interval { low: (theta - half).max(0.0), high: (theta + half).min(1.0) }
}

/// The counts of both sides for each value that either has, ascending.
fn side_by_side(first: &[(u64, u64)], second: &[(u64, u64)]) -> Vec<(f64, f64)> {
    let (mut first, mut second) = (first.iter().peekable(), second.iter().peekable());
    let mut both = Vec::new();
    while let Some(value) = first.peek().into_iter().chain(second.peek()).map(|b| b.0).min() {
        let take = |side: &mut std::iter::Peekable<std::slice::Iter<'_, (u64, u64)>>| {
            side.next_if(|bin| bin.0 == value).map_or(0.0, |bin| bin.1 as f64)
        };
        both.push((take(&mut first), take(&mut second)));
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;

    fn sample(intervals: &[&[u64]]) -> Sample {
        let histograms: Vec<Histogram> =
            intervals.iter().map(|values| values.iter().copied().collect()).collect();
        let mut sample = Sample::new();
        sample.push_intervals(&histograms);
        sample
    }

    #[test]
    fn superiority_counts_pairs_and_ties_as_a_half() {
        // Pairs (1,2) (1,3) (2,2) (2,3): three larger, one tie.
        let test = rank_test(&sample(&[&[1, 2]]), &sample(&[&[2, 3]])).unwrap();
        assert!((test.superiority - 3.5 / 4.0).abs() < 1e-12);
        assert_eq!(test.basis, Basis::Samples);
        let other = rank_test(&sample(&[&[2, 3]]), &sample(&[&[1, 2]])).unwrap();
        assert!((other.superiority - 0.5 / 4.0).abs() < 1e-12);
    }

    #[test]
    fn equal_samples_do_not_differ_and_empty_ones_have_no_test() {
        let nines = [&[9u64, 9, 9][..]; 5];
        let equal = rank_test(&sample(&nines), &sample(&nines)).unwrap();
        assert!((equal.superiority - 0.5).abs() < 1e-12 && equal.p_value > 0.999, "{equal:?}");
        assert!(rank_test(&sample(&[]), &sample(&[&[1]])).is_none());
    }

    #[test]
    fn a_burst_is_one_witness() {
        // One second in five is slow, all of it: 200 slow samples are two slow seconds.
        let (quick, slow) = ([10u64; 100], [1_000u64; 100]);
        let calm: Vec<&[u64]> = (0..10).map(|i| if i == 4 { &slow[..] } else { &quick }).collect();
        let busy: Vec<&[u64]> = (0..10).map(|i| if i < 3 { &slow[..] } else { &quick }).collect();
        let test = rank_test(&sample(&calm), &sample(&busy)).unwrap();
        assert!(test.p_value_if_independent < 1e-12, "{test:?}");
        assert!(test.p_value > 0.1 && test.interval.contains(0.5), "{test:?}");
    }
}
