//! Opening a port by words: transport, target, options.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use whylate_clock::Counter;

use crate::device;
use crate::end::Threads;
use crate::error::PortError;
use crate::framing::Framing;
use crate::host;
use crate::options::Options;
use crate::port::{Port, Setup};
use crate::serving::Serving;
use crate::tcp::Tcp;
use crate::udp::Udp;
use crate::unix::UnixDatagram;

/// What carries the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// UDP over IPv4 or IPv6.
    Udp,
    /// TCP over IPv4 or IPv6.
    Tcp,
    /// Unix datagram sockets.
    Unix,
    /// UDP in whole frames, by the rings of a packet socket (AF_PACKET).
    Packet,
    /// UDP in whole frames that a program takes out of the kernel's way (AF_XDP).
    Xdp,
    /// UDP in whole frames by a device of DPDK, where whylate was built with it.
    Dpdk,
}

impl Transport {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Udp, Self::Tcp, Self::Unix, Self::Packet, Self::Xdp, Self::Dpdk];

    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Unix => "unix",
            Self::Packet => "packet",
            Self::Xdp => "xdp",
            Self::Dpdk => "dpdk",
        }
    }

    /// Does it carry whole frames, past the kernel's sockets?
    #[must_use]
    pub fn carries_frames(self) -> bool {
        matches!(self, Self::Packet | Self::Xdp | Self::Dpdk)
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Transport {
    type Err = PortError;

    fn from_str(text: &str) -> Result<Self, PortError> {
        let known = Self::ALL.into_iter().find(|transport| transport.name() == text);
        known.ok_or_else(|| PortError::UnknownTransport(text.to_owned()))
    }
}

/// Where a port leads, or where a server listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// Of all but Unix sockets.
    Address(SocketAddr),
    /// Of Unix sockets.
    Path(PathBuf),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Path(path) => path.display().fmt(f),
        }
    }
}

/// A client's port that is to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// What carries the messages.
    pub transport: Transport,
    /// The server.
    pub target: Target,
    /// The client's own address; none lets the kernel choose. Not for Unix sockets. Where whole
    /// frames are carried, it may be one that the kernel does not have.
    pub from: Option<SocketAddr>,
    /// What is asked of the socket.
    pub options: Options,
}

impl Client {
    /// Opens it. `framing` cuts messages out of a stream; datagrams need none.
    pub fn open<C: Counter + Clone + 'static>(
        &self,
        setup: Setup<C>,
        framing: Framing,
    ) -> Result<Box<dyn Port>, PortError> {
        let (from, options) = (self.from, &self.options);
        Ok(match (self.transport, &self.target) {
            (Transport::Udp, Target::Address(to)) => {
                Box::new(Udp::client(*to, from, options, setup)?)
            }
            (Transport::Tcp, Target::Address(to)) => {
                Box::new(Tcp::client(*to, from, options, setup, framing)?)
            }
            (Transport::Unix, Target::Path(to)) => {
                Box::new(UnixDatagram::client(to, options, setup)?)
            }
            (Transport::Packet | Transport::Xdp, Target::Address(to)) => {
                host::client(self.transport, *to, from, options, setup)?
            }
            (Transport::Dpdk, Target::Address(to)) => {
                let own = from.ok_or(PortError::FramesWithoutAddress)?;
                let frames = device::open(&options.link, Threads::One, setup.clone())?;
                host::client_over(frames, (own, *to), options, setup)?
            }
            (transport, target) => return Err(wrong(transport, target)),
        })
    }
}

/// A server's port that is to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// What carries the messages.
    pub transport: Transport,
    /// Where it listens.
    pub target: Target,
    /// What is asked of the socket.
    pub options: Options,
}

impl Server {
    /// Opens it. `framing` cuts messages out of a stream; datagrams need none.
    pub fn open<C: Counter + Clone + 'static>(
        &self,
        setup: Setup<C>,
        framing: Framing,
    ) -> Result<Box<dyn Port>, PortError> {
        let options = &self.options;
        Ok(match (self.transport, &self.target) {
            (Transport::Udp, Target::Address(at)) => Box::new(Udp::listen(*at, options, setup)?),
            (Transport::Unix, Target::Path(at)) => {
                Box::new(UnixDatagram::listen(at, options, setup)?)
            }
            (Transport::Packet | Transport::Xdp, Target::Address(at)) => {
                host::server(self.transport, *at, options, setup)?
            }
            (Transport::Dpdk, Target::Address(at)) => {
                let frames = device::open(&options.link, Threads::One, setup.clone())?;
                host::server_over(frames, *at, options, setup)?
            }
            (Transport::Tcp, Target::Address(_)) => {
                return several(std::slice::from_ref(self), setup, framing);
            }
            (transport, target) => return Err(wrong(transport, target)),
        })
    }
}

/// One port of several servers: who sends by it answers by the socket that the last message came by.
pub fn several<C: Counter + Clone + 'static>(
    servers: &[Server],
    setup: Setup<C>,
    framing: Framing,
) -> Result<Box<dyn Port>, PortError> {
    Ok(Box::new(Serving::open(servers, setup, framing)?))
}

pub(crate) fn wrong(transport: Transport, target: &Target) -> PortError {
    let why = match transport {
        Transport::Unix => "it needs a path",
        Transport::Packet | Transport::Xdp | Transport::Dpdk => {
            "it needs the address and port of one host"
        }
        _ => "it needs an address and a port",
    };
    PortError::WrongTarget { transport: transport.name(), target: target.to_string(), why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_are_parsed_and_unknown_ones_named() {
        for transport in Transport::ALL {
            assert_eq!(transport.to_string().parse::<Transport>().unwrap(), transport);
        }
        let told = "sctp".parse::<Transport>().unwrap_err().to_string();
        assert!(told.contains("sctp") && told.contains("udp"), "{told}");
    }
}
