//! A seeded source of pseudo-random numbers: the same seed gives the same run on every machine.
//!
//! xoshiro256** (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2021) with
//! its state filled by SplitMix64 (Steele, Lea and Flood 2014). Not for secrets.

/// The generator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// A generator for this seed; any seed is good.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut split = seed;
        Self { state: std::array::from_fn(|_| split_mix(&mut split)) }
    }

    /// An independent generator for a part of a run: one seed, one stream for each number.
    #[must_use]
    pub fn stream(seed: u64, number: u64) -> Self {
        let (mut a, mut b) = (seed, number);
        Self::new(split_mix(&mut a) ^ split_mix(&mut b).rotate_left(32))
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in [0, 1), 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in 0..bound, each value equally likely (Lemire, "Fast random integer generation in
    /// an interval", 2019); 0 for bound 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        let mut product = u128::from(self.next_u64()) * u128::from(bound);
        if (product as u64) < bound {
            // The first 2^64 mod bound low halves would come once too often.
            let surplus = bound.wrapping_neg() % bound;
            while (product as u64) < surplus {
                product = u128::from(self.next_u64()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// Exponential with this mean: the distance of two events of a Poisson process.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (-self.unit()).ln_1p()
    }

    /// Puts the items into random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// One step of SplitMix64.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_mix_gives_its_published_sequence() {
        let mut state = 1_234_567;
        let got: [u64; 3] = std::array::from_fn(|_| split_mix(&mut state));
        let published =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(got, published);
    }

    #[test]
    fn xoshiro_gives_its_published_sequence() {
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let got: [u64; 4] = std::array::from_fn(|_| rng.next_u64());
        assert_eq!(got, [11_520, 0, 1_509_978_240, 1_215_971_899_390_074_240]);
    }

    #[test]
    fn below_reaches_every_value_about_equally_often() {
        let mut rng = Rng::new(7);
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[rng.below(6) as usize] += 1;
        }
        // 5 standard deviations of Bin(60000, 1/6) are 456.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 456), "{counts:?}");
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.below(1), 0);
    }

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        let first = Rng::stream(1, 0).next_u64();
        assert_eq!(first, Rng::stream(1, 0).next_u64());
        assert_ne!(first, Rng::stream(1, 1).next_u64());
        assert_ne!(first, Rng::stream(2, 0).next_u64());
    }

    #[test]
    fn exponential_has_its_mean() {
        let mut rng = Rng::new(11);
        let mean = (0..100_000).map(|_| rng.exponential(50.0)).sum::<f64>() / 100_000.0;
        assert!((mean - 50.0).abs() < 5.0 * 50.0 / 100_000f64.sqrt(), "{mean}");
    }

    #[test]
    fn shuffle_keeps_the_items() {
        let mut items: Vec<u32> = (0..100).collect();
        Rng::new(3).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
