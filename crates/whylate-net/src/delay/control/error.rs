//! Why a control socket is not there, or an order is not followed.

use std::path::PathBuf;

/// What can keep orders from being taken.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The file cannot be made.
    #[error("cannot take orders at {}: {source}; name another file (--control)", path.display())]
    Socket {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Another file is there.
    #[error("{} is there and no socket: name another file (--control)", .0.display())]
    NoSocket(PathBuf),
    /// Somebody takes orders there.
    #[error("another process takes orders at {}: name another file (--control)", .0.display())]
    InUse(PathBuf),
}
