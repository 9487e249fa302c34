//! Internet addresses of sockets.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::getsockname;

use crate::error::PortError;
use crate::holder::{self, List};
use crate::interface;

/// Ports below this are reserved where nothing else was set.
const RESERVED_BELOW: u16 = 1_024;

/// Any address and port of the same family.
pub(crate) fn any_of(like: SocketAddr) -> SocketAddr {
    match like {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

/// Binds, or says by name why not.
pub(crate) fn bind(socket: &OwnedFd, address: SocketAddr, list: List) -> Result<(), PortError> {
    rustix::net::bind(socket, &address).map_err(|errno| match errno {
        Errno::ADDRINUSE => {
            PortError::PortInUse { address, holder: holder::of_port(list, address.port()) }
        }
        Errno::ADDRNOTAVAIL => {
            let (address, namespace) = (address.ip(), interface::namespace_of(address.ip()));
            PortError::NotOurAddress { address, namespace }
        }
        Errno::ACCESS if address.port() < RESERVED_BELOW => PortError::PortReserved(address),
        errno => PortError::Bind { address, errno },
    })
}

/// The address that a socket is bound to.
pub(crate) fn local(socket: &OwnedFd) -> Result<SocketAddr, PortError> {
    let name = getsockname(socket).map_err(|errno| PortError::Option {
        backend: "internet",
        what: "own address",
        errno,
    })?;
    name.try_into().map_err(|_| PortError::WrongDescriptor {
        wanted: "a socket of the internet",
        found: "a socket of another family".to_owned(),
    })
}
