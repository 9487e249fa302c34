//! Task sets: what threads there are, what each asks of the CPU, and how they synchronise.
//!
//! A set comes from the command line of Hourglass ([`hourglass`]), from flags, or from a file
//! ([`file`]). This crate parses and checks; it knows no model, timer or scheduler by name beyond
//! their grammar ([`call`]), because those are found where they run.
//!
//! Does not read a clock, does not run anything, needs no privilege.

pub mod call;
pub mod demand;
pub mod file;
pub mod flag;
pub mod hourglass;
mod normal;
pub mod suggest;
pub mod task_set;
pub mod words;

pub use call::Call;
pub use demand::Demand;
pub use file::{File, FileError};
pub use hourglass::Hourglass;
pub use task_set::{Reservation, Resource, Step, TaskSet, Thread};
