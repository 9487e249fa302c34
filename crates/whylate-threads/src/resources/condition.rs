//! Something that threads wait for until another says so: a condition variable with its order kept.
//!
//! A signal lets exactly the thread go on that has waited longest; a signal that nobody waits for is
//! lost, as with `pthread_cond_signal`. No wait ends without a signal, except with the run.

use std::sync::atomic::{AtomicU32, Ordering};

use whylate_sys::SysError;

use super::{wait_while, wake_all};

/// A condition. Each wait draws a number; those below `released` may go on.
#[derive(Debug, Default)]
pub struct Condition {
    drawn: AtomicU32,
    released: AtomicU32,
}

/// The place of a thread among those that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place(u32);

impl Condition {
    /// Begins to wait: signals from here on count. Drawn while the mutex is held that goes with it.
    #[must_use]
    pub fn draw(&self) -> Place {
        Place(self.drawn.fetch_add(1, Ordering::AcqRel))
    }

    /// Calls the thread that has waited longest and begins to wait, in one: whoever is called finds
    /// the caller waiting. Where nobody waits, nobody is called, and the caller does not call itself.
    pub fn signal_and_draw(&self) -> Result<Place, SysError> {
        let place = self.draw();
        self.release(
            |released, _| if released == place.0 { released } else { released.wrapping_add(1) },
        )?;
        Ok(place)
    }

    /// Waits until the place is called, or `over`.
    pub fn wait(&self, place: Place, over: &dyn Fn() -> bool) -> Result<(), SysError> {
        loop {
            let released = self.released.load(Ordering::Acquire);
            // Both numbers go round; neither is ever half a round ahead of the other.
            if (released.wrapping_sub(place.0)).cast_signed() > 0 || over() {
                return Ok(());
            }
            wait_while(&self.released, released)?;
        }
    }

    /// Calls the thread that has waited longest.
    pub fn signal(&self) -> Result<(), SysError> {
        self.release(
            |released, drawn| if released == drawn { drawn } else { released.wrapping_add(1) },
        )
    }

    /// Calls all that wait.
    pub fn broadcast(&self) -> Result<(), SysError> {
        self.release(|_, drawn| drawn)
    }

    fn release(&self, to: impl Fn(u32, u32) -> u32) -> Result<(), SysError> {
        let next = |released: u32| {
            let to = to(released, self.drawn.load(Ordering::Acquire));
            (to != released).then_some(to)
        };
        match self.released.fetch_update(Ordering::AcqRel, Ordering::Acquire, next) {
            Ok(_) => wake_all(&self.released),
            Err(_) => Ok(()),
        }
    }
}
