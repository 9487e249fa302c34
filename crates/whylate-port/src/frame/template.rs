//! Headers made once: of each message only lengths and checksums change.

use std::net::{IpAddr, SocketAddr};

use crate::frame::checksum::{Sum, pseudo_header};
use crate::frame::{
    ETHERNET, IPV4, IPV6, Mac, TAG, Tags, UDP, header_bytes, kind, protocol, write_link, write_v6,
};

/// Bytes of the longest header: two tags, IPv6, UDP.
pub const MOST_HEADER: usize = ETHERNET + 2 * TAG + IPV6 + UDP;
/// Do not cut it into fragments. Such a packet needs no number of its own (RFC 6864).
const WHOLE: [u8; 2] = [0x40, 0];

/// Between whom messages go, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Hardware addresses: from, to.
    pub link: (Mac, Mac),
    /// Networks.
    pub tags: Tags,
    /// From whom.
    pub from: SocketAddr,
    /// To whom; of the same family.
    pub to: SocketAddr,
    /// The byte for type of service or traffic class.
    pub class: u8,
    /// Routers that a packet may pass.
    pub hops: u8,
}

/// The headers of all messages of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    bytes: [u8; MOST_HEADER],
    length: usize,
    /// Where IP's header begins.
    ip: usize,
    v4: bool,
    /// The sum of IPv4's header without its length.
    header: Sum,
    /// The sum of what UDP's checksum covers, without lengths and message.
    datagram: Sum,
}

impl Template {
    /// Makes the headers of a flow; none where its addresses are of two families.
    #[must_use]
    pub fn new(flow: &Flow) -> Option<Self> {
        let mut bytes = [0; MOST_HEADER];
        let (from, to) = flow.link;
        let v4 = flow.from.is_ipv4();
        let carried = if v4 { kind::IPV4 } else { kind::IPV6 };
        let ip = write_link(&mut bytes, to, from, flow.tags, carried);
        let mut header = Sum::default();
        match (flow.from.ip(), flow.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let packet = &mut bytes[ip..ip + IPV4];
                packet[0] = 4 << 4 | 5;
                packet[1] = flow.class;
                packet[6..8].copy_from_slice(&WHOLE);
                packet[8] = flow.hops;
                packet[9] = protocol::UDP;
                packet[12..16].copy_from_slice(&from.octets());
                packet[16..20].copy_from_slice(&to.octets());
                header = header.bytes(packet);
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let fields = (protocol::UDP, flow.hops, flow.class);
                bytes[ip..ip + IPV6].copy_from_slice(&write_v6((from, to), fields, 0));
            }
            _ => return None,
        }
        let length = header_bytes(flow.from, flow.tags.count());
        let udp = &mut bytes[length - UDP..length];
        udp[..2].copy_from_slice(&flow.from.port().to_be_bytes());
        udp[2..4].copy_from_slice(&flow.to.port().to_be_bytes());
        let datagram = pseudo_header(flow.from.ip(), flow.to.ip(), protocol::UDP).bytes(udp);
        Some(Self { bytes, length, ip, v4, header, datagram })
    }

    /// Bytes of the headers.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> usize {
        self.length
    }

    /// Writes headers and message. `frame` has room for just both, and the message is short enough
    /// for IP: 65 507 bytes over IPv4, 65 527 over IPv6.
    ///
    /// Hot: once per message, between the intention to send and the stamp of the sending. The headers
    /// are copied as they are; then two lengths and one or two checksums are put into them.
    #[inline]
    pub fn write(&self, frame: &mut [u8], message: &[u8]) {
        let (headers, body) = frame.split_at_mut(self.length);
        headers.copy_from_slice(&self.bytes[..self.length]);
        body.copy_from_slice(message);
        let datagram = (UDP + message.len()) as u16;
        let (lower, udp) = headers.split_at_mut(self.length - UDP);
        let ip = &mut lower[self.ip..];
        if self.v4 {
            let total = datagram + IPV4 as u16;
            ip[2..4].copy_from_slice(&total.to_be_bytes());
            let checksum = self.header.word(total).checksum();
            ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        } else {
            ip[4..6].copy_from_slice(&datagram.to_be_bytes());
        }
        udp[4..6].copy_from_slice(&datagram.to_be_bytes());
        // The length stands in the header and among the addresses: it counts twice.
        let checksum = self.datagram.word(datagram).word(datagram).bytes(message).checksum();
        // Zero would mean that there is none (RFC 768).
        let checksum = if checksum == 0 { 0xffff } else { checksum };
        udp[6..8].copy_from_slice(&checksum.to_be_bytes());
    }
}
