//! Integration tests of the whole tool, one file per subject.
//!
//! They run the program as a user would and judge what it stored. Numbers are compared inside one
//! run only: counts, closures and ratios, never absolute times. What a test needs and the machine
//! lacks is named by [`needs`]; nothing is passed over in silence.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod browser;
mod cgroup;
mod checkup;
mod chromium;
mod cli;
mod compare;
mod cyclictest;
mod directories;
mod disturbed;
mod doctor;
mod endurance;
mod faults;
mod figures;
mod hot_path;
mod hourglass;
mod lab;
mod load;
mod log;
mod merge;
mod merge_spread;
mod needs;
mod paper;
mod planted;
mod program;
mod reflect;
mod report;
mod report_page;
mod reservations;
mod rt_app;
mod rta;
mod rta_run;
mod rtt;
mod switch_cost;
mod two_cpus;
mod wake;
