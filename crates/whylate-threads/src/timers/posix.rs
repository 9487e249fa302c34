//! A POSIX timer that signals the thread, which waits for the signal and has no handler.
//!
//! The kernel gives it no slack.

use whylate_model::Nanos;
use whylate_sys::posix_timer::PosixTimer;

use super::{MONOTONIC, now};
use crate::error::ThreadsError;
use crate::timer::{Timer, TimerFacts, TimerNanos};

const NAME: &str = "posix timer absolute";

/// `timer_create(SIGEV_THREAD_ID)`, waited for by `sigtimedwait`.
///
/// Its signal stays blocked in the thread that prepared it, and only that thread can wait.
#[derive(Debug, Default)]
pub struct PosixTimerWait {
    timer: Option<PosixTimer>,
}

impl PosixTimerWait {
    fn refused(source: whylate_sys::SysError) -> ThreadsError {
        ThreadsError::Timer { timer: NAME, source }
    }
}

impl Timer for PosixTimerWait {
    fn prepare(&mut self) -> Result<(), ThreadsError> {
        self.timer = Some(PosixTimer::for_this_thread().map_err(Self::refused)?);
        Ok(())
    }

    #[inline]
    fn wait_until(&mut self, at: TimerNanos) -> Result<(), ThreadsError> {
        let timer = match &mut self.timer {
            Some(timer) => timer,
            none => none.insert(PosixTimer::for_this_thread().map_err(Self::refused)?),
        };
        timer.wait_until(at.0).map_err(Self::refused)
    }

    #[inline]
    fn now(&mut self) -> TimerNanos {
        now()
    }

    fn facts(&self) -> TimerFacts {
        TimerFacts { name: NAME, clock: MONOTONIC, slack: Some(Nanos(0)) }
    }
}
