//! Messages in a capture file that other tools open, each with a comment: `anomalies.pcapng`.
//!
//! What is kept of a message are its own bytes. The headers of IP, UDP and TCP around it are made up
//! from the addresses of both ends, so that the file is dissected as what it was on the way; the file's
//! own comment says so. Messages that took no network have no header, and the link type USER0.
//!
//! What a tap sees is written as it came by, into a file of its own: [`tap`].
//!
//! Times are nanoseconds since 1970. (draft-ietf-opsawg-pcapng; link types of tcpdump.org)

use std::net::{IpAddr, SocketAddr};

use crate::directory::RunDir;
use crate::error::ModelError;
use crate::files;

pub mod tap;

/// The file's name in a run directory.
pub const PACKETS_FILE: &str = "anomalies.pcapng";

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const ENHANCED: u32 = 6;

const COMMENT: u16 = 1;
const SECTION_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_RESOLUTION: u16 = 9;
const PACKET_FLAGS: u16 = 2;

/// Packets of IP, of whichever version.
const LINK_RAW: u16 = 101;
/// For private use: the message itself.
const LINK_USER: u16 = 147;

/// Longer comments are cut: a block's options have 16 bits of length.
const LONGEST_COMMENT: usize = 4_096;

/// What carried the messages of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// Datagrams between a client and a server.
    Udp {
        /// The client.
        client: SocketAddr,
        /// The server.
        server: SocketAddr,
    },
    /// A stream between a client and a server.
    Tcp {
        /// The client.
        client: SocketAddr,
        /// The server.
        server: SocketAddr,
    },
    /// No network.
    Local,
}

/// Which way a message went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the client.
    Inbound,
    /// From the client.
    Outbound,
}

/// One message.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    /// When, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Which way.
    pub direction: Direction,
    /// Its first bytes.
    pub message: &'a [u8],
    /// How many it had.
    pub length: usize,
    /// What is to be known of it.
    pub comment: &'a str,
}

/// A capture file in the making.
#[derive(Debug, Clone)]
pub struct PacketFile {
    bytes: Vec<u8>,
    carriers: Vec<Carrier>,
    packets: u64,
}

impl PacketFile {
    /// A file without packets, whose own comment this is.
    #[must_use]
    pub fn new(comment: &str) -> Self {
        let content = section(comment);
        let mut file = Self { bytes: Vec::new(), carriers: Vec::new(), packets: 0 };
        file.block(SECTION, &content);
        file
    }

    /// Adds an interface; its number for packets.
    pub fn interface(&mut self, name: &str, carrier: Carrier) -> usize {
        let link = if carrier == Carrier::Local { LINK_USER } else { LINK_RAW };
        let mut content = link.to_le_bytes().to_vec();
        // Reserved, and no limit of what is kept of a packet.
        content.extend([0; 6]);
        option(&mut content, INTERFACE_NAME, name.as_bytes());
        option(&mut content, INTERFACE_RESOLUTION, &[9]);
        end(&mut content);
        self.block(INTERFACE, &content);
        self.carriers.push(carrier);
        self.carriers.len() - 1
    }

    /// Adds a packet of an interface that was added before; none of one that was not.
    pub fn packet(&mut self, interface: usize, packet: &Packet<'_>) {
        let Some(carrier) = self.carriers.get(interface).copied() else { return };
        let headers = headers(carrier, packet);
        let [high, low] = [(packet.at_ns >> 32) as u32, packet.at_ns as u32];
        let kept = headers.len() + packet.message.len();
        let whole = headers.len() + packet.length.max(packet.message.len());
        let mut content = Vec::new();
        for number in [interface as u32, high, low, kept as u32, whole as u32] {
            content.extend(number.to_le_bytes());
        }
        content.extend(headers);
        content.extend(packet.message);
        pad(&mut content);
        let flags: u32 = match packet.direction {
            Direction::Inbound => 1,
            Direction::Outbound => 2,
        };
        option(&mut content, COMMENT, packet.comment.as_bytes());
        option(&mut content, PACKET_FLAGS, &flags.to_le_bytes());
        end(&mut content);
        self.block(ENHANCED, &content);
        self.packets += 1;
    }

    /// Packets in it.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// What the file consists of.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn block(&mut self, kind: u32, content: &[u8]) {
        block(&mut self.bytes, kind, content);
    }
}

/// What a section begins with.
fn section(comment: &str) -> Vec<u8> {
    let mut content = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
    content.extend([1, 0, 0, 0]);
    // Of a length that is not told.
    content.extend(u64::MAX.to_le_bytes());
    option(&mut content, COMMENT, comment.as_bytes());
    let application = concat!("whylate ", env!("CARGO_PKG_VERSION"));
    option(&mut content, SECTION_APPLICATION, application.as_bytes());
    end(&mut content);
    content
}

fn block(bytes: &mut Vec<u8>, kind: u32, content: &[u8]) {
    let length = (content.len() as u32 + 12).to_le_bytes();
    bytes.extend(kind.to_le_bytes());
    bytes.extend(length);
    bytes.extend(content);
    bytes.extend(length);
}

impl RunDir {
    /// Puts the packets into the run, as [`PACKETS_FILE`].
    pub fn write_packets(&self, file: &PacketFile) -> Result<(), ModelError> {
        files::replace(&self.path().join(PACKETS_FILE), file.bytes())
    }
}

fn pad(content: &mut Vec<u8>) {
    content.resize(content.len().next_multiple_of(4), 0);
}

fn option(content: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(LONGEST_COMMENT)];
    content.extend(code.to_le_bytes());
    content.extend((value.len() as u16).to_le_bytes());
    content.extend(value);
    pad(content);
}

fn end(content: &mut Vec<u8>) {
    content.extend([0; 4]);
}

/// The headers around a message.
fn headers(carrier: Carrier, packet: &Packet<'_>) -> Vec<u8> {
    let (client, server, stream) = match carrier {
        Carrier::Local => return Vec::new(),
        Carrier::Udp { client, server } => (client, server, false),
        Carrier::Tcp { client, server } => (client, server, true),
    };
    let (from, to) = match packet.direction {
        Direction::Outbound => (client, server),
        Direction::Inbound => (server, client),
    };
    let transport = if stream { tcp(from.port(), to.port()) } else { udp(from, to, packet) };
    let length = transport.len() + packet.length;
    let protocol = if stream { 6 } else { 17 };
    let mut headers = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => ipv4(from.octets(), to.octets(), protocol, length),
        (from, to) => ipv6(octets(from), octets(to), protocol, length),
    };
    headers.extend(transport);
    headers
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// What 16 bits cannot tell is told as 0, as offloading network cards do.
fn length_of(bytes: usize) -> [u8; 2] {
    u16::try_from(bytes).unwrap_or(0).to_be_bytes()
}

fn ipv4(from: [u8; 4], to: [u8; 4], protocol: u8, content: usize) -> Vec<u8> {
    let [high, low] = length_of(20 + content);
    // Version 4 and 5 words, may not be fragmented, 64 routers.
    let mut header = vec![0x45, 0, high, low, 0, 0, 0x40, 0, 64, protocol, 0, 0];
    header.extend(from);
    header.extend(to);
    let sum = !ones_sum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    header
}

fn ipv6(from: [u8; 16], to: [u8; 16], protocol: u8, content: usize) -> Vec<u8> {
    let [high, low] = length_of(content);
    let mut header = vec![0x60, 0, 0, 0, high, low, protocol, 64];
    header.extend(from);
    header.extend(to);
    header
}

fn tcp(from: u16, to: u16) -> Vec<u8> {
    let mut header = [from.to_be_bytes(), to.to_be_bytes()].concat();
    // Numbers of the stream are not known: 0. Five words, push and acknowledge, a full window.
    header.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
    header
}

fn udp(from: SocketAddr, to: SocketAddr, packet: &Packet<'_>) -> Vec<u8> {
    let length = length_of(8 + packet.length);
    let mut header = [from.port().to_be_bytes(), to.port().to_be_bytes(), length, [0, 0]].concat();
    // Over IPv4 no sum is one, over IPv6 it is not; of a message kept in part nobody knows it.
    if from.is_ipv6() && packet.message.len() == packet.length {
        let mut summed = [octets(from.ip()), octets(to.ip())].concat();
        summed.extend([0, 0, length[0], length[1], 0, 0, 0, 17]);
        summed.extend(&header);
        summed.extend(packet.message);
        let sum = match !ones_sum(&summed) {
            0 => u16::MAX,
            sum => sum,
        };
        header[6..8].copy_from_slice(&sum.to_be_bytes());
    }
    header
}

/// The sum of RFC 1071, of numbers of 16 bits.
fn ones_sum(bytes: &[u8]) -> u16 {
    let mut sum: u64 = bytes
        .chunks(2)
        .map(|two| u64::from(two[0]) << 8 | u64::from(two.get(1).copied().unwrap_or(0)))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: &str = "198.18.0.1:4000";
    const SERVER: &str = "198.18.0.2:11111";

    fn udp_over(client: &str, server: &str) -> Carrier {
        Carrier::Udp { client: client.parse().unwrap(), server: server.parse().unwrap() }
    }

    fn packet<'a>(direction: Direction, message: &'a [u8], comment: &'a str) -> Packet<'a> {
        Packet { at_ns: 5, direction, message, length: message.len(), comment }
    }

    #[test]
    fn headers_are_those_of_the_way_and_their_sums_are_right() {
        let carrier = udp_over(CLIENT, SERVER);
        let out = headers(carrier, &packet(Direction::Outbound, b"abcde", ""));
        assert_eq!(out.len(), 28);
        assert_eq!((out[0], out[3], out[9]), (0x45, 33, 17));
        assert_eq!(ones_sum(&out[..20]), 0xffff, "the sum over a header with its sum");
        assert_eq!(out[12..20], [198, 18, 0, 1, 198, 18, 0, 2]);
        assert_eq!(out[20..26], [0x0f, 0xa0, 0x2b, 0x67, 0, 13]);
        let back = headers(carrier, &packet(Direction::Inbound, b"abcde", ""));
        assert_eq!(back[12..20], [198, 18, 0, 2, 198, 18, 0, 1]);
        let six = headers(
            udp_over("[fd00::1]:7", "[fd00::2]:8"),
            &packet(Direction::Outbound, b"abc", ""),
        );
        assert_eq!((six.len(), six[0], six[5]), (48, 0x60, 11));
        let mut summed = six[8..40].to_vec();
        summed.extend([0, 0, 0, 11, 0, 0, 0, 17]);
        summed.extend(&six[40..]);
        summed.extend(b"abc");
        assert_eq!(ones_sum(&summed), 0xffff);
        assert!(headers(Carrier::Local, &packet(Direction::Inbound, b"abc", "")).is_empty());
    }

    #[test]
    fn lengths_that_do_not_fit_and_comments_without_end_are_held_in() {
        let server = SERVER.parse().unwrap();
        let carrier = Carrier::Tcp { client: CLIENT.parse().unwrap(), server };
        let huge = Packet { length: 65_507, ..packet(Direction::Outbound, b"abc", "") };
        assert_eq!(headers(carrier, &huge)[2..4], [0, 0]);
        let mut file = PacketFile::new("made up");
        let interface = file.interface("rtt", carrier);
        let before = file.bytes().len();
        let comment = "c".repeat(100_000);
        file.packet(interface, &Packet { comment: &comment, ..huge });
        assert!(file.bytes().len() - before < 5_000);
        file.packet(interface + 1, &huge);
        assert_eq!(file.packets(), 1, "of an interface that is there");
    }
}
