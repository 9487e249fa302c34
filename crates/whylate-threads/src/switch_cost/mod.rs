//! The instrument of context switches: runners that share one CPU and note when each of them had it.
//!
//! A *runner* is a thread, or a process of its own, that reads the counter in a loop ([`hot`]) and
//! writes each stretch without a gap onto a *board* ([`Board`]), memory that threads and processes
//! have in common alike. A *crew* ([`Crew`]) is the runners of one CPU; it lives through any number of
//! *trials*, so that setting it up is in none of them. [`stitch`] lays the stretches of all runners on
//! one line: where one runner stops and another goes on lies a context switch.
//!
//! Guarantees: a stretch is on the board before its runner gives the CPU up, so that what a killed
//! runner wrote is there; a board that is full ends the trial and says so; children do not outlive
//! the thread that started them, nor it them.
//!
//! Judges nothing: which switch is what is said by who holds the evidence.

mod bandwidth;
mod board;
mod crew;
mod hot;
mod passes;
mod runner;
pub mod stitch;

pub use bandwidth::{Streamed, measure as measure_bandwidth};
pub use board::{Board, How, MOST_RUNNERS};
pub use crew::{Crew, Ended, Trial, Watch};
pub use passes::{Passes, measure as measure_passes};
pub use runner::{Class, Seating, Work, run_stdin};
