//! Task sets: what threads there are, what each asks of the CPU, and how they synchronise.
//!
//! A set comes from the command line of Hourglass ([`hourglass`]), from flags, from a file
//! ([`file`]), or from a workload of rt-app ([`rtapp`]). This crate parses and checks; it knows no
//! model, timer or scheduler by name beyond their grammar ([`call`]) and what [`analysis`] answers for,
//! because those are found where they run.
//!
//! Does not read a clock, does not run anything, needs no privilege.

pub mod analysis;
pub mod call;
pub mod commitment;
pub mod demand;
pub mod file;
pub mod flag;
pub mod hourglass;
mod normal;
pub mod prediction;
pub mod rtapp;
pub mod simulate;
pub mod suggest;
pub mod task_set;
pub mod words;

pub use call::Call;
pub use commitment::{Commitment, commitment};
pub use demand::Demand;
pub use file::{File, FileError};
pub use hourglass::Hourglass;
pub use rtapp::{RtApp, RtAppError};
pub use task_set::{Reservation, Resource, Step, TaskSet, Thread};
