//! Neighbour discovery of IPv6 (RFC 4861): who has an address, and the answer.

use std::net::{IpAddr, Ipv6Addr};

use crate::frame::checksum::pseudo_header;
use crate::frame::{Defect, Ip, Mac, protocol};

/// Bytes of a message with one hardware address.
pub const BYTES: usize = 32;
/// The message came over no router: nobody can set more.
pub const HOPS: u8 = 255;
const FIXED: usize = 24;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
const SOURCE_ADDRESS: u8 = 1;
const TARGET_ADDRESS: u8 = 2;
/// It answers a question, and replaces what was known before.
const SOLICITED_OVERRIDE: u8 = 0x60;
/// The same where whoever asked has no address yet.
const OVERRIDE: u8 = 0x20;

/// A question or an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Neighbour {
    /// Who has `target`?
    Solicitation {
        /// The address in question.
        target: Ipv6Addr,
        /// Who asks; none of one who has no address yet.
        source: Option<Mac>,
    },
    /// I have `target`.
    Advertisement {
        /// The address.
        target: Ipv6Addr,
        /// Whose it is; may be left out where whoever asked knows.
        mac: Option<Mac>,
    },
}

/// The group that whoever has `address` listens to (RFC 4291, section 2.7.1).
#[must_use]
pub fn solicited_group(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c])
}

/// Reads it, with all the checks of the RFC's sections 7.1.1 and 7.1.2: from whom, and what.
pub(crate) fn parse(ip: &Ip<'_>) -> Result<(Ipv6Addr, Neighbour), Defect> {
    let (IpAddr::V6(from), IpAddr::V6(_)) = (ip.source, ip.destination) else {
        return Err(Defect::Version(4));
    };
    let kind = *ip.payload.first().ok_or(Defect::Truncated("ICMPv6"))?;
    if !matches!(kind, SOLICITATION | ADVERTISEMENT) {
        return Err(Defect::OtherIcmp(kind));
    }
    let length = u16::try_from(ip.payload.len()).map_err(|_| Defect::Length("ICMPv6"))?;
    let sum = pseudo_header(ip.source, ip.destination, protocol::ICMPV6).word(length);
    if !sum.bytes(ip.payload).is_right() {
        return Err(Defect::Checksum("ICMPv6"));
    }
    if ip.hops != HOPS {
        return Err(Defect::Neighbour("it passed a router"));
    }
    let (fixed, options) = ip.payload.split_first_chunk::<FIXED>().ok_or(BROKEN)?;
    let mut octets = [0; 16];
    octets.copy_from_slice(&fixed[8..]);
    let target = Ipv6Addr::from(octets);
    if fixed[1] != 0 || target.is_multicast() {
        return Err(BROKEN);
    }
    let heard = match kind {
        SOLICITATION => {
            Neighbour::Solicitation { target, source: hardware(options, SOURCE_ADDRESS)? }
        }
        _ => Neighbour::Advertisement { target, mac: hardware(options, TARGET_ADDRESS)? },
    };
    Ok((from, heard))
}

const BROKEN: Defect = Defect::Neighbour("it is cut off or has an impossible field");

/// The hardware address among the options.
fn hardware(mut options: &[u8], wanted: u8) -> Result<Option<Mac>, Defect> {
    let mut found = None;
    while let Some((&[kind, eighths], _)) = options.split_first_chunk::<2>() {
        let length = usize::from(eighths) * 8;
        // An option without length would be read for ever.
        if length == 0 {
            return Err(BROKEN);
        }
        let (option, after) = options.split_at_checked(length).ok_or(BROKEN)?;
        if kind == wanted
            && let Ok(mac) = option[2..].try_into()
        {
            found = found.or(Some(Mac(mac)));
        }
        options = after;
    }
    if options.is_empty() { Ok(found) } else { Err(BROKEN) }
}

/// The message of ICMPv6 that asks who has `target`: from whom, to which group.
#[must_use]
pub fn question(mac: Mac, from: Ipv6Addr, target: Ipv6Addr) -> [u8; BYTES] {
    let to = solicited_group(target);
    message((SOLICITATION, 0, SOURCE_ADDRESS), (from, to), target, mac)
}

/// The message of ICMPv6 that says that `mac` has `target`, to whoever asked; to all where whoever
/// asked has no address yet.
#[must_use]
pub fn answer(mac: Mac, target: Ipv6Addr, asked: Ipv6Addr) -> (Ipv6Addr, [u8; BYTES]) {
    const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let known = !asked.is_unspecified();
    let (flags, to) = if known { (SOLICITED_OVERRIDE, asked) } else { (OVERRIDE, ALL_NODES) };
    (to, message((ADVERTISEMENT, flags, TARGET_ADDRESS), (target, to), target, mac))
}

fn message(
    (kind, flags, option): (u8, u8, u8),
    (from, to): (Ipv6Addr, Ipv6Addr),
    target: Ipv6Addr,
    mac: Mac,
) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[0] = kind;
    bytes[4] = flags;
    bytes[8..24].copy_from_slice(&target.octets());
    bytes[24] = option;
    bytes[25] = 1;
    bytes[26..].copy_from_slice(&mac.0);
    let sum = pseudo_header(from.into(), to.into(), protocol::ICMPV6).word(BYTES as u16);
    let checksum = sum.bytes(&bytes).checksum();
    bytes[2..4].copy_from_slice(&checksum.to_be_bytes());
    bytes
}
