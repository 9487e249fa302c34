//! Tests of the whole tool that measure this machine, one file per subject, one after the other.
//!
//! They run the program as a user would and judge what it stored, by what holds whatever the machine does
//! meanwhile: sums, counts and closures, never absolute times. What a test needs and the machine lacks is
//! named by [`needs`]; nothing is passed over in silence.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use whylate_testing::{
    between, chromium, delaying, directories, elsewhere, foreign, hog, hourglass2002, huge_pages,
    lines, machine, needs, one_end, program, requests, rt_app_rows, runaway, segments, stalls,
    wall, watching,
};

mod across;
mod backends;
mod breakdown;
mod breakdown_faults;
mod calibrate;
mod calibrate_others;
mod cgroup;
mod checkup;
mod clock_step;
mod delay;
mod delay_faults;
mod delay_proxy;
mod device;
mod disturbed;
mod doctor;
mod faults;
mod figures;
mod flows;
mod forward;
mod forward_datagrams;
mod frames;
mod guest;
mod hourglass;
mod killer2017;
mod lab;
mod load;
mod log;
mod output_live;
mod pacing;
mod paper;
mod rates;
mod recorded;
mod reflect;
mod reflect_runs;
mod reservations;
mod rt_app;
mod rta_run;
mod rtt;
mod rtt_faults;
mod rtt_modes;
mod shortest;
mod sink;
mod stamps;
mod switch_cost;
mod tail;
mod tap;
mod tasks;
mod versions;
mod wake;
mod watch;
