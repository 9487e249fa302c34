//! A host's place among others: its address is not used by somebody else of this machine, and frames
//! to it reach the interface.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::address;
use crate::error::PortError;
use crate::frame::{Mac, neighbour};
use crate::holder::List;
use crate::link::Link;
use crate::raw;

/// Ports that a system gives to nobody in particular (RFC 6335); addresses that the kernel does not
/// have take theirs from here.
pub(super) const DYNAMIC: u16 = 49_152;

/// What keeps a host's place, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Place {
    /// Of an address that the kernel has as well: a socket that hears nothing. Without it the kernel
    /// would tell whoever sends us something that nobody listens.
    _port: Option<OwnedFd>,
    /// Makes the interface receive what is for us.
    _heard: Option<OwnedFd>,
}

impl Place {
    /// Takes a place at `address`; port 0 is any that is free. Gives the address with its port.
    pub(crate) fn take(
        link: &Link,
        mac: Mac,
        address: SocketAddr,
        backend: &'static str,
    ) -> Result<(Self, SocketAddr), PortError> {
        let (port, address) = if link.addresses.contains(&address.ip()) {
            let (port, address) = reserve(link, address, backend)?;
            (Some(port), address)
        } else if address.port() == 0 {
            let port = DYNAMIC + (std::process::id() % 16_384) as u16;
            (None, SocketAddr::new(address.ip(), port))
        } else {
            (None, SocketAddr::new(address.ip(), address.port()))
        };
        let heard = heard(link, mac, address.ip(), backend)?;
        Ok((Self { _port: port, _heard: heard }, address))
    }
}

fn reserve(
    link: &Link,
    address: SocketAddr,
    backend: &'static str,
) -> Result<(OwnedFd, SocketAddr), PortError> {
    let (family, flags) = match address {
        SocketAddr::V4(_) => (AddressFamily::INET, SocketFlags::CLOEXEC),
        SocketAddr::V6(_) => (AddressFamily::INET6, SocketFlags::CLOEXEC),
    };
    let socket = socket_with(family, SocketType::DGRAM, flags, None)
        .map_err(|errno| PortError::Create { what: backend, errno })?;
    raw::deafen(&socket).map_err(|errno| PortError::Option { backend, what: "filter", errno })?;
    let scoped = match address {
        SocketAddr::V6(v6) => SocketAddrV6::new(*v6.ip(), v6.port(), 0, link.index).into(),
        v4 @ SocketAddr::V4(_) => v4,
    };
    address::bind(&socket, scoped, List::Udp)?;
    let local = address::local(&socket)?;
    Ok((socket, SocketAddr::new(local.ip(), local.port())))
}

fn heard(
    link: &Link,
    mac: Mac,
    address: IpAddr,
    backend: &'static str,
) -> Result<Option<OwnedFd>, PortError> {
    let own = (mac != link.mac).then_some(mac);
    let group = match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(v6) => Some(Mac::of_group(neighbour::solicited_group(v6))),
    };
    if own.is_none() && group.is_none() {
        return Ok(None);
    }
    let socket = raw::packet_socket(backend)?;
    for mac in own.into_iter().chain(group) {
        raw::hear(&socket, link.index, mac).map_err(|errno| PortError::Option {
            backend,
            what: "hardware address to listen to",
            errno,
        })?;
    }
    Ok(Some(socket))
}
