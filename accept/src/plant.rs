//! Disturbances that are planted, and where.

use whylate_model::CpuId;
use whylate_sys::affinity;

pub(crate) mod flood;
pub(crate) mod interrupts;
pub(crate) mod late_server;

/// Where the client is measured, and where the other end runs. Figures ask for two CPUs before.
pub(crate) fn place() -> (CpuId, CpuId) {
    let cpus = affinity::get();
    (cpus[1], cpus[0])
}
