//! What crosses a link, from the first bytes of packets: who sends to whom, datagrams, segments.
//!
//! Packets may be cut short by whoever captured them, and may be longer than a link allows where a card
//! is still to cut them. Checksums are not looked at: cards make them after a tap inside the host.
//! (Link types of tcpdump.org; RFC 791, 8200, 768, 9293)

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use whylate_model::Nanos;

/// A datagram or a segment that came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crossing<'a> {
    /// When, by the clock of the capture.
    pub at: Nanos,
    /// Who sent it.
    pub from: SocketAddr,
    /// To whom.
    pub to: SocketAddr,
    /// What it brings.
    pub content: Content<'a>,
}

/// What came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content<'a> {
    /// By UDP.
    Datagram {
        /// Its bytes as far as they were kept.
        bytes: &'a [u8],
        /// How many it had.
        length: u32,
    },
    /// By TCP.
    Segment {
        /// The number of its first byte.
        sequence: u32,
        /// The stream begins behind it (SYN).
        begins: bool,
        /// Its bytes as far as they were kept.
        bytes: &'a [u8],
        /// How many it had.
        length: u32,
    },
}

/// Why a packet tells nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// A link of another kind.
    Link,
    /// Neither UDP nor TCP over IP.
    Protocol,
    /// A part of a packet that was cut into several.
    Fragment,
    /// Too few bytes, or lengths that cannot be.
    Damaged,
}

const TAGS: [u16; 2] = [0x8100, 0x88a8];
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Headers of IPv6 that lie before the transport's: hop by hop, routing, destination.
const PASSED_OVER: [u8; 3] = [0, 43, 60];
const FRAGMENT: u8 = 44;
/// Such headers, and tags, at most.
const MOST_HEADERS: usize = 4;

/// What a packet of this kind of link holds.
///
/// # Errors
/// Why it holds nothing that can be read.
pub fn crossing(at: Nanos, link: u16, bytes: &[u8]) -> Result<Crossing<'_>, Unread> {
    let (kind, packet) = match link {
        0 => (None, bytes.get(4..)),
        1 => ethernet(bytes)?,
        101 | 228 | 229 => (None, Some(bytes)),
        // Linux's own headers, of two versions, where an interface of any kind is captured.
        113 => (bytes.get(14..16).map(u16_of), bytes.get(16..)),
        276 => (bytes.get(0..2).map(u16_of), bytes.get(20..)),
        _ => return Err(Unread::Link),
    };
    let packet = packet.ok_or(Unread::Damaged)?;
    let version = packet.first().ok_or(Unread::Damaged)? >> 4;
    match (kind, version) {
        (None | Some(IPV4), 4) => ipv4(at, packet),
        (None | Some(IPV6), 6) => ipv6(at, packet),
        _ => Err(Unread::Protocol),
    }
}

fn u16_of(two: &[u8]) -> u16 {
    two.iter().fold(0, |number, byte| number << 8 | u16::from(*byte))
}

fn ethernet(bytes: &[u8]) -> Result<(Option<u16>, Option<&[u8]>), Unread> {
    let mut place = 12;
    for _ in 0..MOST_HEADERS {
        let kind = u16_of(bytes.get(place..place + 2).ok_or(Unread::Damaged)?);
        if !TAGS.contains(&kind) {
            return Ok((Some(kind), bytes.get(place + 2..)));
        }
        place += 4;
    }
    Err(Unread::Protocol)
}

fn ipv4(at: Nanos, packet: &[u8]) -> Result<Crossing<'_>, Unread> {
    let (header, _) = packet.split_first_chunk::<20>().ok_or(Unread::Damaged)?;
    let own = usize::from(header[0] & 0xf) * 4;
    // What a card is still to cut may be too long to be told.
    let whole = match usize::from(u16_of(&header[2..4])) {
        0 => packet.len(),
        told => told,
    };
    if own < 20 || whole < own {
        return Err(Unread::Damaged);
    }
    if u16_of(&header[6..8]) & 0x3fff != 0 {
        return Err(Unread::Fragment);
    }
    let [from, to] = [12, 16].map(|place| {
        IpAddr::V4(Ipv4Addr::new(
            header[place],
            header[place + 1],
            header[place + 2],
            header[place + 3],
        ))
    });
    transport(at, (from, to), header[9], (within(packet, own, whole)?, whole - own))
}

fn ipv6(at: Nanos, packet: &[u8]) -> Result<Crossing<'_>, Unread> {
    let (header, rest) = packet.split_first_chunk::<40>().ok_or(Unread::Damaged)?;
    let mut length = match usize::from(u16_of(&header[4..6])) {
        0 => rest.len(),
        told => told,
    };
    let address = |place: usize| {
        let octets: [u8; 16] = std::array::from_fn(|byte| header[place + byte]);
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    let (mut next, mut rest) = (header[6], rest);
    for _ in 0..MOST_HEADERS {
        if next == FRAGMENT {
            return Err(Unread::Fragment);
        }
        if !PASSED_OVER.contains(&next) {
            break;
        }
        let &[following, eights, ..] = rest else { return Err(Unread::Damaged) };
        let own = 8 + usize::from(eights) * 8;
        length = length.checked_sub(own).ok_or(Unread::Damaged)?;
        (next, rest) = (following, rest.get(own..).ok_or(Unread::Damaged)?);
    }
    transport(at, (address(8), address(24)), next, (within(rest, 0, length)?, length))
}

/// The bytes from one place to another, as far as they were kept.
fn within(bytes: &[u8], from: usize, to: usize) -> Result<&[u8], Unread> {
    bytes.get(from..to.min(bytes.len())).ok_or(Unread::Damaged)
}

fn transport(
    at: Nanos,
    (from, to): (IpAddr, IpAddr),
    protocol: u8,
    (bytes, length): (&[u8], usize),
) -> Result<Crossing<'_>, Unread> {
    let ports = || {
        let [from_port, to_port] = [bytes.get(0..2), bytes.get(2..4)];
        let from = SocketAddr::new(from, u16_of(from_port?));
        Some((from, SocketAddr::new(to, u16_of(to_port?))))
    };
    let (own, told, content) = match protocol {
        UDP => {
            let told = usize::from(u16_of(bytes.get(4..6).ok_or(Unread::Damaged)?));
            (8, if told == 0 { length } else { told }, None)
        }
        TCP => {
            let sequence = bytes.get(4..8).ok_or(Unread::Damaged)?;
            let sequence = sequence.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
            let own = usize::from(bytes.get(12).ok_or(Unread::Damaged)? >> 4) * 4;
            let begins = bytes.get(13).ok_or(Unread::Damaged)? & 0x02 != 0;
            if own < 20 {
                return Err(Unread::Damaged);
            }
            (own, length, Some((sequence, begins)))
        }
        _ => return Err(Unread::Protocol),
    };
    let (from, to) = ports().ok_or(Unread::Damaged)?;
    if told < own || told > length {
        return Err(Unread::Damaged);
    }
    let (bytes, length) = (within(bytes, own, told).unwrap_or_default(), (told - own) as u32);
    let content = match content {
        None => Content::Datagram { bytes, length },
        Some((sequence, begins)) => Content::Segment { sequence, begins, bytes, length },
    };
    Ok(Crossing { at, from, to, content })
}
