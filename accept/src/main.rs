//! `make accept`: takes the live figures, or those whose names hold one of the words given.

#![expect(clippy::unwrap_used, reason = "a round that panics has failed, as it should")]

use std::path::Path;
use std::process::ExitCode;

use accept::command::Stock;
use whylate_testing::{
    between, borne_out, chromium, delaying, elsewhere, exponential, foreign, hog, hogs,
    hourglass2002, huge_pages, looked, machine, misses, narrow, needs, one_end, peer, place,
    planted, program, requests, rt_app_peer, rt_app_rows, runaway, segments, softirq, stalls, told,
    tool, trials, two_cpus, watching, ways,
};

mod cargo;
#[cfg(feature = "dpdk")]
mod dpdk;
mod figures;
mod needed;
mod over_dpdk;
mod peers;
mod plant;
mod site;

fn main() -> ExitCode {
    let built = Path::new(env!("CARGO_BIN_EXE_whylate"));
    program::is(built);
    Stock::here(figures::ALL, figures::BY_NAME, built).run()
}
