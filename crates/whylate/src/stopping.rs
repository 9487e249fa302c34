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
            let (mut turn, mut last) = (0, None);
            for _ in signals.forever() {
                let now = clock_ns(Clock::Monotonic);
                let apart = last.is_none_or(|last| now - last >= ONE_SIGNAL_NS);
                last = Some(now);
                turn += u32::from(apart);
                match turn {
                    0 | 1 => listening.stop.store(true, Ordering::Relaxed),
                    2 => listening.twice.store(true, Ordering::Relaxed),
                    _ => std::process::exit(SECOND_CTRL_C),
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
