//! What is planted for a figure, and where: loads and disturbances, and what they take of the machine.

use whylate_model::CpuId;
use whylate_sys::affinity;

pub(crate) mod datagrams;
pub(crate) mod flood;
pub(crate) mod huge_pages;
pub(crate) mod interrupts;
pub(crate) mod late_server;
pub(crate) mod stalls;

/// Where the client is measured, and where the other end runs. Figures ask for two CPUs before.
pub(crate) fn place() -> (CpuId, CpuId) {
    let cpus = affinity::get();
    (cpus[1], cpus[0])
}
