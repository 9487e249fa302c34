//! The live figures: what this machine and this build come to, beside what is promised.
//!
//! A figure is an experiment in rounds, of which it says beforehand how many there are. Each round is set
//! down with what the machine was like meanwhile; what the rounds say together is held against the promise:
//! `met`, `not met`, or `not shown` with the reason. None of them decides whether a change lands.

pub mod command;
pub mod conditions;
pub mod driver;
pub mod figure;
mod interrupt;
pub mod journal;
pub mod judge;
pub mod process;
pub mod round;
pub mod state;
pub mod table;
