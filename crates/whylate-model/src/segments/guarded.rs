//! A panic of the `parquet` crate's reader over a damaged file becomes an error.
//!
//! [`super::pages`] refuses what could make that reader ask for too much memory. What is inside the
//! pages it decodes itself, and over some contents it panics, such as a text that is shorter than it
//! says. Nothing of ours is in use there that a panic could leave half done.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use parquet::errors::{ParquetError, Result};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `read`; a panic in it is an error, and is not reported on stderr.
pub(super) fn guarded<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    keep_quiet_about_guarded_panics();
    GUARDED.set(true);
    let result = catch_unwind(AssertUnwindSafe(read));
    GUARDED.set(false);
    result
        .unwrap_or_else(|_| Err(ParquetError::General("a page that cannot be decoded".to_owned())))
}

/// Every other panic is reported as before.
fn keep_quiet_about_guarded_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = take_hook();
        set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                report(panic);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_and_the_next_read_goes_on() {
        let damaged: Result<u8> = guarded(|| panic!("a text shorter than it says"));
        assert!(damaged.is_err());
        assert_eq!(guarded(|| Ok(7)).ok(), Some(7));
        assert!(!GUARDED.get(), "later panics would go unseen");
    }
}
