//! What the tests of this crate share: asking for the hardware.

use whylate_model::CpuId;
use whylate_suite::{absent, missing};
use whylate_sys::affinity;

use crate::HardwareCounter;

/// The counter of this host, or a printed reason why the calling test skips what needs it.
pub(crate) fn hardware() -> Option<HardwareCounter> {
    HardwareCounter::open().inspect_err(missing).ok()
}

/// The counter and two CPUs that this thread may run on.
pub(crate) fn hardware_on_two_cpus() -> Option<(HardwareCounter, [CpuId; 2])> {
    let [a, b, ..] = affinity::get()[..] else {
        absent("this thread may run on one CPU only");
        return None;
    };
    hardware().map(|counter| (counter, [a, b]))
}
