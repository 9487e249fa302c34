//! Standard output and standard error.
//!
//! A reader that has seen enough closes the pipe: that is no failure, and what is still to be printed is
//! dropped without a word. Anything else that standard output refuses is an error, which ends a command
//! with status 1 once its run is stored. Talk that standard error refuses is lost, and nothing else is.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use anyhow::{Context, Result};

/// Prints on standard output.
pub(crate) fn print(text: impl Display) -> Result<()> {
    with(|out| write!(out, "{text}"))
}

/// Has something written on standard output.
pub(crate) fn with(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let mut out = anstream::stdout().lock();
    wanted(write(&mut out).and_then(|()| out.flush())).context("cannot write to standard output")
}

/// Says a line on standard error.
pub(crate) fn line(text: impl Display) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Says a line on standard error, in the words of `format!`.
macro_rules! say {
    ($($words:tt)*) => { $crate::out::line(format_args!($($words)*)) };
}
pub(crate) use say;

/// An error, unless it is that nobody reads any further.
fn wanted(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(why) if why.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_has_gone_is_no_failure_and_a_full_device_is_one() {
        let refused = |kind: ErrorKind| wanted(Err(kind.into())).map_err(|why| why.kind());
        assert_eq!(refused(ErrorKind::BrokenPipe), Ok(()));
        assert_eq!(refused(ErrorKind::StorageFull), Err(ErrorKind::StorageFull));
    }
}
