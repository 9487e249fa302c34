//! Looking at recorded runs.
//!
//! Everything here works from a [`Run`](whylate_model::run::Run) and its directory alone: no
//! privilege, no clock, not the machine that made it. Nothing here measures.

pub mod compare;
pub mod execution;
pub mod hourglass;
pub mod html;
pub mod import;
pub mod merge;
pub mod paper;
pub mod prediction;
pub mod svg;
pub mod timeline;

mod backends;
mod breakdown;
mod calibration;
mod causes;
mod configuration;
mod delay;
mod device;
mod doc;
mod doctor;
mod error;
mod evidence;
mod first;
mod flows;
mod footnote;
mod foreign;
mod forward;
mod frames;
mod gaps;
mod head;
#[cfg(test)]
mod kept;
mod lab;
mod loads;
mod numbers;
mod origins;
mod pacing;
mod queues;
mod reflected;
mod render;
mod residence;
mod sections;
mod selftest;
mod series;
mod spans;
mod switch_cost;
mod tail;
mod terminal;
mod threads;
mod trusted;
mod wake;

pub use doctor::fixes::script as fix_script;
pub use error::ReportError;
pub use first::{
    Account, Place, answer, first_of_account, first_of_comparison, first_of_diagnosis,
    first_of_lab, first_prediction, first_screen, first_screen_of_paper,
};
pub use numbers::respelled::told as respelled;
pub use numbers::scale::Letters;
pub use terminal::{
    Percentiles, Style, Traced, explained, full_of_account, full_of_comparison, full_of_diagnosis,
    full_of_lab, full_of_paper, full_prediction, render, render_with,
};
