//! Thread models, timers and reservations, and running a set of threads.
//!
//! A *model* ([`model::Model`], one file each in `models/`) says what a synthetic thread does; a
//! *timer* ([`timer::Timer`], one file each in `timers/`) says how it waits. Any model runs with any
//! timer. [`set`] runs many threads beside each other, each with its gaps, its waits and its jobs on
//! one timeline; [`wake`] measures the wake-ups of a single thread.
//!
//! Guarantees: memory does not grow with the duration; whatever a measuring thread cannot hand
//! over is counted; a body stamps first and records afterwards; execution time is what the gaps
//! leave, never a loop that was calibrated.
//!
//! Does not draw, does not write files, does not change anything outside its own threads.

pub mod error;
mod hot;
pub mod ledger;
pub mod mark;
#[cfg(test)]
mod mock;
pub mod model;
pub mod models;
pub mod omission;
pub mod placement;
pub mod priority;
pub mod relation;
pub mod reservations;
pub mod resources;
pub mod ring;
pub mod set;
pub mod stage;
pub mod switch_cost;
#[cfg(test)]
mod testing;
pub mod timer;
pub mod timers;
pub mod wake;

pub use error::ThreadsError;
pub use model::Model;
pub use placement::Placement;
pub use priority::Priority;
pub use timer::{Timer, TimerFacts, TimerNanos};
pub use timers::ClockNanosleep;
pub use wake::lat_abs::{self, LatAbs};
pub use wake::run::{self, Measured, ThreadFacts, run};
