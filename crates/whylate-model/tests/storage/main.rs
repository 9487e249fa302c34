//! A run directory: what is written comes back, and what is damaged is refused with a reason.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod checked;
mod disks;
mod executions;
mod foreign;
mod happened;
mod histograms;
mod hostile;
mod injections;
mod journeys;
mod killed;
mod manual;
mod needs;
mod packets;
mod papers;
mod run_file;
mod samples;
mod schema;
mod segments;
mod sense;
mod truths;
