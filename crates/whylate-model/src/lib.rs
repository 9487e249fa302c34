//! Units, records and the run directory: the only authority on whylate's formats.
//!
//! Everything that is measured is described here by plain types; everything that is stored is
//! written and read here. Nothing in this crate measures, and nothing needs privilege: any run
//! directory can be opened on any machine.

mod advice;
pub mod backends;
pub mod breakdown;
pub mod calibration;
pub mod calibration_parts;
pub mod cause;
pub mod commands;
pub mod configuration;
pub mod delay;
pub mod device;
pub mod difference;
pub mod digest;
pub mod directory;
pub mod doctor;
pub mod duration;
mod error;
pub mod event;
pub mod execution;
mod files;
pub mod flow;
pub mod foreign;
pub mod forward;
pub mod frames;
pub mod gap;
pub mod hlog;
pub mod host;
pub mod identity;
pub mod injection;
pub mod lab;
pub mod load;
pub mod origin;
pub mod output;
pub mod packet;
pub mod paper;
pub mod pcapng;
pub mod prediction;
pub mod reflect;
pub mod run;
#[cfg(feature = "schema")]
pub mod schema;
pub mod segments;
pub mod series;
pub mod settings;
pub mod switch_cost;
pub mod tail;
pub mod tap;
mod text;
pub mod threads;
pub mod trust;
pub mod units;
pub mod wake;
pub mod warning;
mod words;

pub use directory::RunDir;
pub use error::ModelError;
pub use hlog::HistogramLog;
pub use text::{Bytes, CpuList, Printable, nearly_all, percent_of, thousands_apart};
pub use units::{CpuId, Hertz, Nanos, Pid, Ticks, TicksDelta};
