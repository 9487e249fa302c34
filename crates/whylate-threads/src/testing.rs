//! What tests that measure this host have in common.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by every test that uses the last CPU, or makes a cpuset: two at once would measure each other.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}
