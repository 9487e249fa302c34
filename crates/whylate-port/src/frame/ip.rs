//! Packets of IPv4 (RFC 791) and IPv6 (RFC 8200): what carries a message from host to host.

use std::net::{IpAddr, Ipv6Addr};

use crate::frame::checksum::Sum;
use crate::frame::{Defect, IPV6};

/// Extension headers that are looked through at most.
const MOST_HEADERS: usize = 8;
/// More fragments follow, or this is not the first one.
const FRAGMENT: u16 = 0x3fff;

const HOP_BY_HOP: u8 = 0;
const FRAGMENT_HEADER: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;

/// A packet without its headers and without what the link padded it with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ip<'a> {
    /// From whom.
    pub source: IpAddr,
    /// To whom.
    pub destination: IpAddr,
    /// What it carries.
    pub protocol: u8,
    /// Routers that it may still pass.
    pub hops: u8,
    /// What it carries.
    pub payload: &'a [u8],
}

impl<'a> Ip<'a> {
    /// Reads a packet of IPv4. Options are skipped, fragments refused.
    #[inline]
    pub fn parse_v4(bytes: &'a [u8]) -> Result<Self, Defect> {
        let (fixed, _) = bytes.split_first_chunk::<20>().ok_or(Defect::Truncated("IPv4"))?;
        let [first, _, length_high, length_low, _, _, part_high, part_low, hops, protocol, ..] =
            *fixed;
        if first >> 4 != 4 {
            return Err(Defect::Version(first >> 4));
        }
        let header = usize::from(first & 0xf) * 4;
        let total = usize::from(u16::from_be_bytes([length_high, length_low]));
        if header < fixed.len() || total < header {
            return Err(Defect::Length("IPv4"));
        }
        let packet = bytes.get(..total).ok_or(Defect::Truncated("IPv4"))?;
        let (header, payload) = packet.split_at_checked(header).ok_or(Defect::Length("IPv4"))?;
        if !Sum::default().bytes(header).is_right() {
            return Err(Defect::HeaderChecksum);
        }
        if u16::from_be_bytes([part_high, part_low]) & FRAGMENT != 0 {
            return Err(Defect::Fragment);
        }
        let address =
            |at: usize| IpAddr::from([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
        Ok(Self { source: address(12), destination: address(16), protocol, hops, payload })
    }

    /// Reads a packet of IPv6. Options for each hop and for the receiver are skipped, fragments
    /// refused; any other extension is told as what is carried.
    #[inline]
    pub fn parse_v6(bytes: &'a [u8]) -> Result<Self, Defect> {
        let short = Defect::Truncated("IPv6");
        let (fixed, rest) = bytes.split_first_chunk::<IPV6>().ok_or(short)?;
        if fixed[0] >> 4 != 6 {
            return Err(Defect::Version(fixed[0] >> 4));
        }
        let length = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        let mut payload = rest.get(..length).ok_or(short)?;
        let (mut protocol, hops) = (fixed[6], fixed[7]);
        let mut seen = 0;
        while matches!(protocol, HOP_BY_HOP | DESTINATION_OPTIONS) {
            let (&[next, eighths], _) = payload.split_first_chunk::<2>().ok_or(short)?;
            payload = payload.get((usize::from(eighths) + 1) * 8..).ok_or(short)?;
            protocol = next;
            seen += 1;
            if seen > MOST_HEADERS {
                return Err(Defect::TooManyHeaders(MOST_HEADERS));
            }
        }
        if protocol == FRAGMENT_HEADER {
            return Err(Defect::Fragment);
        }
        let address = |at: usize| {
            let mut octets = [0; 16];
            octets.copy_from_slice(&fixed[at..at + 16]);
            IpAddr::from(Ipv6Addr::from(octets))
        };
        Ok(Self { source: address(8), destination: address(24), protocol, hops, payload })
    }
}

/// The header of a packet of IPv6 without extensions.
#[must_use]
pub fn write_v6(
    (from, to): (Ipv6Addr, Ipv6Addr),
    (protocol, hops, class): (u8, u8, u8),
    length: u16,
) -> [u8; IPV6] {
    let mut header = [0; IPV6];
    header[0] = 6 << 4 | class >> 4;
    header[1] = class << 4;
    header[4..6].copy_from_slice(&length.to_be_bytes());
    header[6] = protocol;
    header[7] = hops;
    header[8..24].copy_from_slice(&from.octets());
    header[24..40].copy_from_slice(&to.octets());
    header
}
