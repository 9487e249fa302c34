//! Kernel calls with errors as `io::Error`, so that callers can tell a refusal (`EPERM`) from a
//! thread that is gone (`ESRCH`).

use std::io::{self, Write};
use std::path::Path;

use whylate_model::{CpuId, Pid};
use whylate_sys::{Errno, SysError, affinity as sys};

/// Sets the affinity of a thread. The kernel leaves out CPUs that are offline or outside the
/// thread's cpuset; that is no error here, since masks are put back as they were, such CPUs
/// included.
pub(crate) fn set_affinity(tid: Pid, cpus: &[CpuId]) -> io::Result<()> {
    match sys::set_of(tid, cpus) {
        Ok(()) | Err(SysError::AffinityPartial { .. }) => Ok(()),
        Err(error) => Err(io_error(error)),
    }
}

/// The affinity of a thread, as far as its CPUs are online.
pub(crate) fn affinity(tid: Pid) -> io::Result<Vec<CpuId>> {
    sys::get_of(tid).map_err(io_error)
}

/// Writes a setting with a single `write`, as `/proc` and `/sys` want it. Nothing is created.
pub(crate) fn write_setting(path: &Path, value: &str) -> io::Result<()> {
    let mut file = std::fs::File::options().write(true).truncate(true).open(path)?;
    file.write_all(value.as_bytes())
}

/// Does this error say that the thread has ended?
pub(crate) fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

fn io_error(error: SysError) -> io::Error {
    error.errno().map_or_else(|| io::Error::other(error), io::Error::from)
}
