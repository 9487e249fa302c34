//! Tests of the whole tool that measure nothing: what it says of recorded, planted and damaged runs, and how
//! it refuses wrong words. They run side by side.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use whylate_testing::{
    chromium, directories, listing, mocked, needs, planted, program, requests, two_cpus,
};

mod browser;
mod cli;
mod compare;
mod device_captures;
mod drawn;
mod endurance;
mod exchanges;
mod flags;
mod flips;
mod generated;
mod headlines;
mod holds;
mod hot_path;
mod identity;
mod kept;
mod manual;
mod merge;
mod merge_spread;
mod output;
mod refusals;
mod report;
mod report_page;
mod rta;
mod schedules;
mod screens;
mod shell;
mod thresholds;
