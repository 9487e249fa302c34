//! A time-out of io_uring, submitted and waited for with one system call.
//!
//! The kernel gives it no slack.

use whylate_model::Nanos;
use whylate_sys::io_uring::RingTimeout;

use super::{MONOTONIC, now};
use crate::error::ThreadsError;
use crate::timer::{Timer, TimerFacts, TimerNanos};

const NAME: &str = "io_uring time-out absolute";

/// `IORING_OP_TIMEOUT` with `IORING_TIMEOUT_ABS`, one at a time.
#[derive(Debug, Default)]
pub struct RingWait {
    ring: Option<RingTimeout>,
}

impl RingWait {
    fn refused(source: whylate_sys::SysError) -> ThreadsError {
        ThreadsError::Timer { timer: NAME, source }
    }
}

impl Timer for RingWait {
    fn prepare(&mut self) -> Result<(), ThreadsError> {
        self.ring = Some(RingTimeout::new().map_err(Self::refused)?);
        Ok(())
    }

    #[inline]
    fn wait_until(&mut self, at: TimerNanos) -> Result<(), ThreadsError> {
        let ring = match &mut self.ring {
            Some(ring) => ring,
            none => none.insert(RingTimeout::new().map_err(Self::refused)?),
        };
        ring.wait_until(at.0).map_err(Self::refused)
    }

    #[inline]
    fn now(&mut self) -> TimerNanos {
        now()
    }

    fn facts(&self) -> TimerFacts {
        TimerFacts { name: NAME, clock: MONOTONIC, slack: Some(Nanos(0)) }
    }
}
