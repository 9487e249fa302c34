//! UDP over IPv4 and IPv6: clients, servers, multicast groups.
//!
//! <https://man7.org/linux/man-pages/man7/udp.7.html>. Needs no capability.
//!
//! A client is connected: the kernel drops what does not come from its server. A client of a group
//! cannot be, because its answers come from the servers' own addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, connect, getpeername, socket_with, sockopt,
};
use whylate_clock::Counter;
use whylate_model::{Nanos, Ticks};
use whylate_sys::interface::Interface;

use crate::address;
use crate::datagram::{Datagram, Described, Towards, check_datagram};
use crate::error::PortError;
use crate::facts::{PortFacts, SocketFacts};
use crate::holder::List;
use crate::options::Options;
use crate::peer::Peer;
use crate::port::{Port, Received, Setup};
use crate::queues::IncomingFacts;
use crate::stamps::{Stamp, StampCounts, StampWish};
use crate::waiting::BusyPolling;

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
    let options = Options::default();
    let (first, second) = (bound(any, &options)?, bound(any, &options)?);
    let (at_first, at_second) = (address::local(&first)?, address::local(&second)?);
    connect_to(&first, at_second)?;
    connect_to(&second, at_first)?;
    Ok((first, second))
}

/// A socket bound to `from` (port 0: the kernel chooses) and connected to `to`.
pub fn connected(from: SocketAddr, to: SocketAddr) -> Result<OwnedFd, PortError> {
    let socket = bound(from, &Options::default())?;
    connect_to(&socket, to)?;
    Ok(socket)
}

/// One UDP socket.
#[derive(Debug)]
pub struct Udp<C>(Datagram<C>);

impl<C: Counter> Udp<C> {
    /// Takes over a connected socket.
    pub fn open(socket: OwnedFd, setup: Setup<C>) -> Result<Self, PortError> {
        check_datagram(&socket, WANTED)?;
        let local = address::local(&socket)?;
        let peer = getpeername(&socket).ok().flatten().and_then(|peer| peer.try_into().ok());
        let Some(peer): Option<SocketAddr> = peer else {
            let found = "a socket without a peer".to_owned();
            return Err(PortError::WrongDescriptor { wanted: WANTED, found });
        };
        let path = format!("{local} -> {peer}");
        Self::described(socket, setup, Towards::Peer, (local, Some(peer), path))
    }

    /// A client of the server, or of the group of servers, at `to`; `from` is its own address.
    pub fn client(
        to: SocketAddr,
        from: Option<SocketAddr>,
        options: &Options,
        setup: Setup<C>,
    ) -> Result<Self, PortError> {
        let from = from.unwrap_or_else(|| address::any_of(to));
        if !to.ip().is_multicast() {
            let socket = bound_for(from, to, options)?;
            connect_to(&socket, to)?;
            return Self::open(socket, setup);
        }
        let interface = group_interface(to, options)?;
        let socket = bound_for(from, to, options)?;
        send_by(&socket, &interface, to)?;
        let to = scoped(to, &interface);
        let local = address::local(&socket)?;
        let path = format!("{local} -> {to} by {}", interface.name);
        let towards = Towards::Group(to.into());
        Self::described(socket, setup, towards, (local, Some(to), path))
    }

    /// A server at `address`, which answers whom it hears; at a group's address it hears what is
    /// sent to the group.
    pub fn listen(
        address: SocketAddr,
        options: &Options,
        setup: Setup<C>,
    ) -> Result<Self, PortError> {
        let socket = listening(address, options)?;
        let local = address::local(&socket)?;
        let path = format!("any -> {local}");
        Self::described(socket, setup, Towards::Sender(None), (local, None, path))
    }

    fn described(
        socket: OwnedFd,
        setup: Setup<C>,
        towards: Towards,
        (local, remote, path): (SocketAddr, Option<SocketAddr>, String),
    ) -> Result<Self, PortError> {
        let remote = remote.map(|remote| remote.to_string());
        let facts = SocketFacts::of(&socket, local.to_string(), remote);
        let (backend, max_message) = (backend(local), MAX_MESSAGE);
        let described = Described { backend, path, max_message, facts };
        Ok(Self(Datagram::open(socket, setup, towards, described)?))
    }

    /// Gives the descriptor back, to hand it on to another process.
    #[must_use]
    pub fn into_fd(self) -> OwnedFd {
        self.0.into_fd()
    }
}

impl<C: Counter + Clone + 'static> Port for Udp<C> {
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

    fn duplicate(&self) -> Result<Box<dyn Port>, PortError> {
        Ok(Box::new(Self(self.0.duplicate()?)))
    }

    #[inline]
    fn peer(&self) -> Option<&Peer> {
        self.0.peer()
    }

    fn busy_polling(&self) -> BusyPolling {
        self.0.busy_polling()
    }

    fn incoming(&self) -> IncomingFacts {
        self.0.incoming()
    }

    fn stamp(&mut self, wish: &StampWish) -> Result<(), PortError> {
        self.0.ask_for_stamps(wish)
    }

    fn take_stamps(&mut self, each: &mut dyn FnMut(Stamp)) -> Result<(), PortError> {
        self.0.take_stamps(each)
    }

    fn take_not_asked(&mut self, each: &mut dyn FnMut(u64, u8)) {
        self.0.take_not_asked(each);
    }

    fn stamp_counts(&self) -> Option<StampCounts> {
        self.0.stamp_counts()
    }

    fn numbers(&self) -> Option<(u64, u64)> {
        self.0.numbers()
    }
}

/// Is it a socket of IPv4 or IPv6?
pub(crate) fn is_internet(socket: &OwnedFd) -> bool {
    matches!(sockopt::socket_domain(socket), Ok(AddressFamily::INET | AddressFamily::INET6))
}

pub(crate) fn backend(address: SocketAddr) -> &'static str {
    if address.is_ipv4() { BACKEND_V4 } else { BACKEND_V6 }
}

/// A socket that hears what is sent to `address`.
pub(crate) fn listening(address: SocketAddr, options: &Options) -> Result<OwnedFd, PortError> {
    if !address.ip().is_multicast() {
        return bound(address, options);
    }
    let interface = group_interface(address, options)?;
    let socket = made(address, options)?;
    // Several servers of one host hear one group.
    sockopt::set_socket_reuseaddr(&socket, true).map_err(|errno| PortError::Option {
        backend: backend(address),
        what: "shared address",
        errno,
    })?;
    address::bind(&socket, scoped(address, &interface), List::Udp)?;
    join(&socket, &interface, address)?;
    Ok(socket)
}

fn made(address: SocketAddr, options: &Options) -> Result<OwnedFd, PortError> {
    let what = backend(address);
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(|errno| PortError::Create { what, errno })?;
    options.apply(&socket, address, what)?;
    Ok(socket)
}

pub(crate) fn bound(address: SocketAddr, options: &Options) -> Result<OwnedFd, PortError> {
    bound_for(address, address, options)
}

/// A socket bound to `from`, with the options that messages to `to` need.
fn bound_for(from: SocketAddr, to: SocketAddr, options: &Options) -> Result<OwnedFd, PortError> {
    let socket = made(to, options)?;
    address::bind(&socket, from, List::Udp)?;
    Ok(socket)
}

pub(crate) fn connect_to(socket: &OwnedFd, to: SocketAddr) -> Result<(), PortError> {
    connect(socket, &to).map_err(|errno| match errno {
        Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN => {
            PortError::NoRoute { to: to.to_string(), errno }
        }
        errno => PortError::Connect { address: to, errno },
    })
}

/// Left to itself the kernel would take the interface of the default route, and say nothing.
fn group_interface(group: SocketAddr, options: &Options) -> Result<Interface, PortError> {
    let asked = options.interface(group)?;
    asked.ok_or(PortError::GroupWithoutInterface { group: group.ip() })
}

/// Addresses of one link are not known without it.
fn scoped(address: SocketAddr, interface: &Interface) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) if v6.scope_id() == 0 => {
            SocketAddrV6::new(*v6.ip(), v6.port(), v6.flowinfo(), interface.index).into()
        }
        other => other,
    }
}

fn join(socket: &OwnedFd, interface: &Interface, group: SocketAddr) -> Result<(), PortError> {
    let joined = match group.ip() {
        IpAddr::V4(v4) => sockopt::set_ip_add_membership_with_ifindex(
            socket,
            &v4,
            &Ipv4Addr::UNSPECIFIED,
            interface.index,
        ),
        IpAddr::V6(v6) => sockopt::set_ipv6_add_membership(socket, &v6, interface.index),
    };
    let name = || interface.name.clone();
    joined.map_err(|errno| PortError::Join { group: group.ip(), name: name(), errno })
}

/// Sends to groups by this interface, and lets servers of this host hear them, too.
fn send_by(socket: &OwnedFd, interface: &Interface, group: SocketAddr) -> Result<(), PortError> {
    let set = match group.ip() {
        IpAddr::V4(v4) => sockopt::set_ip_multicast_if_with_ifindex(
            socket,
            &v4,
            &Ipv4Addr::UNSPECIFIED,
            interface.index,
        )
        .and_then(|()| sockopt::set_ip_multicast_loop(socket, true)),
        IpAddr::V6(_) => sockopt::set_ipv6_multicast_if(socket, interface.index)
            .and_then(|()| sockopt::set_ipv6_multicast_loop(socket, true)),
    };
    set.map_err(|errno| PortError::Option {
        backend: backend(group),
        what: "interface for multicast",
        errno,
    })
}
