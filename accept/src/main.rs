//! `make accept`: takes the live figures, or those whose names hold one of the words given.

#![expect(clippy::unwrap_used, reason = "a round that panics has failed, as it should")]

use std::path::Path;
use std::process::ExitCode;

use accept::command::Stock;

#[expect(dead_code, reason = "shared with the tests of the whole tool")]
#[path = "../../tests/between.rs"]
mod between;
#[path = "../../tests/borne_out.rs"]
mod borne_out;
mod cargo;
#[expect(dead_code, reason = "shared with the tests of the whole tool")]
#[path = "../../tests/chromium.rs"]
mod chromium;
#[expect(dead_code, reason = "shared with the tests of the whole tool")]
#[path = "../../tests/delaying.rs"]
mod delaying;
#[cfg(feature = "dpdk")]
mod dpdk;
#[path = "../../tests/elsewhere.rs"]
mod elsewhere;
#[path = "../../tests/exponential.rs"]
mod exponential;
mod figures;
#[path = "../../tests/foreign.rs"]
mod foreign;
mod guest;
#[path = "../../tests/hog.rs"]
mod hog;
#[path = "../../tests/device/hogs.rs"]
mod hogs;
#[path = "../../tests/hourglass2002.rs"]
mod hourglass2002;
#[path = "../../tests/looked.rs"]
mod looked;
#[path = "../../tests/misses.rs"]
mod misses;
#[path = "../../tests/device/narrow.rs"]
mod narrow;
mod needed;
#[expect(dead_code, reason = "shared with the tests of the whole tool")]
#[path = "../../tests/needs.rs"]
mod needs;
#[path = "../../tests/one_end.rs"]
mod one_end;
mod over_dpdk;
#[allow(dead_code, reason = "shared with the tests over DPDK, and used by the feature dpdk alone")]
#[path = "../../crates/whylate-dpdk/tests/peer.rs"]
mod peer;
mod peers;
#[expect(dead_code, reason = "shared with the tests of ports")]
#[path = "../../crates/whylate-port/tests/frames/place.rs"]
mod place;
mod plant;
#[expect(dead_code, reason = "shared with the tests of the whole tool")]
#[path = "../../tests/program.rs"]
mod program;
#[expect(dead_code, reason = "shared with the tests of the whole tool")]
#[path = "../../tests/requests.rs"]
mod requests;
#[path = "../../tests/rt_app_peer.rs"]
mod rt_app_peer;
#[path = "../../tests/rt_app_rows.rs"]
mod rt_app_rows;
#[path = "../../tests/runaway.rs"]
mod runaway;
#[path = "../../tests/segments.rs"]
mod segments;
mod site;
#[path = "../../tests/softirq.rs"]
mod softirq;
#[path = "../../tests/stalls.rs"]
mod stalls;
#[path = "../../tests/told.rs"]
mod told;
#[path = "../../crates/whylate/tests/dpdk/tool.rs"]
mod tool;
#[path = "../../tests/device/trials.rs"]
mod trials;
#[path = "../../tests/two_cpus.rs"]
mod two_cpus;
#[path = "../../tests/watching.rs"]
mod watching;
#[path = "../../crates/whylate/tests/dpdk/ways.rs"]
mod ways;

fn main() -> ExitCode {
    Stock::here(figures::ALL, figures::BY_NAME, Path::new(env!("CARGO_BIN_EXE_whylate"))).run()
}
