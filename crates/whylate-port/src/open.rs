//! Opening a port by words: transport, target, options.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use whylate_clock::Counter;

use crate::error::PortError;
use crate::framing::Framing;
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
}

impl Transport {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Udp, Self::Tcp, Self::Unix];

    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Unix => "unix",
        }
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
    /// Of UDP and TCP.
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
    /// The client's own address; none lets the kernel choose. Not for Unix sockets.
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
