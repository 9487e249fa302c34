//! Waiting in `io_uring`, which receives as well.

use whylate_sys::ring_receive::RingReceive;

use crate::error::PortError;
use crate::waiting::Wait;

/// A ring for one port; the reason where there can be none.
pub(crate) fn open() -> Result<RingReceive, PortError> {
    RingReceive::new().map_err(|source| PortError::Wait { wait: Wait::IoUring, source })
}
