//! Address resolution of IPv4 on Ethernet (RFC 826).

use std::net::Ipv4Addr;

use crate::frame::{Defect, Mac};

/// Bytes of a question or an answer.
pub const BYTES: usize = 28;
/// Ethernet, IPv4, and the lengths of their addresses.
const OF_ETHERNET_AND_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];

/// Question or answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Who has the target's address?
    Request,
    /// The sender has its address.
    Reply,
}

/// One question or answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arp {
    /// Which of both.
    pub operation: Operation,
    /// The sender's addresses.
    pub sender: (Mac, Ipv4Addr),
    /// The target's addresses; the hardware address of a question means nothing.
    pub target: (Mac, Ipv4Addr),
}

impl Arp {
    /// Who has `address`?
    #[must_use]
    pub fn question(sender: (Mac, Ipv4Addr), address: Ipv4Addr) -> Self {
        Self { operation: Operation::Request, sender, target: (Mac::NONE, address) }
    }

    /// The answer to this question of whoever has `mac`.
    #[must_use]
    pub fn answered(self, mac: Mac) -> Self {
        let (operation, sender) = (Operation::Reply, (mac, self.target.1));
        Self { operation, sender, target: self.sender }
    }

    /// Reads it; padding may follow.
    pub fn parse(bytes: &[u8]) -> Result<Self, Defect> {
        let (fixed, _) = bytes.split_first_chunk::<BYTES>().ok_or(Defect::Truncated("ARP"))?;
        let (sort, rest) = fixed.split_at(6);
        let operation = match u16::from_be_bytes([rest[0], rest[1]]) {
            1 => Operation::Request,
            2 => Operation::Reply,
            _ => return Err(Defect::OtherArp),
        };
        if sort != OF_ETHERNET_AND_IPV4 {
            return Err(Defect::OtherArp);
        }
        let one = |at: usize| {
            let (mut mac, mut ip) = ([0; 6], [0; 4]);
            mac.copy_from_slice(&rest[at..at + 6]);
            ip.copy_from_slice(&rest[at + 6..at + 10]);
            (Mac(mac), Ipv4Addr::from(ip))
        };
        Ok(Self { operation, sender: one(2), target: one(12) })
    }

    /// As it stands in a frame of kind [`ARP`](crate::frame::kind::ARP).
    #[must_use]
    pub fn bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..6].copy_from_slice(&OF_ETHERNET_AND_IPV4);
        bytes[7] = match self.operation {
            Operation::Request => 1,
            Operation::Reply => 2,
        };
        for (at, (mac, ip)) in [(8, self.sender), (18, self.target)] {
            bytes[at..at + 6].copy_from_slice(&mac.0);
            bytes[at + 6..at + 10].copy_from_slice(&ip.octets());
        }
        bytes
    }
}
