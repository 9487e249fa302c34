//! Thread models and timers.
//!
//! A *model* says what a synthetic thread does (the models of Hourglass, and new ones); a *timer*
//! says how it waits. Any model runs with any timer: [`run::run`] seats the thread on its CPU, lets
//! the model's body run there, and digests what the body recorded on the calling thread, which is
//! expected to sit on a housekeeping CPU.
//!
//! A new model is one file implementing [`model::Model`]; a new timer is one file implementing
//! [`timer::Timer`].
//!
//! Guarantees: memory does not grow with the duration; whatever a measuring thread cannot hand
//! over is counted; a body stamps first and records afterwards.
//!
//! Does not draw, does not write files, does not change anything outside its own thread.

pub mod error;
pub mod lat_abs;
#[cfg(test)]
mod mock;
pub mod model;
pub mod nanosleep;
pub mod omission;
pub mod placement;
mod record;
pub mod relation;
mod ring;
pub mod run;
pub mod stage;
pub mod timer;

pub use error::ThreadsError;
pub use lat_abs::LatAbs;
pub use model::Model;
pub use nanosleep::ClockNanosleep;
pub use placement::Placement;
pub use run::{Measured, ThreadFacts, run};
pub use timer::{Timer, TimerFacts, TimerNanos};
