//! Ctrl-C in three steps: stop and report, give up the report, die.
//!
//! The first Ctrl-C (or SIGTERM) ends the measurement, and everything collected is reported. The
//! second ends the process with status 130 as soon as its guards have restored the host. The third
//! ends it at once; what it leaves is mended by the next start, from the journal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Exit status after the second Ctrl-C.
pub(crate) const SECOND_CTRL_C: i32 = 130;

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
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for (turn, _) in signals.forever().enumerate() {
                match turn {
                    0 => listening.stop.store(true, Ordering::Relaxed),
                    1 => listening.twice.store(true, Ordering::Relaxed),
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
