//! Where and how a measuring thread runs: its CPU and its scheduling policy.
//!
//! Changes only the calling thread. A CPU that cannot be had is an error; a policy that is refused
//! is a warning, and the thread goes on as it was.

use whylate_model::warning::Warning;
use whylate_model::{CpuId, Pid};
use whylate_sys::{affinity, memory, process, sched};

use crate::error::ThreadsError;

/// Where and how a thread is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Placement {
    /// Pinned to this CPU; none leaves the affinity as it is.
    pub cpu: Option<CpuId>,
    /// SCHED_FIFO with this priority; none leaves the policy as it is.
    pub fifo: Option<u8>,
}

/// Where and how a thread does run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    /// The thread.
    pub tid: Pid,
    /// The CPU it is pinned to.
    pub cpu: Option<CpuId>,
    /// SCHED_FIFO with this priority, where it was asked for and granted.
    pub fifo: Option<u8>,
}

impl Placement {
    /// Seats the calling thread and touches its stack; gives the seat and what was refused.
    pub fn settle(self) -> Result<(Seat, Vec<Warning>), ThreadsError> {
        if let Some(cpu) = self.cpu {
            pin(cpu)?;
        }
        let mut warnings = Vec::new();
        let fifo = self.fifo.filter(|&priority| match sched::set_fifo(priority) {
            Ok(()) => true,
            Err(refusal) => {
                let reason = format!(
                    "{refusal}; the thread goes on with its ordinary policy, \
                     and other threads may take its cpu"
                );
                warnings.push(Warning::PolicyRefused { reason });
                false
            }
        });
        memory::prefault_stack();
        Ok((Seat { tid: process::tid(), cpu: self.cpu, fifo }, warnings))
    }
}

/// Pins the calling thread and reads back where it may run.
fn pin(cpu: CpuId) -> Result<(), ThreadsError> {
    let refused = |source| ThreadsError::Pin { cpu, source };
    affinity::set(&[cpu]).map_err(refused)?;
    let allowed = affinity::get();
    if allowed == [cpu] { Ok(()) } else { Err(ThreadsError::PinNotKept { cpu, allowed }) }
}
