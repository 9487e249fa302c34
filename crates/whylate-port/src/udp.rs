//! UDP over IPv4 and IPv6, connected: the kernel drops what does not come from the peer.
//!
//! <https://man7.org/linux/man-pages/man7/udp.7.html>. Needs no capability.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, connect, getpeername, getsockname, socket_with,
    sockopt,
};
use whylate_clock::Counter;
use whylate_model::{Nanos, Ticks};

use crate::datagram::{Datagram, check_datagram};
use crate::error::PortError;
use crate::facts::PortFacts;
use crate::port::{Port, Received, Setup};

const WANTED: &str = "a connected udp socket";
const BACKEND_V4: &str = "udp over ipv4";
const BACKEND_V6: &str = "udp over ipv6";
/// 65 535 less the headers of IPv4 and UDP.
const MAX_MESSAGE: usize = 65_507;

/// Which internet protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The loopback address.
    #[must_use]
    pub fn loopback(self) -> IpAddr {
        match self {
            Self::V4 => Ipv4Addr::LOCALHOST.into(),
            Self::V6 => Ipv6Addr::LOCALHOST.into(),
        }
    }
}

/// Two sockets on the loopback interface, each bound to a port that the kernel chose and connected
/// to the other.
pub fn loopback_pair(family: Family) -> Result<(OwnedFd, OwnedFd), PortError> {
    let any = SocketAddr::new(family.loopback(), 0);
    let (first, second) = (bound(any)?, bound(any)?);
    let (at_first, at_second) = (local(&first)?, local(&second)?);
    connect_to(&first, at_second)?;
    connect_to(&second, at_first)?;
    Ok((first, second))
}

/// A socket bound to `from` (port 0: the kernel chooses) and connected to `to`.
pub fn connected(from: SocketAddr, to: SocketAddr) -> Result<OwnedFd, PortError> {
    let socket = bound(from)?;
    connect_to(&socket, to)?;
    Ok(socket)
}

/// One connected UDP socket.
#[derive(Debug)]
pub struct Udp<C>(Datagram<C>);

impl<C: Counter> Udp<C> {
    /// Takes over a connected socket.
    pub fn open(socket: OwnedFd, setup: Setup<C>) -> Result<Self, PortError> {
        check_datagram(&socket, WANTED)?;
        let local = local(&socket)?;
        let peer = getpeername(&socket).ok().flatten().and_then(|peer| peer.try_into().ok());
        let Some(peer): Option<SocketAddr> = peer else {
            let found = "a socket without a peer".to_owned();
            return Err(PortError::WrongDescriptor { wanted: WANTED, found });
        };
        let backend = if local.is_ipv4() { BACKEND_V4 } else { BACKEND_V6 };
        let path = format!("{local} -> {peer}");
        Ok(Self(Datagram::open(socket, setup, backend, path, MAX_MESSAGE)?))
    }

    /// Gives the descriptor back, to hand it on to another process.
    #[must_use]
    pub fn into_fd(self) -> OwnedFd {
        self.0.into_fd()
    }
}

impl<C: Counter> Port for Udp<C> {
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

/// Is it a socket of IPv4 or IPv6?
pub(crate) fn is_internet(socket: &OwnedFd) -> bool {
    matches!(sockopt::socket_domain(socket), Ok(AddressFamily::INET | AddressFamily::INET6))
}

fn bound(address: SocketAddr) -> Result<OwnedFd, PortError> {
    let (family, what) = match address {
        SocketAddr::V4(_) => (AddressFamily::INET, BACKEND_V4),
        SocketAddr::V6(_) => (AddressFamily::INET6, BACKEND_V6),
    };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(|errno| PortError::Create { what, errno })?;
    bind(&socket, &address).map_err(|errno| PortError::Bind { address, errno })?;
    Ok(socket)
}

fn connect_to(socket: &OwnedFd, address: SocketAddr) -> Result<(), PortError> {
    connect(socket, &address).map_err(|errno| PortError::Connect { address, errno })
}

fn local(socket: &OwnedFd) -> Result<SocketAddr, PortError> {
    let name = getsockname(socket).map_err(|errno| PortError::Option {
        backend: "udp",
        what: "own address",
        errno,
    })?;
    name.try_into().map_err(|_| PortError::WrongDescriptor {
        wanted: WANTED,
        found: "a socket of another family".to_owned(),
    })
}
