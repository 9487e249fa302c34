//! A port that another process opened: a child takes it over as its standard input.

use std::io::stdin;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use whylate_clock::Counter;

use crate::error::PortError;
use crate::port::{Port, Setup};
use crate::udp::{self, Udp};
use crate::unix::UnixDatagram;

/// Opens whatever kind of connected datagram socket the descriptor is.
pub fn open<C: Counter + Clone + 'static>(
    socket: OwnedFd,
    setup: Setup<C>,
) -> Result<Box<dyn Port>, PortError> {
    if udp::is_internet(&socket) {
        return Ok(Box::new(Udp::open(socket, setup)?));
    }
    Ok(Box::new(UnixDatagram::open(socket, setup)?))
}

/// Opens the socket that the parent process left as this one's standard input.
pub fn open_stdin<C: Counter + Clone + 'static>(
    setup: Setup<C>,
) -> Result<Box<dyn Port>, PortError> {
    let socket = stdin().as_fd().try_clone_to_owned().map_err(|error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::BADF);
        PortError::Option { backend: "standard input", what: "descriptor", errno }
    })?;
    open(socket, setup)
}
