//! What tests that measure this host have in common.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use whylate_host::procfs::Steal;
use whylate_model::CpuId;
use whylate_sys::nanosleep::{Clock, clock_ns};

/// Held by every test that uses the last CPU, or makes a cpuset: two at once would measure each other.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the hypervisor takes of a CPU from now on.
pub(crate) struct Taken {
    cpu: CpuId,
    begun: u64,
    steal: Steal,
}

impl Taken {
    pub(crate) fn of(cpu: CpuId) -> Self {
        let steal = Steal::read(Path::new("/")).unwrap();
        Self { cpu, begun: clock_ns(Clock::Monotonic), steal }
    }

    /// Its share of the time since then, by what the kernel counts.
    pub(crate) fn share(&self) -> f64 {
        let steal = Steal::read(Path::new("/")).unwrap();
        let taken = self.steal.delta_ns(&steal, &[self.cpu]).unwrap_or(0.0);
        taken / (clock_ns(Clock::Monotonic) - self.begun) as f64
    }
}
