//! The time-out of a futex that nobody wakes: how condition variables and parked threads wait.
//!
//! The thread's timer slack applies.

use std::sync::atomic::AtomicU32;

use whylate_sys::futex::{self, Ended};

use super::slack::Slack;
use super::{MONOTONIC, now};
use crate::error::ThreadsError;
use crate::timer::{Timer, TimerFacts, TimerNanos};

const NAME: &str = "futex absolute";

/// `FUTEX_WAIT_BITSET` with an absolute time, on a word of its own.
#[derive(Debug, Default)]
pub struct FutexTimeout {
    word: AtomicU32,
    slack: Slack,
}

impl Timer for FutexTimeout {
    fn prepare(&mut self) -> Result<(), ThreadsError> {
        self.slack = Slack::least();
        Ok(())
    }

    #[inline]
    fn wait_until(&mut self, at: TimerNanos) -> Result<(), ThreadsError> {
        loop {
            let ended = futex::wait_until(&self.word, 0, Some(at.0))
                .map_err(|source| ThreadsError::Timer { timer: NAME, source })?;
            // Nobody wakes it, but the kernel may do so for no reason.
            if ended == Ended::TimedOut {
                return Ok(());
            }
        }
    }

    #[inline]
    fn now(&mut self) -> TimerNanos {
        now()
    }

    fn facts(&self) -> TimerFacts {
        TimerFacts { name: NAME, clock: MONOTONIC, slack: self.slack.read_back() }
    }
}
