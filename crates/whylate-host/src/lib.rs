//! The host: fingerprint, CPU sets, guards that restore, and the journal.
//!
//! Three promises, each kept by a test:
//! - what is read back is reported; a file that is absent is *unknown*, never *off*;
//! - every setting changed is written to the [`journal`] before it changes, held by a guard of
//!   [`guard`] that prints what it did, and put back when the guard is dropped, also by a panic;
//! - what a killed process left is put back by [`journal::recover`] of the next one, except what
//!   somebody else has changed since.
//!
//! Nothing here measures, and nothing needs privilege except to change something.

pub mod another;
pub mod bed;
pub mod caches;
pub mod calibrations;
pub mod configuration;
mod cpufreq;
pub mod cpus;
pub mod doctor;
mod error;
mod file_tree;
mod files;
pub mod fingerprint;
pub mod guard;
pub mod journal;
mod kernel;
mod knobs;
pub mod last_run;
pub mod listeners;
pub mod names;
pub mod procfs;
pub mod quanta;
pub mod smi;
mod tasks;
pub mod topology;
#[cfg(test)]
mod tree;
pub mod watch;

pub use error::HostError;
