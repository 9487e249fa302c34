//! Unix datagram sockets: the kernel between two processes, without a network stack.
//!
//! <https://man7.org/linux/man-pages/man7/unix.7.html>. Needs no capability.
//!
//! Two ends are a pair without names, or a server at a path and clients at private paths of their
//! own, which it needs to answer them. Paths go with their ports.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, socket_with, socketpair,
    sockopt,
};
use whylate_clock::Counter;
use whylate_model::{Nanos, Ticks};

use crate::datagram::{Datagram, Described, Towards, check_datagram};
use crate::error::PortError;
use crate::facts::{PortFacts, SocketFacts};
use crate::options::Options;
use crate::peer::Peer;
use crate::port::{Port, Received, Setup};
use crate::unix_path::Bound;
use crate::waiting::BusyPolling;

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

/// One Unix datagram socket.
#[derive(Debug)]
pub struct UnixDatagram<C> {
    datagram: Datagram<C>,
    /// Its own path, which goes with the last port on the socket.
    bound: Option<Arc<Bound>>,
}

impl<C: Counter> UnixDatagram<C> {
    /// Takes over one end of a pair.
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
        let (path, local) = ("one socket pair".to_owned(), String::new());
        Self::described(end, setup, Towards::Peer, (local, None, path), None)
    }

    /// A client of the server at `to`, with a private path of its own.
    pub fn client(to: &Path, options: &Options, setup: Setup<C>) -> Result<Self, PortError> {
        let address = address(to)?;
        let socket = made(options)?;
        let bound = Bound::private(&socket)?;
        connect(&socket, &address).map_err(|errno| match errno {
            Errno::CONNREFUSED | Errno::NOENT => {
                PortError::Refused { to: to.display().to_string() }
            }
            errno => PortError::Path { what: "connect to", path: to.to_owned(), errno },
        })?;
        let (local, remote) = (bound.path().display().to_string(), to.display().to_string());
        let path = format!("{local} -> {remote}");
        let described = (local, Some(remote), path);
        Self::described(socket, setup, Towards::Peer, described, Some(bound))
    }

    /// A server at `at`, which answers whom it hears.
    pub fn listen(at: &Path, options: &Options, setup: Setup<C>) -> Result<Self, PortError> {
        let (socket, bound) = listening(at, options)?;
        let local = at.display().to_string();
        let described = (local.clone(), None, format!("any -> {local}"));
        Self::described(socket, setup, Towards::Sender(None), described, Some(bound))
    }

    fn described(
        socket: OwnedFd,
        setup: Setup<C>,
        towards: Towards,
        (local, remote, path): (String, Option<String>, String),
        bound: Option<Bound>,
    ) -> Result<Self, PortError> {
        let facts = SocketFacts::of(&socket, local, remote);
        let described = Described { backend: BACKEND, path, max_message: MAX_MESSAGE, facts };
        let datagram = Datagram::open(socket, setup, towards, described)?;
        Ok(Self { datagram, bound: bound.map(Arc::new) })
    }

    /// Gives the descriptor back, to hand it on to another process.
    #[must_use]
    pub fn into_fd(self) -> OwnedFd {
        self.datagram.into_fd()
    }
}

impl<C: Counter + Clone + 'static> Port for UnixDatagram<C> {
    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<Ticks, PortError> {
        self.datagram.send(message)
    }

    #[inline]
    fn receive(&mut self, buffer: &mut [u8], limit: Nanos) -> Result<Received, PortError> {
        self.datagram.receive(buffer, limit)
    }

    fn facts(&self) -> &PortFacts {
        self.datagram.facts()
    }

    fn duplicate(&self) -> Result<Box<dyn Port>, PortError> {
        let datagram = self.datagram.duplicate()?;
        Ok(Box::new(Self { datagram, bound: self.bound.clone() }))
    }

    #[inline]
    fn peer(&self) -> Option<&Peer> {
        self.datagram.peer()
    }

    fn busy_polling(&self) -> BusyPolling {
        self.datagram.busy_polling()
    }
}

/// A socket that hears what is sent to the path `at`.
pub(crate) fn listening(at: &Path, options: &Options) -> Result<(OwnedFd, Bound), PortError> {
    let address = address(at)?;
    if at.symlink_metadata().is_ok() {
        let path = at.to_owned();
        return Err(PortError::PathTaken { path, what: what_is_at(at, &address)? });
    }
    let socket = made(options)?;
    bind(&socket, &address).map_err(|errno| match errno {
        Errno::NOENT => PortError::PathUnfit(at.to_owned()),
        errno => PortError::Path { what: "make a socket at", path: at.to_owned(), errno },
    })?;
    Ok((socket, Bound::at(at)))
}

/// What is in the way, and what to do about it.
fn what_is_at(at: &Path, address: &SocketAddrUnix) -> Result<&'static str, PortError> {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = at.metadata().is_ok_and(|metadata| metadata.file_type().is_socket());
    if !is_socket {
        return Ok("something that is no socket is there; choose another path");
    }
    let probe = made(&Options::default())?;
    Ok(match connect(&probe, address) {
        Err(Errno::CONNREFUSED) => {
            "the socket of a server that has ended is there; remove it, if nobody else will"
        }
        _ => "a server listens there; choose another path",
    })
}

fn address(path: &Path) -> Result<SocketAddrUnix, PortError> {
    SocketAddrUnix::new(path).map_err(|_| PortError::PathUnfit(PathBuf::from(path)))
}

fn made(options: &Options) -> Result<OwnedFd, PortError> {
    let made = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    let socket = made.map_err(|errno| PortError::Create { what: BACKEND, errno })?;
    options.apply_sizes(&socket, BACKEND)?;
    Ok(socket)
}
