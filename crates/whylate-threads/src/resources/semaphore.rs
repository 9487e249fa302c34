//! A number that threads add to and take from; who finds none waits.

use std::sync::atomic::{AtomicU32, Ordering};

use whylate_sys::{SysError, futex};

use super::wait_while;

/// A counting semaphore.
#[derive(Debug, Default)]
pub struct Semaphore {
    value: AtomicU32,
}

impl Semaphore {
    /// A semaphore that begins with `value`.
    #[must_use]
    pub fn of(value: u32) -> Self {
        Self { value: AtomicU32::new(value) }
    }

    /// Adds one and wakes a thread that waits. One that is full stays so: 4 billion posts that
    /// nobody took are as good as one more.
    pub fn post(&self) -> Result<(), SysError> {
        let add = |value: u32| value.checked_add(1);
        let _ = self.value.fetch_update(Ordering::AcqRel, Ordering::Acquire, add);
        futex::wake(&self.value, 1).map(|_| ())
    }

    /// Takes one if there is one.
    #[must_use]
    pub fn try_wait(&self) -> bool {
        let take = |value: u32| value.checked_sub(1);
        self.value.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_ok()
    }

    /// Takes one; waits while there is none and not `over`.
    pub fn wait(&self, over: &dyn Fn() -> bool) -> Result<(), SysError> {
        while !self.try_wait() && !over() {
            wait_while(&self.value, 0)?;
        }
        Ok(())
    }
}
