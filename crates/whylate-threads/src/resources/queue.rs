//! Items on their way from thread to thread. The items are all alike, so the queue is their number.

use std::sync::atomic::{AtomicU32, Ordering};

use whylate_sys::SysError;

use super::{wait_while, wake_all};

/// A queue that holds some items at most.
#[derive(Debug)]
pub struct Queue {
    capacity: u32,
    items: AtomicU32,
}

impl Queue {
    /// An empty queue of that capacity.
    #[must_use]
    pub fn of(capacity: u32) -> Self {
        Self { capacity, items: AtomicU32::new(0) }
    }

    /// Puts an item in if there is room.
    pub fn try_push(&self) -> Result<bool, SysError> {
        self.change(|items| (items < self.capacity).then(|| items + 1))
    }

    /// Takes an item out if there is one.
    pub fn try_pop(&self) -> Result<bool, SysError> {
        self.change(|items| items.checked_sub(1))
    }

    /// Puts an item in; waits while the queue is full and not `over`.
    pub fn push(&self, over: &dyn Fn() -> bool) -> Result<(), SysError> {
        while !self.try_push()? && !over() {
            wait_while(&self.items, self.capacity)?;
        }
        Ok(())
    }

    /// Takes an item out; waits while the queue is empty and not `over`.
    pub fn pop(&self, over: &dyn Fn() -> bool) -> Result<(), SysError> {
        while !self.try_pop()? && !over() {
            wait_while(&self.items, 0)?;
        }
        Ok(())
    }

    fn change(&self, to: impl FnMut(u32) -> Option<u32>) -> Result<bool, SysError> {
        let changed = self.items.fetch_update(Ordering::AcqRel, Ordering::Acquire, to);
        match changed {
            // Only a full or an empty queue has anybody waiting.
            Ok(before) if before == 0 || before == self.capacity => {
                wake_all(&self.items).map(|()| true)
            }
            Ok(_) => Ok(true),
            Err(_) => Ok(false),
        }
    }
}
