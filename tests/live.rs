//! Tests of the whole tool that measure this machine, one file per subject, one after the other.
//!
//! They run the program as a user would and judge what it stored, by what holds whatever the machine does
//! meanwhile: sums, counts and closures, never absolute times. What a test needs and the machine lacks is
//! named by [`needs`]; nothing is passed over in silence.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod across;
mod backends;
mod between;
#[allow(dead_code, reason = "shared with the live figures")]
mod borne_out;
mod breakdown;
mod breakdown_faults;
mod calibrate;
mod calibrate_others;
mod cgroup;
mod checkup;
#[allow(dead_code, reason = "shared with the other kind of tests")]
mod chromium;
mod clock_step;
mod delay;
mod delay_faults;
mod delay_proxy;
mod delaying;
mod device;
#[allow(dead_code, reason = "shared with the other kind of tests")]
mod directories;
mod disturbed;
mod doctor;
mod elsewhere;
mod endurance;
mod faults;
mod figures;
mod flows;
#[allow(dead_code, reason = "shared with the live figures")]
mod foreign;
mod forward;
mod forward_datagrams;
mod frames;
mod guest;
#[allow(dead_code, reason = "shared with the live figures")]
mod hog;
mod hourglass;
#[allow(dead_code, reason = "shared with the figures")]
mod hourglass2002;
#[path = "../accept/src/plant/huge_pages.rs"]
mod huge_pages;
mod killer2017;
mod lab;
mod load;
mod log;
#[allow(dead_code, reason = "shared with the live figures")]
mod looked;
mod mocked;
#[allow(dead_code, reason = "shared with the other kind of tests")]
mod needs;
mod one_end;
mod output_live;
mod pacing;
mod paper;
#[allow(dead_code, reason = "shared with the other kind of tests")]
mod planted;
#[allow(dead_code, reason = "shared with the other kind of tests")]
mod program;
mod rates;
mod recorded;
mod reflect;
mod reflect_runs;
#[allow(dead_code, reason = "shared with the other kind of tests")]
mod requests;
mod reservations;
mod rt_app;
#[allow(dead_code, reason = "shared with figures")]
mod rt_app_rows;
mod rta_run;
mod rtt;
mod rtt_faults;
mod rtt_modes;
mod runaway;
mod segments;
mod shortest;
mod sink;
#[allow(dead_code, reason = "shared with the live figures")]
mod softirq;
mod stalls;
mod stamps;
mod switch_cost;
mod tail;
mod tap;
mod tasks;
#[allow(dead_code, reason = "shared with the figures")]
mod told;
mod versions;
mod wake;
mod watch;
mod watching;
