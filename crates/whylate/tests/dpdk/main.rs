//! The program with the feature `dpdk`, run as a user runs it, over virtual devices: what is asked over
//! them is answered, what is forwarded or held back arrives and is counted.
//!
//! No card is needed. Devices in memory lead from process to process; the others lie on links between
//! network namespaces of the test's own. Every process ends by itself where its test does not end it.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use whylate_testing::{listing, peer, place, program, tool, ways};

mod asked;
mod between;
mod compared;
mod ended;
mod hot_path;
mod lost;
mod pages;

use std::sync::{Mutex, MutexGuard, PoisonError};

use whylate_model::CpuId;
use whylate_sys::affinity;

/// One at a time: all of them spin.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A CPU for either of two that spin.
fn cpus() -> Option<(CpuId, CpuId)> {
    let cpus = affinity::get();
    if let [first, .., last] = cpus[..] {
        return Some((first, last));
    }
    peer::missing("this test needs two CPUs");
    None
}
