//! Datagrams of UDP (RFC 768; over IPv6 RFC 8200, section 8.1).

use std::net::SocketAddr;

use crate::frame::checksum::pseudo_header;
use crate::frame::{Defect, Ip, UDP, protocol};

/// A message, from whom and to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// From whom.
    pub from: SocketAddr,
    /// To whom.
    pub to: SocketAddr,
    /// What its checksum proves.
    pub verified: Verified,
    /// The message.
    pub message: &'a [u8],
}

/// What the checksum of a datagram proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verified {
    /// It is right.
    Right,
    /// The sender made none, as it may over IPv4.
    Absent,
    /// It was left for a network card to fill in, and no card was passed: between two virtual
    /// interfaces. It holds the sum of the addresses only, and proves nothing of the message.
    LeftToCard,
}

/// Reads a datagram.
#[inline]
pub(crate) fn parse<'a>(ip: &Ip<'a>) -> Result<Datagram<'a>, Defect> {
    if ip.protocol != protocol::UDP {
        return Err(Defect::OtherProtocol(ip.protocol));
    }
    let (fixed, _) = ip.payload.split_first_chunk::<UDP>().ok_or(Defect::Truncated("UDP"))?;
    let [s0, s1, d0, d1, l0, l1, c0, c1] = *fixed;
    let length = u16::from_be_bytes([l0, l1]);
    let datagram = ip.payload.get(..usize::from(length)).ok_or(Defect::Truncated("UDP"))?;
    let message = datagram.get(UDP..).ok_or(Defect::Length("UDP"))?;
    let checksum = u16::from_be_bytes([c0, c1]);
    let verified = if checksum == 0 {
        if ip.source.is_ipv6() {
            return Err(Defect::ChecksumMissing);
        }
        Verified::Absent
    } else {
        let addresses = pseudo_header(ip.source, ip.destination, ip.protocol).word(length);
        if addresses.bytes(datagram).is_right() {
            Verified::Right
        } else if addresses.folded() == checksum {
            Verified::LeftToCard
        } else {
            return Err(Defect::Checksum("UDP"));
        }
    };
    let from = SocketAddr::new(ip.source, u16::from_be_bytes([s0, s1]));
    let to = SocketAddr::new(ip.destination, u16::from_be_bytes([d0, d1]));
    Ok(Datagram { from, to, verified, message })
}
