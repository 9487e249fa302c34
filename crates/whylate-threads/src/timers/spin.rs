//! Reading the clock until it shows the instant: no wake-up, so no latency of one, and no CPU for
//! anybody else.
//!
//! Under a real-time policy it starves what is less urgent on its CPU, and the kernel's limit of
//! real-time tasks takes the CPU away for 50 ms of each second.

use whylate_model::Nanos;

use super::{MONOTONIC, now};
use crate::error::ThreadsError;
use crate::timer::{Timer, TimerFacts, TimerNanos};

/// A busy wait.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spin;

impl Timer for Spin {
    fn prepare(&mut self) -> Result<(), ThreadsError> {
        Ok(())
    }

    #[inline]
    fn wait_until(&mut self, at: TimerNanos) -> Result<(), ThreadsError> {
        busy_until(at);
        Ok(())
    }

    #[inline]
    fn keeps_cpu(&mut self, _at: TimerNanos) -> bool {
        true
    }

    #[inline]
    fn now(&mut self) -> TimerNanos {
        now()
    }

    fn facts(&self) -> TimerFacts {
        TimerFacts { name: "spin", clock: MONOTONIC, slack: Some(Nanos(0)) }
    }
}

#[inline]
pub(super) fn busy_until(at: TimerNanos) {
    while now() < at {
        std::hint::spin_loop();
    }
}
