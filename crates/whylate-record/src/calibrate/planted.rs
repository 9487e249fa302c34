//! An error that is planted on purpose, to see whether a calibration finds it.
//!
//! The client itself is late: it takes a message in, lets that time go by, and only then reads the stamp of
//! its reception (`rtt/late.rs`), so that all of the way from a stamp to a number is tried out. Exactly one
//! of so many messages that follow each other gets it, drawn from their numbers by the run's seed: planted
//! and unplanted ones lie among each other and have the same host, the same rate and the same moments. How
//! late it really was the client measures by its counter. A run with anything planted says so as a warning
//! that spoils trust, and is not kept for later measurements.

use std::fmt;
use std::str::FromStr;

use whylate_model::Nanos;
use whylate_stats::bootstrap;
use whylate_stats::rng::Rng;

/// Numbers of draws of the seed that nothing else of a calibration uses.
const STREAM: u64 = 0x706c_616e_7400_0000;
/// A tail of more than every second message is none.
const LEAST_ONE_IN: u64 = 2;
/// A bias is in one of so many messages.
const HALF: u64 = 2;

/// What is planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plant {
    /// So much more, in half of the messages.
    Bias(Nanos),
    /// So much more, in one of so many messages.
    Tail(Tail),
}

/// One in so many, by so much: `1in10000:20us`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    /// One in so many.
    pub one_in: u64,
    /// So much more.
    pub by: Nanos,
}

impl FromStr for Tail {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("`{text}` is no tail: write it as 1in10000:20us");
        let (share, by) = text.split_once(':').ok_or_else(refused)?;
        let one_in: u64 =
            share.strip_prefix("1in").and_then(|number| number.parse().ok()).ok_or_else(refused)?;
        let by: Nanos = by.parse().map_err(|_| refused())?;
        if one_in < LEAST_ONE_IN || by.0 == 0 {
            return Err(refused());
        }
        Ok(Self { one_in, by })
    }
}

impl fmt::Display for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1in{}:{}ns", self.one_in, self.by.0)
    }
}

impl Tail {
    /// Whether the message of this number gets it: exactly one of each `one_in` that follow each other does.
    #[must_use]
    pub fn is_in(self, number: u64, seed: u64) -> bool {
        let one_in = self.one_in.max(LEAST_ONE_IN);
        let drawn = Rng::stream(seed ^ STREAM, number / one_in).below(one_in);
        number % one_in == drawn
    }
}

impl fmt::Display for Plant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bias(by) => write!(f, "a bias of {by} in half of the messages, drawn by number"),
            Self::Tail(Tail { one_in, by }) => {
                write!(f, "{by} in one of {one_in} messages, drawn by number")
            }
        }
    }
}

impl Plant {
    /// Whether the message of this number gets it.
    #[must_use]
    pub fn is_in(self, number: u64, seed: u64) -> bool {
        self.as_tail().is_in(number, seed)
    }

    /// As its client is told.
    #[must_use]
    pub fn as_tail(self) -> Tail {
        match self {
            Self::Bias(by) => Tail { one_in: HALF, by },
            Self::Tail(tail) => tail,
        }
    }
}

/// Errors of messages with a bias and without, block by block of time.
#[derive(Debug, Default)]
pub(super) struct Differences {
    with: Vec<i64>,
    without: Vec<i64>,
    /// Medians' differences of the blocks so far, ns.
    blocks: Vec<f64>,
}

/// Messages of each kind that a block needs for a median.
const FEWEST: usize = 20;

impl Differences {
    /// Takes the error of one more message of this block, in nanoseconds.
    pub(super) fn take(&mut self, error_ns: i64, planted: bool) {
        let side = if planted { &mut self.with } else { &mut self.without };
        side.push(error_ns);
    }

    /// The block is over.
    pub(super) fn close(&mut self) {
        if self.with.len() >= FEWEST && self.without.len() >= FEWEST {
            self.blocks.push(median(&mut self.with) - median(&mut self.without));
        }
        self.with.clear();
        self.without.clear();
    }

    /// Mean over the blocks, its 95 % interval where it has one, and their number.
    pub(super) fn found(&self, seed: u64) -> (Option<f64>, Option<(f64, f64)>, u32) {
        if self.blocks.is_empty() {
            return (None, None, 0);
        }
        let interval = bootstrap::of_mean(&self.blocks, seed);
        let interval = interval.is_bounded().then_some((interval.low, interval.high));
        let blocks = u32::try_from(self.blocks.len()).unwrap_or(u32::MAX);
        (Some(bootstrap::mean(&self.blocks)), interval, blocks)
    }
}

/// The median of some values, which are put in order.
fn median(values: &mut [i64]) -> f64 {
    values.sort_unstable();
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle] as f64
    } else {
        f64::midpoint(values[middle - 1] as f64, values[middle] as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_read_as_it_is_written_and_what_is_none_is_refused() {
        let tail: Tail = "1in10000:20us".parse().unwrap();
        assert_eq!((tail.one_in, tail.by), (10_000, Nanos(20_000)));
        assert_eq!(
            tail.to_string().parse::<Tail>(),
            Ok(tail),
            "a client is told it in these words"
        );
        for text in ["", "1in10000", "10000:20us", "1in0:20us", "1in1:20us", "1in9:0us", "1inx:1us"]
        {
            assert!(text.parse::<Tail>().unwrap_err().contains("1in10000:20us"), "{text}");
        }
    }

    #[test]
    fn exactly_one_of_each_so_many_messages_gets_a_plant_the_same_for_one_seed() {
        let planted = |plant: Plant, seed| {
            (0..100_000).filter(move |number| plant.is_in(*number, seed)).collect::<Vec<u64>>()
        };
        let bias = Plant::Bias(Nanos(500));
        let half = planted(bias, 1);
        assert_eq!(half, planted(bias, 1));
        assert_ne!(half, planted(bias, 2));
        let tail = Plant::Tail(Tail { one_in: 1_000, by: Nanos(20_000) });
        for (plant, one_in) in [(bias, 2), (tail, 1_000)] {
            let groups: Vec<u64> = planted(plant, 1).iter().map(|number| number / one_in).collect();
            assert_eq!(groups, (0..100_000 / one_in).collect::<Vec<u64>>());
            // Not always the same one of them.
            let places = planted(plant, 1).into_iter().map(|number| number % one_in);
            let places: std::collections::BTreeSet<u64> = places.collect();
            assert!(places.len() > 1, "{places:?}");
        }
    }

    #[test]
    fn a_planted_difference_is_found_under_noise_that_wanders_and_zero_where_there_is_none() {
        let found = |by: i64| {
            let plant = Plant::Bias(Nanos(500));
            let (mut differences, mut rng) = (Differences::default(), Rng::new(3));
            for number in 0..40_000 {
                // An error that moves slowly, with a tail.
                let slow = 1_000 * (number / 8_000) as i64;
                let error = 5_000 + slow + rng.exponential(400.0) as i64;
                let planted = plant.is_in(number, 9);
                differences.take(error + if planted { by } else { 0 }, planted);
                if number % 1_000 == 999 {
                    differences.close();
                }
            }
            let (mean, interval, blocks) = differences.found(1);
            assert_eq!(blocks, 40);
            (mean.unwrap(), interval.unwrap())
        };
        let (mean, (low, high)) = found(500);
        assert!(low <= 500.0 && 500.0 <= high && low > 0.0, "{mean} ({low} .. {high})");
        let (_, (low, high)) = found(0);
        assert!(low <= 0.0 && 0.0 <= high, "{low} .. {high}");
        assert_eq!(Differences::default().found(1), (None, None, 0));
    }
}
