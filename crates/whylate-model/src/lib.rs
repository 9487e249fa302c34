//! Units, records and the run directory: the only authority on whylate's formats.
//!
//! Everything that is measured is described here by plain types; everything that is stored is
//! written and read here. Nothing in this crate measures, and nothing needs privilege: any run
//! directory can be opened on any machine.

pub mod cause;
pub mod event;
pub mod gap;
pub mod host;
pub mod run;
pub mod series;
pub mod units;
pub mod warning;

pub use units::{CpuId, Hertz, Nanos, Pid, Ticks, TicksDelta};
