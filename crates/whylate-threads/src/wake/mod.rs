//! Timer wake-ups of one thread, digested while it runs: the probe of the check-up.
//!
//! A [`probe::Probe`] has a body on the measuring thread and a digest on the collecting one;
//! [`run::run`] brings the two together. [`lat_abs`] is the probe of a strict absolute schedule.

pub mod lat_abs;
pub mod probe;
mod record;
pub mod run;
pub mod stage;
