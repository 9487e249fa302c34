//! Who sent a message to a server.

use std::fmt;
use std::net::SocketAddr;

use rustix::net::{SocketAddrAny, SocketAddrUnix};

/// The address of a client, as the kernel tells it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Peer(pub(crate) SocketAddrAny);

impl Peer {
    /// Its internet address; none of a Unix socket.
    #[must_use]
    pub fn internet(&self) -> Option<SocketAddr> {
        self.0.clone().try_into().ok()
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(address) = self.internet() {
            return address.fmt(f);
        }
        let path = SocketAddrUnix::try_from(self.0.clone()).ok();
        match path.as_ref().and_then(SocketAddrUnix::path) {
            Some(path) => f.pad(&path.to_string_lossy()),
            None => f.pad("unnamed"),
        }
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Peer({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_of_one_address_are_one_and_are_shown_as_it() {
        let at = |text: &str| Peer(text.parse::<SocketAddr>().unwrap().into());
        assert_eq!(at("127.0.0.1:7"), at("127.0.0.1:7"));
        assert_ne!(at("127.0.0.1:7"), at("127.0.0.1:8"));
        assert_eq!(at("[::1]:9").to_string(), "[::1]:9");
        let unix = Peer(SocketAddrUnix::new("/tmp/x").unwrap().into());
        assert_eq!((unix.to_string(), unix.internet()), ("/tmp/x".to_owned(), None));
    }
}
