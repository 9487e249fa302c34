//! The time-out of an event loop in which nothing happens.
//!
//! `epoll_pwait2` where the kernel has it, else `epoll_wait`, whose milliseconds are rounded up.
//! Both wait for a length. For a thread without real-time policy the kernel lets the time-out be
//! late by a thousandth of its length (a two-hundredth where the niceness is positive), or by the
//! thread's slack where that is more; the facts tell the slack alone.

use whylate_sys::SysError;
use whylate_sys::epoll::{Ended, Epoll, Resolution};

use super::slack::Slack;
use super::{MONOTONIC, now};
use crate::error::ThreadsError;
use crate::timer::{Timer, TimerFacts, TimerNanos};

const NANOSECONDS: &str = "epoll_pwait2 time-out";
const MILLISECONDS: &str = "epoll_wait time-out (1 ms)";

/// An event loop that only ever times out.
#[derive(Debug)]
pub struct EpollTimeout {
    epoll: Option<Epoll>,
    resolution: Resolution,
    slack: Slack,
}

impl Default for EpollTimeout {
    fn default() -> Self {
        Self { epoll: None, resolution: Resolution::Nanosecond, slack: Slack::default() }
    }
}

fn refused(source: SysError) -> ThreadsError {
    ThreadsError::Timer { timer: NANOSECONDS, source }
}

impl Timer for EpollTimeout {
    fn prepare(&mut self) -> Result<(), ThreadsError> {
        self.slack = Slack::least();
        let epoll = Epoll::new().map_err(refused)?;
        // A wait of nothing tells which call the kernel has.
        if let Ended::TimedOut(resolution) = epoll.wait_for(0).map_err(refused)? {
            self.resolution = resolution;
        }
        self.epoll = Some(epoll);
        Ok(())
    }

    #[inline]
    fn wait_until(&mut self, at: TimerNanos) -> Result<(), ThreadsError> {
        let epoll = match &mut self.epoll {
            Some(epoll) => epoll,
            none => none.insert(Epoll::new().map_err(refused)?),
        };
        loop {
            let left = at.since(now());
            if left.0 == 0 {
                return Ok(());
            }
            // A time-out is never early, so the clock is read again after a signal only.
            if let Ended::TimedOut(_) = epoll.wait_for(left.0).map_err(refused)? {
                return Ok(());
            }
        }
    }

    #[inline]
    fn now(&mut self) -> TimerNanos {
        now()
    }

    fn facts(&self) -> TimerFacts {
        let name = match self.resolution {
            Resolution::Nanosecond => NANOSECONDS,
            Resolution::Millisecond => MILLISECONDS,
        };
        TimerFacts { name, clock: MONOTONIC, slack: self.slack.read_back() }
    }
}
