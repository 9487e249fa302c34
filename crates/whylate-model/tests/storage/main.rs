//! A run directory: what is written comes back, and what is damaged is refused with a reason.

mod disks;
mod histograms;
mod hostile;
mod killed;
mod needs;
mod run_file;
mod samples;
mod schema;
mod segments;
