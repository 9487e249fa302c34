//! Who a host is, and what it makes of a frame: a pure function.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::frame::{
    Arp, Datagram, Ethernet, IPV6, Mac, Neighbour, Packet, Tags, arp, kind, neighbour, parse,
    protocol, write_link, write_v6,
};
use crate::frames::Arrival;
use crate::host::counts::NotOurs;

/// Room for the longest answer: two tags, IPv6, neighbour discovery.
const MOST: usize = 14 + 8 + IPV6 + neighbour::BYTES;
/// The shortest frame without check sequence: not every card fills shorter ones up.
const SHORTEST: usize = 60;

/// Who a host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) mac: Mac,
    /// Without scope: that of a link's own address is the interface.
    pub(crate) address: SocketAddr,
    pub(crate) tags: Tags,
}

/// What a frame is to a host.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Judged<'a> {
    /// A message, and the hardware address that it came from.
    Message(Mac, Datagram<'a>),
    /// A question for its address; this is the answer.
    Asked(Resolution),
    /// Somebody says who has an address.
    Told(IpAddr, Mac),
    /// Nothing for it.
    Not(NotOurs),
}

/// A frame of address resolution, ready to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resolution {
    bytes: [u8; MOST],
    length: usize,
}

impl Resolution {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn new((to, from): (Mac, Mac), tags: Tags, kind: u16, parts: &[&[u8]]) -> Self {
        let mut bytes = [0; MOST];
        let mut length = write_link(&mut bytes, to, from, tags, kind);
        for part in parts {
            bytes[length..length + part.len()].copy_from_slice(part);
            length += part.len();
        }
        Self { bytes, length: length.max(SHORTEST) }
    }

    fn of_v6(link: (Mac, Mac), tags: Tags, ends: (Ipv6Addr, Ipv6Addr), message: &[u8]) -> Self {
        let fields = (protocol::ICMPV6, neighbour::HOPS, 0);
        let header = write_v6(ends, fields, message.len() as u16);
        Self::new(link, tags, kind::IPV6, &[&header, message])
    }
}

impl Identity {
    /// Asks who has `address`, which is of the same family.
    pub(crate) fn question(&self, address: IpAddr) -> Resolution {
        match (self.address.ip(), address) {
            (IpAddr::V4(own), IpAddr::V4(wanted)) => {
                let arp = Arp::question((self.mac, own), wanted).bytes();
                Resolution::new((Mac::BROADCAST, self.mac), self.tags, kind::ARP, &[&arp])
            }
            (IpAddr::V6(own), IpAddr::V6(wanted)) => {
                let group = neighbour::solicited_group(wanted);
                let message = neighbour::question(self.mac, own, wanted);
                let link = (Mac::of_group(group), self.mac);
                Resolution::of_v6(link, self.tags, (own, group), &message)
            }
            _ => unreachable!("invariant: families were compared when the port was opened"),
        }
    }

    /// What a frame is to this host.
    #[inline]
    pub(crate) fn judge<'a>(&self, arrival: &Arrival<'a>) -> Judged<'a> {
        let seen = match parse(arrival.bytes, arrival.stripped) {
            Ok(seen) => seen,
            Err(defect) => return Judged::Not(NotOurs::Defect(defect)),
        };
        let link = seen.link;
        if !link.tags.same_network(self.tags) {
            return Judged::Not(NotOurs::Network);
        }
        if link.destination != self.mac && !link.destination.is_group() {
            return Judged::Not(NotOurs::Address);
        }
        match seen.packet {
            Packet::Datagram(datagram) if datagram.to.ip() != self.address.ip() => {
                Judged::Not(NotOurs::Address)
            }
            Packet::Datagram(datagram) if datagram.to.port() != self.address.port() => {
                Judged::Not(NotOurs::Port)
            }
            Packet::Datagram(datagram) => Judged::Message(link.source, datagram),
            Packet::Arp(heard) => self.arp(&link, heard),
            Packet::Neighbour(from, heard) => self.neighbour(&link, from, heard),
        }
    }

    fn arp<'a>(&self, link: &Ethernet<'_>, heard: Arp) -> Judged<'a> {
        match heard.operation {
            arp::Operation::Reply => Judged::Told(heard.sender.1.into(), heard.sender.0),
            arp::Operation::Request if IpAddr::from(heard.target.1) == self.address.ip() => {
                let answer = heard.answered(self.mac).bytes();
                let ends = (link.source, self.mac);
                Judged::Asked(Resolution::new(ends, self.tags, kind::ARP, &[&answer]))
            }
            arp::Operation::Request => Judged::Not(NotOurs::Resolution),
        }
    }

    fn neighbour<'a>(&self, link: &Ethernet<'_>, from: Ipv6Addr, heard: Neighbour) -> Judged<'a> {
        match heard {
            // Whoever asked for it may leave out the address: it is in the link's header.
            Neighbour::Advertisement { target, mac } => {
                Judged::Told(target.into(), mac.unwrap_or(link.source))
            }
            Neighbour::Solicitation { target, source }
                if IpAddr::from(target) == self.address.ip() =>
            {
                let (to, message) = neighbour::answer(self.mac, target, from);
                let mac = if from.is_unspecified() { Mac::of_group(to) } else { link.source };
                let ends = (source.unwrap_or(mac), self.mac);
                Judged::Asked(Resolution::of_v6(ends, self.tags, (target, to), &message))
            }
            Neighbour::Solicitation { .. } => Judged::Not(NotOurs::Resolution),
        }
    }
}
