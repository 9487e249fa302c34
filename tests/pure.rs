//! Tests of the whole tool that measure nothing: what it says of recorded, planted and damaged runs, and how
//! it refuses wrong words. They run side by side.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod browser;
mod chromium;
mod cli;
mod compare;
mod device_captures;
#[allow(dead_code, reason = "shared with the other kind of tests")]
mod directories;
mod exchanges;
mod exponential;
mod flags;
mod flips;
mod generated;
mod holds;
mod hot_path;
mod identity;
mod kept;
mod listing;
mod merge;
mod merge_spread;
mod misses;
mod mocked;
#[allow(dead_code, reason = "shared with the other kind of tests")]
mod needs;
mod output;
#[allow(dead_code, reason = "shared with the other kind of tests")]
mod planted;
#[allow(dead_code, reason = "shared with the other kind of tests")]
mod program;
mod refusals;
mod report;
mod report_page;
#[allow(dead_code, reason = "shared with the other kind of tests")]
mod requests;
#[allow(dead_code, reason = "shared with figures")]
mod rt_app_peer;
#[allow(dead_code, reason = "shared with figures")]
mod rt_app_rows;
mod rta;
mod schedules;
mod shell;
mod thresholds;
mod told;
#[allow(dead_code, reason = "shared with the live figures")]
#[path = "device/trials.rs"]
mod trials;
mod two_cpus;
