//! What chance does to frames, drawn as each comes: how long it is held back, and what else happens.
//!
//! Each question has a stream of its own, so that the losses of a seed are the same ones whatever the delay
//! is, and the other way round. Times are in ticks of the counter; nothing here divides.

use std::f64::consts::TAU;

use whylate_model::{Hertz, Nanos, Ticks};
use whylate_stats::rng::Rng;

use super::law::{Amount, Law};
use crate::conversation::Scale;

/// Streams of a seed that one direction takes.
const STREAMS: u64 = 8;

/// The draws of one direction under one law.
#[derive(Debug, Clone)]
pub(super) struct Dice {
    delay: Delay,
    times: Rng,
    loss: Share,
    duplicate: Share,
    reorder: Share,
}

/// How long, in ticks.
#[derive(Debug, Clone)]
enum Delay {
    Constant(u64),
    Uniform { low: u64, span: u64 },
    Normal { mean: f64, sd: f64, most: f64 },
    Exponential { base: f64, mean: f64, most: f64 },
    Schedule { steps: Vec<(Ticks, u64)>, at: usize },
}

/// One share and its own stream.
#[derive(Debug, Clone)]
struct Share {
    of: f64,
    rng: Rng,
}

impl Share {
    #[inline]
    fn falls(&mut self) -> bool {
        self.of > 0.0 && self.rng.unit() < self.of
    }
}

impl Dice {
    /// For a direction whose law begins at `begin`.
    pub(super) fn new(law: &Law, direction: u8, begin: Ticks, rate: Hertz) -> Self {
        let stream =
            |question: u64| Rng::stream(law.seed, u64::from(direction) * STREAMS + question);
        let share = |of: f64, question: u64| Share { of, rng: stream(question) };
        Self {
            delay: Delay::new(&law.delay, begin, Scale::new(rate)),
            times: stream(0),
            loss: share(law.loss, 1),
            duplicate: share(law.duplicate, 2),
            reorder: share(law.reorder, 3),
        }
    }

    /// Is the next one lost?
    #[inline]
    pub(super) fn loses(&mut self) -> bool {
        self.loss.falls()
    }

    /// Does it leave twice?
    #[inline]
    pub(super) fn doubles(&mut self) -> bool {
        self.duplicate.falls()
    }

    /// Is it let past those before it?
    #[inline]
    pub(super) fn lets_past(&mut self) -> bool {
        self.reorder.falls()
    }

    /// How long one that came at `arrival` is held back, in ticks.
    #[inline]
    pub(super) fn delay(&mut self, arrival: Ticks) -> u64 {
        match &mut self.delay {
            Delay::Constant(ticks) => *ticks,
            Delay::Uniform { low, span } => *low + self.times.below(*span + 1),
            Delay::Normal { mean, sd, most } => {
                // A negative number becomes 0.
                (*mean + *sd * normal(&mut self.times)).min(*most).round() as u64
            }
            Delay::Exponential { base, mean, most } => {
                (*base + self.times.exponential(*mean)).min(*most).round() as u64
            }
            Delay::Schedule { steps, at } => {
                while steps.get(*at + 1).is_some_and(|(since, _)| *since <= arrival) {
                    *at += 1;
                }
                steps.get(*at).map_or(0, |(_, ticks)| *ticks)
            }
        }
    }
}

impl Delay {
    fn new(amount: &Amount, begin: Ticks, scale: Scale) -> Self {
        let ticks = |time: Nanos| scale.ticks(time).0;
        let most = ticks(amount.longest()) as f64;
        match amount {
            Amount::Constant(time) => Self::Constant(ticks(*time)),
            Amount::Uniform { low, high } => {
                let low = ticks(*low);
                Self::Uniform { low, span: ticks(*high).saturating_sub(low) }
            }
            Amount::Normal { mean, sd } => {
                Self::Normal { mean: ticks(*mean) as f64, sd: ticks(*sd) as f64, most }
            }
            Amount::Exponential { base, mean } => {
                Self::Exponential { base: ticks(*base) as f64, mean: ticks(*mean) as f64, most }
            }
            Amount::Schedule(steps) => {
                let step =
                    |(since, time): &(Nanos, Nanos)| (begin + scale.ticks(*since), ticks(*time));
                Self::Schedule { steps: steps.iter().map(step).collect(), at: 0 }
            }
        }
    }
}

/// Normal with mean 0 and deviation 1 (Box and Muller 1958).
#[inline]
fn normal(rng: &mut Rng) -> f64 {
    let (first, second) = (rng.unit(), rng.unit());
    // `unit` may be 0 and is never 1.
    (-2.0 * (-first).ln_1p()).sqrt() * (TAU * second).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Hertz = Hertz(2e9);

    fn drawn(amount: &str, count: usize) -> Vec<f64> {
        let law = Law { delay: amount.parse().unwrap(), seed: 5, ..Law::default() };
        let mut dice = Dice::new(&law, 0, Ticks(0), RATE);
        (0..count).map(|_| dice.delay(Ticks(0)) as f64 / 2.0).collect()
    }

    fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        (mean, square.sqrt())
    }

    #[test]
    fn delays_have_the_mean_the_deviation_and_the_ends_that_were_asked_for() {
        let count = 200_000;
        for (amount, mean, deviation, low, high) in [
            ("10us", 10_000.0, 0.0, 10_000.0, 10_000.0),
            ("uniform:5us..15us", 10_000.0, 10_000.0 / 12_f64.sqrt(), 5_000.0, 15_000.0),
            ("normal:20us,1us", 20_000.0, 1_000.0, 10_000.0, 26_000.0),
            ("exponential:5us,2us", 7_000.0, 2_000.0, 5_000.0, 46_600.0),
        ] {
            let values = drawn(amount, count);
            let (found, spread) = mean_and_deviation(&values);
            // 5 standard errors, and a tick.
            let error = 5.0 * deviation / (count as f64).sqrt() + 0.5;
            assert!((found - mean).abs() <= error, "{amount}: {found}");
            // The deviation's own error is less than twice that of the mean here.
            assert!((spread - deviation).abs() <= 2.0 * error, "{amount}: {spread}");
            assert!(values.iter().all(|value| (low..=high).contains(value)), "{amount}");
        }
        // Cut at 0: 31 % would be below it.
        let cut = drawn("normal:1us,2us", count);
        let zeros = cut.iter().filter(|value| **value == 0.0).count() as f64 / count as f64;
        assert!((zeros - 0.3086).abs() < 0.01, "{zeros}");
    }

    #[test]
    fn shares_fall_as_often_as_they_should_and_the_same_ones_whatever_else_is_drawn() {
        let law = Law { loss: 0.1, duplicate: 0.3, reorder: 0.0, seed: 9, ..Law::default() };
        let falls = |law: &Law, direction| {
            let mut dice = Dice::new(law, direction, Ticks(0), RATE);
            let fall = |dice: &mut Dice| (dice.loses(), dice.doubles(), dice.lets_past());
            (0..100_000).map(|_| fall(&mut dice)).collect::<Vec<_>>()
        };
        let first = falls(&law, 0);
        let count =
            |which: fn(&(bool, bool, bool)) -> bool| first.iter().filter(|of| which(of)).count();
        // 5 standard deviations of each.
        assert!(count(|of| of.0).abs_diff(10_000) < 475, "{}", count(|of| of.0));
        assert!(count(|of| of.1).abs_diff(30_000) < 725, "{}", count(|of| of.1));
        assert_eq!(count(|of| of.2), 0);
        let other = Law { duplicate: 1.0, delay: "normal:1us,1us".parse().unwrap(), ..law.clone() };
        let others = falls(&other, 0);
        assert!(first.iter().zip(&others).all(|(a, b)| a.0 == b.0 && b.1));
        let losses = |of: &[(bool, bool, bool)]| of.iter().map(|of| of.0).collect::<Vec<_>>();
        assert_ne!(losses(&first), losses(&falls(&law, 1)));
        assert_ne!(losses(&first), losses(&falls(&Law { seed: 10, ..law }, 0)));
    }

    #[test]
    fn a_schedule_is_followed_step_by_step_from_its_beginning() {
        let delay = Amount::schedule("1us 10us\n2us 30us\n4us 20us").unwrap();
        let mut dice = Dice::new(&Law { delay, ..Law::default() }, 0, Ticks(1_000), RATE);
        let at = [1_000, 3_000, 4_999, 5_000, 8_999, 9_000, 1_000_000];
        let delays = at.map(|at| dice.delay(Ticks(at)));
        assert_eq!(delays, [20_000, 20_000, 20_000, 60_000, 60_000, 40_000, 40_000]);
    }
}
