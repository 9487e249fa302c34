//! When requests are intended to leave: an instant for every one, whatever came of those before.
//!
//! A [`Plan`] says how often and in which pattern, and is refused when it cannot be kept; the
//! [`Schedule`] that it begins yields the intended instants, in picoseconds since its beginning.
//! The same plan and seed give the same instants.
//!
//! Guarantees: instants never go back; the mean rate is the plan's, without drift: the thousand
//! millionth instant of a constant rate is where the period says, to a nanosecond. Reads no clock.

mod arrivals;
mod due;
mod rate;

use whylate_model::Nanos;

pub use arrivals::{Arrivals, ArrivalsError};
pub(crate) use due::{Alike, gather};
pub use due::{Due, Pace, Picos, Schedule};
pub use rate::{Layer, Rate, RateError};

/// Requests per second at most: more than any socket takes.
const FASTEST: f64 = 1e8;
/// Requests per second at least: one in ten minutes.
const SLOWEST: f64 = 1.0 / 600.0;
/// Parts that a schedule's instants may have: each has histograms of its own.
pub const MOST_PARTS: u32 = 64;

/// How often, in which pattern, and from which seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The pattern.
    pub arrivals: Arrivals,
    /// Requests per second, in the mean over the pattern.
    pub per_second: f64,
    /// For what is random.
    pub seed: u64,
}

/// Why a plan cannot be kept.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// Too fast or too slow.
    #[error(
        "{0:.4} requests a second are outside one in ten minutes to 100 million a second: \
         choose a rate inside"
    )]
    Rate(f64),
    /// A capture without a distance.
    #[error("a capture without two packets at different times: choose one that has them")]
    NoDistance,
    /// The groups overlap.
    #[error(
        "at {per_second:.0} requests/s a group of {arrivals} lasts {lasts_us:.1} us, and the next one is due after \
         {every_us:.1} us: lower the rate, or the intervals within a group"
    )]
    Overlap {
        /// The pattern.
        arrivals: String,
        /// The rate.
        per_second: f64,
        /// From the first of a group to its last.
        lasts_us: f64,
        /// From the first of a group to the first of the next.
        every_us: f64,
    },
}

impl Plan {
    /// Refuses what cannot be kept.
    pub fn check(&self) -> Result<(), PlanError> {
        match &self.arrivals {
            Arrivals::Sweep { .. } | Arrivals::Closed => return Ok(()),
            Arrivals::Capture { instants } => {
                let last = instants.last().is_some_and(|last| last.0 > 0);
                return if last { Ok(()) } else { Err(PlanError::NoDistance) };
            }
            _ => (),
        }
        if !(SLOWEST..=FASTEST).contains(&self.per_second) {
            return Err(PlanError::Rate(self.per_second));
        }
        let (count, apart) = self.arrivals.group();
        let lasts_us = apart.0 as f64 / 1e3 * f64::from(count - 1);
        let every_us = f64::from(count) * 1e6 / self.per_second;
        if lasts_us >= every_us {
            let (arrivals, per_second) = (self.arrivals.to_string(), self.per_second);
            return Err(PlanError::Overlap { arrivals, per_second, lasts_us, every_us });
        }
        Ok(())
    }

    /// The mean rate of what the plan yields, per second; 0 of a closed loop.
    #[must_use]
    pub fn mean_rate(&self) -> f64 {
        match &self.arrivals {
            Arrivals::Sweep { from, to, steps, each } => {
                let gaps = (0..*steps).map(|step| due::sweep_gap(*from, *to, *steps, step));
                let cycle_ps: u64 = gaps.map(|gap| gap.0 * u64::from(*each)).sum();
                f64::from(*steps) * f64::from(*each) * 1e12 / cycle_ps as f64
            }
            Arrivals::Capture { instants } => {
                let last = instants.last().map_or(0, |last| last.0);
                let gaps = instants.len().saturating_sub(1);
                if last == 0 { 0.0 } else { gaps as f64 * 1e12 / last as f64 }
            }
            Arrivals::Closed => 0.0,
            _ => self.per_second,
        }
    }

    /// Does the next request wait for the reply? Then nothing is intended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.arrivals == Arrivals::Closed
    }

    /// After how long the plan's instants come again from the first, where they do; none for plans
    /// that have no length of their own.
    #[must_use]
    pub fn repeats_after(&self) -> Option<Nanos> {
        match &self.arrivals {
            Arrivals::Capture { instants } => Some(Nanos(due::capture_cycle(instants).0 / 1_000)),
            _ => None,
        }
    }

    /// The smallest distance of two intended instants that the plan means, in nanoseconds; none
    /// where distances are random.
    #[must_use]
    pub fn closest_ns(&self) -> Option<f64> {
        match &self.arrivals {
            Arrivals::Constant => Some(1e9 / self.per_second),
            Arrivals::Poisson | Arrivals::Closed => None,
            Arrivals::Burst { .. } => Some(0.0),
            Arrivals::Pair { apart } | Arrivals::Train { apart, .. } => Some(apart.0 as f64),
            Arrivals::Sweep { from, to, .. } => Some((*from).min(*to).0 as f64),
            Arrivals::Capture { instants } => {
                let gaps = instants.windows(2).map(|two| two[1].0 - two[0].0);
                gaps.min().map(|least| least as f64 / 1e3)
            }
        }
    }

    /// The schedule, from its first instant.
    #[must_use]
    pub fn begin(&self) -> Schedule {
        Schedule::new(self)
    }
}
