//! A place where a number of threads wait for each other.

use std::sync::atomic::{AtomicU32, Ordering};

use whylate_sys::SysError;

use super::{wait_while, wake_all};

/// A barrier that is used round after round.
#[derive(Debug)]
pub struct Barrier {
    threads: u32,
    here: AtomicU32,
    round: AtomicU32,
}

impl Barrier {
    /// A barrier for so many threads.
    #[must_use]
    pub fn of(threads: u32) -> Self {
        Self { threads, here: AtomicU32::new(0), round: AtomicU32::new(0) }
    }

    /// Waits until all are here, or until `over` says that there is nothing to wait for.
    pub fn wait(&self, over: &dyn Fn() -> bool) -> Result<(), SysError> {
        let round = self.round.load(Ordering::Acquire);
        if self.here.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.here.store(0, Ordering::Release);
            self.round.fetch_add(1, Ordering::AcqRel);
            return wake_all(&self.round);
        }
        while self.round.load(Ordering::Acquire) == round && !over() {
            wait_while(&self.round, round)?;
        }
        Ok(())
    }
}
