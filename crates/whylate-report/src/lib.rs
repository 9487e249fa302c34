//! Looking at recorded runs.
//!
//! Everything here works from a [`Run`](whylate_model::run::Run) alone: no privilege, no clock, not
//! the machine that made it. Nothing here measures.

pub mod terminal;

pub use terminal::{Style, render};
