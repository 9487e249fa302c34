//! Ctrl-C in three steps: stop and report, give up the report, die.
//!
//! The first Ctrl-C (or SIGTERM, or SIGHUP when the terminal goes away) ends the measurement, and
//! everything collected is reported. A signal sent to a process and to its group arrives twice at
//! once and is one. The second ends the process with status 130 as soon as its guards have restored the host. The third
//! ends it at once; what it leaves is mended by the next start, from the journal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use whylate_sys::nanosleep::{Clock, clock_ns};

/// Exit status after the second Ctrl-C.
pub(crate) const SECOND_CTRL_C: i32 = 130;

/// Signals closer than this are one: no hand is as quick.
const ONE_SIGNAL_NS: u64 = 10_000_000;

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Stop,
    GiveUp,
    Die,
}

/// Signals that have come: how many that are not one with the one before, and when the last came.
#[derive(Debug, Default)]
struct Turns {
    count: u32,
    last_ns: Option<u64>,
}

impl Turns {
    /// What one asks for that comes at this instant.
    fn take(&mut self, at_ns: u64) -> Step {
        let apart = self.last_ns.is_none_or(|last| at_ns - last >= ONE_SIGNAL_NS);
        self.last_ns = Some(at_ns);
        self.count += u32::from(apart);
        match self.count {
            0 | 1 => Step::Stop,
            2 => Step::GiveUp,
            _ => Step::Die,
        }
    }
}

/// What Ctrl-C has asked for so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stopping {
    /// Set by the first: measure no longer.
    pub(crate) stop: Arc<AtomicBool>,
    twice: Arc<AtomicBool>,
}

impl Stopping {
    /// Begins to listen, on a thread of its own that only sleeps.
    pub(crate) fn listen() -> std::io::Result<Self> {
        let stopping = Self::default();
        let listening = stopping.clone();
        let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            let mut turns = Turns::default();
            for _ in signals.forever() {
                match turns.take(clock_ns(Clock::Monotonic)) {
                    Step::Stop => listening.stop.store(true, Ordering::Relaxed),
                    Step::GiveUp => listening.twice.store(true, Ordering::Relaxed),
                    Step::Die => std::process::exit(SECOND_CTRL_C),
                }
            }
        })?;
        Ok(stopping)
    }

    /// Was it asked for twice?
    #[must_use]
    pub(crate) fn twice(&self) -> bool {
        self.twice.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::{ONE_SIGNAL_NS, Step, Turns};

    fn steps(at_ns: &[u64]) -> Vec<Step> {
        let mut turns = Turns::default();
        at_ns.iter().map(|at| turns.take(*at)).collect()
    }

    #[test]
    fn the_first_ctrl_c_stops_the_second_gives_up_and_the_third_dies() {
        let day = 86_400_000_000_000;
        assert_eq!(steps(&[0, ONE_SIGNAL_NS, day]), [Step::Stop, Step::GiveUp, Step::Die]);
        assert_eq!(steps(&[day; 1]), [Step::Stop]);
    }

    #[test]
    fn signals_closer_than_a_hand_can_send_them_are_one_however_many_there_are() {
        let close = ONE_SIGNAL_NS - 1;
        assert_eq!(steps(&[0, 0, close, 2 * close, 3 * close]), [Step::Stop; 5]);
        // Counted from the last one, not from the first that it is one with.
        let apart = close + ONE_SIGNAL_NS;
        let second = [Step::Stop, Step::Stop, Step::GiveUp, Step::GiveUp];
        assert_eq!(steps(&[0, close, apart, apart + close]), second);
        assert_eq!(steps(&[0, 5, apart, apart + 1, 2 * apart]).last(), Some(&Step::Die));
    }
}
