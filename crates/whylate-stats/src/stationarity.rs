//! Did the measured thing change while it was measured?
//!
//! The run is cut into ten equal blocks of time. The series of each block's p50 and p99 is tested
//! for a trend (Mann-Kendall), and the blocks' values for any difference (Kruskal-Wallis). (A unit
//! root test has the wrong null hypothesis for this: it almost always says "stationary".)
//!
//! Both p-values assume independent samples, and with a hundred thousand samples every p-value is
//! small. So each test carries an effect size, and the caller prints the block series.

use crate::histogram::Histogram;
use crate::special;

/// Blocks of a run.
pub const BLOCKS: usize = 10;

/// Up to this length the exact distribution of S is used when there are no ties.
pub(crate) const EXACT_UP_TO: usize = 100;

/// Result of a test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Test {
    /// Mann-Kendall's S, Kruskal-Wallis's H.
    pub statistic: f64,
    /// Probability of a statistic at least as extreme when nothing changed; two-sided for S.
    pub p_value: f64,
    /// How large, free of the sample size: Kendall's tau-b with time, in -1..=1; Kruskal-Wallis's
    /// epsilon squared H/(n-1), in 0..=1.
    pub effect: f64,
}

impl Test {
    /// Too little data: nothing speaks for a change.
    pub const NOTHING: Self = Self { statistic: 0.0, p_value: 1.0, effect: 0.0 };
}

/// Mann-Kendall test for a trend of a series in time (Mann 1945, Kendall 1975).
///
/// S = pairs that rise - pairs that fall. Exact up to 100 values without ties; else normal with
/// `var S = (n(n-1)(2n+5) - sum t(t-1)(2t+5)) / 18` over groups of t ties and a continuity
/// correction of 1. Cost n^2. [`Test::NOTHING`] below two values or with a NaN among them.
#[must_use]
pub fn mann_kendall(series: &[f64]) -> Test {
    let n = series.len();
    if n < 2 || series.iter().any(|value| value.is_nan()) {
        return Test::NOTHING;
    }
    let (mut s, mut ties) = (0i64, 0i64);
    for (i, earlier) in series.iter().enumerate() {
        for later in &series[i + 1..] {
            s += i64::from(later > earlier) - i64::from(later < earlier);
            ties += i64::from(tied(*later, *earlier));
        }
    }
    let pairs = (n * (n - 1) / 2) as i64;
    let uneven = (pairs - ties) as f64;
    if uneven == 0.0 {
        return Test::NOTHING;
    }
    let p_value = if ties == 0 && n <= EXACT_UP_TO {
        exact_p_value(n, ((pairs - s.abs()) / 2) as usize)
    } else {
        let z = (s.abs() - 1).max(0) as f64 / variance_of_s(series).sqrt();
        special::normal_two_sided(z)
    };
    let effect = s as f64 / (uneven * pairs as f64).sqrt();
    Test { statistic: s as f64, p_value, effect }
}

/// Kruskal-Wallis test whether groups of values come from one distribution (1952).
///
/// `H = (12/(N(N+1)) sum R_j^2/n_j - 3(N+1)) / (1 - sum(t^3-t)/(N^3-N))`, R_j rank sums, t sizes of
/// groups of ties; chi-squared with groups - 1 degrees. Empty groups are left out.
/// [`Test::NOTHING`] with fewer than two groups, with all values equal, or with a NaN among them.
#[must_use]
pub fn kruskal_wallis(groups: &[Vec<f64>]) -> Test {
    let mut values: Vec<(f64, usize)> = groups
        .iter()
        .enumerate()
        .flat_map(|(group, values)| values.iter().map(move |&value| (value, group)))
        .collect();
    if values.iter().any(|(value, _)| value.is_nan()) {
        return Test::NOTHING;
    }
    values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut ranks = RankSums::new(groups.len());
    for ties in values.chunk_by(|a, b| tied(a.0, b.0)) {
        let mut counts = vec![0; groups.len()];
        for &(_, group) in ties {
            counts[group] += 1;
        }
        ranks.add_ties(&counts);
    }
    ranks.test()
}

/// [`kruskal_wallis`] of histograms: values of one bin are ties.
#[must_use]
pub fn kruskal_wallis_of_histograms(groups: &[Histogram]) -> Test {
    // Bins of each group by their unclamped name, so that equal bins meet.
    let mut bins: Vec<(u64, usize, u64)> = groups
        .iter()
        .enumerate()
        .flat_map(|(group, histogram)| {
            histogram.bins().map(move |(value, count)| (histogram.bin_of(value), group, count))
        })
        .collect();
    bins.sort_unstable();
    let mut ranks = RankSums::new(groups.len());
    for ties in bins.chunk_by(|a, b| a.0 == b.0) {
        let mut counts = vec![0; groups.len()];
        for &(_, group, count) in ties {
            counts[group] += count;
        }
        ranks.add_ties(&counts);
    }
    ranks.test()
}

/// The block that an interval of a run belongs to when the run's `intervals` are cut into `blocks`
/// equal ones: contiguous, in order, sizes differing by one at most.
#[must_use]
pub fn block_of(interval: usize, intervals: usize, blocks: usize) -> usize {
    let (interval, intervals) = (interval as u128, (intervals as u128).max(1));
    ((interval * blocks as u128 / intervals) as usize).min(blocks.saturating_sub(1))
}

/// Adds interval histograms, in order of time, up into equal blocks. Fewer blocks than asked for
/// when there are fewer intervals.
#[must_use]
pub fn blocks(intervals: &[Histogram], blocks: usize) -> Vec<Histogram> {
    let blocks = blocks.min(intervals.len());
    let mut sums = vec![Histogram::new(); blocks];
    for (number, interval) in intervals.iter().enumerate() {
        sums[block_of(number, intervals.len(), blocks)].add(interval);
    }
    sums
}

/// P(|S| at least that far out) from the number of permutations of n with each count of falling
/// pairs, all permutations being equally likely; `fewer` is the smaller of rising and falling.
pub(crate) fn exact_p_value(n: usize, fewer: usize) -> f64 {
    let pairs = n * (n - 1) / 2;
    if 2 * fewer >= pairs {
        return 1.0;
    }
    // share[k] = probability of k falling pairs. The m-th value falls below 0..m of those before.
    let mut share = vec![0.0; fewer + 1];
    share[0] = 1.0;
    for m in 2..=n {
        let mut window = 0.0;
        let before = share.clone();
        for k in 0..=fewer {
            window += before[k];
            if k >= m {
                window -= before[k - m];
            }
            share[k] = window / m as f64;
        }
    }
    (2.0 * share.iter().sum::<f64>()).min(1.0)
}

/// Exactly equal, -0.0 and 0.0 too, which the total order keeps apart but next to each other.
#[expect(clippy::float_cmp, reason = "a tie is two equal values, not two close ones")]
pub(crate) fn tied(a: f64, b: f64) -> bool {
    a == b
}

pub(crate) fn variance_of_s(series: &[f64]) -> f64 {
    let term = |t: usize| (t * (t - 1) * (2 * t + 5)) as f64;
    let mut sorted = series.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let ties: f64 = sorted.chunk_by(|a, b| tied(*a, *b)).map(|group| term(group.len())).sum();
    (term(series.len()) - ties) / 18.0
}

/// Rank sums of groups, filled in ascending order of the values.
struct RankSums {
    /// For each group: values, and the sum of their ranks' distances from the first rank.
    groups: Vec<(u64, f64)>,
    ranked: u64,
    ties: f64,
}

impl RankSums {
    fn new(groups: usize) -> Self {
        Self { groups: vec![(0, 0.0); groups], ranked: 0, ties: 0.0 }
    }

    /// The next larger value, seen that often in each group.
    fn add_ties(&mut self, counts: &[u64]) {
        let tied: u64 = counts.iter().sum();
        let rank = self.ranked as f64 + f64::midpoint(tied as f64, 1.0);
        for (group, &count) in self.groups.iter_mut().zip(counts) {
            group.0 += count;
            group.1 += rank * count as f64;
        }
        let t = tied as f64;
        self.ties += t * (t * t - 1.0);
        self.ranked += tied;
    }

    fn test(&self) -> Test {
        let n = self.ranked as f64;
        let groups: Vec<_> = self.groups.iter().filter(|(count, _)| *count > 0).collect();
        let untied = 1.0 - self.ties / (n * (n * n - 1.0));
        if groups.len() < 2 || untied <= 0.0 {
            return Test::NOTHING;
        }
        // sum n_j (mean rank_j - (N+1)/2)^2: the usual form subtracts two numbers of size N.
        let spread: f64 = groups
            .iter()
            .map(|&&(count, sum)| {
                let off = sum / count as f64 - f64::midpoint(n, 1.0);
                count as f64 * off * off
            })
            .sum();
        let statistic = 12.0 / (n * (n + 1.0)) * spread / untied;
        let p_value = special::chi_squared_upper(statistic, groups.len() as u32 - 1);
        Test { statistic, p_value, effect: (statistic / (n - 1.0)).min(1.0) }
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these results are exact")]
mod tests {
    use super::*;

    #[test]
    fn ten_rising_blocks_are_a_trend() {
        let rising: Vec<f64> = (0..10).map(f64::from).collect();
        let test = mann_kendall(&rising);
        assert_eq!((test.statistic, test.effect), (45.0, 1.0));
        // 2 of the 10! orders are monotone.
        assert!((test.p_value - 2.0 / 3_628_800.0).abs() < 1e-18, "{test:?}");
        let falling: Vec<f64> = rising.iter().rev().copied().collect();
        assert_eq!(mann_kendall(&falling).effect, -1.0);
    }

    #[test]
    fn constant_series_has_no_trend() {
        assert_eq!(mann_kendall(&[3.0; 10]), Test::NOTHING);
        assert_eq!(mann_kendall(&[]), Test::NOTHING);
        assert_eq!(mann_kendall(&[1.0, f64::NAN, 2.0]), Test::NOTHING);
    }

    #[test]
    fn exact_and_normal_p_values_meet_at_the_border() {
        let series: Vec<f64> = (0..100).map(|i| f64::from((i * 37) % 101 + i / 6)).collect();
        let mut distinct = series.clone();
        for (i, value) in distinct.iter_mut().enumerate() {
            *value += i as f64 * 1e-9;
        }
        let exact = mann_kendall(&distinct);
        let z = (exact.statistic.abs() - 1.0) / variance_of_s(&distinct).sqrt();
        let normal = special::normal_two_sided(z);
        assert!((exact.p_value / normal - 1.0).abs() < 0.05, "{} {normal}", exact.p_value);
    }

    #[test]
    fn histogram_version_is_that_of_the_values_when_bins_are_exact() {
        let groups: Vec<Vec<f64>> = vec![vec![1.0, 2.0, 2.0, 9.0], vec![2.0, 5.0, 7.0], vec![8.0]];
        let histograms: Vec<Histogram> =
            groups.iter().map(|g| g.iter().map(|&v| v as u64).collect()).collect();
        assert_eq!(kruskal_wallis(&groups), kruskal_wallis_of_histograms(&histograms));
    }

    #[test]
    fn values_of_one_bin_are_ties_whatever_the_group_s_extremes() {
        // 1000001 and 1000002 share a bin, though each is its own histogram's exact maximum.
        let groups = [1_000_001u64, 1_000_002].map(|value| [value; 50].into_iter().collect());
        assert_eq!(kruskal_wallis_of_histograms(&groups), Test::NOTHING);
    }

    #[test]
    fn groups_without_values_are_left_out() {
        let two = kruskal_wallis(&[vec![1.0, 2.0, 3.0], vec![4.0, 5.0, 6.0]]);
        let three = kruskal_wallis(&[vec![1.0, 2.0, 3.0], vec![], vec![4.0, 5.0, 6.0]]);
        assert_eq!(two, three);
        assert_eq!(kruskal_wallis(&[vec![], vec![1.0]]), Test::NOTHING);
        assert_eq!(kruskal_wallis(&[]), Test::NOTHING);
    }

    #[test]
    fn blocks_are_equal_contiguous_and_lose_nothing() {
        for intervals in [1, 9, 10, 11, 72, 259_200] {
            let mut sizes = [0usize; BLOCKS];
            let mut last = 0;
            for interval in 0..intervals {
                let block = block_of(interval, intervals, BLOCKS);
                assert!(block == last || block == last + 1 || intervals < BLOCKS);
                last = block;
                sizes[block] += 1;
            }
            assert_eq!(sizes.iter().sum::<usize>(), intervals);
            let spread = sizes.iter().max().unwrap() - sizes.iter().min().unwrap();
            assert!(spread <= 1, "{intervals}: {sizes:?}");
        }
        let intervals: Vec<Histogram> = (0..23).map(|i| (i..i + 5).collect()).collect();
        let sums = blocks(&intervals, BLOCKS);
        assert_eq!(sums.len(), BLOCKS);
        assert_eq!(sums.iter().map(Histogram::len).sum::<u64>(), 23 * 5);
        assert_eq!(blocks(&intervals[..3], BLOCKS).len(), 3);
        assert!(blocks(&[], BLOCKS).is_empty());
    }
}
