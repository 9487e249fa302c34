//! Frames of Ethernet, read and written: pure functions of bytes, without allocation.
//!
//! [`parse`] reads what an end of a measurement has to know: datagrams of UDP over IPv4 and IPv6, and
//! the questions and answers of address resolution ([`arp`], [`neighbour`]). Everything else has a
//! name ([`Defect`]). No bytes whatever make it panic.
//!
//! Sending does not build headers: [`Template`] is a header made once, of which a message changes the
//! lengths and checksums only. That and the reading beside it run once per message between two
//! stamps, so they are our own.

pub mod arp;
pub mod checksum;
mod defect;
mod ethernet;
mod ip;
mod mac;
pub mod neighbour;
mod tags;
mod template;
#[cfg(test)]
mod tests;
mod udp;

use std::net::SocketAddr;

pub use arp::Arp;
pub use defect::Defect;
pub use ethernet::{Ethernet, write_link};
pub use ip::{Ip, write_v6};
pub use mac::{Mac, NoMac};
pub use neighbour::Neighbour;
pub use tags::{NoTags, Tag, TagKind, Tags};
pub use template::{Flow, MOST_HEADER, Template};
pub use udp::{Datagram, Verified};

/// Numbers of what a frame carries (IEEE 802 EtherTypes).
pub mod kind {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// Address resolution of IPv4.
    pub const ARP: u16 = 0x0806;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
}

/// Numbers of what a packet of IP carries.
pub mod protocol {
    /// UDP.
    pub const UDP: u8 = 17;
    /// ICMP of IPv6.
    pub const ICMPV6: u8 = 58;
}

/// Bytes of the link's header without tags.
pub const ETHERNET: usize = 14;
/// Bytes of one tag.
pub const TAG: usize = 4;
/// Bytes of IPv4's header without options.
pub const IPV4: usize = 20;
/// Bytes of IPv6's header without extensions.
pub const IPV6: usize = 40;
/// Bytes of UDP's header.
pub const UDP: usize = 8;

/// A frame and what it carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen<'a> {
    /// The link's header.
    pub link: Ethernet<'a>,
    /// What it carries.
    pub packet: Packet<'a>,
}

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A message.
    Datagram(Datagram<'a>),
    /// A question or an answer about addresses of IPv4.
    Arp(Arp),
    /// The same of IPv6: from whom, and what.
    Neighbour(std::net::Ipv6Addr, Neighbour),
}

/// Reads a frame; `stripped` is the outer tag where the kernel took it out.
#[inline]
pub fn parse(bytes: &[u8], stripped: Option<Tag>) -> Result<Seen<'_>, Defect> {
    let link = Ethernet::parse(bytes, stripped)?;
    let packet = match link.kind {
        kind::ARP => Packet::Arp(Arp::parse(link.payload)?),
        kind::IPV4 => Packet::Datagram(udp::parse(&Ip::parse_v4(link.payload)?)?),
        kind::IPV6 => {
            let ip = Ip::parse_v6(link.payload)?;
            if ip.protocol == protocol::ICMPV6 {
                let (from, heard) = neighbour::parse(&ip)?;
                Packet::Neighbour(from, heard)
            } else {
                Packet::Datagram(udp::parse(&ip)?)
            }
        }
        other => return Err(Defect::OtherKind(other)),
    };
    Ok(Seen { link, packet })
}

/// Bytes of all headers around a message from `from`, with so many tags.
#[must_use]
pub fn header_bytes(from: SocketAddr, tags: usize) -> usize {
    ETHERNET + tags * TAG + if from.is_ipv4() { IPV4 } else { IPV6 } + UDP
}
