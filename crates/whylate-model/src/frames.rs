//! A port of whole frames: its rings, where frames are taken, and what became of those that came.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// What a port of whole frames was, and what it saw until its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Frames {
    /// The interface, as it was called when it was opened.
    pub interface: String,
    /// Its hardware address.
    pub mac: String,
    /// The longest packet of IP that it sends, in bytes.
    #[serde(rename = "mtu_bytes")]
    pub mtu: u32,
    /// Its queues that are used; empty where the port gets the frames of all.
    pub queues: Vec<u32>,
    /// Frames in the ring of what was received.
    pub receive_ring: u32,
    /// Frames in the ring of what is to be sent.
    pub send_ring: u32,
    /// Bytes of a buffer.
    #[serde(rename = "buffer_bytes")]
    pub buffer: u32,
    /// The longest frame that it sends, in bytes.
    #[serde(rename = "room_bytes")]
    pub room: u64,
    /// Who copies a frame between the network card and the ring.
    pub copies: Copies,
    /// Where frames are taken out of the kernel's way; none where the kernel sees them as well.
    pub taken: Option<Taken>,
    /// Does the kernel say when it has to be woken?
    pub need_wakeup: bool,
    /// Does what is sent pass by the queueing discipline?
    pub bypasses_qdisc: bool,
    /// What was asked for and not to be had.
    pub instead: Vec<String>,
    /// What became of the frames that came; none where it is not known yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seen>,
    /// What the kernel dropped, by ring, where it dropped anything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drops: Vec<Drops>,
}

/// Who copies a frame between the network card and the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Copies {
    /// The kernel, once.
    Copy,
    /// Nobody: the card reads and writes the ring's memory.
    ZeroCopy,
    /// A driver in this process, which shares memory with the other end.
    Driver,
}

/// Where a program runs that looks at each frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Taken {
    /// In the driver.
    Native,
    /// In the network stack, behind the driver.
    Generic,
}

/// What the frames were that a port saw: each is one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Seen {
    /// Messages.
    pub messages: u64,
    /// Questions for the port's own address, answered.
    pub answered: u64,
    /// The same, not answered, because the sending ring was full.
    pub not_answered: u64,
    /// Questions for other addresses, and answers.
    pub resolution: u64,
    /// Of other networks (VLAN).
    pub other_network: u64,
    /// To other hardware or internet addresses.
    pub other_address: u64,
    /// To other ports.
    pub other_port: u64,
    /// From others than the server.
    pub stranger: u64,
    /// Neither UDP nor address resolution.
    pub other_protocol: u64,
    /// Fragments.
    pub fragments: u64,
    /// Cut off, or with a wrong checksum or length.
    pub damaged: u64,
    /// Of the messages: without a checksum.
    pub unverified: u64,
    /// Of the messages: with a checksum that was left to a network card.
    pub left_to_card: u64,
}

impl Seen {
    /// All frames; the last two are some of the messages.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.kinds().into_iter().fold(0, |sum, (_, frames)| sum.saturating_add(frames))
    }

    /// Each kind in words, with its frames.
    #[must_use]
    pub fn kinds(&self) -> [(&'static str, u64); 11] {
        [
            ("messages", self.messages),
            ("questions for its address, answered", self.answered),
            ("questions for its address, not answered", self.not_answered),
            ("other questions for addresses, and answers", self.resolution),
            ("of other networks (VLAN)", self.other_network),
            ("to other addresses", self.other_address),
            ("to other ports", self.other_port),
            ("from strangers", self.stranger),
            ("of other protocols", self.other_protocol),
            ("fragments", self.fragments),
            ("damaged", self.damaged),
        ]
    }
}

/// What was dropped at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Drops {
    /// The queue.
    pub queue: u32,
    /// The ring: `receive`, `send`, `fill`, `completion`.
    pub ring: String,
    /// The kernel's name of the counter.
    pub counter: String,
    /// How many.
    pub count: u64,
    /// Are these frames, or occasions that say why frames are missing which another counter has?
    pub frames: bool,
}

/// What a turn of a client's loop usually took that did one thing: what a packet costs the CPU, with
/// all that is done for it. The median of turns, followed by steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnCosts {
    /// It looked, and nothing had come.
    pub look: Cost,
    /// It took a message in: the port's work, and the account's.
    pub receive: Cost,
    /// It sent a message.
    pub send: Cost,
}

/// A cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cost {
    /// In ticks of the counter.
    pub ticks: u64,
    /// In time.
    #[serde(rename = "time_ns")]
    pub time: Nanos,
}

/// A program in the kernel that answers messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Program {
    /// The interface, as it was called when the program was attached.
    pub interface: String,
    /// Where it runs.
    pub taken: Taken,
    /// Why the driver does not run it, where that was asked first.
    pub native_refused: Option<String>,
    /// The kernel takes it away when its process ends, however that ends.
    pub held_by_process: bool,
    /// Its number in the kernel.
    pub id: u32,
    /// Its name in the kernel.
    pub name: String,
    /// Frames by what it did with them: it saw no others.
    pub frames: Vec<Judged>,
}

/// Frames with which a program did the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Judged {
    /// What.
    pub what: String,
    /// How many.
    pub frames: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_frames_add_up_and_checksums_are_no_kind() {
        let seen = Seen { messages: 5, damaged: 2, unverified: 4, stranger: 1, ..Seen::default() };
        assert_eq!(seen.all(), 8);
        let mut words: Vec<&str> = seen.kinds().iter().map(|kind| kind.0).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 11);
        assert_eq!(Seen { messages: u64::MAX, stranger: 9, ..seen }.all(), u64::MAX);
    }
}
