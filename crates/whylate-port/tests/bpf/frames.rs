//! Planted frames, built from what they are to be.

/// Of the first interface, which sends.
pub(crate) const NEAR: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// Of the second one, which runs the program.
pub(crate) const FAR: [u8; 6] = [2, 0, 0, 0, 0, 2];
pub(crate) const NEAR_V4: [u8; 4] = [198, 18, 0, 1];
pub(crate) const FAR_V4: [u8; 4] = [198, 18, 0, 2];
pub(crate) const NEAR_V6: [u8; 16] = [0xfd, 0, 0, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
pub(crate) const FAR_V6: [u8; 16] = [0xfd, 0, 0, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
/// The port that programs look for, and the one that messages come from.
pub(crate) const PORT: u16 = 41_000;
pub(crate) const FROM: u16 = 52_345;

/// The header of IP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ip {
    /// With so many words of options, and this field of fragments.
    V4 { options: u8, fragment: u16 },
    /// With this extension header, of eight bytes.
    V6 { extension: Option<u8> },
}

/// What stands in the checksum of UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checksum {
    /// The right one.
    Complete,
    /// None.
    Absent,
    /// The sum of the pseudo-header, as a sender leaves it that lets an interface finish.
    Unfinished,
}

/// A datagram in a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Planted {
    pub(crate) tags: Vec<u16>,
    pub(crate) ip: Ip,
    pub(crate) port: u16,
    pub(crate) checksum: Checksum,
    pub(crate) payload: Vec<u8>,
    /// Bytes behind the packet, as short frames have them.
    pub(crate) padding: usize,
}

pub(crate) const PLAIN_V4: Ip = Ip::V4 { options: 0, fragment: 0 };
pub(crate) const PLAIN_V6: Ip = Ip::V6 { extension: None };

impl Planted {
    /// A message to the port, in the plainest frame.
    pub(crate) fn new(ip: Ip, payload: Vec<u8>) -> Self {
        let checksum = Checksum::Complete;
        Self { tags: Vec::new(), ip, port: PORT, checksum, payload, padding: 0 }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut frame = [FAR, NEAR].concat();
        for (tag, number) in self.tags.iter().zip(100_u16..) {
            frame.extend(tag.to_be_bytes());
            frame.extend(number.to_be_bytes());
        }
        let udp = self.udp();
        match self.ip {
            Ip::V4 { options, fragment } => {
                frame.extend(0x0800_u16.to_be_bytes());
                let mut header = vec![0x45 + options, 0x2e];
                let length = 20 + 4 * usize::from(options) + udp.len();
                header.extend((length as u16).to_be_bytes());
                header.extend([0x12, 0x34]);
                header.extend(fragment.to_be_bytes());
                header.extend([17, 17, 0, 0]);
                header.extend(NEAR_V4);
                header.extend(FAR_V4);
                header.extend(vec![1; 4 * usize::from(options)]);
                let sum = !folded(sum(&header));
                header[10..12].copy_from_slice(&sum.to_be_bytes());
                frame.extend(header);
            }
            Ip::V6 { extension } => {
                frame.extend(0x86dd_u16.to_be_bytes());
                frame.extend([0x62, 0xe0, 0, 0]);
                let more = if extension.is_some() { 8 } else { 0 };
                frame.extend(((udp.len() + more) as u16).to_be_bytes());
                frame.extend([extension.unwrap_or(17), 17]);
                frame.extend(NEAR_V6);
                frame.extend(FAR_V6);
                if extension.is_some() {
                    frame.extend([17, 0, 1, 4, 0, 0, 0, 0]);
                }
            }
        }
        frame.extend(udp);
        frame.extend(vec![0xee; self.padding]);
        frame
    }

    fn udp(&self) -> Vec<u8> {
        let length = (8 + self.payload.len()) as u16;
        let mut udp = Vec::new();
        for number in [FROM, self.port, length, 0] {
            udp.extend(number.to_be_bytes());
        }
        udp.extend(&self.payload);
        let addresses = match self.ip {
            Ip::V4 { .. } => [NEAR_V4, FAR_V4].concat(),
            Ip::V6 { .. } => [NEAR_V6, FAR_V6].concat(),
        };
        let pseudo = sum(&addresses) + 17 + u64::from(length);
        let checksum = match self.checksum {
            Checksum::Complete => match !folded(pseudo + sum(&udp)) {
                0 => 0xffff,
                sum => sum,
            },
            Checksum::Absent => 0,
            Checksum::Unfinished => folded(pseudo),
        };
        udp[6..8].copy_from_slice(&checksum.to_be_bytes());
        udp
    }
}

/// A message of the protocol that the tests' reflectors know.
pub(crate) fn message(kind: u8, length: usize) -> Vec<u8> {
    let mut message = b"wlat\x02".to_vec();
    message.push(kind);
    message.extend((length as u16).to_be_bytes());
    message.extend((8..length).map(|at| (at * 7) as u8));
    message
}

/// The same, as long as that, with the beginning of compact messages.
pub(crate) fn compact(kind: u8, length: usize) -> Vec<u8> {
    let mut message = message(kind, length);
    message[3] = b'c';
    message
}

/// The sum of words of 16 bits; an odd byte at the end is the upper half of one.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    let word = |pair: &[u8]| (u64::from(pair[0]) << 8) | pair.get(1).map_or(0, |low| (*low).into());
    bytes.chunks(2).map(word).sum()
}

/// With its carries added to it.
pub(crate) fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// A question of ARP, `operation` 1, or an answer, 2, about `target`.
pub(crate) fn arp(operation: u8, target: [u8; 4]) -> Vec<u8> {
    let mut frame = [[0xff; 6], NEAR].concat();
    frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, operation]);
    frame.extend(NEAR);
    frame.extend(NEAR_V4);
    frame.extend([0; 6]);
    frame.extend(target);
    frame.extend([0; 18]);
    frame
}

/// A message of ICMPv6 about a neighbour: solicitation 135, advertisement 136.
pub(crate) fn neighbour(kind: u8, to: [u8; 16], target: [u8; 16]) -> Vec<u8> {
    let mut frame = [FAR, NEAR].concat();
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 24, 58, 255]);
    frame.extend(NEAR_V6);
    frame.extend(to);
    frame.extend([kind, 0, 0, 0, 0, 0, 0, 0]);
    frame.extend(target);
    frame
}
