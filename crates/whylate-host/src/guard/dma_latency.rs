//! Keeping CPUs out of deep idle states.

use whylate_model::warning::Warning;
use whylate_sys::dma_latency::{self, DmaLatency};

use super::Guard;
use crate::error::HostError;

/// `/dev/cpu_dma_latency` held at 0: no CPU enters an idle state that takes time to leave. The
/// kernel itself drops the request with the file, so a killed process leaves nothing.
#[derive(Debug)]
pub struct CpuDmaLatency {
    held: Option<DmaLatency>,
    in_force: Option<i32>,
}

impl CpuDmaLatency {
    /// Holds the limit at 0 and reads back what is in force.
    pub fn hold() -> Result<Self, HostError> {
        let held = DmaLatency::hold_zero()?;
        // Reading it back needs read permission too, which a udev rule may not give.
        let in_force = dma_latency::limit_us().ok();
        Ok(Self { held: Some(held), in_force })
    }

    /// The warning of a run that could not hold it.
    #[must_use]
    pub fn not_held(error: &HostError) -> Warning {
        Warning::IdleStatesNotHeld { reason: error.to_string() }
    }
}

impl Guard for CpuDmaLatency {
    fn describe(&self) -> Vec<String> {
        let read_back = match self.in_force {
            Some(limit) => format!("reads back {limit} us"),
            None => "cannot be read back".to_owned(),
        };
        vec![format!("/dev/cpu_dma_latency held at 0 us ({read_back})")]
    }

    fn restore(&mut self) -> Vec<Warning> {
        self.held = None;
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_is_held_until_the_guard_goes() {
        let mut guard = match CpuDmaLatency::hold() {
            Ok(guard) => guard,
            Err(error) => return crate::tree::skip(&error),
        };
        assert_eq!(dma_latency::limit_us().unwrap(), 0);
        assert!(guard.describe()[0].contains("reads back 0 us"), "{:?}", guard.describe());
        assert_eq!(guard.restore(), []);
    }
}
