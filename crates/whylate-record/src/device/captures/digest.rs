//! What tells a packet from all others, and stays as it is on the way through a box.
//!
//! A digest of 128 bits of its bytes, without those that are left out because the box changes them. What
//! a frame of Ethernet has behind its packet of IP (padding, check sequence) is in no digest: one capture
//! has it, and the other has not. Two packets with the same digest hold the same: nothing is claimed
//! about which of them is which.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

use whylate_net::capture::seen::Packet;

/// Numbers of link types at tcpdump.org.
const ETHERNET: u16 = 1;
const RAW_IP: [u16; 3] = [12, 14, 101];
const COOKED: u16 = 113;
const COOKED_2: u16 = 276;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ARP: u16 = 0x0806;
/// Bytes of a question for a hardware address, and of its answer, over IPv4.
const ARP_BYTES: usize = 28;
/// Tags that may stand before the type of a frame: 802.1Q, 802.1ad.
const TAGS: [u16; 2] = [0x8100, 0x88a8];
/// Tags that are passed over at most.
const MOST_TAGS: usize = 4;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// What a box changes in packets that it passes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changed {
    /// Hardware addresses and tags: all that stands before the packet of IP.
    pub mac: bool,
    /// Time to live, hop limit, and the checksum of IP that follows from it.
    pub ttl: bool,
    /// Checksums of IP, UDP and TCP.
    pub checksum: bool,
}

/// What is known of a packet by its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    /// The same for the same packet on both sides.
    pub(super) digest: u128,
    /// From whom to whom: the same for all packets that go the same way between two hosts.
    pub(super) pair: u64,
}

/// Bytes of the packet that are in its digest as far as they were captured.
pub(super) fn of(packet: &Packet<'_>, changed: Changed, most: u32) -> Told {
    let head = Head::of(packet.link, packet.bytes);
    let ip = head.ip.and_then(|at| Ip::of(packet.bytes, at));
    let from = if changed.mac { head.ip.unwrap_or(0) } else { 0 };
    let whole = ip.as_ref().map(|ip| ip.ends).or(head.ends).unwrap_or(packet.length as usize);
    let end = whole.min(packet.bytes.len()).min(most as usize).max(from);
    let mut bytes =
        packet.bytes[from.min(packet.bytes.len())..end.min(packet.bytes.len())].to_vec();
    let mut clear = |at: usize, count: usize| {
        for byte in bytes.iter_mut().skip(at.saturating_sub(from)).take(count) {
            *byte = 0;
        }
    };
    if let Some(ip) = &ip {
        if changed.ttl {
            clear(ip.ttl, 1);
        }
        if changed.ttl || changed.checksum {
            ip.own_checksum.into_iter().for_each(|at| clear(at, 2));
        }
        if changed.checksum {
            ip.inner_checksum.into_iter().for_each(|at| clear(at, 2));
        }
    }
    let length = whole.saturating_sub(from);
    let pair = ip.map_or_else(|| head.pair(packet.bytes), |ip| hash(ip.addresses, 0));
    let half = |seed| u128::from(hash(&bytes, seed ^ (length as u64)));
    let digest = (half(0) << 64) | half(0x9e37_79b9_7f4a_7c15);
    Told { digest, pair }
}

/// SipHash of the standard library, with keys that are the same in every process.
fn hash(bytes: &[u8], seed: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(seed);
    hasher.write(bytes);
    hasher.finish()
}

/// What stands before a packet of IP.
struct Head {
    link: u16,
    /// Where the packet of IP begins; none of another.
    ip: Option<usize>,
    /// Where the frame ends before what fills it up, of what is no IP; none where nothing tells.
    ends: Option<usize>,
}

impl Head {
    fn of(link: u16, bytes: &[u8]) -> Self {
        let behind = if link == ETHERNET { behind_ethernet(bytes) } else { None };
        let ip = match link {
            ETHERNET => behind.filter(|(kind, _)| is_ip(*kind)).map(|(_, at)| at),
            COOKED => u16_at(bytes, 14).is_some_and(is_ip).then_some(16),
            COOKED_2 => u16_at(bytes, 0).is_some_and(is_ip).then_some(20),
            link if RAW_IP.contains(&link) => Some(0),
            _ => None,
        };
        let arp = behind.filter(|(kind, _)| *kind == ARP);
        Self { link, ip, ends: arp.map(|(_, at)| at + ARP_BYTES) }
    }

    /// Of what is no IP, by the hardware addresses: destination before source.
    fn pair(&self, bytes: &[u8]) -> u64 {
        let addresses = if self.link == ETHERNET { bytes.get(..12) } else { None };
        hash(addresses.unwrap_or_default(), 1)
    }
}

fn is_ip(kind: u16) -> bool {
    kind == IPV4 || kind == IPV6
}

/// The type of a frame, and where what it carries begins.
fn behind_ethernet(bytes: &[u8]) -> Option<(u16, usize)> {
    let mut at = 12;
    for _ in 0..=MOST_TAGS {
        match u16_at(bytes, at)? {
            tag if TAGS.contains(&tag) => at += 4,
            kind => return Some((kind, at + 2)),
        }
    }
    None
}

/// Places in a packet of IP.
struct Ip<'a> {
    addresses: &'a [u8],
    ttl: usize,
    own_checksum: Option<usize>,
    /// Of UDP or TCP; none of others, and of later fragments.
    inner_checksum: Option<usize>,
    /// Where it ends by its own word.
    ends: usize,
}

impl<'a> Ip<'a> {
    fn of(bytes: &'a [u8], at: usize) -> Option<Self> {
        match bytes.get(at)? >> 4 {
            4 => Self::v4(bytes, at),
            6 => Self::v6(bytes, at),
            _ => None,
        }
    }

    fn v4(bytes: &'a [u8], at: usize) -> Option<Self> {
        let header = usize::from(bytes.get(at)? & 0xf) * 4;
        let total = usize::from(u16_at(bytes, at + 2)?);
        let protocol = *bytes.get(at + 9)?;
        let addresses = bytes.get(at + 12..at + 20)?;
        // A later fragment has no header of what it carries.
        let offset = u16_at(bytes, at + 6)? & 0x1fff;
        // A card that is still to cut it into several writes 0.
        let ends = if total < header { bytes.len() } else { at + total };
        Some(Self {
            addresses,
            ttl: at + 8,
            own_checksum: Some(at + 10),
            inner_checksum: checksum(protocol).filter(|_| offset == 0).map(|of| at + header + of),
            ends,
        })
    }

    fn v6(bytes: &'a [u8], at: usize) -> Option<Self> {
        let payload = usize::from(u16_at(bytes, at + 4)?);
        let protocol = *bytes.get(at + 6)?;
        let addresses = bytes.get(at + 8..at + 40)?;
        let ends = if payload == 0 { bytes.len() } else { at + 40 + payload };
        Some(Self {
            addresses,
            ttl: at + 7,
            own_checksum: None,
            inner_checksum: checksum(protocol).map(|of| at + 40 + of),
            ends,
        })
    }
}

/// Where the checksum lies in the header of a protocol.
fn checksum(protocol: u8) -> Option<usize> {
    match protocol {
        TCP => Some(16),
        UDP => Some(6),
        _ => None,
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

#[cfg(test)]
mod tests {
    use whylate_model::Nanos;

    use super::*;

    const ALL: Changed = Changed { mac: true, ttl: true, checksum: true };

    /// A datagram in a frame, padded to 60 bytes.
    fn frame(payload: &[u8], ttl: u8) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        let total = 28 + payload.len() as u16;
        frame.extend([0x45, 0]);
        frame.extend(total.to_be_bytes());
        frame.extend([0, 0, 0, 0, ttl, 17, 1, u8::MAX - ttl]);
        frame.extend([198, 18, 0, 1, 198, 18, 0, 2, 0, 7, 0, 7]);
        frame.extend((8 + payload.len() as u16).to_be_bytes());
        frame.extend([0xab, 0xcd]);
        frame.extend(payload);
        frame.resize(frame.len().max(60), 0);
        frame
    }

    fn told(bytes: &[u8], changed: Changed) -> Told {
        let packet = Packet { at: Nanos(0), link: ETHERNET, bytes, length: bytes.len() as u32 };
        of(&packet, changed, u32::MAX)
    }

    #[test]
    fn what_a_box_changes_is_left_out_where_it_is_told_and_only_there() {
        let before = frame(b"one", 64);
        let mut routed = frame(b"one", 63);
        routed[..6].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
        let mut rewritten = before.clone();
        rewritten[40] = 0;
        let none = Changed::default();
        for (behind, needed) in [
            (&routed, Changed { mac: true, ttl: true, checksum: false }),
            (&rewritten, Changed { checksum: true, ..none }),
        ] {
            assert_ne!(told(&before, none).digest, told(behind, none).digest);
            assert_eq!(told(&before, needed).digest, told(behind, needed).digest);
            assert_eq!(told(&before, ALL).digest, told(behind, ALL).digest);
        }
        for changed in [none, ALL] {
            assert_ne!(told(&before, changed).digest, told(&frame(b"two", 64), changed).digest);
            assert_ne!(told(&before, changed).digest, told(&frame(b"one\0", 64), changed).digest);
        }
    }

    #[test]
    fn padding_and_check_sequence_and_the_kind_of_link_do_not_matter() {
        let before = frame(b"one", 64);
        let mut longer = before.clone();
        longer.extend([1, 2, 3, 4]);
        assert_eq!(told(&before, Changed::default()), told(&longer, Changed::default()));
        let mut tagged = before[..12].to_vec();
        tagged.extend([0x81, 0, 0, 5]);
        tagged.extend(&before[12..]);
        assert_eq!(told(&before, ALL), told(&tagged, ALL));
        let mut question = before[..42].to_vec();
        question[12..14].copy_from_slice(&[8, 6]);
        let mut padded = question.clone();
        padded.resize(60, 0);
        assert_eq!(told(&question, Changed::default()), told(&padded, Changed::default()));
        let bare = Packet { at: Nanos(0), link: 101, bytes: &before[14..], length: 46 };
        assert_eq!(told(&before, ALL), of(&bare, ALL, u32::MAX));
    }

    #[test]
    fn two_ways_between_two_hosts_are_two_pairs() {
        let there = frame(b"one", 64);
        let mut back = there.clone();
        back[26..34].copy_from_slice(&[198, 18, 0, 2, 198, 18, 0, 1]);
        assert_ne!(told(&there, ALL).pair, told(&back, ALL).pair);
        assert_eq!(told(&there, ALL).pair, told(&frame(b"else", 9), ALL).pair);
    }

    #[test]
    fn any_bytes_have_a_digest() {
        let whole = frame(b"some payload", 64);
        for length in 0..whole.len() {
            for link in [0, ETHERNET, 12, 101, 113, 276] {
                let digests = |bytes: &[u8]| {
                    let packet = Packet { at: Nanos(0), link, bytes, length: 60 };
                    [Changed::default(), ALL].map(|changed| of(&packet, changed, 40).digest)
                };
                let mut bytes = whole[..length].to_vec();
                let [plain, changed] = digests(&bytes);
                for flip in 0..length {
                    bytes[flip] ^= 0xff;
                    let [flipped, left_out] = digests(&bytes);
                    // Hardware addresses count, but where a box changes them.
                    if link == ETHERNET && flip < 12 {
                        assert_ne!(flipped, plain, "byte {flip} of {length}");
                        assert_eq!(left_out == changed, length >= 14, "byte {flip} of {length}");
                    }
                    bytes[flip] ^= 0xff;
                }
                assert_eq!(digests(&bytes), [plain, changed]);
            }
        }
    }
}
