//! Looking at recorded runs.
//!
//! Everything here works from a [`Run`](whylate_model::run::Run) and its directory alone: no
//! privilege, no clock, not the machine that made it. Nothing here measures.

pub mod compare;
pub mod execution;
pub mod hourglass;
pub mod html;
pub mod merge;
pub mod paper;
pub mod prediction;
pub mod svg;
pub mod terminal;
pub mod timeline;

mod error;
mod flows;
mod plain;
mod sentence;
mod switch_cost;
mod threads;
mod wake;

pub use error::ReportError;
pub use sentence::answer;
pub use terminal::{Percentiles, Style, Traced, render, render_prediction, render_with};
