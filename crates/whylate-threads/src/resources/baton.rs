//! The baton of threads that hand the CPU to each other: only its holder runs.
//!
//! Handing it on and waiting for it is the true voluntary switch: the thread blocks, and the next
//! one is the one that was chosen, whatever the scheduler thinks of yielding.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use whylate_sys::SysError;

use super::{wait_while, wake_all};

/// One baton that goes round.
#[derive(Debug, Default)]
pub struct Baton {
    holder: AtomicU32,
    joined: AtomicU32,
    present: Box<[AtomicBool]>,
}

impl Baton {
    /// A baton among so many threads; the first to join holds it.
    #[must_use]
    pub fn among(runners: usize) -> Self {
        let present = (0..runners).map(|_| AtomicBool::new(true)).collect();
        Self { holder: AtomicU32::new(0), joined: AtomicU32::new(0), present }
    }

    /// A place in the round.
    #[must_use]
    pub fn join(&self) -> u32 {
        self.joined.fetch_add(1, Ordering::Relaxed)
    }

    /// Waits until `place` holds the baton, or until `over`.
    pub fn wait(&self, place: u32, over: &dyn Fn() -> bool) -> Result<(), SysError> {
        loop {
            let holder = self.holder.load(Ordering::Acquire);
            if holder == place || over() {
                return Ok(());
            }
            wait_while(&self.holder, holder)?;
        }
    }

    /// Hands it from `place` to the next that is present.
    pub fn pass(&self, place: u32) -> Result<(), SysError> {
        self.holder.store(self.next(place), Ordering::Release);
        wake_all(&self.holder)
    }

    /// `place` leaves the round; a baton that it holds goes on.
    pub fn leave(&self, place: u32) -> Result<(), SysError> {
        if let Some(present) = self.present.get(place as usize) {
            present.store(false, Ordering::Release);
        }
        if self.holder.load(Ordering::Acquire) == place { self.pass(place) } else { Ok(()) }
    }

    fn next(&self, place: u32) -> u32 {
        let runners = self.present.len() as u32;
        let here = |at: &u32| self.present[*at as usize].load(Ordering::Acquire);
        let round = (1..=runners).map(|step| (place + step) % runners);
        round.into_iter().find(here).unwrap_or(place)
    }
}
