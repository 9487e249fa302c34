//! Whether the program, and these figures, have devices of DPDK.

#[cfg(not(feature = "dpdk"))]
use accept::figure::{Reading, Round};

use crate::needed;
use crate::place::Bed;
use crate::program::{said, whylate};
use crate::ways::Cpus;

/// Root, two CPUs and a program that has the feature: no device is named so, and one that has not says so
/// before it looks.
pub(crate) fn program() -> Result<(), String> {
    needed::two_ends(&[])?;
    let words = ["forward", "net_nonesuch0", "net_nonesuch1", "--port", "dpdk"];
    let output = whylate(words).output().map_err(|error| error.to_string())?;
    let is_there = !said(&output).contains("built without DPDK");
    is_there.then_some(()).ok_or_else(|| "the program was built without DPDK".to_owned())
}

/// Root, two CPUs, the library itself, and testpmd.
pub(crate) fn library() -> Result<(), String> {
    needed::two_ends(&["dpdk-testpmd"])?;
    if cfg!(not(feature = "dpdk")) {
        return Err("these figures were built without their feature dpdk".to_owned());
    }
    Ok(())
}

/// A round of a figure that was built without the library.
#[cfg(not(feature = "dpdk"))]
pub(crate) fn not_built(_: Round) -> Result<Vec<Reading>, String> {
    library().map(|()| Vec::new())
}

/// The first CPU and the last one: one for either of two that spin.
pub(crate) fn cpus() -> Cpus {
    let cpus = whylate_sys::affinity::get();
    (cpus[0], cpus[cpus.len() - 1])
}

/// Two ends of a virtual link.
pub(crate) fn bed() -> Result<Bed, String> {
    Bed::new().ok_or_else(|| "no bed can be made here".to_owned())
}
