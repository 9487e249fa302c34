//! Are values between 0 and 1 uniform? For processes whose distances went through their own
//! distribution function (the probability integral transform).
//!
//! With many values every test rejects: what counts is the size of the difference. Two are given:
//! the largest distance of the distribution functions, and Anderson and Darling's statistic per
//! value, which weighs the tails (Anderson and Darling, "A Test of Goodness of Fit", 1954).
//! Memory is constant: values are counted in [`BINS`] bins.

/// Bins of equal width.
pub const BINS: usize = 4_096;

/// Counts values between 0 and 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uniformity {
    bins: Vec<u64>,
    n: u64,
}

/// How far the values are from uniform.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distance {
    /// Values.
    pub n: u64,
    /// Largest distance of the distribution functions, at the edges of the bins.
    pub largest: f64,
    /// Anderson and Darling's A squared, over bins.
    pub a_squared: f64,
}

impl Distance {
    /// A squared that a fully specified distribution exceeds in 1 of 100 samples (D'Agostino and
    /// Stephens, "Goodness-of-Fit Techniques", 1986, table 4.2).
    pub const A_SQUARED_1_PERCENT: f64 = 3.857;

    /// A squared per value: the size of the difference, whatever the number of values.
    #[must_use]
    pub fn effect(&self) -> f64 {
        self.a_squared / self.n as f64
    }
}

impl Default for Uniformity {
    fn default() -> Self {
        Self::new()
    }
}

impl Uniformity {
    /// No values yet.
    #[must_use]
    pub fn new() -> Self {
        Self { bins: vec![0; BINS], n: 0 }
    }

    /// Counts a value; one outside 0 to 1 is at the end it is beyond.
    #[inline]
    pub fn push(&mut self, value: f64) {
        let bin = (value * BINS as f64) as usize;
        self.bins[bin.min(BINS - 1)] += 1;
        self.n += 1;
    }

    /// Adds the values of another count.
    pub fn add(&mut self, other: &Self) {
        for (bin, more) in self.bins.iter_mut().zip(&other.bins) {
            *bin += more;
        }
        self.n += other.n;
    }

    /// How far the values are from uniform; none without values.
    #[must_use]
    pub fn distance(&self) -> Option<Distance> {
        if self.n == 0 {
            return None;
        }
        let n = self.n as f64;
        let width = 1.0 / BINS as f64;
        let (mut below, mut largest, mut integral) = (0, 0.0_f64, 0.0);
        for (bin, count) in self.bins.iter().enumerate() {
            let (low, high) = (bin as f64 * width, (bin + 1) as f64 * width);
            let at_low = below as f64 / n;
            below += count;
            let at_high = below as f64 / n;
            largest = largest.max((at_high - high).abs());
            integral += within(low, high, at_low, at_high);
        }
        Some(Distance { n: self.n, largest, a_squared: n * integral })
    }
}

/// The integral of (F(u) - u)^2 / (u (1 - u)) over one bin, in which F goes in a straight line from
/// `at_low` to `at_high`.
fn within(low: f64, high: f64, at_low: f64, at_high: f64) -> f64 {
    let slope = (at_high - at_low) / (high - low);
    // F(u) - u = a + b u, and (a + b u)^2 / (u (1 - u)) = a^2 / u + (a + b)^2 / (1 - u) - b^2.
    let (a, b) = (at_low - slope * low, slope - 1.0);
    let lower = if low > 0.0 { a * a * (high / low).ln() } else { 0.0 };
    let upper = if high < 1.0 { (a + b).powi(2) * ((1.0 - low) / (1.0 - high)).ln() } else { 0.0 };
    lower + upper - b * b * (high - low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// A squared of sorted values, by the formula for a sample.
    fn of_sample(values: &[f64]) -> f64 {
        let n = values.len() as f64;
        let terms = values.iter().zip(values.iter().rev()).enumerate();
        let sum: f64 =
            terms.map(|(i, (low, high))| (2 * i + 1) as f64 * (low.ln() + (-high).ln_1p())).sum();
        -n - sum / n
    }

    fn distance(values: &[f64]) -> Distance {
        let mut uniformity = Uniformity::new();
        for value in values {
            uniformity.push(*value);
        }
        uniformity.distance().unwrap()
    }

    #[test]
    fn binned_and_by_the_formula_for_a_sample_a_squared_is_the_same() {
        for (seed, power) in [(1, 1.0), (2, 1.1), (3, 2.0)] {
            let mut rng = Rng::new(seed);
            let mut values: Vec<f64> = (0..20_000).map(|_| rng.unit().powf(power)).collect();
            values.sort_by(f64::total_cmp);
            let (exact, binned) = (of_sample(&values), distance(&values).a_squared);
            assert!((binned - exact).abs() < 0.05 + exact * 0.02, "{exact} {binned}");
        }
    }

    #[test]
    fn one_sample_in_a_hundred_of_a_uniform_process_exceeds_the_limit() {
        let mut beyond = 0;
        for seed in 0..2_000 {
            let mut rng = Rng::new(seed);
            let values: Vec<f64> = (0..500).map(|_| rng.unit()).collect();
            beyond += u32::from(distance(&values).a_squared > Distance::A_SQUARED_1_PERCENT);
        }
        // 20 are expected; beyond these limits lie 3 of a million.
        assert!((4..48).contains(&beyond), "{beyond} of 2000");
    }

    #[test]
    fn the_size_of_a_difference_does_not_depend_on_the_number_of_values() {
        let skewed = |count: u32| {
            let values = (0..count).map(|i| ((f64::from(i) + 0.5) / f64::from(count)).powi(2));
            distance(&values.collect::<Vec<_>>())
        };
        let (few, many) = (skewed(10_000), skewed(1_000_000));
        assert!((few.effect() / many.effect() - 1.0).abs() < 0.01);
        // The square root of u less u is largest at a quarter.
        assert!((few.largest - 0.25).abs() < 0.001 && (many.largest - 0.25).abs() < 0.001);
        assert_eq!(Uniformity::new().distance(), None);
    }

    #[test]
    fn counts_add_up() {
        let (mut one, mut both) = (Uniformity::new(), Uniformity::new());
        let mut other = Uniformity::new();
        for value in [-0.5, 0.2, 0.9] {
            one.push(value);
            both.push(value);
        }
        for value in [0.3, 1.5] {
            other.push(value);
            both.push(value);
        }
        one.add(&other);
        assert_eq!(one, both);
    }
}
