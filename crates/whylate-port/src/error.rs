//! What can go wrong with a port.

use std::net::SocketAddr;

use rustix::io::Errno;
use whylate_model::Nanos;

/// Why a port could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// A socket could not be made.
    #[error("cannot make a {what} socket: {errno}")]
    Create {
        /// Which kind.
        what: &'static str,
        /// The kernel's answer.
        errno: Errno,
    },
    /// A socket could not be bound.
    #[error(
        "cannot bind a udp socket to {address}: {errno}; \
         is the address one of this host's, and the port free?"
    )]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// The kernel's answer.
        errno: Errno,
    },
    /// A socket could not be connected.
    #[error("cannot connect a udp socket to {address}: {errno}; is there a route to it?")]
    Connect {
        /// The address asked for.
        address: SocketAddr,
        /// The kernel's answer.
        errno: Errno,
    },
    /// The descriptor is no socket of the kind that was expected.
    #[error(
        "the descriptor handed over is {found}, not {wanted}: was it passed by whylate itself?"
    )]
    WrongDescriptor {
        /// What it should be.
        wanted: &'static str,
        /// What it is.
        found: String,
    },
    /// A property of a socket could not be read or set.
    #[error("cannot use the {what} of the {backend} socket: {errno}")]
    Option {
        /// The backend.
        backend: &'static str,
        /// The property.
        what: &'static str,
        /// The kernel's answer.
        errno: Errno,
    },
    /// A message cannot be sent in one piece.
    #[error("a message of {bytes} bytes does not fit {backend}: at most {max} go in one")]
    TooLong {
        /// The backend.
        backend: &'static str,
        /// Length of the message.
        bytes: usize,
        /// The longest one.
        max: usize,
    },
    /// The message was not taken in time.
    #[error("{backend} did not take a message within {limit}: does the other end read?")]
    SendTimedOut {
        /// The backend.
        backend: &'static str,
        /// How long it was tried.
        limit: Nanos,
    },
    /// Nobody is at the other end any more.
    #[error("the other end of the {backend} port is gone: has its process ended?")]
    PeerGone {
        /// The backend.
        backend: &'static str,
    },
    /// Sending failed.
    #[error("cannot send {bytes} bytes by {backend}: {errno}")]
    Send {
        /// The backend.
        backend: &'static str,
        /// Length of the message.
        bytes: usize,
        /// The kernel's answer.
        errno: Errno,
    },
    /// Receiving failed.
    #[error("cannot receive by {backend}: {errno}")]
    Receive {
        /// The backend.
        backend: &'static str,
        /// The kernel's answer.
        errno: Errno,
    },
    /// No such way to wait.
    #[error("`{0}` is no way to wait: choose `block` or `spin`")]
    UnknownWait(String),
}

impl PortError {
    /// Is the other end gone, as after the death of its process?
    #[must_use]
    pub fn is_peer_gone(&self) -> bool {
        matches!(self, Self::PeerGone { .. })
    }
}
