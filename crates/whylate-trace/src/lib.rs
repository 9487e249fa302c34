//! Kernel trace formats and ring-buffer pages, parsed into events.
//!
//! Three texts and one kind of binary page come from tracefs: `events/header_page` says how a page
//! is laid out, `events/SYSTEM/EVENT/format` says where the fields of an event lie, and
//! `per_cpu/cpuN/trace_pipe_raw` gives the pages. This crate reads all three and holds no file open.
//!
//! Guaranteed: any bytes are accepted without a panic and in time proportional to their number; an
//! event is returned only when all of it was there; nothing is left out without an error or a count.
//!
//! Not done here: opening tracefs, choosing a trace clock, ordering the events of several CPUs. The
//! stamps are given as they were recorded, so they are ticks only under a trace clock that records
//! ticks (`x86-tsc`).
//!
//! Pages are little-endian, as on every architecture that whylate measures; a recorded page can be
//! read on any machine.

mod decoder;
mod error;
mod field;
pub mod format;
pub mod page;
mod shape;
mod wanted;

pub use decoder::{Decoder, PageSummary};
pub use error::TraceError;
pub use page::Missed;
pub use wanted::{OnTheWay, wanted_elsewhere, wanted_on_measured, wanted_on_the_way};

#[cfg(test)]
mod tests;
