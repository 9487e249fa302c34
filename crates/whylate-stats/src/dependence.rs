//! How many independent samples a dependent sample is worth, for each percentile.
//!
//! Late samples come in bursts. What matters for the interval of a percentile q is how the
//! *exceedances* of q cluster, not how neighbouring values correlate:
//!
//! ```text
//! n_eff = n / F        F = variance of the exceedance counts per interval / its binomial value
//! ```
//!
//! where many samples share the bin of q, the larger F of the samples above it and of those in it or above (the
//! percentile may rest on a burst within the bin); with F at least 1 (index of dispersion; counts over intervals of unequal size by Pearson's form
//! `F = 1/(k-1) sum (x_i - t_i q)^2 / (t_i q (1-q))`, `q = sum x / sum t`). It sees dependence that
//! reaches across samples of one interval; drift over intervals shows too, as it should. Bursts much
//! longer than the whole run cannot be seen by anything.

use crate::histogram::Histogram;

/// Longest lag looked at in a raw series: the cost is n/64 for each.
const LAGS_MAX: usize = 100_000;

/// n_eff from exceedances counted in intervals: (samples above the percentile, samples) of each.
///
/// Between 1 and n (0 for n = 0). n itself when there are fewer than two intervals with samples, or
/// when none or all of the samples exceed: then nothing is known of dependence.
#[must_use]
pub fn effective_n(n: u64, exceedances: &[(u64, u64)]) -> f64 {
    let mut squares = 0.0;
    let (mut intervals, mut exceed, mut total) = (0u64, 0u64, 0u64);
    for &(x, t) in exceedances.iter().filter(|(_, t)| *t > 0) {
        let x = x.min(t);
        squares += x as f64 * (x as f64 / t as f64);
        intervals += 1;
        exceed += x;
        total += t;
    }
    worth(n, dispersion(squares, intervals, exceed, total))
}

/// n_eff of a percentile from three counts of each interval: samples above the bin in which it lies, samples in this bin
/// or above, and samples.
#[must_use]
pub fn effective_n_of_bin(n: u64, counts: &[(u64, u64, u64)]) -> f64 {
    let above: Vec<(u64, u64)> = counts.iter().map(|(above, _, all)| (*above, *all)).collect();
    let not_below: Vec<(u64, u64)> = counts.iter().map(|(_, from, all)| (*from, *all)).collect();
    effective_n(n, &above).min(effective_n(n, &not_below))
}

/// The check of [`effective_n`] where raw samples are kept: `n / (1 + 2 sum rho_k)` with rho_k the
/// autocorrelation of the indicator `1{x > threshold}`, summed over the initial positive sequence
/// (Geyer, "Practical Markov chain Monte Carlo", 1992: pairs of neighbouring lags as long as their
/// sum is positive). Between 1 and n; n when no or all samples exceed.
#[must_use]
pub fn effective_n_of_series(series: &[f64], threshold: f64) -> f64 {
    let n = series.len();
    let exceeds: Vec<bool> = series.iter().map(|&x| x > threshold).collect();
    let exceed = exceeds.iter().filter(|&&one| one).count();
    if exceed == 0 || exceed == n {
        return n as f64;
    }
    let bits = Bits::new(&exceeds);
    let share = exceed as f64 / n as f64;
    // Exceedances among the first n-k and among the last n-k samples.
    let (mut heads, mut tails) = (exceed as f64, exceed as f64);
    let mut correlation = |lag: usize| {
        if lag > 0 {
            heads -= f64::from(u8::from(exceeds[n - lag]));
            tails -= f64::from(u8::from(exceeds[lag - 1]));
        }
        let both = bits.pairs_at(lag) as f64;
        let covariance = both - share * (heads + tails) + (n - lag) as f64 * share * share;
        covariance / (exceed as f64 * (1.0 - share))
    };
    let mut sum = 0.0;
    for first in (0..n.min(LAGS_MAX) - 1).step_by(2) {
        let pair = correlation(first) + correlation(first + 1);
        if pair <= 0.0 {
            break;
        }
        sum += pair;
    }
    // The sum begins with rho_0 = 1, which is to count once where the others count twice.
    worth(n as u64, 2.0 * sum - 1.0)
}

/// Collects what [`effective_n`] needs for *every* percentile at once, before any percentile is
/// known, in constant memory (16 bytes for each bin that was ever occupied).
///
/// Expanding the square, F needs only `sum x_i^2 / t_i`, x_i being what lies above a bin.
#[derive(Debug, Clone, Default)]
pub struct Exceedances {
    /// In ascending order: highest value of a bin, sum of x^2/t for the samples x above it.
    borders: Vec<(u64, f64)>,
    intervals: u64,
    total: u64,
}

impl Exceedances {
    /// No intervals yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in one interval's histogram; empty ones say nothing. Costs one pass over the bins.
    pub fn add(&mut self, interval: &Histogram) {
        let total = interval.len();
        if total == 0 {
            return;
        }
        let bins: Vec<(u64, u64)> =
            interval.bins().map(|(value, count)| (interval.bin_of(value), count)).collect();
        self.add_borders(bins.iter().map(|(bin, _)| *bin));
        let (mut next, mut above) = (bins.iter().peekable(), total);
        for (border, squares) in &mut self.borders {
            while let Some((_, count)) = next.next_if(|(bin, _)| bin <= border) {
                above -= count;
            }
            *squares += above as f64 * (above as f64 / total as f64);
        }
        self.intervals += 1;
        self.total += total;
    }

    /// F for the samples above each of these values, which ascend: 1 where nothing is known of their dependence.
    ///
    /// `all` is the histogram of all the intervals added; its bins are walked once.
    ///
    /// # Panics
    ///
    /// If a value is smaller than the one before it.
    #[must_use]
    pub fn dispersions(&self, all: &Histogram, values_ns: &[u64]) -> Vec<f64> {
        let of = |(value_ns, exceed): (&u64, u64)| {
            self.dispersion_above(self.up_to(all.bin_of(*value_ns)), exceed)
        };
        values_ns.iter().zip(all.counts_above(values_ns)).map(of).collect()
    }

    /// F for the samples above `value_ns`; 1 when nothing is known of their dependence.
    fn dispersion(&self, all: &Histogram, value_ns: u64) -> f64 {
        self.dispersion_above(self.up_to(all.bin_of(value_ns)), all.count_above(value_ns))
    }

    /// How many borders lie in this bin or below.
    fn up_to(&self, bin: u64) -> usize {
        self.borders.partition_point(|(border, _)| *border <= bin)
    }

    /// F for a percentile that lies at `value_ns`: the larger one of the samples above its bin and of those in it or
    /// above.
    #[must_use]
    pub fn dispersion_at(&self, all: &Histogram, value_ns: u64) -> f64 {
        let bin = all.bin_of(value_ns);
        let below = self.borders.partition_point(|(border, _)| *border < bin);
        let not_below = all.bins().filter(|(value, _)| all.bin_of(*value) >= bin);
        let not_below = not_below.map(|(_, count)| count).sum();
        self.dispersion(all, value_ns).max(self.dispersion_above(below, not_below))
    }

    /// F for the `exceed` samples that lie above the first borders, of which there are so many; 1 above none.
    fn dispersion_above(&self, borders: usize, exceed: u64) -> f64 {
        let Some((_, squares)) = borders.checked_sub(1).and_then(|at| self.borders.get(at)) else {
            return 1.0;
        };
        dispersion(*squares, self.intervals, exceed, self.total).max(1.0)
    }

    /// n_eff for a percentile of `all`, the histogram of all the intervals added.
    #[must_use]
    pub fn effective_n(&self, all: &Histogram, percent: f64) -> f64 {
        let factor = all.value_at(percent).map_or(1.0, |value| self.dispersion_at(all, value));
        worth(all.len(), factor)
    }

    /// Makes sure that each bin has a border. As no earlier sample lies in a new bin, what earlier
    /// intervals had above it is what they had above the next lower border, or everything.
    fn add_borders(&mut self, bins: impl Iterator<Item = u64>) {
        let missing = |bin: &u64| self.borders.binary_search_by_key(bin, |(b, _)| *b).is_err();
        let new: Vec<u64> = bins.filter(missing).collect();
        if new.is_empty() {
            return;
        }
        let mut new = new.into_iter().peekable();
        let mut below = self.total as f64;
        let old = std::mem::take(&mut self.borders);
        for (border, squares) in old {
            while let Some(bin) = new.next_if(|bin| *bin < border) {
                self.borders.push((bin, below));
            }
            self.borders.push((border, squares));
            below = squares;
        }
        self.borders.extend(new.map(|bin| (bin, below)));
    }
}

/// Exceedances as a set of bits, to count pairs 64 at a time.
struct Bits(Vec<u64>);

impl Bits {
    fn new(exceeds: &[bool]) -> Self {
        let word =
            |chunk: &[bool]| chunk.iter().rev().fold(0, |word, &one| word << 1 | u64::from(one));
        Self(exceeds.chunks(64).map(word).collect())
    }

    /// How many i have both i and i + lag set.
    fn pairs_at(&self, lag: usize) -> u64 {
        let (words, bits) = (lag / 64, lag % 64);
        let later = &self.0[words.min(self.0.len())..];
        self.0
            .iter()
            .zip(later.iter().enumerate())
            .map(|(&word, (at, &low))| {
                let high =
                    if bits == 0 { 0 } else { later.get(at + 1).map_or(0, |&w| w << (64 - bits)) };
                u64::from((word & (low >> bits | high)).count_ones())
            })
            .sum()
    }
}

fn dispersion(squares: f64, intervals: u64, exceed: u64, total: u64) -> f64 {
    if intervals < 2 || exceed == 0 || exceed >= total {
        return 1.0;
    }
    let (exceed, total) = (exceed as f64, total as f64);
    let q = exceed / total;
    // sum (x - t q)^2 / t = sum x^2/t - q sum x
    (squares - q * exceed) / (q * (1.0 - q) * (intervals - 1) as f64)
}

fn worth(n: u64, factor: f64) -> f64 {
    if n == 0 {
        return 0.0;
    }
    (n as f64 / factor.max(1.0)).clamp(1.0, n as f64)
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these results are exact")]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn equal_intervals_have_the_variance_over_the_binomial_one() {
        // Exceedances 0 and 20 in turn, of 1000: mean 10, variance 100 k/(k-1), binomial 9.9.
        let counts: Vec<(u64, u64)> = (0..50).map(|i| (i % 2 * 20, 1_000)).collect();
        let factor = 50_000.0 / effective_n(50_000, &counts);
        assert!((factor - 100.0 * 50.0 / 49.0 / 9.9).abs() < 1e-9, "{factor}");
    }

    #[test]
    fn independent_samples_are_worth_about_all_of_them() {
        let mut rng = Rng::new(5);
        let count = |rng: &mut Rng| (0..1_000).filter(|_| rng.unit() < 0.01).count() as u64;
        let counts: Vec<(u64, u64)> = (0..400).map(|_| (count(&mut rng), 1_000)).collect();
        // F has a standard deviation of sqrt(2/400) = 0.07.
        assert!(effective_n(400_000, &counts) > 400_000.0 / 1.3);
    }

    #[test]
    fn nothing_known_is_no_penalty() {
        for counts in [&[][..], &[(3, 10)], &[(0, 10), (0, 10)], &[(9, 9), (5, 5)], &[(0, 0); 4]] {
            assert_eq!(effective_n(20, counts), 20.0);
        }
        assert_eq!(effective_n(0, &[(1, 2), (0, 2)]), 0.0);
    }

    #[test]
    fn one_walk_gives_the_factors_of_many() {
        let mut rng = Rng::new(7);
        let (mut all, mut of) = (Histogram::new(), Exceedances::new());
        for _ in 0..40 {
            let scale = 1.0 + rng.below(3) as f64;
            let interval: Histogram =
                (0..200).map(|_| rng.exponential(20_000.0 * scale) as u64).collect();
            all.add(&interval);
            of.add(&interval);
        }
        let values: Vec<u64> = all.bins().map(|(value, _)| value).collect();
        let factors = of.dispersions(&all, &values);
        assert!(values.len() > 1_000 && factors.iter().any(|factor| *factor > 2.0));
        for (value, factor) in values.iter().zip(factors) {
            assert_eq!(factor, of.dispersion(&all, *value), "{value}");
        }
    }

    #[test]
    fn accumulated_sums_give_the_same_as_the_counts() {
        let mut rng = Rng::new(23);
        let (mut all, mut sums, mut intervals) = (Histogram::new(), Exceedances::new(), Vec::new());
        for _ in 0..60 {
            // The level moves from interval to interval, and so does the number of samples.
            let (level, n) = (1_000 + rng.below(5_000), 200 + rng.below(300));
            let interval: Histogram =
                (0..n).map(|_| level + rng.exponential(2_000.0) as u64).collect();
            all.add(&interval);
            sums.add(&interval);
            sums.add(&Histogram::new());
            intervals.push(interval);
        }
        for percent in [0.5, 10.0, 50.0, 90.0, 99.0, 99.9] {
            let value = all.value_at(percent).unwrap();
            // An interval's own extremes must not count apart from its bin.
            let bin = all.bin_of(value);
            let from = |of: &Histogram, least: u64| {
                of.bins().filter(|(at, _)| of.bin_of(*at) >= least).map(|(_, count)| count).sum()
            };
            let counts: Vec<(u64, u64, u64)> =
                intervals.iter().map(|i| (from(i, bin + 1), from(i, bin), i.len())).collect();
            let direct = effective_n_of_bin(all.len(), &counts);
            let summed = sums.effective_n(&all, percent);
            assert!((summed / direct - 1.0).abs() < 1e-9, "{percent}: {summed} {direct}");
        }
        assert!(sums.effective_n(&all, 50.0) < all.len() as f64 / 20.0);
    }

    #[test]
    fn series_in_runs_is_worth_the_number_of_runs() {
        // Runs of 50 equal values: the indicator's autocorrelation is 1 - k/50 up to lag 50.
        let mut rng = Rng::new(9);
        let series: Vec<f64> = (0..400).flat_map(|_| [rng.unit(); 50]).collect();
        let n_eff = effective_n_of_series(&series, 0.7);
        assert!((300.0..500.0).contains(&n_eff), "{n_eff}");
        let single: Vec<f64> = (0..20_000).map(|_| rng.unit()).collect();
        assert!(effective_n_of_series(&single, 0.7) > 15_000.0);
    }

    #[test]
    fn both_ways_agree_on_a_moving_level() {
        let mut rng = Rng::new(31);
        let mut series = Vec::new();
        for _ in 0..300 {
            let busy = rng.unit() < 0.2;
            series.extend(
                (0..500)
                    .map(|_| if rng.unit() < if busy { 0.05 } else { 0.001 } { 2.0 } else { 1.0 }),
            );
        }
        let counts: Vec<(u64, u64)> = series
            .chunks(500)
            .map(|chunk| (chunk.iter().filter(|&&x| x > 1.5).count() as u64, 500))
            .collect();
        let by_counts = effective_n(series.len() as u64, &counts);
        let by_series = effective_n_of_series(&series, 1.5);
        let ratio = by_counts / by_series;
        assert!((0.4..2.5).contains(&ratio), "{by_counts} {by_series}");
    }

    #[test]
    fn pairs_are_counted_across_words() {
        let mut rng = Rng::new(2);
        let exceeds: Vec<bool> = (0..333).map(|_| rng.below(3) == 0).collect();
        let bits = Bits::new(&exceeds);
        for lag in [0, 1, 63, 64, 65, 128, 200, 332] {
            let slow = (lag..333).filter(|&i| exceeds[i] && exceeds[i - lag]).count() as u64;
            assert_eq!(bits.pairs_at(lag), slow, "lag {lag}");
        }
    }

    #[test]
    fn two_intervals_are_enough_and_an_empty_one_says_nothing() {
        // q is 1/20: (1 - 10/20) over 19/400, of two intervals.
        for counts in [&[(10, 100), (0, 100)][..], &[(10, 100), (0, 0), (0, 100)]] {
            assert!((effective_n(200, counts) - 19.0).abs() < 1e-9, "{counts:?}");
        }
    }

    #[test]
    fn a_series_is_worth_what_the_correlations_of_its_exceedances_say() {
        // Of three values, the largest exceed; the one of the threshold does not.
        let series: Vec<f64> = b"2222222100011000222222111001000222222220022"
            .iter()
            .map(|of| f64::from(of - b'0'))
            .collect();
        let n = series.len();
        let exceeds: Vec<f64> = series.iter().map(|x| f64::from(u8::from(*x > 1.0))).collect();
        let share = exceeds.iter().sum::<f64>() / n as f64;
        let correlation = |lag: usize| {
            let pairs = exceeds.iter().zip(&exceeds[lag..]);
            let sum: f64 = pairs.map(|(one, later)| (one - share) * (later - share)).sum();
            sum / (n as f64 * share * (1.0 - share))
        };
        let pairs = (0..).step_by(2).map(|lag| correlation(lag) + correlation(lag + 1));
        let sums: Vec<f64> = pairs.take_while(|pair| *pair > 0.0).collect();
        assert!(sums.len() > 1, "more than the first pair of lags counts: {sums:?}");
        let wanted = n as f64 / (2.0 * sums.iter().sum::<f64>() - 1.0);
        assert!((effective_n_of_series(&series, 1.0) - wanted).abs() < 1e-9, "{wanted}");
        assert_eq!(effective_n_of_series(&[2.0, 0.0], 1.0), 2.0);
        assert_eq!(effective_n_of_series(&[2.0, 2.0, 2.0], 1.0), 3.0);
    }
}
