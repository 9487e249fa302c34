//! Histograms, quantiles with intervals, tests and bootstrap: the numbers behind every figure.
//!
//! Everything is derived from one store: a [`Histogram`] (or, for a check, the raw samples). The
//! crate is pure: no I/O, no clock, no unsafe; everything random takes a seed.
//!
//! | question | module |
//! |---|---|
//! | what was counted | [`histogram`] |
//! | which percentile, how sure, or refused | [`quantile`] |
//! | how many independent samples is that worth | [`dependence`] |
//! | how sure is the share of yes among dependent outcomes | [`outcomes`] |
//! | how sure is a statistic of the intervals | [`bootstrap`] |
//! | what share of events, of time, lies above x | [`weighted`], [`snr`] |
//! | did it change during the run | [`stationarity`] |
//! | how often per second, and is that different | [`rate`] |
//! | by how much does one side differ, and is it chance | [`sample`], [`difference`], [`rank_test`] |
//! | how many times one side is the other, over pairs | [`ratio`] |
//! | how far may a mean of few runs lie off | [`student`] |
//! | does it rise from group to group | [`trend`] |
//! | Good, Bad or Ugly | [`class`] |
//! | values by rank, negative ones too, with a limit of any confidence | [`order`] |
//! | how far is what was measured from the truth, and up to where may it be trusted | [`error_curve`], [`trust_limit`] |
//! | what can be said of a part of a sum without knowing how the parts depend on each other | [`bounds`] |
//! | how does one thing rise with another | [`slope`] |
//!
//! Percentages (`percent: f64`, 99.9) appear where a person reads them; fractions (`p: f64`,
//! 0.999) where a formula does.

pub mod bootstrap;
pub mod bounds;
pub mod by_run;
pub mod class;
pub mod dependence;
pub mod difference;
pub mod error_curve;
pub mod histogram;
pub mod order;
pub mod outcomes;
pub mod quantile;
pub mod rank_test;
pub mod rate;
pub mod ratio;
pub mod rng;
pub mod sample;
pub mod share;
pub mod slope;
pub mod snr;
pub mod special;
pub mod stationarity;
pub mod student;
pub mod trend;
pub mod trust_limit;
pub mod uniformity;
pub mod weighted;

mod error;
mod v2;

pub use error::StatsError;
pub use histogram::Histogram;
