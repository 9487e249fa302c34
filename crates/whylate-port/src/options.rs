//! What can be asked of a socket before it is used.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use whylate_sys::interface::Interface;
use whylate_sys::socket_options;

use crate::error::PortError;
use crate::interface;
use crate::link::LinkOptions;

/// What is asked of a socket; the default is what the system gives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Only what comes and goes by this interface.
    pub interface: Option<String>,
    /// Bytes for what was received and not read yet.
    pub receive_buffer: Option<usize>,
    /// Bytes for what was sent and is still here.
    pub send_buffer: Option<usize>,
    /// A message that does not fit the path's MTU is refused rather than cut into fragments.
    pub whole_packets: bool,
    /// The byte of IP for type of service or traffic class; DSCP is its upper six bits.
    pub traffic_class: Option<u8>,
    /// How many routers a packet may pass (TTL, hop limit). The system's is 1 for multicast.
    pub hops: Option<u8>,
    /// What is asked of a port of whole frames.
    pub link: LinkOptions,
}

impl Options {
    /// The interface asked for, fit for this address.
    pub(crate) fn interface(&self, address: SocketAddr) -> Result<Option<Interface>, PortError> {
        let usable = |name: &String| interface::usable(name, address);
        self.interface.as_ref().map(usable).transpose()
    }

    /// Asks for all that a socket of the internet can have.
    pub(crate) fn apply(
        &self,
        socket: &OwnedFd,
        address: SocketAddr,
        backend: &'static str,
    ) -> Result<(), PortError> {
        self.apply_sizes(socket, backend)?;
        if let Some(interface) = self.interface(address)? {
            socket_options::bind_to_interface(socket, &interface.name).map_err(|errno| {
                PortError::InterfaceDenied { name: interface.name.clone(), errno }
            })?;
        }
        let failed = |what| move |errno| PortError::Option { backend, what, errno };
        let v4 = address.is_ipv4();
        if self.whole_packets {
            let set = if v4 {
                sockopt::set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::DO)
            } else {
                sockopt::set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::DO)
            };
            set.map_err(failed("path mtu discovery"))?;
        }
        if let Some(class) = self.traffic_class {
            let set = if v4 {
                sockopt::set_ip_tos(socket, class)
            } else {
                sockopt::set_ipv6_tclass(socket, class.into())
            };
            set.map_err(failed("traffic class"))?;
        }
        match self.hops {
            Some(hops) => set_hops(socket, address, hops).map_err(failed("hop limit")),
            None => Ok(()),
        }
    }

    /// Asks for what any socket can have.
    pub(crate) fn apply_sizes(
        &self,
        socket: &OwnedFd,
        backend: &'static str,
    ) -> Result<(), PortError> {
        let failed = |what| move |errno| PortError::Option { backend, what, errno };
        if let Some(bytes) = self.receive_buffer {
            sockopt::set_socket_recv_buffer_size(socket, bytes)
                .map_err(failed("receive buffer"))?;
        }
        if let Some(bytes) = self.send_buffer {
            sockopt::set_socket_send_buffer_size(socket, bytes).map_err(failed("send buffer"))?;
        }
        Ok(())
    }
}

fn set_hops(socket: &OwnedFd, address: SocketAddr, hops: u8) -> Result<(), Errno> {
    match (address.is_ipv4(), address.ip().is_multicast()) {
        (true, true) => sockopt::set_ip_multicast_ttl(socket, hops.into()),
        (true, false) => sockopt::set_ip_ttl(socket, hops.into()),
        (false, true) => sockopt::set_ipv6_multicast_hops(socket, hops.into()),
        (false, false) => sockopt::set_ipv6_unicast_hops(socket, Some(hops)),
    }
}
