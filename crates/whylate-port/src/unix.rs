//! Unix datagram sockets: the kernel between two processes, without a network stack.
//!
//! <https://man7.org/linux/man-pages/man7/unix.7.html>. Needs no capability.

use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};
use whylate_clock::Counter;
use whylate_model::{Nanos, Ticks};

use crate::datagram::{Datagram, check_datagram};
use crate::error::PortError;
use crate::facts::PortFacts;
use crate::port::{Port, Received, Setup};

/// The name in facts and errors.
pub const BACKEND: &str = "unix datagram";
const WANTED: &str = "a unix datagram socket";
/// Kept equal to UDP's, so that sizes can be compared; the default send buffer holds it.
const MAX_MESSAGE: usize = 65_507;

/// Two connected ends.
pub fn pair() -> Result<(OwnedFd, OwnedFd), PortError> {
    socketpair(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(|errno| PortError::Create { what: BACKEND, errno })
}

/// One end of a pair of Unix datagram sockets.
#[derive(Debug)]
pub struct UnixDatagram<C>(Datagram<C>);

impl<C: Counter> UnixDatagram<C> {
    /// Takes over one end.
    pub fn open(end: OwnedFd, setup: Setup<C>) -> Result<Self, PortError> {
        check_datagram(&end, WANTED)?;
        let domain = sockopt::socket_domain(&end).map_err(|errno| PortError::Option {
            backend: BACKEND,
            what: "domain",
            errno,
        })?;
        if domain != AddressFamily::UNIX {
            let found = format!("a datagram socket of family {}", domain.as_raw());
            return Err(PortError::WrongDescriptor { wanted: WANTED, found });
        }
        let path = "one socket pair".to_owned();
        Ok(Self(Datagram::open(end, setup, BACKEND, path, MAX_MESSAGE)?))
    }

    /// Gives the descriptor back, to hand it on to another process.
    #[must_use]
    pub fn into_fd(self) -> OwnedFd {
        self.0.into_fd()
    }
}

impl<C: Counter> Port for UnixDatagram<C> {
    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<Ticks, PortError> {
        self.0.send(message)
    }

    #[inline]
    fn receive(&mut self, buffer: &mut [u8], limit: Nanos) -> Result<Received, PortError> {
        self.0.receive(buffer, limit)
    }

    fn facts(&self) -> &PortFacts {
        self.0.facts()
    }
}
