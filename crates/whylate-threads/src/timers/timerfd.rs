//! A timer descriptor, armed for an absolute instant and read.
//!
//! The kernel gives it no slack.

use whylate_model::Nanos;
use whylate_sys::timerfd::TimerFd;

use super::{MONOTONIC, now};
use crate::error::ThreadsError;
use crate::timer::{Timer, TimerFacts, TimerNanos};

const NAME: &str = "timerfd absolute";

/// `timerfd_settime(TFD_TIMER_ABSTIME)`, then `read`: how an event loop that owns its timer waits.
#[derive(Debug, Default)]
pub struct TimerFdRead {
    fd: Option<TimerFd>,
}

impl TimerFdRead {
    fn refused(source: whylate_sys::SysError) -> ThreadsError {
        ThreadsError::Timer { timer: NAME, source }
    }
}

impl Timer for TimerFdRead {
    fn prepare(&mut self) -> Result<(), ThreadsError> {
        self.fd = Some(TimerFd::monotonic().map_err(Self::refused)?);
        Ok(())
    }

    #[inline]
    fn wait_until(&mut self, at: TimerNanos) -> Result<(), ThreadsError> {
        let fd = match &mut self.fd {
            Some(fd) => fd,
            none => none.insert(TimerFd::monotonic().map_err(Self::refused)?),
        };
        fd.wait_until(at.0).map_err(Self::refused)
    }

    #[inline]
    fn now(&mut self) -> TimerNanos {
        now()
    }

    fn facts(&self) -> TimerFacts {
        TimerFacts { name: NAME, clock: MONOTONIC, slack: Some(Nanos(0)) }
    }
}
