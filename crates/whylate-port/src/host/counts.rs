//! What became of the frames that a host saw: nothing is dropped without a count.

use crate::frame::{Defect, Verified};
use crate::frames::Drops;

/// What a port over whole frames saw.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrameCounts {
    /// What it made of the frames that it received.
    pub host: HostCounts,
    /// What was dropped before it, by ring, as the kernel counts it.
    pub drops: Vec<Drops>,
}

/// What a host made of the frames that it received. They add up to all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostCounts {
    /// Messages handed on.
    pub messages: u64,
    /// Questions for its addresses, answered.
    pub answered: u64,
    /// Questions for its addresses, not answered: the sending ring was full.
    pub not_answered: u64,
    /// Questions for other addresses, and answers.
    pub resolution: u64,
    /// Frames of other networks (VLAN).
    pub other_network: u64,
    /// Frames to other hardware or internet addresses.
    pub other_address: u64,
    /// Datagrams to other ports.
    pub other_port: u64,
    /// Datagrams from others than the server.
    pub stranger: u64,
    /// Neither UDP nor address resolution.
    pub other_protocol: u64,
    /// Fragments, which are not put together.
    pub fragments: u64,
    /// Cut off, or with a wrong checksum or length.
    pub damaged: u64,
    /// Of the messages: without a checksum.
    pub unverified: u64,
    /// Of the messages: with a checksum left to a network card that was not passed.
    pub left_to_card: u64,
}

impl HostCounts {
    /// All frames.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.messages
            + self.answered
            + self.not_answered
            + self.resolution
            + self.other_network
            + self.other_address
            + self.other_port
            + self.stranger
            + self.other_protocol
            + self.fragments
            + self.damaged
    }

    pub(crate) fn message(&mut self, verified: Verified) {
        self.messages += 1;
        match verified {
            Verified::Right => (),
            Verified::Absent => self.unverified += 1,
            Verified::LeftToCard => self.left_to_card += 1,
        }
    }

    pub(crate) fn not_ours(&mut self, why: NotOurs) {
        let count = match why {
            NotOurs::Network => &mut self.other_network,
            NotOurs::Address => &mut self.other_address,
            NotOurs::Port => &mut self.other_port,
            NotOurs::Stranger => &mut self.stranger,
            NotOurs::Resolution => &mut self.resolution,
            NotOurs::Defect(Defect::Fragment) => &mut self.fragments,
            NotOurs::Defect(defect) if defect.is_damage() => &mut self.damaged,
            NotOurs::Defect(_) => &mut self.other_protocol,
        };
        *count += 1;
    }
}

/// Why a frame is no message for this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotOurs {
    Network,
    Address,
    Port,
    Stranger,
    Resolution,
    Defect(Defect),
}
